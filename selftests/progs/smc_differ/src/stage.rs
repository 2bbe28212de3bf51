// SPDX-License-Identifier: GPL-2.0

//! The sockets of one scenario.

use crate::call::{Call, To};
use crate::name;
use crate::patience::Patience;
use crate::state::Role;
use crate::world::{Mode, Network, Over};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use testlib::event::{poll_one, Epoll};
use testlib::opts::SIOCINQ;
use testlib::sock::{Family, RawAddr, Sock, AF_SMC};

/// Sockets that calls have made.
pub(crate) type Accepted = Mutex<Vec<Sock>>;

/// Addresses, as seen from one end.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) family: Family,
    pub(crate) own: IpAddr,
    pub(crate) other: IpAddr,
    /// The listener's address.
    pub(crate) server: SocketAddr,
    /// A bound port of the other end where nobody listens.
    pub(crate) closed: SocketAddr,
}

impl Place {
    /// Addresses for calls that need none.
    pub(crate) fn nowhere(family: Family) -> Place {
        let any = SocketAddr::new(family.any(), 0);
        Place {
            family,
            own: any.ip(),
            other: any.ip(),
            server: any,
            closed: any,
        }
    }

    /// The bytes of an address.
    pub(crate) fn address(&self, to: To) -> RawAddr {
        let any = self.family.any();
        let v6 = self.family.is_v6();
        let special = |v4: [u8; 4], six: [u16; 8]| {
            if v6 {
                IpAddr::V6(Ipv6Addr::from(six))
            } else {
                IpAddr::V4(Ipv4Addr::from(v4))
            }
        };
        let group = special([224, 0, 0, 1], [0xff02, 0, 0, 0, 0, 0, 0, 1]);
        let plain = match to {
            To::Server | To::Short(_) => self.server,
            To::Closed => self.closed,
            To::Silent => SocketAddr::new(self.neighbour(253), 7),
            To::Forbidden => SocketAddr::new(self.neighbour(252), 7),
            To::Broadcast => SocketAddr::new(self.neighbour(255), 7),
            To::NoRoute => SocketAddr::new(
                special([203, 0, 113, 1], [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]),
                7,
            ),
            To::Own => SocketAddr::new(self.own, 0),
            To::Any | To::Unspec | To::Unix | To::Smc => SocketAddr::new(any, 0),
            To::Foreign => SocketAddr::new(self.other, 0),
            To::PortZero => SocketAddr::new(self.other, 0),
            To::Multicast => SocketAddr::new(group, 7),
            To::Group => SocketAddr::new(group, 0),
        };
        let mut raw = RawAddr::from(plain);
        match to {
            To::Unspec => raw.storage.ss_family = libc::AF_UNSPEC as u16,
            To::Unix => raw.storage.ss_family = libc::AF_UNIX as u16,
            To::Smc => raw.storage.ss_family = AF_SMC as u16,
            To::Short(len) => raw.len = len,
            _ => {}
        }
        raw
    }

    /// An address of the network of the two ends, by its last byte. The tests' script lets packets
    /// to 253 vanish, and forbids those to 252.
    fn neighbour(&self, last: u8) -> IpAddr {
        match self.other {
            IpAddr::V4(ip) => {
                let [a, b, c, _] = ip.octets();
                IpAddr::V4(Ipv4Addr::new(a, b, c, last))
            }
            IpAddr::V6(ip) => {
                let mut words = ip.segments();
                words[7] = words[7] & 0xff00 | u16::from(last);
                IpAddr::V6(Ipv6Addr::from(words))
            }
        }
    }

    /// An address in words that are the same in each run.
    pub(crate) fn show(&self, addr: &RawAddr) -> String {
        let Ok(addr) = addr.decode() else {
            return format!("family {}", addr.family());
        };
        let ip = match addr.ip() {
            ip if ip == self.own => "own".into(),
            ip if ip == self.other => "other".into(),
            ip if ip.is_unspecified() => "any".into(),
            ip => ip.to_string(),
        };
        let port = match addr.port() {
            0 => "0",
            port if port == self.server.port() => "server",
            _ => "some",
        };
        let v6 = if addr.is_ipv6() { "6" } else { "4" };
        format!("{v6} {ip}:{port}")
    }
}

/// The sockets of one run of a scenario.
pub(crate) struct Stage<'a> {
    pub(crate) mode: &'a Mode,
    pub(crate) network: &'a Network,
    pub(crate) role: Role,
    pub(crate) place: Place,
    /// Addresses as the peer sees them.
    pub(crate) far: Place,
    pub(crate) subject: Arc<Sock>,
    pub(crate) peer: Option<Sock>,
    pub(crate) listener: Option<Sock>,
    /// Sockets that are only there to be there.
    pub(crate) kept: Vec<Sock>,
    pub(crate) more: Arc<Accepted>,
    pub(crate) task: Option<JoinHandle<String>>,
    pub(crate) epoll: Option<Epoll>,
}

/// How long to wait for what must come.
const SOON: Duration = Duration::from_secs(3);
/// How long a mask must stay as it is to count.
const STILL: Duration = Duration::from_millis(30);

/// Waits until the mask has the bits.
///
/// # Errors
///
/// The mask that was there in the end.
pub(crate) fn wait_mask(sock: &Sock, want: i16) -> Result<(), String> {
    let mut patience = Patience::new(SOON);
    loop {
        let got = poll_one(sock, name::ALL_EVENTS, 0).map_err(|e| e.to_string())?;
        if got & want == want {
            return Ok(());
        }
        if patience.is_over() {
            return Err(name::mask(got));
        }
        patience.turn();
    }
}

/// Waits until `want` bytes can be read, and says how it went.
pub(crate) fn wait_bytes(sock: &Sock, want: i32) -> String {
    let mut patience = Patience::new(SOON);
    loop {
        match sock.ioctl_int(SIOCINQ) {
            Ok(got) if got >= want => return "there".into(),
            Ok(got) if patience.is_over() => return format!("only {got}"),
            Ok(_) => patience.turn(),
            Err(e) => return e.to_string(),
        }
    }
}

/// The mask once it has not changed for a while; with an expectation, it is waited for.
pub(crate) fn still_mask(sock: &Sock, expected: Option<&str>) -> String {
    let mut patience = Patience::new(SOON);
    let mut seen = poll_one(sock, name::ALL_EVENTS, 0).map(name::mask);
    let mut still = Patience::new(STILL);
    loop {
        patience.turn();
        still.count_turn();
        let now = poll_one(sock, name::ALL_EVENTS, 0).map(name::mask);
        let (Ok(now), Ok(before)) = (now, &seen) else {
            return "poll() fails".into();
        };
        if now != *before {
            still = Patience::new(STILL);
        }
        let text = now.clone();
        seen = Ok(now);
        let fits = expected.is_none_or(|expected| expected == text);
        if still.is_over() && (fits || patience.is_over()) {
            return text;
        }
    }
}

impl Stage<'_> {
    /// Carries out a call on the socket under test.
    pub(crate) fn call(&self, call: &Call) -> String {
        call.perform(&self.subject, &self.place, &self.more)
    }

    /// Carries out a call on the socket at the other end.
    pub(crate) fn peer_call(&self, call: &Call) -> String {
        match &self.peer {
            Some(peer) => call.perform(peer, &self.far, &self.more),
            None => "no peer".into(),
        }
    }

    /// Begins to watch the socket under test by edge-triggered epoll.
    pub(crate) fn watch(&mut self) -> String {
        let events = i32::from(name::ALL_EVENTS) | libc::EPOLLET;
        let made = Epoll::new().and_then(|epoll| {
            epoll.add(&self.subject, events, 0)?;
            Ok(epoll)
        });
        match made {
            Ok(epoll) => {
                self.epoll = Some(epoll);
                String::new()
            }
            Err(error) => name::errno(&error),
        }
    }

    /// All that epoll has told since it was asked last, once it is still; with an expectation,
    /// that is waited for.
    pub(crate) fn edges(&self, expected: Option<&str>) -> String {
        let Some(epoll) = &self.epoll else {
            return "nothing is watched".into();
        };
        let mut patience = Patience::new(SOON);
        let mut still = Patience::new(STILL);
        let mut seen = 0;
        loop {
            patience.turn();
            still.count_turn();
            let Ok(events) = epoll.wait(0) else {
                return "epoll_wait() fails".into();
            };
            if !events.is_empty() {
                still = Patience::new(STILL);
            }
            seen |= events.iter().fold(0, |bits, (_, more)| bits | more);
            let text = name::mask(seen as i16);
            let fits = expected.is_none_or(|expected| expected == text);
            if still.is_over() && (fits || patience.is_over()) {
                return text;
            }
        }
    }

    /// Begins a call on the socket under test that may block.
    pub(crate) fn start(&mut self, call: Call) {
        let (subject, place, more) = (self.subject.clone(), self.place.clone(), self.more.clone());
        self.task = Some(std::thread::spawn(move || {
            call.perform(&subject, &place, &more)
        }));
    }

    /// What came of the call that was begun; gives it some time, and leaves it if it blocks.
    pub(crate) fn join(&mut self, limit: Duration) -> String {
        let Some(task) = self.task.take() else {
            return "nothing was begun".into();
        };
        let mut patience = Patience::new(limit);
        while !task.is_finished() {
            if patience.is_over() {
                self.task = Some(task);
                return "blocks".into();
            }
            patience.turn();
        }
        task.join().unwrap_or_else(|_| "the thread panicked".into())
    }

    /// Checks that a connected socket uses what the mode says.
    ///
    /// # Errors
    ///
    /// A sentence if it does not.
    pub(crate) fn check_use(&self) -> Result<(), String> {
        check_kind(&self.subject, self.mode.over)
    }
}

/// Checks that a connected socket uses what is said.
///
/// # Errors
///
/// A sentence if it does not.
pub(crate) fn check_kind(sock: &Sock, over: Over) -> Result<(), String> {
    const SOL_SMC: i32 = 286;
    const SMC_INFO: i32 = 64;
    let want = match over {
        Over::Tcp => return Ok(()),
        Over::Rdma => 1,
        Over::Fallback => 2,
    };
    let mut info = [0_u8; 128];
    sock.get_bytes(SOL_SMC, SMC_INFO, &mut info, 128)
        .map_err(|e| format!("SMC_INFO cannot be read: {e}"))?;
    if info[0] == want {
        return Ok(());
    }
    let reason = u32::from_ne_bytes([info[4], info[5], info[6], info[7]]);
    Err(format!(
        "the connection is of kind {} and must be of kind {want}, reason {reason:#010x}",
        info[0]
    ))
}

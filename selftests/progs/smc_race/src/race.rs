// SPDX-License-Identifier: GPL-2.0

//! What the races share: who takes part, for how long, and what went wrong first.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use testlib::pattern::Rng;
use testlib::process::{enter_netns, in_netns};
use testlib::sock::{Family, Sock};

/// How long a call may take before it counts as one that hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// Where the ends are.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) server_ns: String,
    pub(crate) client_ns: String,
    pub(crate) ip: IpAddr,
}

/// One race while it is run.
pub(crate) struct Race {
    pub(crate) place: Place,
    seed: u64,
    until: Instant,
    over: AtomicBool,
    fault: Mutex<Option<String>>,
    /// How often the thing that is raced for was done.
    done: AtomicU64,
}

impl Race {
    pub(crate) fn new(place: Place, seed: u64, time: Duration) -> Race {
        Race {
            place,
            seed,
            until: Instant::now() + time,
            over: AtomicBool::new(false),
            fault: Mutex::new(None),
            done: AtomicU64::new(0),
        }
    }

    /// Whether there is time left and nothing went wrong.
    pub(crate) fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed) && Instant::now() < self.until
    }

    /// Random numbers of one participant.
    pub(crate) fn rng(&self, participant: u64) -> Rng {
        Rng::new(self.seed.wrapping_mul(1000).wrapping_add(participant))
    }

    /// Counts something that was done.
    pub(crate) fn count(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes what went wrong, if it is the first, and ends the race.
    pub(crate) fn fault(&self, text: String) {
        self.over.store(true, Ordering::Relaxed);
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.get_or_insert(text);
    }

    /// How often something was done.
    ///
    /// # Errors
    ///
    /// What went wrong, or that nothing was done.
    pub(crate) fn result(self) -> Result<u64, String> {
        let fault = self.fault.into_inner();
        match fault.unwrap_or_else(PoisonError::into_inner) {
            Some(text) => Err(text),
            None if self.done.load(Ordering::Relaxed) == 0 => {
                Err("nothing was done in all the time".to_owned())
            }
            None => Ok(self.done.into_inner()),
        }
    }

    /// Runs `body` until the race is over, in a namespace; its error is the race's.
    pub(crate) fn repeat(&self, ns: &str, mut body: impl FnMut() -> Result<(), String>) {
        if let Err(e) = enter_netns(ns) {
            self.fault(format!("namespace {ns}: {e}"));
        }
        while self.goes_on() {
            if let Err(text) = body() {
                self.fault(text);
            }
        }
    }

    /// A listener on a free port of the server's namespace, and its address; one of IPv6 is on all
    /// addresses.
    ///
    /// # Errors
    ///
    /// The error of a system call.
    pub(crate) fn listener(&self, family: Family) -> io::Result<(Sock, SocketAddr)> {
        let ip = if family.is_v6() {
            family.any()
        } else {
            self.place.ip
        };
        in_netns(Some(&self.place.server_ns), || {
            let sock = Sock::listener(family, ip, 0, 64)?;
            let to = sock.local()?;
            Ok((sock, to))
        })
    }
}

/// A short random time.
pub(crate) fn pause(rng: &mut Rng, most_us: u64) {
    let time = rng.log_range(1, most_us.max(1));
    // Half of the pauses are none at all.
    if rng.one_in(2) {
        std::thread::sleep(Duration::from_micros(time));
    }
}

/// A socket whose calls return within a time.
///
/// # Errors
///
/// The error of a system call.
pub(crate) fn socket(family: Family, limit: Duration) -> io::Result<Sock> {
    let sock = Sock::new(family)?;
    limit_calls(&sock, limit)?;
    Ok(sock)
}

/// Lets the calls on a socket return within a time.
///
/// # Errors
///
/// The error of a system call.
pub(crate) fn limit_calls(sock: &Sock, limit: Duration) -> io::Result<()> {
    sock.set_timeout(libc::SO_RCVTIMEO, limit)?;
    sock.set_timeout(libc::SO_SNDTIMEO, limit)
}

/// Takes an error for what a peer that goes away can cause, or for a fault.
///
/// # Errors
///
/// A sentence that names the call.
pub(crate) fn fair(call: &str, error: &io::Error) -> Result<(), String> {
    match error.raw_os_error() {
        Some(
            libc::ECONNREFUSED
            | libc::ECONNRESET
            | libc::ECONNABORTED
            | libc::EPIPE
            | libc::ENOTCONN
            | libc::ESHUTDOWN
            | libc::ENETUNREACH
            | libc::EPROTO
            | libc::ETIMEDOUT,
        ) => Ok(()),
        None if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        Some(libc::EAGAIN | libc::EINPROGRESS) => {
            Err(format!("{call} did not return within {PATIENCE:?}"))
        }
        _ => Err(format!("{call} failed with an unexpected error: {error}")),
    }
}

/// Runs a program.
///
/// # Errors
///
/// What it wrote to standard error, when it fails.
pub(crate) fn run(line: &str) -> Result<(), String> {
    let mut words = line.split_whitespace();
    let done = Command::new(words.next().unwrap_or_default())
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{line}: {e}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!(
        "{line}: {}",
        String::from_utf8_lossy(&done.stderr).trim()
    ))
}

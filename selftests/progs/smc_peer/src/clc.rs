// SPDX-License-Identifier: GPL-2.0

//! The handshake over TCP.

use crate::link::Link;
use crate::message::mac_of;
use smc_proto::ids::{
    AlertToken, BufSize, Eid, EidList, Gid, GidList, HostName, Ipv4Prefix, Ipv6PrefixList, PathMtu,
    PeerId, Psn, Qpn, Release, Rkey, RmbeIndex, Version, VirtAddr, OS_TYPE_LINUX,
};
use smc_proto::reason::DeclineReason;
use smc_proto::wire::clc::{
    Accept, Confirm, Decline, Endpoint, FirstContactExt, Header, Message, PathType, Proposal,
    RdmaEndpoint, V1Offer, V21Limits, V2Fields, V2Offer, HEADER_LEN, MAX_LEN,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use testlib::event::poll_one;
use testlib::sock::{Family, Sock};

/// Longest time for a message of the handshake.
pub(crate) const CLC_LIMIT: Duration = Duration::from_secs(25);

/// Who this peer is in one case.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Address of the server.
    pub(crate) at: SocketAddr,
    /// Address of this peer's RDMA device.
    pub(crate) own: Ipv4Addr,
    pub(crate) eid: Eid,
    /// Differs between cases, so that none meets the link group of another.
    pub(crate) number: u16,
    /// The version that this peer speaks.
    pub(crate) version: Version,
    /// Rings of a link, one for each connection.
    pub(crate) rings: usize,
}

impl Identity {
    pub(crate) fn gid(&self) -> Gid {
        Gid::from_ipv4(self.own.octets())
    }

    fn peer_id(&self) -> PeerId {
        PeerId::new(self.number.to_be_bytes(), mac_of(self.number))
    }

    /// A TCP connection to the server.
    pub(crate) fn connect(&self) -> Result<Sock, String> {
        let sock = Sock::new(Family::Tcp).map_err(|e| format!("socket: {e}"))?;
        sock.connect(self.at).map_err(|e| format!("connect: {e}"))?;
        set_up(&sock)?;
        Ok(sock)
    }

    pub(crate) fn listen(addr: Ipv4Addr, port: u16) -> Result<Sock, String> {
        Sock::listener(Family::Tcp, IpAddr::V4(addr), port, 16)
            .map_err(|e| format!("cannot listen on {addr}:{port}: {e}"))
    }

    /// This peer's end of connection `ring` of `link`.
    pub(crate) fn endpoint(&self, link: &Link, ring: usize) -> RdmaEndpoint {
        RdmaEndpoint {
            peer_id: self.peer_id(),
            gid: self.gid(),
            mac: mac_of(self.number),
            qpn: Qpn::new(link.qpn()).unwrap_or_else(|| unreachable!("queue pair 0 is reserved")),
            rkey: Rkey(link.rkey()),
            rmbe_index: RmbeIndex::FIRST,
            token: token(ring),
            buf_size: BufSize::MIN,
            mtu: PathMtu::from_code(3),
            rmb_addr: VirtAddr(link.ring_address(ring)),
            psn: Psn::new(link.psn()),
        }
    }

    /// A Proposal over RDMA for the version of this peer.
    pub(crate) fn proposal(&self) -> Message {
        Message::Proposal(match self.version {
            Version::V1 => self.proposal_v1(),
            Version::V2 => self.proposal_v2(),
        })
    }

    fn proposal_v1(&self) -> Proposal {
        Proposal {
            version: 1,
            typev1: PathType::Rdma,
            typev2: PathType::None,
            peer_id: self.peer_id(),
            v1: Some(V1Offer {
                gid: self.gid(),
                mac: mac_of(self.number),
                subnet: Ipv4Prefix::new(self.own.octets(), 24),
                v6: Ipv6PrefixList::EMPTY,
            }),
            smcd_v1: None,
            v2: None,
        }
    }

    fn proposal_v2(&self) -> Proposal {
        let mut eids = EidList::EMPTY;
        // An empty list of this kind has room for eight.
        let _ = eids.push(self.eid);
        Proposal {
            version: 2,
            typev1: PathType::None,
            typev2: PathType::Rdma,
            peer_id: self.peer_id(),
            v1: None,
            smcd_v1: None,
            v2: Some(V2Offer {
                release: Release::V2_1,
                eids,
                roce_gid: self.gid(),
                max_conns: 255,
                max_links: 1,
                ..V2Offer::EMPTY
            }),
        }
    }

    /// An Accept for the client's offer, if it is the first contact in version 2.
    pub(crate) fn accept(&self, link: &Link, ring: usize, first: Option<&V2Offer>) -> Accept {
        let fce = first.map(|offer| FirstContactExt {
            v2_direct: true,
            os_type: OS_TYPE_LINUX,
            release: Release::V2_1,
            host: HostName::new(b"smc-peer"),
            v21: Some(V21Limits {
                max_conns: offer.max_conns,
                max_links: 1,
                features: 0,
            }),
        });
        Accept {
            version: self.version,
            first_contact: first.is_some(),
            endpoint: Endpoint::Rdma(self.endpoint(link, ring)),
            v2: (self.version == Version::V2).then_some(V2Fields {
                eid: self.eid,
                fce,
                gids: GidList::EMPTY,
            }),
        }
    }

    /// The Confirm that fits an Accept.
    pub(crate) fn confirm(&self, link: &Link, ring: usize, accept: &Accept) -> Confirm {
        let mut gids = GidList::EMPTY;
        if accept.first_contact {
            // An empty list of this kind has room for eight.
            let _ = gids.push(self.gid());
        }
        Confirm {
            version: self.version,
            first_contact: accept.first_contact,
            endpoint: Endpoint::Rdma(self.endpoint(link, ring)),
            v2: accept.v2.map(|v2| V2Fields { gids, ..v2 }),
        }
    }

    pub(crate) fn decline(&self, reason: DeclineReason) -> Message {
        Message::Decline(Decline {
            version: self.version,
            reason,
            peer_id: self.peer_id(),
            out_of_sync: reason.is_out_of_sync(),
            os_type: OS_TYPE_LINUX,
        })
    }
}

/// The token that this peer gives out for the connection with this ring.
pub(crate) const fn token(ring: usize) -> AlertToken {
    AlertToken(0x5a00_0001 + ring as u32)
}

/// Every send in a segment of its own, and no send that blocks for ever.
pub(crate) fn set_up(sock: &Sock) -> Result<(), String> {
    sock.set_int(libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)
        .and_then(|()| sock.set_timeout(libc::SO_SNDTIMEO, Duration::from_secs(10)))
        .map_err(|e| format!("setsockopt: {e}"))
}

pub(crate) fn send(sock: &Sock, message: &Message) -> Result<(), String> {
    let mut buf = [0u8; MAX_LEN];
    let len = message
        .emit(&mut buf)
        .unwrap_or_else(|e| unreachable!("a message of this program cannot be written: {e}"));
    sock.send_all(&buf[..len]).map_err(|e| format!("send: {e}"))
}

/// Fills `buf`; false at the end of the stream.
fn fill(sock: &Sock, buf: &mut [u8], end: Instant) -> Result<bool, String> {
    let mut got = 0;
    while got < buf.len() {
        if Instant::now() > end {
            return Err(format!(
                "{got} of {} bytes came over TCP in time",
                buf.len()
            ));
        }
        if poll_one(sock, libc::POLLIN, 50).map_err(|e| format!("poll: {e}"))? == 0 {
            continue;
        }
        match sock.recv(&mut buf[got..], 0) {
            Ok(0) => return Ok(false),
            Ok(n) => got += n,
            Err(e) => return Err(format!("recv: {e}")),
        }
    }
    Ok(true)
}

/// Reads one message of the handshake.
pub(crate) fn read(sock: &Sock, limit: Duration) -> Result<Message, String> {
    let end = Instant::now() + limit;
    let mut head = [0u8; HEADER_LEN];
    if !fill(sock, &mut head, end)? {
        return Err("the TCP connection ended instead of a message".into());
    }
    let header = Header::parse(&head).map_err(|e| format!("{head:02x?} is no header: {e}"))?;
    let mut bytes = head.to_vec();
    bytes.resize(header.length, 0);
    if !fill(sock, &mut bytes[HEADER_LEN..], end)? {
        return Err("the TCP connection ended within a message".into());
    }
    Message::parse(&bytes).map_err(|e| format!("{bytes:02x?} cannot be read: {e}"))
}

/// Reads a Decline; gives its reason.
pub(crate) fn read_decline(sock: &Sock, limit: Duration) -> Result<DeclineReason, String> {
    match read(sock, limit)? {
        Message::Decline(decline) => Ok(decline.reason),
        other => Err(format!("a Decline was expected, not {other:?}")),
    }
}

/// Sends application data over TCP and reads its echo.
pub(crate) fn echo_over_tcp(sock: &Sock) -> Result<(), String> {
    const DATA: &[u8] = b"this goes over TCP";
    sock.send_all(DATA).map_err(|e| format!("send: {e}"))?;
    let mut back = [0u8; DATA.len()];
    if !fill(sock, &mut back, Instant::now() + CLC_LIMIT)? {
        return Err("the TCP connection ended instead of an echo".into());
    }
    if back != DATA {
        return Err(format!("other bytes came back over TCP: {back:02x?}"));
    }
    Ok(())
}

/// Waits until the TCP connection has ended, whatever comes before.
pub(crate) fn await_tcp_end(sock: &Sock, limit: Duration) -> Result<(), String> {
    let end = Instant::now() + limit;
    let mut buf = [0u8; 256];
    while Instant::now() < end {
        if poll_one(sock, libc::POLLIN, 50).map_err(|e| format!("poll: {e}"))? == 0 {
            continue;
        }
        if matches!(sock.recv(&mut buf, 0), Ok(0) | Err(_)) {
            return Ok(());
        }
    }
    Err(format!(
        "the TCP connection is still there after {} s",
        limit.as_secs()
    ))
}

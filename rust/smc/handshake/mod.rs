// SPDX-License-Identifier: GPL-2.0

//! Driving the CLC handshake over a TCP connection.
//!
//! `smc_proto` decides what to send and what an answer means; this module reads and writes the
//! bytes, finds or creates the link group, and brings up the link. It runs in a work item and may
//! sleep, but for no longer than the protocol's time-outs.

pub(crate) mod client;
mod ports;
pub(crate) mod server;
pub(crate) mod steps;

use kernel::{
    prelude::*,
    sync::Arc, //
};
use smc_kapi::{
    module::now_ms,
    net::{
        sock::Flag,
        TcpSocket, //
    },
    pr_info_ratelimited, //
};
use smc_proto::{
    handshake::{
        self,
        LateClc,
        Outcome, //
    },
    ids::Version,
    reason::DeclineReason,
    wire::{
        self,
        clc::{
            Header,
            Kind,
            Message,
            RdmaEndpoint,
            HEADER_LEN,
            MAX_LEN,
            MAX_RECEIVE_LEN, //
        }, //
    },
};

use crate::smc::{
    conn::{
        Connection,
        Names, //
    },
    global::Global,
    lgr::{
        buffers::Wish,
        Ending,
        LinkGroup, //
    },
    link::Link,
    netns::NetState,
    stats::Side, //
};
use steps::Clock;

/// What a handshake needs to know about its connection.
pub(crate) struct Handshake<'a> {
    pub(crate) global: &'a Arc<Global>,
    pub(crate) net: &'a Arc<NetState>,
    pub(crate) tcp: &'a TcpSocket,
    /// The side this host is on.
    pub(crate) side: Side,
    /// Times the steps.
    pub(crate) clock: &'a Clock,
    pub(crate) wish: Wish,
}

/// How a handshake ended.
pub(crate) enum End {
    /// Data goes over SMC-R.
    Smc(Arc<Connection>),
    /// Data stays on TCP.
    Tcp(Fallback),
    /// The TCP connection is of no use any more and is to be reset.
    Broken(Error),
}

/// Why a connection stays on TCP.
pub(crate) struct Fallback {
    pub(crate) reason: DeclineReason,
    /// What the peer gave as its reason.
    pub(crate) peer_reason: DeclineReason,
    /// Handshake messages that may still arrive.
    pub(crate) late: LateClc,
}

impl Fallback {
    /// A fallback before any handshake message was sent.
    pub(crate) const fn quiet(reason: DeclineReason) -> Self {
        Self {
            reason,
            peer_reason: DeclineReason(0),
            late: LateClc::NONE,
        }
    }
}

/// Why a handshake cannot go on.
enum Stop {
    /// The protocol says so; `awaited` is the message that was waited for.
    Protocol(Outcome, Option<Kind>),
    /// The TCP connection failed.
    Tcp(Error),
    /// A message has the form of one and cannot be understood.
    Unreadable(wire::Error),
}

impl From<Outcome> for Stop {
    fn from(outcome: Outcome) -> Self {
        Stop::Protocol(outcome, None)
    }
}

impl From<DeclineReason> for Stop {
    fn from(reason: DeclineReason) -> Self {
        Stop::Protocol(Outcome::Decline(reason), None)
    }
}

impl Handshake<'_> {
    /// Reads one CLC message, as long as its header says and no further.
    fn read(&self, awaited: Kind, wait_ms: u64) -> Result<Message, Stop> {
        // Room for the longest message comes first: while nothing was taken from the stream it can
        // still be left to the program.
        let Ok(mut bytes) = KVec::with_capacity(MAX_RECEIVE_LEN, GFP_KERNEL) else {
            return Err(Stop::Protocol(
                Outcome::Decline(DeclineReason::MEM),
                Some(awaited),
            ));
        };
        let deadline = now_ms() + wait_ms;
        let mut head = [0; HEADER_LEN];
        if self.read_exact(&mut head, deadline)? == 0 {
            return Err(Stop::Protocol(
                Outcome::Decline(DeclineReason::TIMEOUT_CL),
                Some(awaited),
            ));
        }
        let header = match Header::parse(&head) {
            Ok(header) => header,
            Err(error) => return Err(self.skip(&head, error, deadline)),
        };
        // The rest is read whole, also what a newer version may have added to the message.
        bytes
            .extend_from_slice(&head, GFP_KERNEL)
            .map_err(no_memory)?;
        bytes
            .resize(header.length, 0, GFP_KERNEL)
            .map_err(no_memory)?;
        if let Some(body) = bytes.get_mut(HEADER_LEN..) {
            // The header came without the rest: the stream is stuck within a message.
            if self.read_exact(body, deadline)? < body.len() {
                return Err(Stop::Protocol(Outcome::TIMED_OUT, None));
            }
        }
        Message::parse(&bytes).map_err(Stop::Unreadable)
    }

    /// A message that will be declined for its header: its body must not be taken for data of the
    /// program.
    fn skip(&self, head: &[u8; HEADER_LEN], error: wire::Error, deadline: u64) -> Stop {
        if error.decline_reason().is_some() {
            let body = Header::stated_length(head).saturating_sub(HEADER_LEN);
            let mut bytes = KVec::new();
            if bytes.resize(body, 0, GFP_KERNEL).is_err() {
                return Stop::Protocol(Outcome::TIMED_OUT, None);
            }
            match self.read_exact(&mut bytes, deadline) {
                Ok(got) if got == body => {}
                Ok(_) => return Stop::Protocol(Outcome::TIMED_OUT, None),
                Err(stop) => return stop,
            }
        }
        Stop::Unreadable(error)
    }

    /// Fills `buf`; 0 when nothing at all came in time. Part of a message is neither one nor data,
    /// so that nobody could go on with the stream.
    fn read_exact(&self, buf: &mut [u8], deadline: u64) -> Result<usize, Stop> {
        let left = deadline.saturating_sub(now_ms());
        // CAST: a wait is a few seconds.
        let got = self.tcp.recv_within(buf, left as u32).map_err(Stop::Tcp)?;
        if got == 0 || got == buf.len() {
            Ok(got)
        } else {
            Err(Stop::Protocol(Outcome::TIMED_OUT, None))
        }
    }

    /// Sends one CLC message.
    fn send(&self, message: &Message) -> Result<(), Stop> {
        let mut buf = [0; MAX_LEN];
        let len = message
            .emit(&mut buf)
            .map_err(|_| Stop::from(DeclineReason::INTERR))?;
        let bytes = buf.get(..len).unwrap_or(&[]);
        self.tcp.send_all(bytes).map_err(Stop::Tcp)
    }

    /// Ends a handshake that cannot go on: tells the peer where it has to know.
    fn stop(&self, stop: Stop, version: Version) -> End {
        match stop {
            Stop::Unreadable(error) => self.stop(Outcome::from(error).into(), version),
            Stop::Protocol(Outcome::Decline(reason), awaited) => {
                let decline = handshake::decline(self.global.peer_id(), version, reason);
                match self.send(&Message::Decline(decline)) {
                    Ok(()) => End::Tcp(Fallback {
                        reason,
                        peer_reason: DeclineReason(0),
                        late: LateClc::after_decline(awaited),
                    }),
                    Err(stop) => {
                        self.net.stats.count_handshake_error(self.side);
                        match stop {
                            Stop::Tcp(error) => End::Broken(error),
                            _ => End::Broken(EPROTO),
                        }
                    }
                }
            }
            Stop::Protocol(Outcome::PeerDeclined { reason, .. }, _) => End::Tcp(Fallback {
                reason: DeclineReason::PEERDECL,
                peer_reason: reason,
                late: LateClc::NONE,
            }),
            Stop::Protocol(Outcome::Abort(fault), _) => {
                self.net.stats.count_handshake_error(self.side);
                pr_info_ratelimited!(
                    "A connection is reset because in its handshake {}.\n",
                    fault.describe()
                );
                End::Broken(EPROTO)
            }
            Stop::Tcp(error) => {
                self.net.stats.count_handshake_error(self.side);
                End::Broken(error)
            }
        }
    }

    /// Addresses of the TCP connection.
    fn names(&self) -> Result<Names, Stop> {
        Ok(Names {
            local: self.tcp.local_addr().map_err(Stop::Tcp)?,
            peer: self.tcp.peer_addr().map_err(Stop::Tcp)?,
        })
    }

    /// Whether the program wants the urgent byte in the stream. The TCP socket has the program's
    /// options: those set on its socket, or those of its listener.
    fn oob_inline(&self) -> bool {
        self.tcp.sock().flag(Flag::UrgInline)
    }

    /// Our end of a connection, as the peer is told it.
    fn endpoint(&self, link: &Link, conn: &Connection) -> Result<RdmaEndpoint, Stop> {
        let rmb = conn.rmb();
        Ok(RdmaEndpoint {
            peer_id: self.global.peer_id(),
            gid: link.gid(),
            mac: link.mac(),
            qpn: link.qpn().ok_or(DeclineReason::INTERR)?,
            rkey: rmb.rmb().rkey(),
            rmbe_index: rmb.index(),
            token: conn.token(),
            buf_size: rmb.size(),
            mtu: Some(link.port.mtu),
            rmb_addr: rmb.rmb().address(),
            psn: link.psn,
        })
    }
}

/// A link group whose first contact fails unless [`FirstContact::succeed`] is called.
struct FirstContact(Option<Arc<LinkGroup>>);

impl FirstContact {
    fn new(group: Arc<LinkGroup>) -> Self {
        Self(Some(group))
    }

    fn succeed(mut self, global: &Global) -> Result<(), Stop> {
        if let Some(group) = self.0.take() {
            group.activate().map_err(|_| DeclineReason::NOACTLINK)?;
            global.groups.end_superseded(&group);
        }
        Ok(())
    }
}

impl Drop for FirstContact {
    fn drop(&mut self) {
        if let Some(group) = self.0.take() {
            group.end_now(Ending::FirstContactFailed);
        }
    }
}

/// A reserved connection that is given back, or kept out of use, unless the handshake succeeds.
struct Reservation {
    conn: Option<Arc<Connection>>,
    /// The peer was told where to write, so nobody else may get the buffers.
    told_peer: bool,
}

impl Reservation {
    fn new(conn: Arc<Connection>) -> Self {
        Self {
            conn: Some(conn),
            told_peer: false,
        }
    }

    /// The connection is live; the group's table keeps it from now on.
    fn keep(mut self) -> Result<Arc<Connection>, Stop> {
        let conn = self.conn.take().ok_or(DeclineReason::INTERR)?;
        conn.established();
        Ok(conn)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            if self.told_peer {
                conn.abandon();
            } else {
                conn.group().forget(&conn);
            }
        }
    }
}

fn no_memory<E>(_: E) -> Stop {
    DeclineReason::MEM.into()
}

/// The reason to give for a failure to get buffers or a link.
fn resource_reason(error: Error) -> DeclineReason {
    match error {
        ENOMEM => DeclineReason::MEM,
        ENOLINK => DeclineReason::NOACTLINK,
        ENODEV => DeclineReason::NOSMCRDEV,
        // The peer did not take the key of our buffer.
        EREMOTEIO | EBUSY => DeclineReason::ERR_REGBUF,
        EHOSTUNREACH | ENETUNREACH => DeclineReason::NOROUTE,
        _ => DeclineReason::INTERR,
    }
}

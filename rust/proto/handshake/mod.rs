// SPDX-License-Identifier: GPL-2.0

//! The CLC handshake on the TCP connection (RFC 7609 sections 3.5 and C.1 to C.6).
//!
//! Each expected message is a type of its own whose `handle` consumes it and gives the next one, so
//! that a message cannot be taken in the wrong place. Whoever calls reads and writes the bytes and
//! keeps the time.

pub mod client;
pub mod late;
mod select;
pub mod server;

pub use client::{Accepted, AwaitAccept, Client};
pub use late::{LateClc, Scan};
pub use server::{AwaitConfirm, AwaitProposal, Confirmed, Selected};

use crate::ids::{
    Eid, Gid, HostName, Ipv4Prefix, Ipv6Prefix, Mac, PathMtu, PeerId, Release, Version,
    OS_TYPE_LINUX,
};
use crate::lgr::{MAX_CONNS, MIN_NEGOTIATED_CONNS};
use crate::reason::DeclineReason;
use crate::wire::clc::{Decline, FirstContactExt, Kind, Message, V21Limits};
use crate::wire::Error;

/// How long to wait for a CLC message, in milliseconds.
///
/// The time is this side's choice (RFC 7609 section C.5). It has to cover a burst of hundreds of
/// connections, each of which waits for those before it.
pub const CLC_WAIT_MS: u64 = 10_000;

/// How long a server waits for the first byte of a Proposal, in milliseconds. A client whose SYN-ACK
/// lost the option on the way waits for the server to speak, and must not wait for long.
pub const PROPOSAL_WAIT_MS: u64 = 6_000;

/// How long after a fallback the head of the TCP stream is searched for late messages, in
/// milliseconds.
pub const LATE_CLC_MS: u64 = 10_000;

/// The most links a link group of this implementation has.
pub const MAX_LINKS: u8 = 2;

/// What this host can do on one connection.
#[derive(Clone, Copy, Debug)]
pub struct Caps<'a> {
    /// This host.
    pub peer_id: PeerId,
    /// Version 1, when there is a usable port for it.
    pub v1: Option<V1Caps<'a>>,
    /// Version 2, when there is a usable port for it and an enterprise ID is set.
    pub v2: Option<V2Caps<'a>>,
    /// Name of this host.
    pub host: HostName,
    /// The most connections wanted in a link group, 16 to 255.
    pub max_conns: u8,
    /// The most links wanted in a link group, 1 to [`MAX_LINKS`].
    pub max_links: u8,
    /// Largest path MTU of the port.
    pub mtu: PathMtu,
}

/// What this host can do in version 1.
#[derive(Clone, Copy, Debug)]
pub struct V1Caps<'a> {
    /// GID of the port.
    pub gid: Gid,
    /// MAC address of the port.
    pub mac: Mac,
    /// IPv4 subnets of the interface; empty for an IPv6 connection.
    pub subnets: &'a [Ipv4Prefix],
    /// IPv6 prefixes of the interface, without link-local ones; empty for an IPv4 connection.
    pub v6: &'a [Ipv6Prefix],
}

/// What this host can do in version 2.
#[derive(Clone, Copy, Debug)]
pub struct V2Caps<'a> {
    /// RoCEv2 GID of the port.
    pub gid: Gid,
    /// Enterprise IDs, the preferred one first; at most eight are offered.
    pub eids: &'a [Eid],
    /// The highest release to speak.
    pub release: Release,
}

impl Caps<'_> {
    /// The limits of release 2.1 within their legal ranges.
    const fn limits(&self) -> V21Limits {
        V21Limits {
            max_conns: if self.max_conns < MIN_NEGOTIATED_CONNS {
                MIN_NEGOTIATED_CONNS
            } else {
                self.max_conns
            },
            max_links: match self.max_links {
                0 | 1 => 1,
                _ => MAX_LINKS,
            },
            features: 0,
        }
    }
}

/// What is used where nothing was negotiated: version 1 and release 2.0.
///
/// Such a peer always goes through the exchange for a second link.
const UNNEGOTIATED: V21Limits = V21Limits {
    max_conns: MAX_CONNS,
    max_links: MAX_LINKS,
    features: 0,
};

/// Why the handshake does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Send a Decline with this reason and stay on TCP.
    Decline(DeclineReason),
    /// The peer declined: stay on TCP. Nothing more is sent.
    PeerDeclined {
        /// The peer's reason.
        reason: DeclineReason,
        /// The peer wants the link group ended: both sides' views of it differ.
        out_of_sync: bool,
    },
    /// The two ends no longer agree about the byte stream: reset the TCP connection (C.6).
    Abort(Fault),
}

/// What makes falling back to TCP impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The bytes are not a CLC message.
    Wire(Error),
    /// A CLC message of a type that does not belong here.
    Unexpected(Kind),
    /// A Confirm that does not match the Accept, too late for a Decline (C.3).
    Mismatch(DeclineReason),
}

impl Fault {
    /// Says in one sentence what went wrong.
    pub const fn describe(&self) -> &'static str {
        match self {
            Self::Wire(error) => error.describe(),
            Self::Unexpected(_) => "the peer sent a handshake message out of turn",
            Self::Mismatch(reason) => reason.describe(),
        }
    }
}

impl From<Error> for Outcome {
    /// A message with a well-formed frame and an unknown value is declined; anything else leaves the
    /// stream in doubt.
    fn from(error: Error) -> Self {
        match error.decline_reason() {
            Some(reason) => Self::Decline(reason),
            None => Self::Abort(Fault::Wire(error)),
        }
    }
}

impl From<Decline> for Outcome {
    fn from(decline: Decline) -> Self {
        Self::PeerDeclined {
            reason: decline.reason,
            out_of_sync: decline.out_of_sync,
        }
    }
}

impl Outcome {
    /// The outcome of a message that is not the expected one: a Decline is always in order.
    pub(crate) const fn unexpected(message: &Message) -> Self {
        match message {
            Message::Decline(decline) => Self::PeerDeclined {
                reason: decline.reason,
                out_of_sync: decline.out_of_sync,
            },
            Message::Proposal(_) => Self::Abort(Fault::Unexpected(Kind::Proposal)),
            Message::Accept(_) => Self::Abort(Fault::Unexpected(Kind::Accept)),
            Message::Confirm(_) => Self::Abort(Fault::Unexpected(Kind::Confirm)),
        }
    }

    /// The outcome of waiting for a message in vain: the TCP connection is not healthy (C.5).
    pub const TIMED_OUT: Self = Self::Abort(Fault::Wire(Error::Truncated {
        needed: crate::wire::clc::HEADER_LEN,
        available: 0,
    }));
}

/// Builds the Decline for `reason`.
///
/// `version` is the highest one that both sides speak as far as that is known.
pub fn decline(peer_id: PeerId, version: Version, reason: DeclineReason) -> Decline {
    Decline {
        version,
        reason,
        peer_id,
        out_of_sync: reason == DeclineReason::SYNCERR,
        os_type: OS_TYPE_LINUX,
    }
}

/// What a client does about the link group (C.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupChoice {
    /// The server sees a first contact: make a new link group.
    Create,
    /// Both sides have the link group: use it.
    Join,
    /// The server names a link group that is not there: decline with [`DeclineReason::SYNCERR`].
    OutOfSync,
}

impl GroupChoice {
    /// Decides from the server's flag and from whether the link that the Accept names is alive here.
    pub const fn decide(first_contact: bool, link_is_known: bool) -> Self {
        match (first_contact, link_is_known) {
            (true, _) => Self::Create,
            (false, true) => Self::Join,
            (false, false) => Self::OutOfSync,
        }
    }
}

/// The first-contact extension of this host.
fn extension(host: HostName, direct: bool, release: Release, limits: V21Limits) -> FirstContactExt {
    FirstContactExt {
        v2_direct: direct,
        os_type: OS_TYPE_LINUX,
        release,
        host,
        v21: release.has_v2_1_fields().then_some(limits),
    }
}

// SPDX-License-Identifier: GPL-2.0

//! LLC exchanges on one link, without I/O (RFC 7609 sections 3.5.5 and C.7, appendix A.3).
//!
//! A received message or the passing of time goes in; a message to send and an event come out. What
//! belongs to no exchange under way is dropped; what cannot be right is a [`Violation`].
//!
//! Times are milliseconds of any steady clock, the same one for all calls.

mod delete_link;
mod rkey;
mod setup;
mod test_link;

use crate::ids::{Gid, LinkId, LinkUid, Mac, PathMtu, Psn, Qpn, Rkey, Version};
use crate::lgr::{Role, Rtoken, RtokenTable};
use crate::reason::DeclineReason;
use crate::wire::llc::{Body, DeleteLinkReason, Message, RkeyAnswer};
use core::ops::{Deref, DerefMut};
use rkey::Local;
pub use rkey::MAX_DELETE_V1;
use setup::Setup;
use test_link::Probe;

/// How long the server waits for the answer to the first CONFIRM LINK, in milliseconds.
pub const FIRST_WAIT_MS: u64 = 5_000;

/// When the server sends its first CONFIRM LINK once more, in milliseconds, if there is no answer.
///
/// Linux as client takes it only once it has come back from sending its Confirm, and drops one that
/// is faster, which happens where other work keeps that thread from its processor. It waits for four
/// seconds.
pub const FIRST_REPEAT_MS: u64 = 2_000;

/// How long the client waits for the first CONFIRM LINK, in milliseconds.
///
/// Twice as long as the server: the one whose message got lost is to give up first, so that the
/// Declines of both do not cross.
pub const FIRST_WAIT_CLIENT_MS: u64 = 2 * FIRST_WAIT_MS;

/// How long to wait for any other answer, in milliseconds, when nothing else comes from the peer.
///
/// A peer that is busy with hundreds of handshakes answers late, and giving up costs all connections
/// of the link group.
pub const WAIT_MS: u64 = 8_000;

/// How long to wait for the answer about a key or to a test while other messages of the peer arrive,
/// in milliseconds: on a link that is given more than it can carry, all of them are late.
pub const BUSY_WAIT_MS: u64 = 3 * WAIT_MS;

/// How long the client waits for the server's ADD LINK, in milliseconds.
pub const ADD_WAIT_CLIENT_MS: u64 = 2 * WAIT_MS;

/// How long a link may be silent before it is probed, in milliseconds, unless configured.
pub const TEST_LINK_MS: u64 = 30_000;

/// One end of a link, as told in the CLC messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEnd {
    /// MAC address of the port.
    pub mac: Mac,
    /// GID of the port.
    pub gid: Gid,
    /// The queue pair.
    pub qpn: Qpn,
}

/// What is known about a link when its queue pair is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkParams {
    /// Version of the link group.
    pub version: Version,
    /// The link group negotiated its limits (release 2.1).
    pub negotiated: bool,
    /// This side.
    pub role: Role,
    /// This end.
    pub local: LinkEnd,
    /// The peer's end.
    pub peer: LinkEnd,
    /// Number under which this host shows the link.
    pub link_uid: LinkUid,
    /// Links the group may have; with more than one the exchange for a second link takes place.
    pub max_links: u8,
    /// Connections the group may have.
    pub max_conns: u8,
    /// Path MTU of the link.
    pub mtu: PathMtu,
    /// First packet sequence number this end uses.
    pub psn: Psn,
    /// How long the link may be silent before it is probed, in milliseconds; 0 for never.
    pub test_link_ms: u64,
}

/// Something the owner of the link has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// First contact is over: the link carries connections.
    Ready,
    /// First contact failed: decline with this reason, and give up the link group.
    Failed(DeclineReason),
    /// The peer answered CONFIRM RKEY for one of this side's RMBs.
    RkeyConfirmed {
        /// The RMB's key.
        rkey: Rkey,
        /// What the peer said.
        answer: RkeyAnswer,
    },
    /// The peer answered DELETE RKEY; the RMBs may be freed.
    RkeysDeleted {
        /// Some of the keys were not known to the peer.
        negative: bool,
    },
    /// The link does not work any more. The link group goes with its last link.
    LinkDown(DownCause),
    /// The peer ends the link group. If there is something to send, it goes out first.
    GroupEnds(DeleteLinkReason),
}

/// Why a link is taken for dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownCause {
    /// The peer did not answer TEST LINK in time.
    Silent,
    /// The peer did not answer another message in time.
    NoAnswer,
}

impl DownCause {
    /// What the peer left without an answer, to go into a sentence.
    pub const fn unanswered(self) -> &'static str {
        match self {
            Self::Silent => "a test of the link",
            Self::NoAnswer => "a request",
        }
    }
}

/// What the peer did that cannot be right; the link is out of step and is to be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The message has the form of another version than the link group's.
    WrongVersion,
    /// The answer to TEST LINK brought back other data.
    WrongEcho,
    /// The answer to a message about keys names another key.
    WrongKey,
}

impl Violation {
    /// Says in one sentence what went wrong.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::WrongVersion => "the peer sent a link message of another protocol version",
            Self::WrongEcho => "the peer answered a link test with other data",
            Self::WrongKey => "the peer answered for a remote key it was not asked about",
        }
    }
}

/// An exchange of the same kind is under way, or the link is not ready for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// What comes out of an input: at most one message and at most one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step<'m> {
    /// To be sent on the link.
    pub send: Option<Message<'m>>,
    /// To be acted upon after the message was handed over.
    pub event: Option<Event>,
}

impl<'m> Step<'m> {
    const NOTHING: Self = Self {
        send: None,
        event: None,
    };

    const fn send(message: Message<'m>) -> Self {
        Self {
            send: Some(message),
            event: None,
        }
    }

    const fn event(event: Event) -> Self {
        Self {
            send: None,
            event: Some(event),
        }
    }

    const fn and(self, event: Event) -> Self {
        Self {
            send: self.send,
            event: Some(event),
        }
    }
}

/// The LLC side of one link.
#[derive(Clone, Debug)]
pub struct LinkFlow {
    params: LinkParams,
    /// Number of the link; the client learns it from CONFIRM LINK.
    link: LinkId,
    /// The peer's number for the link.
    peer_uid: LinkUid,
    setup: Setup,
    local: Local,
    probe: Probe,
}

impl LinkFlow {
    /// The server's side of a new link; the message starts the exchange.
    pub fn server(params: LinkParams, link: LinkId, now: u64) -> (Self, Message<'static>) {
        let mut flow = Self::new(params, link, now);
        let first = flow.start_server(now);
        (flow, first)
    }

    /// The client's side of a new link, which waits for the server.
    pub fn client(params: LinkParams, now: u64) -> Self {
        let mut flow = Self::new(params, LinkId(0), now);
        flow.start_client(now);
        flow
    }

    fn new(params: LinkParams, link: LinkId, now: u64) -> Self {
        Self {
            params,
            link,
            peer_uid: LinkUid(0),
            setup: Setup::Ready,
            local: Local::Idle,
            probe: Probe::new(now),
        }
    }

    /// Number of the link in its group; 0 until the client knows it.
    pub const fn link(&self) -> LinkId {
        self.link
    }

    /// The number under which the peer shows the link.
    pub const fn peer_uid(&self) -> LinkUid {
        self.peer_uid
    }

    /// Whether first contact is over and the link works.
    pub const fn is_ready(&self) -> bool {
        matches!(self.setup, Setup::Ready)
    }

    /// Takes a message that arrived on the link.
    ///
    /// `rmbs` are the RMBs the peer announced on this link; the peer adds and removes them.
    ///
    /// # Errors
    ///
    /// A [`Violation`], after which the link is of no use.
    pub fn handle<'m, S>(
        &mut self,
        message: &Message<'m>,
        rmbs: &mut RtokenTable<S>,
        now: u64,
    ) -> Result<Step<'m>, Violation>
    where
        S: Deref<Target = [Rtoken]> + DerefMut,
    {
        if message.version != self.params.version {
            return Err(Violation::WrongVersion);
        }
        self.on_traffic(now);
        match &message.body {
            Body::TestLink(body) => self.on_test_link(message.response, body),
            Body::DeleteLink(body) => Ok(self.on_delete_link(message.response, body)),
            Body::ConfirmLink(body) => Ok(self.on_confirm_link(message.response, body, now)),
            Body::AddLink(body) => Ok(self.on_add_link(message.response, body, now)),
            Body::ConfirmRkey(body) if message.response => self.on_rkey_confirmed(body),
            Body::ConfirmRkey(body) => Ok(self.on_confirm_rkey(body, rmbs)),
            Body::ConfirmRkeyCont(body) if !message.response => Ok(self.on_more_rkeys(body)),
            Body::DeleteRkey(body) if message.response => Ok(self.on_rkeys_deleted(body)),
            Body::DeleteRkey(body) => Ok(self.on_delete_rkey(body, rmbs)),
            // There is no second port to add a link with.
            Body::RequestAddLink(_) | Body::AddLinkCont(_) | Body::ConfirmRkeyCont(_) => {
                Ok(Step::NOTHING)
            }
        }
    }

    /// Notes that anything arrived on the link, a CDC message for example: it is alive.
    pub fn on_traffic(&mut self, now: u64) {
        self.probe.on_traffic(now);
    }

    /// When [`LinkFlow::poll`] has to be called, unless something happens before.
    pub fn deadline(&self) -> Option<u64> {
        [
            self.setup.deadline(),
            self.local_deadline(),
            self.probe_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Does what is due at `now`; to be repeated while [`LinkFlow::deadline`] is not in the future.
    pub fn poll(&mut self, now: u64) -> Step<'static> {
        let due = |deadline: Option<u64>| deadline.is_some_and(|at| at <= now);
        if due(self.setup.deadline()) {
            self.on_setup_timeout()
        } else if due(self.local_deadline()) {
            self.down(DownCause::NoAnswer)
        } else if due(self.probe_deadline()) {
            self.on_probe_due(now)
        } else {
            Step::NOTHING
        }
    }

    /// When the answer to a request of `asked` is given up.
    fn answer_due(&self, asked: u64) -> u64 {
        let alive_at = self.probe.heard().max(asked);
        let latest = asked.saturating_add(BUSY_WAIT_MS);
        alive_at.saturating_add(WAIT_MS).min(latest)
    }

    /// The link is dead: nothing is waited for any more.
    fn down(&mut self, cause: DownCause) -> Step<'static> {
        self.setup = Setup::Over;
        self.local = Local::Idle;
        Step::event(Event::LinkDown(cause))
    }

    const fn request<'m>(&self, body: Body<'m>) -> Message<'m> {
        Message {
            version: self.params.version,
            response: false,
            body,
        }
    }

    const fn response<'m>(&self, body: Body<'m>) -> Message<'m> {
        Message {
            version: self.params.version,
            response: true,
            body,
        }
    }
}

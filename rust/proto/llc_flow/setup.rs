// SPDX-License-Identifier: GPL-2.0

//! First contact on a link: CONFIRM LINK, and ADD LINK where a second link is possible
//! (RFC 7609 sections 3.5.1.5, 3.5.1.6, C.7 and C.8).
//!
//! This host has one port per link group. A peer that did not agree on a single link expects the
//! exchange for a second one nevertheless: the server names the port of the first link again, which
//! says that it has no other, and a client in the same position refuses.

use super::{
    DownCause, Event, LinkFlow, Step, ADD_WAIT_CLIENT_MS, FIRST_REPEAT_MS, FIRST_WAIT_CLIENT_MS,
    FIRST_WAIT_MS, WAIT_MS,
};
use crate::ids::LinkId;
use crate::lgr::Role;
use crate::reason::DeclineReason;
use crate::wire::llc::{
    AddLink, AddLinkExt, Body, ConfirmLink, DeleteLink, DeleteLinkReason, List, Message,
    RejectReason,
};

/// What is waited for before the link can be used, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setup {
    /// Client: the server's CONFIRM LINK.
    ConfirmRequest(u64),
    /// Server: the client's answer to CONFIRM LINK, which is sent once more if none comes.
    ConfirmResponse(u64),
    /// Server: the client's answer to CONFIRM LINK that was sent twice.
    RepeatedConfirmResponse(u64),
    /// Client: the server's ADD LINK.
    AddRequest(u64),
    /// Server: the client's answer to ADD LINK.
    AddResponse(u64),
    /// Server: the client's answer to the removal of the link it had agreed to.
    DeleteResponse(u64),
    /// Nothing: the link can be used.
    Ready,
    /// Nothing: the link is given up.
    Over,
}

impl Setup {
    pub(super) const fn deadline(self) -> Option<u64> {
        match self {
            Self::ConfirmRequest(at)
            | Self::ConfirmResponse(at)
            | Self::RepeatedConfirmResponse(at)
            | Self::AddRequest(at)
            | Self::AddResponse(at)
            | Self::DeleteResponse(at) => Some(at),
            Self::Ready | Self::Over => None,
        }
    }

    /// Whether an exchange changes the links of the group, during which keys may not change.
    pub(super) const fn changes_links(self) -> bool {
        matches!(
            self,
            Self::AddRequest(_) | Self::AddResponse(_) | Self::DeleteResponse(_)
        )
    }
}

impl LinkFlow {
    pub(super) fn start_server(&mut self, now: u64) -> Message<'static> {
        self.setup = Setup::ConfirmResponse(now.saturating_add(FIRST_REPEAT_MS));
        self.request(self.own_confirm())
    }

    pub(super) fn start_client(&mut self, now: u64) {
        self.setup = Setup::ConfirmRequest(now.saturating_add(FIRST_WAIT_CLIENT_MS));
    }

    pub(super) fn on_confirm_link<'m>(
        &mut self,
        response: bool,
        body: &ConfirmLink,
        now: u64,
    ) -> Step<'m> {
        let expected = match self.setup {
            Setup::ConfirmRequest(_) => !response,
            Setup::ConfirmResponse(_) | Setup::RepeatedConfirmResponse(_) => {
                response && body.link == self.link
            }
            _ => false,
        };
        if !expected {
            return Step::NOTHING;
        }
        if !body.no_rmbe_eyecatcher {
            return self.fail(DeclineReason::RMBE_EC);
        }
        let same_end = body.gid == self.params.peer.gid && body.qpn == self.params.peer.qpn;
        if !same_end || body.link == LinkId(0) {
            return self.fail(DeclineReason::CNFERR);
        }
        self.peer_uid = body.link_uid;
        match self.params.role {
            Role::Client => self.confirm_to_server(body.link, now),
            Role::Server => self.after_confirm(now),
        }
    }

    fn confirm_to_server<'m>(&mut self, link: LinkId, now: u64) -> Step<'m> {
        self.link = link;
        let answer = Step::send(self.response(self.own_confirm()));
        if self.params.max_links > 1 {
            self.setup = Setup::AddRequest(now.saturating_add(ADD_WAIT_CLIENT_MS));
            answer
        } else {
            self.setup = Setup::Ready;
            answer.and(Event::Ready)
        }
    }

    fn after_confirm<'m>(&mut self, now: u64) -> Step<'m> {
        if self.params.max_links <= 1 {
            return self.ready();
        }
        self.setup = Setup::AddResponse(now.saturating_add(WAIT_MS));
        Step::send(self.request(Body::AddLink(AddLink {
            link: self.second_link(),
            reject: None,
            ..self.own_add_link()
        })))
    }

    pub(super) fn on_add_link<'m>(
        &mut self,
        response: bool,
        body: &AddLink<'_>,
        now: u64,
    ) -> Step<'m> {
        match (self.setup, self.params.role, response) {
            (Setup::AddResponse(_), Role::Server, true) if body.link == self.second_link() => {
                if body.reject.is_some() {
                    return self.ready();
                }
                // The client has a second port, but this host has not.
                self.setup = Setup::DeleteResponse(now.saturating_add(WAIT_MS));
                Step::send(self.request(Body::DeleteLink(DeleteLink {
                    link: self.second_link(),
                    all: false,
                    orderly: true,
                    reason: DeleteLinkReason::LOST_PATH,
                })))
            }
            (Setup::AddRequest(_), Role::Client, false) => {
                self.setup = Setup::Ready;
                Step::send(self.refuse(body)).and(Event::Ready)
            }
            (Setup::Ready, Role::Client, false) => Step::send(self.refuse(body)),
            _ => Step::NOTHING,
        }
    }

    /// The client removed the second link it had agreed to.
    pub(super) fn on_second_link_deleted<'m>(&mut self, link: LinkId) -> Step<'m> {
        match self.setup {
            Setup::DeleteResponse(_) if link == self.second_link() => self.ready(),
            _ => Step::NOTHING,
        }
    }

    pub(super) fn on_setup_timeout(&mut self) -> Step<'static> {
        match self.setup {
            Setup::ConfirmResponse(at) => {
                let left = FIRST_WAIT_MS.saturating_sub(FIRST_REPEAT_MS);
                self.setup = Setup::RepeatedConfirmResponse(at.saturating_add(left));
                Step::send(self.request(self.own_confirm()))
            }
            Setup::ConfirmRequest(_) | Setup::RepeatedConfirmResponse(_) => {
                self.fail(DeclineReason::TIMEOUT_CL)
            }
            Setup::AddRequest(_) => self.fail(DeclineReason::TIMEOUT_AL),
            // The first link was confirmed, and the group can do without a second (C.8).
            Setup::AddResponse(_) => self.ready(),
            Setup::DeleteResponse(_) => self.down(DownCause::NoAnswer),
            Setup::Ready | Setup::Over => Step::NOTHING,
        }
    }

    fn ready<'m>(&mut self) -> Step<'m> {
        self.setup = Setup::Ready;
        Step::event(Event::Ready)
    }

    fn fail<'m>(&mut self, reason: DeclineReason) -> Step<'m> {
        self.setup = Setup::Over;
        Step::event(Event::Failed(reason))
    }

    /// The number that a second link would have.
    fn second_link(&self) -> LinkId {
        match self.link.0 {
            u8::MAX => LinkId(1),
            number => LinkId(number.saturating_add(1)),
        }
    }

    fn own_confirm<'m>(&self) -> Body<'m> {
        Body::ConfirmLink(ConfirmLink {
            mac: self.params.local.mac,
            gid: self.params.local.gid,
            qpn: self.params.local.qpn,
            link: self.link,
            link_uid: self.params.link_uid,
            max_links: self.params.max_links,
            max_conns: if self.params.negotiated {
                self.params.max_conns
            } else {
                0
            },
            no_rmbe_eyecatcher: true,
        })
    }

    /// An ADD LINK that names the port and queue pair of this link.
    fn own_add_link(&self) -> AddLink<'static> {
        AddLink {
            mac: self.params.local.mac,
            gid: self.params.local.gid,
            qpn: Some(self.params.local.qpn),
            link: self.link,
            mtu: Some(self.params.mtu),
            psn: self.params.psn,
            reject: None,
            ext: match self.params.version {
                crate::ids::Version::V1 => None,
                crate::ids::Version::V2 => Some(AddLinkExt {
                    v2_direct: true,
                    client_target_gid: self.params.peer.gid,
                    rkeys: List::EMPTY,
                }),
            },
        }
    }

    fn refuse(&self, request: &AddLink<'_>) -> Message<'static> {
        let reason = match request.mtu {
            Some(_) => RejectReason::NO_ALTERNATE_PATH,
            None => RejectReason::BAD_MTU,
        };
        self.response(Body::AddLink(AddLink {
            link: request.link,
            reject: Some(reason),
            // A refusal has no room for the extension of version 2.
            ext: None,
            ..self.own_add_link()
        }))
    }
}

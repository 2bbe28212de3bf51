// SPDX-License-Identifier: GPL-2.0

//! DELETE LINK: the end of a link or of the whole group (RFC 7609 sections 3.5.5.1 and A.3.4).
//!
//! The group has one link, so that the end of the link is the end of the group.

use super::setup::Setup;
use super::{Event, LinkFlow, Step};
use crate::ids::LinkId;
use crate::lgr::Role;
use crate::wire::llc::{Body, DeleteLink, DeleteLinkReason, Message};

impl LinkFlow {
    /// Ends the link group from this side. No answer is waited for: the group may be taken down as
    /// soon as the message was sent.
    pub fn end_group(&mut self, reason: DeleteLinkReason, orderly: bool) -> Message<'static> {
        self.setup = Setup::Over;
        self.request(all_links(reason, orderly))
    }

    pub(super) fn on_delete_link<'m>(&mut self, response: bool, body: &DeleteLink) -> Step<'m> {
        if response {
            return self.on_second_link_deleted(body.link);
        }
        if self.setup == Setup::Over {
            // Both sides end the group at the same time.
            return Step::NOTHING;
        }
        if !body.all && body.link != self.link {
            let unknown = DeleteLink {
                reason: DeleteLinkReason::UNKNOWN_LINK,
                ..*body
            };
            return Step::send(self.response(Body::DeleteLink(unknown)));
        }
        self.setup = Setup::Over;
        let ends = Event::GroupEnds(body.reason);
        match (self.params.role, body.all) {
            // The client only asks; the server is the one that deletes.
            (Role::Server, true) => Step::send(self.request(all_links(body.reason, body.orderly))),
            (Role::Server, false) => Step::send(self.request(Body::DeleteLink(*body))),
            (Role::Client, true) => Step::NOTHING,
            (Role::Client, false) => Step::send(self.response(Body::DeleteLink(DeleteLink {
                reason: DeleteLinkReason::NONE,
                ..*body
            }))),
        }
        .and(ends)
    }
}

const fn all_links<'m>(reason: DeleteLinkReason, orderly: bool) -> Body<'m> {
    Body::DeleteLink(DeleteLink {
        link: LinkId(0),
        all: true,
        orderly,
        reason,
    })
}

// SPDX-License-Identifier: GPL-2.0

//! The generic netlink family `SMC_RS` with its group `events`: what happens, for whoever listens.
//!
//! Attributes are only ever added.

use kernel::prelude::*;
use smc_kapi::{
    diag::{
        self,
        SOCKID_LEN, //
    },
    genl::{
        Builder,
        EventSlot,
        Family,
        FamilyRegistration,
        Operation, //
    },
};
use smc_proto::{
    genl::event::{
        self,
        attr,
        cmd,
        kind, //
    },
    ids::LinkId,
    reason::DeclineReason, //
};

use crate::smc::{
    conn::Connection,
    lgr::LinkGroup,
    sock::SmcSocket,
    stats::Side, //
};

static EVENTS: EventSlot = EventSlot::new();

/// The registration of the family.
pub(crate) type EventFamily = FamilyRegistration<EventGenl>;

/// The family.
pub(crate) struct EventGenl;

impl Family for EventGenl {
    const NAME: &'static CStr = c"SMC_RS";
    const VERSION: u8 = event::VERSION;
    const OPERATIONS: &'static [Operation] = &[];
    const GROUPS: &'static [&'static CStr] = &[c"events"];

    fn events() -> Option<&'static EventSlot> {
        Some(&EVENTS)
    }
}

/// A link group can be used, or ends, for a reason in words. Any context.
pub(crate) fn group(group: &LinkGroup, down: Option<&str>) {
    EVENTS.send(group.net().id(), cmd::EVENT, |out| {
        let kind = match down {
            None => kind::GROUP_UP,
            Some(_) => kind::GROUP_DOWN,
        };
        out.put_u8(attr::KIND, kind)?;
        put_group(out, group)?;
        put_reason(out, down)
    });
}

/// A link of a group can be used, or cannot be used any more, for a reason in words. Any context.
pub(crate) fn link(group: &LinkGroup, link: LinkId, down: Option<&str>) {
    EVENTS.send(group.net().id(), cmd::EVENT, |out| {
        let kind = match down {
            None => kind::LINK_UP,
            Some(_) => kind::LINK_DOWN,
        };
        out.put_u8(attr::KIND, kind)?;
        put_group(out, group)?;
        out.put_u8(attr::LINK, link.0)?;
        out.put_u8(attr::PORT, group.port.port)?;
        put_reason(out, down)
    });
}

/// A connection over SMC-R was made, or is over. Any context.
pub(crate) fn connection(conn: &Connection, up: bool) {
    let group = conn.group();
    EVENTS.send(group.net().id(), cmd::EVENT, |out| {
        let kind = if up {
            kind::CONNECTION_UP
        } else {
            kind::CONNECTION_DOWN
        };
        out.put_u8(attr::KIND, kind)?;
        put_group(out, group)?;
        out.put(attr::SOCKET, &conn.names.socket_id())
    });
}

/// A connection stays on TCP. Any context.
pub(crate) fn fallback(socket: &SmcSocket, side: Side, reason: DeclineReason, peer: DeclineReason) {
    EVENTS.send(socket.net.id(), cmd::EVENT, |out| {
        out.put_u8(attr::KIND, kind::FALLBACK)?;
        let id = socket
            .tcp()
            .map_or([0; SOCKID_LEN], |tcp| diag::socket_id(&tcp));
        out.put(attr::SOCKET, &id)?;
        out.put_u8(attr::SIDE, u8::from(side == Side::Server))?;
        out.put_u32(attr::REASON, reason.0)?;
        out.put_u32(attr::PEER_REASON, peer.0)
    });
}

fn put_group(out: &mut Builder, group: &LinkGroup) -> Result {
    out.put_u32(attr::GROUP, group.id)?;
    let name = group.port.device.name();
    out.put_text(attr::DEVICE, name.as_str().as_bytes())
}

/// What there is to say about why something is down.
fn put_reason(out: &mut Builder, down: Option<&str>) -> Result {
    match down {
        Some(text) if !text.is_empty() => out.put_text(attr::TEXT, text.as_bytes()),
        _ => Ok(()),
    }
}

// SPDX-License-Identifier: GPL-2.0

//! The family `SMC_RS`: what happens, as it happens.

use std::net::SocketAddr;

use serde::Serialize;
use smc_proto::genl::event::{attr, kind, FAMILY, GROUP, VERSION};

use crate::diag::endpoints;
use crate::{Attrs, Family, Reason, Result};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A link group can be used.
    GroupUp,
    /// A link group ends.
    GroupDown,
    /// A connection over SMC-R was made.
    ConnectionUp,
    /// A connection over SMC-R is over.
    ConnectionDown,
    /// A connection stays on TCP.
    Fallback,
    /// A link of a link group can be used.
    LinkUp,
    /// A link of a link group cannot be used any more.
    LinkDown,
    /// Something that a newer kernel tells.
    Other,
}

impl EventKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::GroupUp => "group up",
            Self::GroupDown => "group down",
            Self::ConnectionUp => "connection up",
            Self::ConnectionDown => "connection down",
            Self::Fallback => "fallback",
            Self::LinkUp => "link up",
            Self::LinkDown => "link down",
            Self::Other => "other",
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// What it was.
    pub kind: EventKind,
    /// Number of the link group.
    pub group: Option<u32>,
    /// Number of the link within its group.
    pub link: Option<u8>,
    /// RDMA device.
    pub device: String,
    /// Port of the device.
    pub port: Option<u8>,
    /// Address here.
    pub local: Option<SocketAddr>,
    /// Address of the peer.
    pub peer: Option<SocketAddr>,
    /// This host is the server's side.
    pub server: bool,
    /// Reason of a fallback.
    pub reason: Reason,
    /// The peer's reason.
    pub peer_reason: Reason,
    /// Why, in words.
    pub text: String,
}

impl Event {
    fn parse(attrs: &Attrs) -> Self {
        let ends = attrs.bytes(attr::SOCKET).map(endpoints);
        Self {
            kind: match attrs.u8(attr::KIND) {
                Some(kind::GROUP_UP) => EventKind::GroupUp,
                Some(kind::GROUP_DOWN) => EventKind::GroupDown,
                Some(kind::CONNECTION_UP) => EventKind::ConnectionUp,
                Some(kind::CONNECTION_DOWN) => EventKind::ConnectionDown,
                Some(kind::FALLBACK) => EventKind::Fallback,
                Some(kind::LINK_UP) => EventKind::LinkUp,
                Some(kind::LINK_DOWN) => EventKind::LinkDown,
                _ => EventKind::Other,
            },
            group: attrs.u32(attr::GROUP),
            link: attrs.u8(attr::LINK),
            device: attrs.text(attr::DEVICE).unwrap_or_default(),
            port: attrs.u8(attr::PORT),
            local: ends.map(|ends| ends.0),
            peer: ends.map(|ends| ends.1),
            server: attrs.flag(attr::SIDE),
            reason: Reason(attrs.u32(attr::REASON).unwrap_or(0)),
            peer_reason: Reason(attrs.u32(attr::PEER_REASON).unwrap_or(0)),
            text: attrs.text(attr::TEXT).unwrap_or_default(),
        }
    }
}

/// The events of the caller's network namespace from now on.
pub struct Events(Family);

impl Events {
    /// Begins to listen.
    ///
    /// # Errors
    ///
    /// [`crate::Error::NoFamily`] when the kernel's SMC tells no events.
    pub fn open() -> Result<Self> {
        let family = Family::open(FAMILY.name, VERSION)?;
        family.subscribe(GROUP)?;
        Ok(Self(family))
    }

    /// Waits for the next events.
    ///
    /// # Errors
    ///
    /// When events were lost ([`crate::Error::is_overrun`]), or the kernel cannot be listened to.
    pub fn next(&self) -> Result<Vec<Event>> {
        let events = self.0.events()?;
        Ok(events
            .iter()
            .map(|(_, attrs)| Event::parse(attrs))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Writer;

    #[test]
    fn an_event_is_read_as_the_kernel_writes_it() {
        let mut id = [0; 48];
        id[..8].copy_from_slice(&[0x1b, 0x58, 0xc3, 0x50, 192, 0, 2, 7]);
        id[20..24].copy_from_slice(&[192, 0, 2, 9]);
        let bytes = Writer::new()
            .put(1, &[5])
            .put(4, &id)
            .put(5, &[1])
            .put(6, &0x0301_0000_u32.to_ne_bytes())
            .into_bytes();
        let event = Event::parse(&Attrs::parse(&bytes).expect("the lengths fit"));
        assert_eq!(event.kind, EventKind::Fallback);
        assert_eq!(
            event.local.map(|end| end.to_string()).as_deref(),
            Some("192.0.2.7:7000")
        );
        assert_eq!(
            event.peer.map(|end| end.to_string()).as_deref(),
            Some("192.0.2.9:50000")
        );
        assert!(event.server);
        assert_eq!(event.reason.name(), "PEERNOSMC");
        assert_eq!((event.group, event.link, event.port), (None, None, None));
        let newer = Writer::new().put(1, &[99]).into_bytes();
        let event = Event::parse(&Attrs::parse(&newer).expect("the lengths fit"));
        assert_eq!(event.kind, EventKind::Other);
    }

    #[test]
    fn a_link_has_its_number_and_port() {
        let bytes = Writer::new()
            .put(1, &[7])
            .put(2, &0x300_u32.to_ne_bytes())
            .put(3, b"rxe0\0")
            .put(9, &[1])
            .put(10, &[2])
            .put(8, b"its link failed\0")
            .into_bytes();
        let event = Event::parse(&Attrs::parse(&bytes).expect("the lengths fit"));
        assert_eq!(event.kind, EventKind::LinkDown);
        assert_eq!(
            (event.group, event.link, event.port),
            (Some(0x300), Some(1), Some(2))
        );
        assert_eq!((&*event.device, &*event.text), ("rxe0", "its link failed"));
    }
}

// SPDX-License-Identifier: GPL-2.0

//! LLC messages about links: CONFIRM, DELETE, REQUEST ADD and TEST LINK.

use super::list::{Item, List, ListWriter};
use super::Head;
use crate::ids::{Gid, LinkId, LinkUid, Mac, Psn, Qpn, Version};
use crate::wire::io::{Reader, Writer};
use crate::wire::Error;
use zerocopy::network_endian::U32;
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// CONFIRM LINK: first message on a new link, answered in kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfirmLink {
    /// MAC address of the sender's RoCE port.
    pub mac: Mac,
    /// GID of that port.
    pub gid: Gid,
    /// The sender's queue pair.
    pub qpn: Qpn,
    /// Number of the link, given out by the server and repeated by the client.
    pub link: LinkId,
    /// Number under which the sender shows the link.
    pub link_uid: LinkUid,
    /// Links per link group that the sender can have.
    pub max_links: u8,
    /// Connections per link group (release 2.1). 0 and not sent in version 1.
    pub max_conns: u8,
    /// The sender puts no eyecatcher at the start of RMB elements, so that
    /// cursors start at 0.
    pub no_rmbe_eyecatcher: bool,
}

/// DELETE LINK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteLink {
    /// The link, 0 if all links are meant.
    pub link: LinkId,
    /// All links of the group end.
    pub all: bool,
    /// Running work may finish first.
    pub orderly: bool,
    /// Why.
    pub reason: DeleteLinkReason,
}

/// Why a link ends, or why it could not be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteLinkReason(pub u32);

impl DeleteLinkReason {
    /// In an answer: the link was ended.
    pub const NONE: DeleteLinkReason = DeleteLinkReason(0);
    /// The path was lost.
    pub const LOST_PATH: DeleteLinkReason = DeleteLinkReason(0x0001_0000);
    /// An operator asked for it.
    pub const OPERATOR: DeleteLinkReason = DeleteLinkReason(0x0002_0000);
    /// The link group was not used.
    pub const INACTIVITY: DeleteLinkReason = DeleteLinkReason(0x0003_0000);
    /// The peer broke the LLC protocol.
    pub const LLC_VIOLATION: DeleteLinkReason = DeleteLinkReason(0x0004_0000);
    /// A symmetric link made an asymmetric one superfluous.
    pub const ASYMMETRIC_NOT_NEEDED: DeleteLinkReason = DeleteLinkReason(0x0005_0000);
    /// In an answer: there is no such link.
    pub const UNKNOWN_LINK: DeleteLinkReason = DeleteLinkReason(0x0010_0000);
    /// In an answer: there is no such link group. Not in RFC 7609.
    pub const UNKNOWN_GROUP: DeleteLinkReason = DeleteLinkReason(0x0020_0000);
}

/// REQUEST ADD LINK: the client asks for a link and says where it can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestAddLink<'a> {
    /// RoCE GIDs of the client.
    pub gids: List<'a, Gid>,
}

/// TEST LINK, answered at once with the same data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestLink {
    /// Opaque to the receiver.
    pub user_data: [u8; 16],
}

const FLAG_ALL: u8 = 0x40;
const FLAG_ORDERLY: u8 = 0x20;
/// Two bits that together say that there is no eyecatcher; one is taken for both.
const FLAGS_NO_EYECATCHER: u8 = 0x03;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireConfirmLink {
    mac: [u8; 6],
    gid: [u8; 16],
    qpn: [u8; 3],
    link: u8,
    link_uid: U32,
    max_links: u8,
    max_conns: u8,
    reserved: [u8; 8],
}

const _: () = assert!(size_of::<WireConfirmLink>() == 40);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireDeleteLink {
    link: u8,
    reason: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireRequestAddLink {
    reserved: [u8; 20],
    gid_count: u8,
    reserved2: [u8; 3],
}

fn qpn_field(bytes: [u8; 3]) -> Result<Qpn, Error> {
    Qpn::from_wire(bytes).ok_or_else(|| Error::field("QP number", Psn::from_wire(bytes).get()))
}

impl ConfirmLink {
    pub(super) fn read(head: &Head, reader: &mut Reader<'_>) -> Result<ConfirmLink, Error> {
        let wire: &WireConfirmLink = reader.read()?;
        Ok(ConfirmLink {
            mac: Mac(wire.mac),
            gid: Gid(wire.gid),
            qpn: qpn_field(wire.qpn)?,
            link: LinkId(wire.link),
            link_uid: LinkUid(wire.link_uid.get()),
            max_links: wire.max_links,
            max_conns: match head.version {
                Version::V1 => 0,
                Version::V2 => wire.max_conns,
            },
            no_rmbe_eyecatcher: head.flags & FLAGS_NO_EYECATCHER != 0,
        })
    }

    pub(super) fn flags(&self) -> u8 {
        if self.no_rmbe_eyecatcher {
            FLAGS_NO_EYECATCHER
        } else {
            0
        }
    }

    pub(super) fn write(&self, version: Version, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.write(&WireConfirmLink {
            mac: self.mac.0,
            gid: self.gid.0,
            qpn: self.qpn.to_wire(),
            link: self.link.0,
            link_uid: self.link_uid.0.into(),
            max_links: self.max_links,
            max_conns: match version {
                Version::V1 => 0,
                Version::V2 => self.max_conns,
            },
            reserved: [0; 8],
        })
    }
}

impl Item for Gid {
    const LEN: usize = 16;

    fn decode(bytes: &[u8]) -> Option<Gid> {
        bytes.first_chunk().copied().map(Gid)
    }

    fn encode(&self, writer: &mut ListWriter<'_, '_>) -> Result<(), Error> {
        writer.0.write(&self.0)
    }
}

impl DeleteLink {
    pub(super) fn read(head: &Head, reader: &mut Reader<'_>) -> Result<DeleteLink, Error> {
        let wire: &WireDeleteLink = reader.read()?;
        Ok(DeleteLink {
            link: LinkId(wire.link),
            all: head.flags & FLAG_ALL != 0,
            orderly: head.flags & FLAG_ORDERLY != 0,
            reason: DeleteLinkReason(wire.reason.get()),
        })
    }

    pub(super) fn flags(&self) -> u8 {
        let all = if self.all { FLAG_ALL } else { 0 };
        let orderly = if self.orderly { FLAG_ORDERLY } else { 0 };
        all | orderly
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.write(&WireDeleteLink {
            link: self.link.0,
            reason: self.reason.0.into(),
        })
    }
}

impl<'a> RequestAddLink<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<RequestAddLink<'a>, Error> {
        let wire: &WireRequestAddLink = reader.read()?;
        let gids = List::from_wire(reader.rest(), wire.gid_count)
            .ok_or_else(|| Error::field("number of GIDs", wire.gid_count))?;
        Ok(RequestAddLink { gids })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.write(&WireRequestAddLink {
            reserved: [0; 20],
            gid_count: self.gids.count("number of GIDs")?,
            reserved2: [0; 3],
        })?;
        self.gids.write(writer)
    }
}

impl TestLink {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<TestLink, Error> {
        let user_data: &[u8; 16] = reader.read()?;
        Ok(TestLink {
            user_data: *user_data,
        })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.write(&self.user_data)
    }
}

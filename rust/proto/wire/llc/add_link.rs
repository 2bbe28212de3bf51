// SPDX-License-Identifier: GPL-2.0

//! LLC messages that add a link: ADD LINK and its continuation.

use super::list::{Item, List, ListWriter};
use super::Head;
use crate::ids::{Gid, LinkId, Mac, PathMtu, Psn, Qpn, Rkey, Version, VirtAddr};
use crate::list::ArrayList;
use crate::wire::io::{Reader, Writer};
use crate::wire::Error;
use zerocopy::network_endian::{U32, U64};
use zerocopy::FromBytes as _;
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// ADD LINK: a new link, or the answer to one. The client sends it in version 1
/// also to ask for a link; queue pair and MTU then mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddLink<'a> {
    /// MAC address of the sender's RoCE port.
    pub mac: Mac,
    /// GID of that port.
    pub gid: Gid,
    /// The sender's queue pair for the new link.
    pub qpn: Option<Qpn>,
    /// Number of the new link.
    pub link: LinkId,
    /// Path MTU of the queue pair; `None` for a reserved value, which is to be
    /// refused with [`RejectReason::BAD_MTU`].
    pub mtu: Option<PathMtu>,
    /// First packet sequence number the sender will use.
    pub psn: Psn,
    /// In an answer: the link is refused.
    pub reject: Option<RejectReason>,
    /// Further fields of version 2; a refusal need not have them.
    pub ext: Option<AddLinkExt<'a>>,
}

/// What version 2 appends to ADD LINK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddLinkExt<'a> {
    /// The sender reaches the receiver's RoCE address without a gateway.
    pub v2_direct: bool,
    /// The client's GID that the server wants the new link to lead to.
    pub client_target_gid: Gid,
    /// Keys of the sender's RMBs on the new link.
    pub rkeys: List<'a, RkeyMapping>,
}

/// Why a client refuses a new link; four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectReason(u8);

impl RejectReason {
    /// Neither side has a second path.
    pub const NO_ALTERNATE_PATH: RejectReason = RejectReason(1);
    /// The MTU value is reserved.
    pub const BAD_MTU: RejectReason = RejectReason(2);

    /// The number of the reason, 0 to 15.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// The key of an RMB on a new link, beside the one by which it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RkeyMapping {
    /// Key on the link over which the message is sent.
    pub known: Rkey,
    /// Key on the new link.
    pub new: Rkey,
    /// Address on the new link.
    pub addr: VirtAddr,
}

/// ADD LINK CONTINUATION: two more keys for a new link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddLinkCont {
    /// Number of the new link.
    pub link: LinkId,
    /// Keys still to be told, with those in this message.
    pub remaining: u8,
    /// As many of them as the message holds, at most two.
    pub rkeys: ArrayList<RkeyMapping, 2>,
}

const FLAG_REJECT: u8 = 0x40;
const V2_DIRECT: u8 = 0x80;

/// The two reserved bytes after the MAC address are not in the figure of RFC
/// 7609, but in what peers send.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireAddLink {
    mac: [u8; 6],
    reserved: [u8; 2],
    gid: [u8; 16],
    qpn: [u8; 3],
    link: u8,
    mtu: u8,
    psn: [u8; 3],
    reserved2: [u8; 8],
}

const _: () = assert!(size_of::<WireAddLink>() == 40);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireAddLinkExt {
    flags: u8,
    reserved: u8,
    client_target_gid: [u8; 16],
    reserved2: [u8; 8],
    /// In the byte order of the sender.
    rkey_count: [u8; 2],
}

const _: () = assert!(size_of::<WireAddLinkExt>() == 28);

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireRkeyMapping {
    known: U32,
    new: U32,
    addr: U64,
}

const _: () = assert!(size_of::<WireRkeyMapping>() == 16);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireAddLinkCont {
    link: u8,
    remaining: u8,
    reserved: [u8; 2],
    rkeys: [WireRkeyMapping; 2],
    reserved2: [u8; 4],
}

const _: () = assert!(size_of::<WireAddLinkCont>() == 40);

impl<'a> AddLink<'a> {
    pub(super) fn read(head: &Head, reader: &mut Reader<'a>) -> Result<AddLink<'a>, Error> {
        let wire: &WireAddLink = reader.read()?;
        let has_ext = head.version == Version::V2 && !reader.rest().is_empty();
        let rejected = head.flags & FLAG_REJECT != 0;
        Ok(AddLink {
            mac: Mac(wire.mac),
            gid: Gid(wire.gid),
            qpn: Qpn::from_wire(wire.qpn),
            link: LinkId(wire.link),
            mtu: PathMtu::from_code(wire.mtu & 0x0f),
            psn: Psn::from_wire(wire.psn),
            reject: rejected.then_some(RejectReason(head.reason)),
            ext: if has_ext {
                Some(AddLinkExt::read(reader)?)
            } else {
                None
            },
        })
    }

    pub(super) fn flags(&self) -> u8 {
        match self.reject {
            Some(_) => FLAG_REJECT,
            None => 0,
        }
    }

    pub(super) fn reason(&self) -> u8 {
        self.reject.map_or(0, RejectReason::number)
    }

    pub(super) fn write(&self, version: Version, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.write(&WireAddLink {
            mac: self.mac.0,
            reserved: [0; 2],
            gid: self.gid.0,
            qpn: self.qpn.map_or([0; 3], Qpn::to_wire),
            link: self.link.0,
            mtu: self.mtu.map_or(0, PathMtu::code),
            psn: self.psn.to_wire(),
            reserved2: [0; 8],
        })?;
        match (&self.ext, version) {
            (None, _) => Ok(()),
            (Some(_), Version::V1) => Err(Error::field("ADD LINK extension", 1_u32)),
            // The reason lies over a part of the length, which must then be short.
            (Some(_), _) if self.reason() != 0 => Err(Error::field("reject reason", 2_u32)),
            (Some(ext), Version::V2) => ext.write(writer),
        }
    }
}

impl<'a> AddLinkExt<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<AddLinkExt<'a>, Error> {
        let wire: &WireAddLinkExt = reader.read()?;
        let native = u16::from_ne_bytes(wire.rkey_count);
        let rest = reader.rest();
        let list = |count: u16| List::from_wire(rest, u8::try_from(count).ok()?);
        Ok(AddLinkExt {
            v2_direct: wire.flags & V2_DIRECT != 0,
            client_target_gid: Gid(wire.client_target_gid),
            rkeys: list(native)
                .or_else(|| list(native.swap_bytes()))
                .ok_or_else(|| Error::field("number of keys", native))?,
        })
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        let count = self.rkeys.count("number of keys")?;
        writer.write(&WireAddLinkExt {
            flags: if self.v2_direct { V2_DIRECT } else { 0 },
            reserved: 0,
            client_target_gid: self.client_target_gid.0,
            reserved2: [0; 8],
            rkey_count: u16::from(count).to_ne_bytes(),
        })?;
        self.rkeys.write(writer)
    }
}

impl From<&WireRkeyMapping> for RkeyMapping {
    fn from(wire: &WireRkeyMapping) -> RkeyMapping {
        RkeyMapping {
            known: Rkey(wire.known.get()),
            new: Rkey(wire.new.get()),
            addr: VirtAddr(wire.addr.get()),
        }
    }
}

impl From<&RkeyMapping> for WireRkeyMapping {
    fn from(mapping: &RkeyMapping) -> WireRkeyMapping {
        WireRkeyMapping {
            known: mapping.known.0.into(),
            new: mapping.new.0.into(),
            addr: mapping.addr.0.into(),
        }
    }
}

impl Item for RkeyMapping {
    const LEN: usize = size_of::<WireRkeyMapping>();

    fn decode(bytes: &[u8]) -> Option<RkeyMapping> {
        let (wire, _) = WireRkeyMapping::ref_from_prefix(bytes).ok()?;
        Some(wire.into())
    }

    fn encode(&self, writer: &mut ListWriter<'_, '_>) -> Result<(), Error> {
        writer.0.write(&WireRkeyMapping::from(self))
    }
}

impl AddLinkCont {
    /// A message with the first two of `rkeys`; the others are for further ones.
    ///
    /// # Errors
    ///
    /// [`Error::BadField`] if there are more than 255.
    pub fn new(link: LinkId, rkeys: &[RkeyMapping]) -> Result<AddLinkCont, Error> {
        let remaining = List::new(rkeys).count("number of keys")?;
        let mut message = AddLinkCont {
            link,
            remaining,
            rkeys: ArrayList::filled_with(RkeyMapping::default()),
        };
        for mapping in rkeys {
            if message.rkeys.push(*mapping).is_err() {
                break;
            }
        }
        Ok(message)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<AddLinkCont, Error> {
        let wire: &WireAddLinkCont = reader.read()?;
        let mut message = AddLinkCont::new(LinkId(wire.link), &[])?;
        message.remaining = wire.remaining;
        for mapping in wire.rkeys.iter().take(wire.remaining.into()) {
            if message.rkeys.push(mapping.into()).is_err() {
                break;
            }
        }
        Ok(message)
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        if self.rkeys.count() != self.remaining.min(2) {
            return Err(Error::field("number of keys", self.remaining));
        }
        let entry = |index: usize| {
            let mapping = self.rkeys.get(index).copied().unwrap_or_default();
            WireRkeyMapping::from(&mapping)
        };
        writer.write(&WireAddLinkCont {
            link: self.link.0,
            remaining: self.remaining,
            reserved: [0; 2],
            rkeys: [entry(0), entry(1)],
            reserved2: [0; 4],
        })
    }
}

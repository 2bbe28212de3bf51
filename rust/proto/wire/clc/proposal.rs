// SPDX-License-Identifier: GPL-2.0

//! Proposal (RFC 7609 A.2.2): the client says what it can do.
//!
//! The message grew over time: a fixed part, an area that version 1 reserves for
//! growth and version 2 uses, the IP area, the version 2 extension with its
//! enterprise IDs, and the SMC-D extension with its devices. Each later part is
//! found through an offset, and unknown bytes may lie between them.

use super::offer::{IsmId, PathType, V1Offer, V2Offer};
use super::{emit_frame, Eyecatcher, Header, HeaderFields, Kind, Message};
use crate::ids::{Eid, Gid, Ipv4Prefix, Ipv6Prefix, Mac, PeerId, Release, MAX_LIST};
use crate::wire::io::{Reader, Writer};
use crate::wire::Error;
use zerocopy::network_endian::{U16, U64};
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A Proposal message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Highest version the client speaks; may be higher than any known here.
    pub version: u8,
    /// Transports offered for version 1.
    pub typev1: PathType,
    /// Transports offered for version 2.
    pub typev2: PathType,
    /// The client.
    pub peer_id: PeerId,
    /// Details for version 1; present exactly if a transport is offered for it.
    pub v1: Option<V1Offer>,
    /// Version 1 over shared memory: GID and channel ID of the ISM device.
    pub smcd_v1: Option<(u64, u16)>,
    /// Details for version 2. A peer may say in `typev2` that it offers version 2
    /// and leave them out; that is to be declined.
    pub v2: Option<V2Offer>,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireFixed {
    peer_id: [u8; 8],
    gid: [u8; 16],
    mac: [u8; 6],
    ip_offset: U16,
}

const _: () = assert!(size_of::<WireFixed>() == 32);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireGrowth {
    ism_gid: U64,
    ism_chid: U16,
    v2_offset: U16,
    vendor_oui: [u8; 3],
    vendor_options: [u8; 5],
    reserved: [u8; 20],
}

const _: () = assert!(size_of::<WireGrowth>() == 40);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireIpArea {
    subnet: [u8; 4],
    prefix_len: u8,
    reserved: [u8; 2],
    v6_count: u8,
}

const _: () = assert!(size_of::<WireIpArea>() == 8);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireV6Prefix {
    addr: [u8; 16],
    len: u8,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireV2 {
    eid_count: u8,
    ism_count: u8,
    reserved: u8,
    release_seid: u8,
    reserved2: [u8; 2],
    smcd_offset: U16,
    roce_gid: [u8; 16],
    max_conns: u8,
    max_links: u8,
    features: U16,
    reserved3: [u8; 12],
}

const _: () = assert!(size_of::<WireV2>() == 40);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireSmcdV2 {
    seid: [u8; 32],
    reserved: [u8; 16],
}

const _: () = assert!(size_of::<WireSmcdV2>() == 48);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireIsmId {
    gid: U64,
    chid: U16,
}

const FLAG_SEID: u8 = 0x01;

// Positions in the body, which begins after the header.
const GROWTH_POS: usize = size_of::<WireFixed>();
/// The IP area's offset is counted from the end of its field.
const IP_BASE: usize = GROWTH_POS;
/// The version 2 extension's offset is counted from the end of its field.
const V2_BASE: usize = GROWTH_POS + 12;
/// An offset below this would point into the growth area itself.
const V2_MIN_OFFSET: usize = 28;
/// The SMC-D extension's offset is counted from here in the version 2 extension.
const SMCD_BASE: usize = 8;
/// An offset below this would point into the version 2 extension itself.
const SMCD_MIN_OFFSET: usize = size_of::<WireV2>() - SMCD_BASE;
const GROWTH_LEN: u16 = 40;

impl Proposal {
    // Not inlined, so that only one message of this size is on the stack.
    #[inline(never)]
    pub(super) fn parse_body(header: &Header, body: &[u8]) -> Result<Message, Error> {
        if header.eyecatcher != Eyecatcher::Smcr {
            return Err(Error::BadEyecatcher);
        }
        let fixed: &WireFixed = Reader::new(body)
            .read()
            .map_err(|error| header.too_short(error))?;
        let typev1 = PathType::from_bits(header.flags);
        // In version 1 the bits of the second type are reserved.
        let typev2 = match header.version {
            0 | 1 => PathType::None,
            _ => PathType::from_bits(header.flags >> 2),
        };
        let growth = growth_area(fixed, typev1, body);
        let mut proposal = Proposal {
            version: header.version,
            typev1,
            typev2,
            peer_id: PeerId(fixed.peer_id),
            v1: None,
            smcd_v1: None,
            v2: None,
        };
        if typev1.is_offered() {
            let v1 = proposal.v1.insert(V1Offer::EMPTY);
            read_v1(fixed, body, v1)?;
        }
        let Some(growth) = growth else {
            return Ok(Message::Proposal(proposal));
        };
        if typev1.has_ism() {
            proposal.smcd_v1 = Some((growth.ism_gid.get(), growth.ism_chid.get()));
        }
        if typev2.is_offered() && growth.v2_offset.get() != 0 {
            let v2 = proposal.v2.insert(V2Offer::EMPTY);
            read_v2(growth.v2_offset.get(), typev2, body, v2)?;
        }
        Ok(Message::Proposal(proposal))
    }

    /// Writes the message to the start of `buf` and returns its length.
    ///
    /// # Errors
    ///
    /// [`Error::NoSpace`] if `buf` is too small, [`Error::BadField`] if fields
    /// contradict each other.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, Error> {
        self.check()?;
        let typev2_bits = match self.version {
            1 => 0,
            _ => self.typev2.bits() << 2,
        };
        let fields = HeaderFields {
            kind: Kind::Proposal,
            eyecatcher: Eyecatcher::Smcr,
            version: self.version,
            flags: self.typev1.bits() | typev2_bits,
        };
        emit_frame(buf, &fields, |writer| self.write_body(writer))
    }

    /// Refuses combinations that would be read back differently.
    fn check(&self) -> Result<(), Error> {
        let contradiction = |field| Err(Error::field(field, self.version));
        if !(1..=15).contains(&self.version) {
            return Err(Error::BadVersion(self.version));
        }
        if self.v1.is_some() != self.typev1.is_offered() {
            return contradiction("version 1 offer");
        }
        if self.smcd_v1.is_some() != self.typev1.has_ism() {
            return contradiction("version 1 shared memory offer");
        }
        if self.version == 1 && self.typev2.is_offered() {
            return contradiction("version 2 path type");
        }
        let Some(v2) = &self.v2 else {
            return Ok(());
        };
        if !self.typev2.is_offered() {
            return contradiction("version 2 offer");
        }
        if !self.typev2.has_ism() && (v2.seid.is_some() || !v2.ism.is_empty()) {
            return contradiction("version 2 shared memory offer");
        }
        Ok(())
    }

    fn write_body(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        let (gid, mac) = self.v1.map_or_else(Default::default, |v1| (v1.gid, v1.mac));
        writer.write(&WireFixed {
            peer_id: self.peer_id.0,
            gid: gid.0,
            mac: mac.0,
            ip_offset: if self.v1.is_some() { GROWTH_LEN } else { 0 }.into(),
        })?;
        let (ism_gid, ism_chid) = self.smcd_v1.unwrap_or_default();
        writer.write(&WireGrowth {
            ism_gid: ism_gid.into(),
            ism_chid: ism_chid.into(),
            v2_offset: self.v2_offset()?.into(),
            vendor_oui: [0; 3],
            vendor_options: [0; 5],
            reserved: [0; 20],
        })?;
        if let Some(v1) = &self.v1 {
            write_ip_area(v1, writer)?;
        }
        match &self.v2 {
            Some(v2) => write_v2(v2, self.typev2, writer),
            None => Ok(()),
        }
    }

    /// Where the version 2 extension goes; 0 if there is none.
    fn v2_offset(&self) -> Result<u16, Error> {
        if self.v2.is_none() {
            return Ok(0);
        }
        let ip_area = match &self.v1 {
            None => 0,
            Some(v1) => v1
                .v6
                .len()
                .saturating_mul(size_of::<WireV6Prefix>())
                .saturating_add(size_of::<WireIpArea>()),
        };
        u16::try_from(ip_area.saturating_add(V2_MIN_OFFSET)).map_err(|_| Error::NoSpace)
    }
}

/// A reader at `base` + `offset` of `bytes`, where `offset` came from a peer.
fn at_offset<'a>(
    bytes: &'a [u8],
    base: usize,
    offset: u16,
    field: &'static str,
) -> Result<Reader<'a>, Error> {
    let position = base.saturating_add(offset.into());
    Reader::at(bytes, position).map_err(|_| Error::field(field, offset))
}

/// The area between the fixed part and the IP area. It is absent from the short
/// form of RFC 7609, whose IP area begins at offset 0.
fn growth_area<'a>(fixed: &WireFixed, typev1: PathType, body: &'a [u8]) -> Option<&'a WireGrowth> {
    if typev1.is_offered() && fixed.ip_offset.get() < GROWTH_LEN {
        return None;
    }
    Reader::at(body, GROWTH_POS).ok()?.read().ok()
}

// The functions that read lists fill the offer in its place, to keep large values
// off the stack.

fn read_v1(fixed: &WireFixed, body: &[u8], offer: &mut V1Offer) -> Result<(), Error> {
    const FIELD: &str = "offset of the IP area";
    let offset = fixed.ip_offset.get();
    let mut reader = at_offset(body, IP_BASE, offset, FIELD)?;
    let area: &WireIpArea = reader.read().map_err(|_| Error::field(FIELD, offset))?;
    offer.gid = Gid(fixed.gid);
    offer.mac = Mac(fixed.mac);
    if area.prefix_len != 0 {
        let subnet = Ipv4Prefix::new(area.subnet, area.prefix_len)
            .ok_or_else(|| Error::field("IPv4 prefix length", area.prefix_len))?;
        offer.subnet = Some(subnet);
    }
    let bad_count = || Error::field("number of IPv6 prefixes", area.v6_count);
    for _ in 0..area.v6_count {
        let wire: &WireV6Prefix = reader.read().map_err(|_| bad_count())?;
        let prefix = Ipv6Prefix::new(wire.addr, wire.len)
            .ok_or_else(|| Error::field("IPv6 prefix length", wire.len))?;
        offer.v6.push(prefix).map_err(|_| bad_count())?;
    }
    Ok(())
}

fn write_ip_area(v1: &V1Offer, writer: &mut Writer<'_>) -> Result<(), Error> {
    writer.write(&WireIpArea {
        subnet: v1.subnet.map_or([0; 4], |subnet| subnet.addr()),
        prefix_len: v1.subnet.map_or(0, |subnet| subnet.prefix_len()),
        reserved: [0; 2],
        v6_count: v1.v6.count(),
    })?;
    v1.v6.iter().try_for_each(|prefix| {
        writer.write(&WireV6Prefix {
            addr: prefix.addr(),
            len: prefix.prefix_len(),
        })
    })
}

fn read_v2(offset: u16, typev2: PathType, body: &[u8], offer: &mut V2Offer) -> Result<(), Error> {
    const FIELD: &str = "offset of the version 2 extension";
    if usize::from(offset) < V2_MIN_OFFSET {
        return Err(Error::field(FIELD, offset));
    }
    let mut reader = at_offset(body, V2_BASE, offset, FIELD)?;
    let extension = reader.rest();
    let wire: &WireV2 = reader.read().map_err(|_| Error::field(FIELD, offset))?;
    offer.release = Release::from_low_nibble(wire.release_seid >> 4);
    offer.roce_gid = Gid(wire.roce_gid);
    offer.max_conns = wire.max_conns;
    offer.max_links = wire.max_links;
    offer.features = wire.features.get();
    let bad_count = || Error::field("number of enterprise IDs", wire.eid_count);
    for _ in 0..wire.eid_count {
        let eid: &[u8; 32] = reader.read().map_err(|_| bad_count())?;
        offer.eids.push(Eid(*eid)).map_err(|_| bad_count())?;
    }
    if usize::from(wire.ism_count) > MAX_LIST {
        return Err(Error::field("number of ISM devices", wire.ism_count));
    }
    if typev2.has_ism() && wire.smcd_offset.get() != 0 {
        read_smcd_v2(wire, extension, offer)?;
    }
    Ok(())
}

fn read_smcd_v2(wire: &WireV2, extension: &[u8], offer: &mut V2Offer) -> Result<(), Error> {
    const FIELD: &str = "offset of the SMC-D extension";
    let offset = wire.smcd_offset.get();
    if usize::from(offset) < SMCD_MIN_OFFSET {
        return Err(Error::field(FIELD, offset));
    }
    let mut reader = at_offset(extension, SMCD_BASE, offset, FIELD)?;
    let smcd: &WireSmcdV2 = reader.read().map_err(|_| Error::field(FIELD, offset))?;
    if wire.release_seid & FLAG_SEID != 0 {
        offer.seid = Some(Eid(smcd.seid));
    }
    let bad_count = || Error::field("number of ISM devices", wire.ism_count);
    for _ in 0..wire.ism_count {
        let id: &WireIsmId = reader.read().map_err(|_| bad_count())?;
        let id = IsmId {
            gid: id.gid.get(),
            chid: id.chid.get(),
        };
        offer.ism.push(id).map_err(|_| bad_count())?;
    }
    Ok(())
}

fn write_v2(v2: &V2Offer, typev2: PathType, writer: &mut Writer<'_>) -> Result<(), Error> {
    let smcd_offset = if typev2.has_ism() {
        let eids = v2.eids.len().saturating_mul(size_of::<Eid>());
        u16::try_from(eids.saturating_add(SMCD_MIN_OFFSET)).map_err(|_| Error::NoSpace)?
    } else {
        0
    };
    let seid_flag = if v2.seid.is_some() { FLAG_SEID } else { 0 };
    writer.write(&WireV2 {
        eid_count: v2.eids.count(),
        ism_count: v2.ism.count(),
        reserved: 0,
        release_seid: (v2.release.number() << 4) | seid_flag,
        reserved2: [0; 2],
        smcd_offset: smcd_offset.into(),
        roce_gid: v2.roce_gid.0,
        max_conns: v2.max_conns,
        max_links: v2.max_links,
        features: v2.features.into(),
        reserved3: [0; 12],
    })?;
    v2.eids.iter().try_for_each(|eid| writer.write(&eid.0))?;
    if !typev2.has_ism() {
        return Ok(());
    }
    writer.write(&WireSmcdV2 {
        seid: v2.seid.map_or([0; 32], |seid| seid.0),
        reserved: [0; 16],
    })?;
    v2.ism.iter().try_for_each(|id| {
        writer.write(&WireIsmId {
            gid: id.gid.into(),
            chid: id.chid.into(),
        })
    })
}

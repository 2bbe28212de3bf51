// SPDX-License-Identifier: GPL-2.0

//! The first-contact extension of version 2 Accept and Confirm messages.

use crate::ids::{Gid, GidList, HostName, Release, MAX_LIST};
use crate::wire::io::{Reader, Writer};
use crate::wire::Error;
use zerocopy::network_endian::{U16, U32};
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What a peer says about itself when a link group is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstContactExt {
    /// The sender reaches the receiver's RoCE address without a gateway.
    pub v2_direct: bool,
    /// Operating system of the sender: 1 z/OS, 2 Linux, 3 AIX.
    pub os_type: u8,
    /// Release in use on this link group.
    pub release: Release,
    /// Name of the sender's host.
    pub host: HostName,
    /// Limits of the link group; present from release 2.1 on.
    pub v21: Option<V21Limits>,
}

/// Limits of a link group, agreed on in release 2.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V21Limits {
    /// Connections in the link group.
    pub max_conns: u8,
    /// Links in the link group.
    pub max_links: u8,
    /// Optional features, one bit each.
    pub features: u16,
}

const V2_DIRECT: u8 = 0x80;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireExt {
    flags: u8,
    os_release: u8,
    reserved: [u8; 2],
    host: [u8; 32],
}

const _: () = assert!(size_of::<WireExt>() == 36);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireLimits {
    max_conns: u8,
    max_links: u8,
    features: U16,
    vendor_options: U32,
    reserved: [u8; 8],
}

const _: () = assert!(size_of::<WireLimits>() == 16);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireGidList {
    count: u8,
    reserved: [u8; 3],
}

impl FirstContactExt {
    /// Reads the extension. A missing one is a field error and not a framing
    /// error: header and trailer of the message were right.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<FirstContactExt, Error> {
        let missing = |_| Error::field("first-contact extension, missing", 0_u32);
        let wire: &WireExt = reader.read().map_err(missing)?;
        let release = Release::from_low_nibble(wire.os_release);
        let v21 = if release.has_v2_1_fields() {
            let limits: &WireLimits = reader.read().map_err(missing)?;
            Some(V21Limits {
                max_conns: limits.max_conns,
                max_links: limits.max_links,
                features: limits.features.get(),
            })
        } else {
            None
        };
        Ok(FirstContactExt {
            v2_direct: wire.flags & V2_DIRECT != 0,
            os_type: wire.os_release >> 4,
            release,
            host: HostName(wire.host),
            v21,
        })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        if self.release.has_v2_1_fields() != self.v21.is_some() {
            return Err(Error::field("release", self.release.number()));
        }
        writer.write(&WireExt {
            flags: if self.v2_direct { V2_DIRECT } else { 0 },
            os_release: (self.os_type << 4) | self.release.number(),
            reserved: [0; 2],
            host: self.host.0,
        })?;
        let Some(limits) = self.v21 else {
            return Ok(());
        };
        writer.write(&WireLimits {
            max_conns: limits.max_conns,
            max_links: limits.max_links,
            features: limits.features.into(),
            vendor_options: 0.into(),
            reserved: [0; 8],
        })
    }
}

/// Reads the list of GIDs that ends a first-contact Confirm. Nothing at all is an
/// empty list.
pub(super) fn read_gids(reader: &mut Reader<'_>) -> Result<GidList, Error> {
    let mut gids = GidList::EMPTY;
    if reader.rest().is_empty() {
        return Ok(gids);
    }
    let bad_count = |count: u8| Error::field("number of GIDs", count);
    let count = match reader.read::<WireGidList>() {
        Ok(wire) => wire.count,
        Err(_) => return Err(bad_count(0)),
    };
    if usize::from(count) > MAX_LIST {
        return Err(bad_count(count));
    }
    for _ in 0..count {
        let gid: &[u8; 16] = reader.read().map_err(|_| bad_count(count))?;
        gids.push(Gid(*gid)).map_err(|_| bad_count(count))?;
    }
    Ok(gids)
}

/// Writes the list of GIDs that ends a first-contact Confirm.
pub(super) fn write_gids(gids: &GidList, writer: &mut Writer<'_>) -> Result<(), Error> {
    writer.write(&WireGidList {
        count: gids.count(),
        reserved: [0; 3],
    })?;
    gids.iter().try_for_each(|gid| writer.write(&gid.0))
}

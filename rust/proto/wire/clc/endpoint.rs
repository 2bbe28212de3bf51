// SPDX-License-Identifier: GPL-2.0

//! What Accept and Confirm say about the sender's end of the connection.

use super::Eyecatcher;
use crate::ids::{
    AlertToken, BufSize, Gid, LinkUid, Mac, PathMtu, PeerId, Psn, Qpn, Rkey, RmbeIndex, VirtAddr,
};
use crate::wire::io::{Reader, Writer};
use crate::wire::Error;
use zerocopy::network_endian::{U32, U64};
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The sender's end: over RDMA, or in memory shared through an ISM device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// SMC-R.
    Rdma(RdmaEndpoint),
    /// SMC-D.
    Ism(IsmEndpoint),
}

/// The sender's queue pair and RMB element (RFC 7609 A.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdmaEndpoint {
    /// The sender.
    pub peer_id: PeerId,
    /// GID of the RoCE port of the link.
    pub gid: Gid,
    /// MAC address of that port.
    pub mac: Mac,
    /// Queue pair of the link.
    pub qpn: Qpn,
    /// Key of the RMB on this link.
    pub rkey: Rkey,
    /// The element of the RMB that belongs to this connection.
    pub rmbe_index: RmbeIndex,
    /// Names the connection in CDC messages to the sender.
    pub token: AlertToken,
    /// Size of the element.
    pub buf_size: BufSize,
    /// Path MTU of the queue pair. `None` is a reserved value, which matters on
    /// first contact only: RFC 7609 forbids looking at the field otherwise.
    pub mtu: Option<PathMtu>,
    /// Address of the RMB on this link.
    pub rmb_addr: VirtAddr,
    /// First packet sequence number the sender will use.
    pub psn: Psn,
}

/// The sender's shared memory buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsmEndpoint {
    /// GID of the ISM device.
    pub gid: u64,
    /// Token of the buffer.
    pub token: u64,
    /// Index of the element in the buffer, counted from 0.
    pub index: u8,
    /// Size of the element.
    pub buf_size: BufSize,
    /// Number under which the sender shows the link group.
    pub link_uid: LinkUid,
    /// Version 2: channel ID of the device. Zero in version 1.
    pub chid: u16,
    /// Version 2: second half of the GID. Zero in version 1.
    pub gid_ext: u64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireRdma {
    peer_id: [u8; 8],
    gid: [u8; 16],
    mac: [u8; 6],
    qpn: [u8; 3],
    rkey: U32,
    rmbe_index: u8,
    token: U32,
    size_mtu: u8,
    reserved: u8,
    rmb_addr: U64,
    reserved2: u8,
    psn: [u8; 3],
}

const _: () = assert!(size_of::<WireRdma>() == 56);

/// The part of an SMC-D endpoint that versions 1 and 2 have in common.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireIsm {
    gid: U64,
    token: U64,
    index: u8,
    size: u8,
    reserved: [u8; 2],
    link_uid: U32,
}

const _: () = assert!(size_of::<WireIsm>() == 24);

impl Endpoint {
    pub(super) fn eyecatcher(&self) -> Eyecatcher {
        match self {
            Endpoint::Rdma(_) => Eyecatcher::Smcr,
            Endpoint::Ism(_) => Eyecatcher::Smcd,
        }
    }
}

impl RdmaEndpoint {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<RdmaEndpoint, Error> {
        let wire: &WireRdma = reader.read()?;
        let qpn = Qpn::from_wire(wire.qpn)
            .ok_or_else(|| Error::field("QP number", Psn::from_wire(wire.qpn).get()))?;
        let rmbe_index = RmbeIndex::new(wire.rmbe_index)
            .ok_or_else(|| Error::field("RMB element index", wire.rmbe_index))?;
        Ok(RdmaEndpoint {
            peer_id: PeerId(wire.peer_id),
            gid: Gid(wire.gid),
            mac: Mac(wire.mac),
            qpn,
            rkey: Rkey(wire.rkey.get()),
            rmbe_index,
            token: AlertToken(wire.token.get()),
            buf_size: BufSize::from_low_nibble(wire.size_mtu >> 4),
            mtu: PathMtu::from_code(wire.size_mtu & 0x0f),
            rmb_addr: VirtAddr(wire.rmb_addr.get()),
            psn: Psn::from_wire(wire.psn),
        })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.write(&WireRdma {
            peer_id: self.peer_id.0,
            gid: self.gid.0,
            mac: self.mac.0,
            qpn: self.qpn.to_wire(),
            rkey: self.rkey.0.into(),
            rmbe_index: self.rmbe_index.get(),
            token: self.token.0.into(),
            size_mtu: (self.buf_size.code() << 4) | self.mtu.map_or(0, PathMtu::code),
            reserved: 0,
            rmb_addr: self.rmb_addr.0.into(),
            reserved2: 0,
            psn: self.psn.to_wire(),
        })
    }
}

impl IsmEndpoint {
    /// Reads the common part; the fields of version 2 are zero.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<IsmEndpoint, Error> {
        let wire: &WireIsm = reader.read()?;
        Ok(IsmEndpoint {
            gid: wire.gid.get(),
            token: wire.token.get(),
            index: wire.index,
            buf_size: BufSize::from_low_nibble(wire.size >> 4),
            link_uid: LinkUid(wire.link_uid.get()),
            chid: 0,
            gid_ext: 0,
        })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.write(&WireIsm {
            gid: self.gid.into(),
            token: self.token.into(),
            index: self.index,
            size: self.buf_size.code() << 4,
            reserved: [0; 2],
            link_uid: self.link_uid.0.into(),
        })
    }
}

// SPDX-License-Identifier: GPL-2.0

//! The parts of a Proposal: what the client offers for each version.

use crate::ids::{Eid, EidList, Gid, Ipv4Prefix, Ipv6PrefixList, Mac, Release, MAX_LIST};
use crate::list::ArrayList;

/// The transports offered for one version, or used by a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathType {
    /// RDMA: SMC-R.
    Rdma,
    /// Memory shared through an ISM device: SMC-D.
    Ism,
    /// This version is not offered.
    None,
    /// Both transports.
    Both,
}

impl PathType {
    /// The type in the low two bits of `bits`.
    pub(super) const fn from_bits(bits: u8) -> PathType {
        match bits & 0x03 {
            0 => PathType::Rdma,
            1 => PathType::Ism,
            2 => PathType::None,
            _ => PathType::Both,
        }
    }

    /// The two bits of this type.
    pub(super) const fn bits(self) -> u8 {
        match self {
            PathType::Rdma => 0,
            PathType::Ism => 1,
            PathType::None => 2,
            PathType::Both => 3,
        }
    }

    /// The type with these transports.
    pub const fn of(rdma: bool, ism: bool) -> PathType {
        match (rdma, ism) {
            (true, true) => PathType::Both,
            (true, false) => PathType::Rdma,
            (false, true) => PathType::Ism,
            (false, false) => PathType::None,
        }
    }

    /// Whether RDMA is among the transports.
    pub const fn has_rdma(self) -> bool {
        matches!(self, PathType::Rdma | PathType::Both)
    }

    /// Whether shared memory is among the transports.
    pub const fn has_ism(self) -> bool {
        matches!(self, PathType::Ism | PathType::Both)
    }

    /// Whether there is any transport.
    pub const fn is_offered(self) -> bool {
        !matches!(self, PathType::None)
    }
}

/// What a client offers for version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V1Offer {
    /// GID of the client's preferred RoCE port; zero if RDMA is not offered.
    pub gid: Gid,
    /// MAC address of that port; zero if RDMA is not offered.
    pub mac: Mac,
    /// IPv4 subnet of the client's interface; `None` for an IPv6 connection.
    pub subnet: Option<Ipv4Prefix>,
    /// IPv6 prefixes of the client's interface.
    pub v6: Ipv6PrefixList,
}

impl V1Offer {
    /// An offer without any address.
    pub const EMPTY: V1Offer = V1Offer {
        gid: Gid::ZERO,
        mac: Mac([0; 6]),
        subnet: None,
        v6: Ipv6PrefixList::EMPTY,
    };
}

/// What a client offers for version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V2Offer {
    /// Highest release the client speaks.
    pub release: Release,
    /// User-defined enterprise IDs of the client.
    pub eids: EidList,
    /// GID of the client's RoCEv2 port; zero if RDMA is not offered.
    pub roce_gid: Gid,
    /// Connections per link group that the client wants (release 2.1; 0 before).
    pub max_conns: u8,
    /// Links per link group that the client wants (release 2.1; 0 before).
    pub max_links: u8,
    /// Optional features of release 2.1, one bit each.
    pub features: u16,
    /// System enterprise ID; only with shared memory.
    pub seid: Option<Eid>,
    /// ISM devices of the client; only with shared memory.
    pub ism: IsmList,
}

impl V2Offer {
    /// An offer of release 2.0 without enterprise IDs and devices.
    pub const EMPTY: V2Offer = V2Offer {
        release: Release::V2_0,
        eids: EidList::EMPTY,
        roce_gid: Gid::ZERO,
        max_conns: 0,
        max_links: 0,
        features: 0,
        seid: None,
        ism: IsmList::EMPTY,
    };
}

/// Names an ISM device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IsmId {
    /// GID of the device, or a further half of one in a second entry.
    pub gid: u64,
    /// Channel ID of the device.
    pub chid: u16,
}

/// ISM devices of a host, at most eight.
pub type IsmList = ArrayList<IsmId, MAX_LIST>;

impl IsmList {
    /// A list without devices.
    pub const EMPTY: IsmList = ArrayList::filled_with(IsmId { gid: 0, chid: 0 });
}

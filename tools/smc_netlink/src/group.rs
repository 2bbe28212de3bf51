// SPDX-License-Identifier: GPL-2.0

//! Link groups and links.

use serde::Serialize;
use smc_proto::genl::smc::{lgr_r, lgr_r_v2, lgr_type, lgr_v2, link, link_state};

use crate::{Attrs, Result};

/// A link group over RoCE.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Its number.
    pub id: u32,
    /// This host is the server's side.
    pub server: bool,
    /// Number of its type: 0 none, 1 single, 2 symmetric, 3 and 4 asymmetric at the peer or here.
    pub kind: u8,
    /// Its network.
    pub pnet_id: String,
    /// Its VLAN.
    pub vlan: u8,
    /// Connections.
    pub connections: u32,
    /// Number of its network namespace.
    pub net_cookie: Option<u64>,
    /// Number of the type of its buffers.
    pub buffer_type: Option<u8>,
    /// Bytes of its send buffers.
    pub sndbuf_bytes: u64,
    /// Bytes of its receive buffers.
    pub rmb_bytes: u64,
    /// What version 2 adds.
    pub v2: Option<GroupV2>,
    /// Its links, where they were asked for.
    pub links: Vec<Link>,
}

/// What version 2 adds to a link group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GroupV2 {
    /// Version.
    pub version: u8,
    /// Release of the peer.
    pub peer_release: u8,
    /// Operating system of the peer.
    pub peer_os: PeerOs,
    /// Host name of the peer.
    pub peer_host: String,
    /// Enterprise ID in common.
    pub eid: String,
    /// The peer is reached without a gateway.
    pub direct: bool,
    /// Connections that were agreed on.
    pub max_connections: Option<u8>,
    /// Links that were agreed on.
    pub max_links: Option<u8>,
}

/// The operating system of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PeerOs(pub u8);

impl PeerOs {
    /// Its name, if it is known.
    pub fn name(self) -> Option<&'static str> {
        match self.0 {
            1 => Some("ZOS"),
            2 => Some("LINUX"),
            3 => Some("AIX"),
            _ => None,
        }
    }
}

/// A link of a link group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Its number in the group.
    pub id: u8,
    /// RDMA device.
    pub device: String,
    /// Port of the device.
    pub port: u8,
    /// Address here.
    pub gid: String,
    /// Address at the peer.
    pub peer_gid: String,
    /// Connections.
    pub connections: u32,
    /// Number of the network device.
    pub ifindex: u32,
    /// Number under which this host shows it.
    pub uid: u32,
    /// Number under which the peer shows it.
    pub peer_uid: u32,
    /// Number of its state: 0 unused, 1 inactive, 2 activating, 3 active.
    pub state: u32,
}

impl Group {
    /// The name of the type.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            lgr_type::NONE => "NONE",
            lgr_type::SINGLE => "SINGLE",
            lgr_type::SYMMETRIC => "SYM",
            lgr_type::ASYMMETRIC_PEER => "ASYMP",
            lgr_type::ASYMMETRIC_LOCAL => "ASYML",
            _ => "?",
        }
    }

    /// The name of the role.
    pub fn role_name(&self) -> &'static str {
        if self.server {
            "SERV"
        } else {
            "CLNT"
        }
    }

    pub(crate) fn parse(lgr: &Attrs) -> Result<Self> {
        let v2 = if lgr.has(lgr_r::V2_COMMON) {
            Some(GroupV2::parse(
                &lgr.nested(lgr_r::V2_COMMON)?,
                &lgr.nested(lgr_r::V2)?,
            ))
        } else {
            None
        };
        Ok(Self {
            id: lgr.u32(lgr_r::ID).unwrap_or(0),
            server: lgr.flag(lgr_r::ROLE),
            kind: lgr.u8(lgr_r::TYPE).unwrap_or(0),
            pnet_id: lgr.text(lgr_r::PNETID).unwrap_or_default(),
            vlan: lgr.u8(lgr_r::VLAN_ID).unwrap_or(0),
            connections: lgr.u32(lgr_r::CONNS_NUM).unwrap_or(0),
            v2,
            net_cookie: lgr.uint(lgr_r::NET_COOKIE),
            buffer_type: lgr.u8(lgr_r::BUF_TYPE),
            sndbuf_bytes: lgr.uint(lgr_r::SNDBUF_ALLOC).unwrap_or(0),
            rmb_bytes: lgr.uint(lgr_r::RMB_ALLOC).unwrap_or(0),
            links: Vec::new(),
        })
    }
}

impl GroupV2 {
    fn parse(common: &Attrs, rdma: &Attrs) -> Self {
        Self {
            version: common.u8(lgr_v2::VER).unwrap_or(2),
            peer_release: common.u8(lgr_v2::REL).unwrap_or(0),
            peer_os: PeerOs(common.u8(lgr_v2::OS).unwrap_or(0)),
            eid: common.text(lgr_v2::NEG_EID).unwrap_or_default(),
            peer_host: common.text(lgr_v2::PEER_HOST).unwrap_or_default(),
            direct: rdma.flag(lgr_r_v2::DIRECT),
            max_connections: rdma.u8(lgr_r_v2::MAX_CONNS),
            max_links: rdma.u8(lgr_r_v2::MAX_LINKS),
        }
    }
}

impl Link {
    /// The name of the state.
    pub fn state_name(&self) -> &'static str {
        match u8::try_from(self.state).unwrap_or(u8::MAX) {
            link_state::UNUSED => "LINK_UNUSED",
            link_state::INACTIVE => "LINK_INACTIVE",
            link_state::ACTIVATING => "LINK_ACTIVATING",
            link_state::ACTIVE => "LINK_ACTIVE",
            _ => "?",
        }
    }

    pub(crate) fn parse(attrs: &Attrs) -> Self {
        Self {
            id: attrs.u8(link::ID).unwrap_or(0),
            device: attrs.text(link::IB_DEV).unwrap_or_default(),
            port: attrs.u8(link::IB_PORT).unwrap_or(0),
            gid: attrs.text(link::GID).unwrap_or_default(),
            peer_gid: attrs.text(link::PEER_GID).unwrap_or_default(),
            connections: attrs.u32(link::CONN_CNT).unwrap_or(0),
            ifindex: attrs.u32(link::NET_DEV).unwrap_or(0),
            // The attributes have the bytes as they are in messages.
            uid: attrs.u32(link::UID).map_or(0, u32::from_be),
            peer_uid: attrs.u32(link::PEER_UID).map_or(0, u32::from_be),
            state: attrs.u32(link::STATE).unwrap_or(0),
        }
    }
}

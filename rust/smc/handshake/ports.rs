// SPDX-License-Identifier: GPL-2.0

//! What this host can do for one TCP connection: its RoCE ports, subnets and enterprise IDs.

use kernel::prelude::*;
use smc_kapi::rdma::GidKind;
use smc_proto::{
    handshake::{
        Caps,
        V1Caps,
        V2Caps, //
    },
    ids::{
        EidList,
        Ipv4Prefix,
        Ipv6Prefix,
        Ipv6PrefixList,
        PathMtu,
        Version, //
    },
    reason::DeclineReason, //
};

use super::Handshake;
use crate::smc::device::{
    Egress,
    PortChoice, //
};

/// Ports and names that a connection can use.
pub(super) struct Ports {
    v1: Option<PortChoice>,
    v2: Option<PortChoice>,
    subnet: Option<Ipv4Prefix>,
    v6: Ipv6PrefixList,
    eids: EidList,
}

impl Ports {
    /// Looks up what the connection's egress interface offers. May sleep.
    ///
    /// # Errors
    ///
    /// The reason for staying on TCP.
    pub(super) fn find(hs: &Handshake<'_>) -> Result<Self, DeclineReason> {
        let tcp = hs.tcp;
        if tcp.has_ipsec_policy() {
            return Err(DeclineReason::IPSEC);
        }
        let egress = Egress {
            ifindex: tcp.egress_ifindex().ok_or(DeclineReason::NOSMCDEV)?,
            ipv4: tcp.local_ipv4(),
        };
        let net = tcp.net();
        let eids = hs.global.ueids.list();
        let devices = &hs.global.devices;
        let v2 = if egress.ipv4.is_some() && !eids.is_empty() {
            devices.choose(net, egress, &[GidKind::RoceV2])
        } else {
            None
        };
        let v1_kinds: &[GidKind] = if hs.global.v1_over_rocev2 {
            &[GidKind::RoceV1, GidKind::RoceV2]
        } else {
            &[GidKind::RoceV1]
        };
        let v1 = devices.choose(net, egress, v1_kinds);
        if v1.is_none() && v2.is_none() {
            return Err(missing(hs, egress, &eids));
        }
        let mut v6 = Ipv6PrefixList::EMPTY;
        if egress.ipv4.is_none() {
            tcp.for_each_ipv6_prefix(|prefix, len| {
                if let Some(prefix) = Ipv6Prefix::new(prefix, len) {
                    // A full list is long enough.
                    let _ = v6.push(prefix);
                }
            });
        }
        Ok(Self {
            v1,
            v2,
            subnet: tcp
                .local_ipv4_subnet()
                .and_then(|(addr, len)| Ipv4Prefix::new(addr, len)),
            v6,
            eids,
        })
    }

    /// Calls `f` with the capabilities in the form that the protocol takes.
    pub(super) fn with_caps<R>(&self, hs: &Handshake<'_>, f: impl FnOnce(&Caps<'_>) -> R) -> R {
        let port = self.v2.as_ref().or(self.v1.as_ref());
        f(&Caps {
            peer_id: hs.global.peer_id(),
            v1: self.v1.as_ref().map(|port| V1Caps {
                gid: port.gid,
                mac: port.mac,
                subnets: self.subnet.as_slice(),
                v6: self.v6.as_slice(),
            }),
            v2: self.v2.as_ref().map(|port| V2Caps {
                gid: port.gid,
                eids: self.eids.as_slice(),
                release: hs.global.v2_release,
            }),
            host: hs.global.host,
            max_conns: hs.net.settings.max_conns(),
            max_links: hs.global.max_links().min(hs.net.settings.max_links()),
            mtu: port.map_or(PathMtu::Mtu1024, |port| port.mtu),
        })
    }

    /// The port for the version that was agreed on.
    pub(super) fn port(&self, version: Version) -> Result<&PortChoice, DeclineReason> {
        match version {
            Version::V1 => self.v1.as_ref(),
            Version::V2 => self.v2.as_ref(),
        }
        .ok_or(DeclineReason::NOSMCRDEV)
    }
}

/// The most telling reason why no version can be offered.
fn missing(hs: &Handshake<'_>, egress: Egress, eids: &EidList) -> DeclineReason {
    let has_v2_port = hs
        .global
        .devices
        .choose(hs.tcp.net(), egress, &[GidKind::RoceV2])
        .is_some();
    if has_v2_port && egress.ipv4.is_some() && eids.is_empty() {
        return DeclineReason::NOUEID;
    }
    DeclineReason::NOSMCDEV
}

// SPDX-License-Identifier: GPL-2.0

//! What a link group knows of its peer and shows to operators only.

use smc_proto::{
    ids::{
        HostName,
        LinkUid, //
    },
    llc_flow::LinkFlow, //
};

use super::LinkGroup;

/// What the peer said about itself at the first contact.
#[derive(Clone, Copy)]
pub(crate) struct PeerInfo {
    /// Name of its host.
    pub(crate) host: HostName,
    /// Number of its operating system, 0 where it did not say.
    pub(crate) os: u8,
    /// It reaches this host without a gateway.
    pub(crate) direct: bool,
}

impl PeerInfo {
    /// Nothing is known yet.
    pub(super) const UNKNOWN: Self = Self {
        host: HostName::EMPTY,
        os: 0,
        direct: false,
    };
}

impl LinkGroup {
    /// Notes what the peer said.
    pub(crate) fn note_peer(&self, info: PeerInfo) {
        *self.peer_info.lock() = info;
    }

    /// What the peer said.
    pub(crate) fn peer_info(&self) -> PeerInfo {
        *self.peer_info.lock()
    }

    /// Number under which the peer shows the link; 0 before the first contact is over. May sleep.
    pub(crate) fn peer_link_uid(&self) -> LinkUid {
        let llc = self.llc.lock();
        llc.flow.as_ref().map_or(LinkUid(0), LinkFlow::peer_uid)
    }
    /// Bytes of the group's send rings and RMBs, in use or not.
    pub(crate) fn buffer_bytes(&self) -> (usize, usize) {
        self.buffers.lock().bytes()
    }
}

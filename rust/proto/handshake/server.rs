// SPDX-License-Identifier: GPL-2.0

//! The server's side of the handshake: Proposal, then Accept, then Confirm.

use super::select::{select_v1, select_v2, V2Refusal};
use super::{extension, Caps, Fault, Outcome, UNNEGOTIATED};
use crate::ids::{Eid, Gid, GidList, HostName, Mac, PathMtu, PeerId, Release, Version};
use crate::reason::DeclineReason;
use crate::wire::clc::{
    Accept, Confirm, Endpoint, FirstContactExt, Message, Proposal, RdmaEndpoint, V21Limits,
    V2Fields,
};

/// A connection was accepted whose SYN offered SMC; the client's Proposal is expected.
#[derive(Clone, Copy, Debug)]
pub struct AwaitProposal;

/// What was chosen from the client's offer.
#[derive(Clone, Copy, Debug)]
pub struct Selected {
    /// The version in use.
    pub version: Version,
    /// The release in use; `None` in version 1.
    pub release: Option<Release>,
    /// The common enterprise ID; `None` in version 1.
    pub eid: Option<Eid>,
    /// Connections a new link group may have.
    pub max_conns: u8,
    /// Links a new link group may have.
    pub max_links: u8,
    /// The client. Clients that offer version 2 only may leave it zero here.
    pub peer_id: PeerId,
    /// GID of the client's preferred port.
    pub peer_gid: Gid,
    /// MAC address of the client's preferred port; zero in version 2.
    pub peer_mac: Mac,
    /// This host reaches the client without a gateway; to be cleared where it does not.
    pub direct: bool,
    features: u16,
    host: HostName,
    mtu: PathMtu,
}

impl AwaitProposal {
    /// Takes the client's first message and chooses version, enterprise ID and limits.
    ///
    /// Version 2 is preferred; version 1 is used where version 2 is not possible.
    ///
    /// # Errors
    ///
    /// An [`Outcome`] that ends the attempt.
    pub fn handle(self, message: &Message, caps: &Caps<'_>) -> Result<Selected, Outcome> {
        match message {
            Message::Proposal(proposal) => select(proposal, caps).map_err(Outcome::Decline),
            other => Err(Outcome::unexpected(other)),
        }
    }
}

fn select(proposal: &Proposal, caps: &Caps<'_>) -> Result<Selected, DeclineReason> {
    let v2_reason = match select_v2(proposal, caps) {
        Ok(choice) => {
            return Ok(Selected {
                version: Version::V2,
                release: Some(choice.release),
                eid: Some(choice.eid),
                max_conns: choice.limits.max_conns,
                max_links: choice.limits.max_links,
                peer_id: proposal.peer_id,
                peer_gid: proposal.v2.map_or(Gid::ZERO, |offer| offer.roce_gid),
                peer_mac: Mac::default(),
                direct: true,
                features: choice.limits.features,
                host: caps.host,
                mtu: caps.mtu,
            })
        }
        Err(V2Refusal::Broken(reason)) => return Err(reason),
        Err(V2Refusal::NotPossible(reason)) => reason,
    };
    match select_v1(proposal, caps) {
        Ok(offer) => Ok(Selected {
            version: Version::V1,
            release: None,
            eid: None,
            max_conns: UNNEGOTIATED.max_conns,
            max_links: UNNEGOTIATED.max_links,
            peer_id: proposal.peer_id,
            peer_gid: offer.gid,
            peer_mac: offer.mac,
            direct: true,
            features: 0,
            host: caps.host,
            mtu: caps.mtu,
        }),
        // The reason of the version that came closer is the more useful one.
        Err(_) if proposal.typev2.has_rdma() && caps.v2.is_some() => Err(v2_reason),
        Err(reason) if proposal.typev1.has_rdma() => Err(reason),
        Err(_) => Err(v2_reason),
    }
}

impl Selected {
    /// Builds the Accept from this host's end of the connection.
    ///
    /// `first_contact` says that a new link group was made for it.
    pub fn accept(self, local: RdmaEndpoint, first_contact: bool) -> (AwaitConfirm, Accept) {
        let v2 = self.eid.map(|eid| V2Fields {
            eid,
            fce: self
                .release
                .filter(|_| first_contact)
                .map(|release| extension(self.host, self.direct, release, self.limits())),
            gids: GidList::EMPTY,
        });
        let accept = Accept {
            version: self.version,
            first_contact,
            endpoint: Endpoint::Rdma(local),
            v2,
        };
        let next = AwaitConfirm {
            selected: self,
            first_contact,
        };
        (next, accept)
    }

    const fn limits(&self) -> V21Limits {
        V21Limits {
            max_conns: self.max_conns,
            max_links: self.max_links,
            features: self.features,
        }
    }
}

/// The Accept was sent; the client's Confirm is expected.
#[derive(Clone, Copy, Debug)]
pub struct AwaitConfirm {
    selected: Selected,
    first_contact: bool,
}

/// The client's end of the connection.
#[derive(Clone, Copy, Debug)]
pub struct Confirmed {
    /// What was chosen before.
    pub selected: Selected,
    /// A new link group is being made.
    pub first_contact: bool,
    /// The client's end.
    pub peer: RdmaEndpoint,
    /// The path MTU for the new link: the smaller one of both ends.
    pub mtu: PathMtu,
    /// Name of the client's host, where it says one.
    pub peer_host: Option<HostName>,
    /// Number of the client's operating system, 0 where it does not say one.
    pub peer_os: u8,
    /// The client reaches this host without a gateway. False in version 1.
    pub peer_direct: bool,
    /// GIDs of the client that can carry links.
    pub peer_gids: GidList,
}

impl AwaitConfirm {
    /// Takes the client's answer.
    ///
    /// # Errors
    ///
    /// An [`Outcome`] that ends the attempt. Except on first contact it is too late for a Decline
    /// once a Confirm arrived (RFC 7609 C.3), and a Confirm that does not fit ends the TCP
    /// connection.
    pub fn handle(self, message: &Message) -> Result<Confirmed, Outcome> {
        match message {
            Message::Confirm(confirm) => self.confirm(confirm).map_err(|reason| {
                if self.first_contact {
                    Outcome::Decline(reason)
                } else {
                    Outcome::Abort(Fault::Mismatch(reason))
                }
            }),
            other => Err(Outcome::unexpected(other)),
        }
    }

    /// The outcome of a Confirm that could not be read.
    pub fn unreadable(self, error: crate::wire::Error) -> Outcome {
        match Outcome::from(error) {
            Outcome::Decline(reason) if !self.first_contact => {
                Outcome::Abort(Fault::Mismatch(reason))
            }
            outcome => outcome,
        }
    }

    fn confirm(&self, confirm: &Confirm) -> Result<Confirmed, DeclineReason> {
        let Endpoint::Rdma(peer) = confirm.endpoint else {
            return Err(DeclineReason::MODEUNSUPP);
        };
        if confirm.version != self.selected.version {
            return Err(DeclineReason::VERSMISMAT);
        }
        let v2 = confirm.v2.as_ref();
        if v2.map(|v2| v2.eid) != self.selected.eid {
            return Err(DeclineReason::NOUEID);
        }
        let ext = v2.and_then(|v2| v2.fce.as_ref());
        if self.first_contact && self.selected.version == Version::V2 {
            self.check_extension(ext.ok_or(DeclineReason::CNFERR)?)?;
        }
        let mtu = match peer.mtu {
            Some(mtu) => mtu.min(self.selected.mtu),
            None if self.first_contact => return Err(DeclineReason::CNFERR),
            None => self.selected.mtu,
        };
        Ok(Confirmed {
            selected: self.selected,
            first_contact: self.first_contact,
            peer,
            mtu,
            peer_host: ext.map(|ext| ext.host),
            peer_os: ext.map_or(0, |ext| ext.os_type),
            peer_direct: ext.is_some_and(|ext| ext.v2_direct),
            peer_gids: v2.map_or(GidList::EMPTY, |v2| v2.gids),
        })
    }

    /// The client repeats what this side decided.
    fn check_extension(&self, ext: &FirstContactExt) -> Result<(), DeclineReason> {
        let Some(release) = self.selected.release else {
            return Err(DeclineReason::VERSMISMAT);
        };
        if ext.release != release {
            return Err(DeclineReason::RELEASEERR);
        }
        if !release.has_v2_1_fields() {
            return Ok(());
        }
        let limits = ext.v21.ok_or(DeclineReason::CNFERR)?;
        if limits.max_conns != self.selected.max_conns {
            return Err(DeclineReason::MAXCONNERR);
        }
        if limits.max_links != self.selected.max_links {
            return Err(DeclineReason::MAXLINKERR);
        }
        if limits.features != self.selected.features {
            return Err(DeclineReason::CNFERR);
        }
        Ok(())
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Choosing among what both sides offer.

use super::{Caps, V1Caps, V2Caps, MAX_LINKS, UNNEGOTIATED};
use crate::ids::{Eid, Release};
use crate::lgr::MIN_NEGOTIATED_CONNS;
use crate::reason::DeclineReason;
use crate::wire::clc::{Proposal, V1Offer, V21Limits, V2Offer};

/// What version 2 came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct V2Choice {
    pub(super) eid: Eid,
    pub(super) release: Release,
    pub(super) limits: V21Limits,
}

/// Why version 2 is not possible, and whether version 1 may be tried.
pub(super) enum V2Refusal {
    NotPossible(DeclineReason),
    Broken(DeclineReason),
}

/// Checks whether the client's version 2 offer can be taken.
pub(super) fn select_v2(proposal: &Proposal, caps: &Caps<'_>) -> Result<V2Choice, V2Refusal> {
    if !proposal.typev2.has_rdma() {
        return Err(V2Refusal::NotPossible(DeclineReason::NOSMCDDEV));
    }
    let offer = proposal
        .v2
        .as_ref()
        .ok_or(V2Refusal::NotPossible(DeclineReason::NOV2EXT))?;
    let own = caps
        .v2
        .as_ref()
        .ok_or(V2Refusal::NotPossible(DeclineReason::NOSMCRDEV))?;
    let eid = common_eid(offer, own).ok_or(V2Refusal::NotPossible(DeclineReason::NOUEID))?;
    let release = offer.release.min(own.release);
    let limits = if release.has_v2_1_fields() {
        agree(offer, caps.limits()).map_err(V2Refusal::Broken)?
    } else {
        UNNEGOTIATED
    };
    Ok(V2Choice {
        eid,
        release,
        limits,
    })
}

/// The first enterprise ID of the client that is also set here.
fn common_eid(offer: &V2Offer, own: &V2Caps<'_>) -> Option<Eid> {
    offer
        .eids
        .iter()
        .copied()
        .find(|eid| own.eids.contains(eid))
}

/// The smaller of both sides' limits.
fn agree(offer: &V2Offer, own: V21Limits) -> Result<V21Limits, DeclineReason> {
    if offer.max_conns < MIN_NEGOTIATED_CONNS {
        return Err(DeclineReason::MAXCONNERR);
    }
    if offer.max_links == 0 {
        return Err(DeclineReason::MAXLINKERR);
    }
    Ok(V21Limits {
        max_conns: offer.max_conns.min(own.max_conns),
        max_links: offer.max_links.min(own.max_links),
        features: offer.features & own.features,
    })
}

/// Checks limits that a peer decided on, which may not exceed what was offered to it. Features are
/// not limits: see [`super::client`].
pub(super) fn check_limits(chosen: V21Limits, offered: V21Limits) -> Result<(), DeclineReason> {
    if !(MIN_NEGOTIATED_CONNS..=offered.max_conns).contains(&chosen.max_conns) {
        return Err(DeclineReason::MAXCONNERR);
    }
    if !(1..=offered.max_links.min(MAX_LINKS)).contains(&chosen.max_links) {
        return Err(DeclineReason::MAXLINKERR);
    }
    Ok(())
}

/// Checks whether the client's version 1 offer can be taken.
pub(super) fn select_v1(proposal: &Proposal, caps: &Caps<'_>) -> Result<V1Offer, DeclineReason> {
    if !proposal.typev1.has_rdma() {
        return Err(DeclineReason::NOSMCDDEV);
    }
    let offer = proposal.v1.as_ref().ok_or(DeclineReason::CNFERR)?;
    let own = caps.v1.as_ref().ok_or(DeclineReason::NOSMCRDEV)?;
    if same_network(offer, own) {
        Ok(*offer)
    } else {
        Err(DeclineReason::DIFFPREFIX)
    }
}

/// Whether both ends are in one IP subnet or share an IPv6 prefix (C.1).
fn same_network(offer: &V1Offer, own: &V1Caps<'_>) -> bool {
    match offer.subnet.as_ref() {
        Some(subnet) if !own.subnets.is_empty() => {
            own.subnets.iter().any(|mine| mine.same_subnet(subnet))
        }
        _ => own
            .v6
            .iter()
            .any(|mine| offer.v6.iter().any(|theirs| mine.same_subnet(theirs))),
    }
}

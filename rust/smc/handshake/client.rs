// SPDX-License-Identifier: GPL-2.0

//! The client's side: `connect()` (RFC 7609 section 3.5).

use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    },
};
use smc_kapi::module::now_ms;
use smc_proto::{
    handshake::{
        Accepted,
        Client,
        GroupChoice,
        CLC_WAIT_MS, //
    },
    ids::{
        HostName,
        Version, //
    },
    reason::DeclineReason,
    wire::clc::{
        Kind,
        Message, //
    },
};

use super::{
    ports::Ports,
    resource_reason,
    steps::Step,
    End,
    FirstContact,
    Handshake,
    Reservation,
    Stop, //
};
use crate::smc::{
    conn::Connection,
    lgr::{
        show::PeerInfo,
        LinkGroup,
        Peer,
        Terms, //
    },
};

/// How long to wait for the end of another handshake's first contact, which the server has seen
/// already, in milliseconds.
const SETTLE_MS: u32 = 5_000;

/// How long to wait for a place in a link group, in milliseconds: less than the server waits for the
/// Confirm.
const FULL_WAIT_MS: u64 = 4_000;

/// Runs the handshake over an established TCP connection whose SYN-ACK carried the option.
pub(crate) fn run(hs: &Handshake<'_>) -> End {
    let mut version = Version::V1;
    match attempt(hs, &mut version) {
        Ok(conn) => End::Smc(conn),
        Err(stop) => hs.stop(stop, version),
    }
}

fn attempt(hs: &Handshake<'_>, version: &mut Version) -> Result<Arc<Connection>, Stop> {
    let ports = Ports::find(hs)?;
    let (next, proposal) = ports.with_caps(hs, Client::start)?;
    hs.send(&Message::Proposal(proposal))?;
    hs.done(Step::Proposal);
    let answer = hs.read(Kind::Accept, CLC_WAIT_MS)?;
    let accepted = next.handle(&answer)?;
    hs.done(Step::Accept);
    *version = accepted.version;
    let peer = Peer {
        id: accepted.peer_id(),
        gid: accepted.peer_gid(),
        mac: accepted.peer_mac(),
    };
    let known = if accepted.first_contact {
        None
    } else {
        hs.global
            .groups
            .for_client(hs.net, peer, accepted.peer.qpn)
            .filter(|group| group.wait_settled(SETTLE_MS))
    };
    match GroupChoice::decide(accepted.first_contact, known.is_some()) {
        GroupChoice::Create => first_contact(hs, &ports, &accepted, peer),
        GroupChoice::Join => join(hs, &accepted, known),
        GroupChoice::OutOfSync => Err(DeclineReason::SYNCERR.into()),
    }
}

/// The server sees no link group yet: brings up a link and waits until it is confirmed.
fn first_contact(
    hs: &Handshake<'_>,
    ports: &Ports,
    accepted: &Accepted,
    peer: Peer,
) -> Result<Arc<Connection>, Stop> {
    let terms = Terms {
        version: accepted.version,
        release: accepted.release.unwrap_or_default(),
        eid: accepted.eid,
        max_conns: accepted.max_conns,
        max_links: accepted.max_links,
        routed: accepted.version == Version::V2,
    };
    let port = ports.port(accepted.version)?;
    let group = hs
        .global
        .groups
        .new_for_client(hs.global, hs.net, peer, terms, port)
        .map_err(resource_reason)?;
    let contact = FirstContact::new(group.clone());
    group.note_peer(PeerInfo {
        host: accepted.peer_host.unwrap_or(HostName::EMPTY),
        os: accepted.peer_os,
        direct: accepted.peer_direct,
    });
    let link = group.create_link().map_err(resource_reason)?;
    let conn = group
        .reserve(&hs.wish, hs.names()?)
        .map_err(resource_reason)?;
    let mut reservation = Reservation::new(conn.clone());
    link.connect(&accepted.peer, accepted.mtu, terms.routed)
        .map_err(|_| DeclineReason::ERR_RDYLNK)?;
    group
        .register_first(&link, &conn)
        .map_err(|_| DeclineReason::ERR_REGBUF)?;
    conn.activate(&accepted.peer, hs.oob_inline())?;
    group
        .start_llc(&link, &accepted.peer, accepted.mtu)
        .map_err(|_| DeclineReason::ERR_RDYLNK)?;
    let confirm = accepted.confirm(hs.endpoint(&link, &conn)?, true);
    hs.done(Step::FirstContact);
    reservation.told_peer = true;
    hs.send(&Message::Confirm(confirm))?;
    hs.done(Step::Confirm);
    group.await_first_link()?;
    hs.done(Step::ConfirmLink);
    contact.succeed(hs.global)?;
    reservation.keep()
}

/// Adds the connection to a link group that both sides have.
fn join(
    hs: &Handshake<'_>,
    accepted: &Accepted,
    group: Option<Arc<LinkGroup>>,
) -> Result<Arc<Connection>, Stop> {
    let group = group.ok_or(DeclineReason::SYNCERR)?;
    let link = group.link().ok_or(DeclineReason::NOACTLINK)?;
    let conn = reserve_when_free(hs, &group)?;
    let mut reservation = Reservation::new(conn.clone());
    hs.done(Step::Join);
    // The server may write as soon as it has the Confirm.
    conn.activate(&accepted.peer, hs.oob_inline())?;
    let confirm = accepted.confirm(hs.endpoint(&link, &conn)?, false);
    reservation.told_peer = true;
    hs.send(&Message::Confirm(confirm))?;
    hs.done(Step::Confirm);
    reservation.keep()
}

/// Takes buffers and a token; waits a moment for the token when the group is full: the server has seen
/// the end of a connection that this side has not.
fn reserve_when_free(hs: &Handshake<'_>, group: &Arc<LinkGroup>) -> Result<Arc<Connection>, Stop> {
    let deadline = now_ms() + FULL_WAIT_MS;
    loop {
        match group.reserve(&hs.wish, hs.names()?) {
            Err(ENOSPC) if now_ms() < deadline => fsleep(Delta::from_millis(10)),
            result => return Ok(result.map_err(resource_reason)?),
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! The server's side: a connection that a listener took, whose SYN offered SMC (RFC 7609 section
//! 3.5).

use kernel::{
    prelude::*,
    sync::Arc, //
};
use smc_kapi::module::now_ms;
use smc_proto::{
    handshake::{
        AwaitConfirm,
        AwaitProposal,
        Confirmed,
        Fault,
        Outcome,
        Selected,
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
        table::Found,
        Ending,
        LinkGroup,
        Peer,
        Terms, //
    },
    link::Link,
};

/// How long to look for a link group, in milliseconds: groups can fill up or end between look-up and
/// use, and first contacts of other handshakes with the same peer are waited for. The client waits
/// for its answer a little longer.
const PENDING_WAIT_MS: u64 = CLC_WAIT_MS * 3 / 4;

/// Runs the handshake; the Proposal, or the beginning of it, has arrived.
///
/// Unless the events of the TCP connection come to this module (`watched`), it has to stay on TCP: its
/// end would not be noticed, and whoever has the events expects its bytes there.
pub(crate) fn run(hs: &Handshake<'_>, watched: bool) -> End {
    let mut version = Version::V1;
    match attempt(hs, watched, &mut version) {
        Ok(conn) => End::Smc(conn),
        Err(stop) => hs.stop(stop, version),
    }
}

fn attempt(
    hs: &Handshake<'_>,
    watched: bool,
    version: &mut Version,
) -> Result<Arc<Connection>, Stop> {
    // It is all there, or its time is over.
    let message = hs.read(Kind::Proposal, 0)?;
    if let Message::Proposal(proposal) = &message {
        *version = Version::common(proposal.version).unwrap_or(Version::V1);
    }
    if let Message::Decline(decline) = &message {
        // The client cannot do SMC although its SYN offered it: its reason is the one to note.
        return Err(Outcome::from(*decline).into());
    }
    hs.done(Step::Proposal);
    if !watched {
        return Err(DeclineReason::OPTUNSUPP.into());
    }
    let ports = Ports::find(hs)?;
    let selected = ports.with_caps(hs, |caps| AwaitProposal.handle(&message, caps))?;
    *version = selected.version;
    let peer = Peer {
        id: selected.peer_id,
        gid: selected.peer_gid,
        mac: selected.peer_mac,
    };
    let terms = Terms {
        version: selected.version,
        release: selected.release.unwrap_or_default(),
        eid: selected.eid,
        max_conns: selected.max_conns,
        max_links: selected.max_links,
        routed: selected.version == Version::V2,
    };
    let port = ports.port(selected.version)?;
    let deadline = now_ms() + PENDING_WAIT_MS;
    while now_ms() < deadline {
        let found = hs
            .global
            .groups
            .for_server(hs.global, hs.net, peer, terms, port)
            .map_err(resource_reason)?;
        match found {
            Found::Fresh(group) => return first_contact(hs, selected, group),
            Found::Pending(group) => {
                // CAST: at most `PENDING_WAIT_MS`.
                group.wait_settled(deadline.saturating_sub(now_ms()) as u32);
            }
            Found::Active(group) => match group.reserve(&hs.wish, hs.names()?) {
                Ok(conn) => return join(hs, selected, &group, conn),
                // Full or ending meanwhile: look again.
                Err(ENOSPC) | Err(ENOLINK) => {}
                Err(error) => return Err(resource_reason(error).into()),
            },
        }
    }
    Err(DeclineReason::NOACTLINK.into())
}

/// Brings up the link of a new link group and confirms it with the client.
fn first_contact(
    hs: &Handshake<'_>,
    selected: Selected,
    group: Arc<LinkGroup>,
) -> Result<Arc<Connection>, Stop> {
    let contact = FirstContact::new(group.clone());
    let link = group.create_link().map_err(resource_reason)?;
    let conn = group
        .reserve(&hs.wish, hs.names()?)
        .map_err(resource_reason)?;
    let mut reservation = Reservation::new(conn.clone());
    hs.done(Step::FirstContact);
    let (next, accept) = selected.accept(hs.endpoint(&link, &conn)?, true);
    reservation.told_peer = true;
    hs.send(&Message::Accept(accept))?;
    hs.done(Step::Accept);
    let confirmed = read_confirm(hs, next)?;
    hs.done(Step::Confirm);
    group.note_peer(PeerInfo {
        host: confirmed.peer_host.unwrap_or(HostName::EMPTY),
        os: confirmed.peer_os,
        direct: confirmed.peer_direct,
    });
    link.connect(&confirmed.peer, confirmed.mtu, group.terms.routed)
        .map_err(|_| DeclineReason::ERR_RDYLNK)?;
    group
        .register_first(&link, &conn)
        .map_err(|_| DeclineReason::ERR_REGBUF)?;
    conn.activate(&confirmed.peer, hs.oob_inline())?;
    group
        .start_llc(&link, &confirmed.peer, confirmed.mtu)
        .map_err(|_| DeclineReason::ERR_RDYLNK)?;
    group.await_first_link()?;
    hs.done(Step::ConfirmLink);
    contact.succeed(hs.global)?;
    reservation.keep()
}

/// Adds the connection to an active link group.
fn join(
    hs: &Handshake<'_>,
    selected: Selected,
    group: &Arc<LinkGroup>,
    conn: Arc<Connection>,
) -> Result<Arc<Connection>, Stop> {
    let mut reservation = Reservation::new(conn.clone());
    hs.done(Step::Join);
    let link = group.link().ok_or(DeclineReason::NOACTLINK)?;
    let (next, accept) = selected.accept(hs.endpoint(&link, &conn)?, false);
    reservation.told_peer = true;
    hs.send(&Message::Accept(accept))?;
    hs.done(Step::Accept);
    match read_confirm(hs, next) {
        Ok(confirmed) => {
            hs.done(Step::Confirm);
            check_end(&confirmed, group, &link)?;
            // The client uses the connection already: a Decline would be application data (C.3).
            conn.activate(&confirmed.peer, hs.oob_inline())
                .map_err(|reason| Outcome::Abort(Fault::Mismatch(reason)))?;
            reservation.keep()
        }
        // So may a client whose Confirm is late.
        Err(Stop::Protocol(Outcome::Decline(DeclineReason::TIMEOUT_CL), _)) => {
            Err(Outcome::TIMED_OUT.into())
        }
        Err(stop) => {
            if let Stop::Protocol(outcome, _) = &stop {
                // A client that declines has not used what it was told.
                if matches!(outcome, Outcome::PeerDeclined { .. }) {
                    reservation.told_peer = false;
                }
                end_if_out_of_sync(outcome, group);
            }
            Err(stop)
        }
    }
}

/// A later contact must name the end that the link leads to: otherwise anybody who claims to be the
/// client could have us write to an address of the real one that breaks the link.
fn check_end(confirmed: &Confirmed, group: &LinkGroup, link: &Link) -> Result<(), Stop> {
    let peer = &confirmed.peer;
    if link.peer_qpn() == Some(peer.qpn) && group.peer.gid == peer.gid {
        Ok(())
    } else {
        Err(Outcome::Abort(Fault::Mismatch(DeclineReason::CNFERR)).into())
    }
}

/// Reads the client's Confirm, for which it may be too late to decline (C.3).
fn read_confirm(hs: &Handshake<'_>, next: AwaitConfirm) -> Result<Confirmed, Stop> {
    match hs.read(Kind::Confirm, CLC_WAIT_MS) {
        Ok(answer) => Ok(next.handle(&answer)?),
        Err(Stop::Unreadable(error)) => Err(next.unreadable(error).into()),
        Err(stop) => Err(stop),
    }
}

/// A client whose view of the link group differs from ours wants it ended (C.4).
fn end_if_out_of_sync(outcome: &Outcome, group: &Arc<LinkGroup>) {
    if let Outcome::PeerDeclined {
        out_of_sync: true, ..
    } = outcome
    {
        group.end(Ending::Peer);
    }
}

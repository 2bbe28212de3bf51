// SPDX-License-Identifier: GPL-2.0

//! More connections on a link than it has room for messages, and a peer that takes none.

use crate::case::{client, ClientCase};
use crate::clc::{self, Identity};
use crate::link::SEND_LIMIT;
use crate::message::request;
use crate::session::Session;
use smc_proto::ids::LinkId;
use smc_proto::wire::cdc::ConnFlags;
use smc_proto::wire::llc::{Body, DeleteLink, DeleteLinkReason};
use std::time::{Duration, Instant};
use testlib::sock::Sock;

/// Senders that wait have to learn within this time that their connection is gone. Real machines
/// need milliseconds; here 64 programs share emulated processors with other tests.
const WAKE_LIMIT: Duration = Duration::from_secs(5);
/// How long nothing moves when all rings are full.
const STILL: Duration = Duration::from_secs(1);

/// A session with so many connections.
fn crowd(id: &Identity, count: usize) -> Result<Session, String> {
    let mut session = Session::connect(&Identity {
        rings: count + 2,
        ..id.clone()
    })?;
    for _ in 1..count {
        session.join()?;
    }
    Ok(session)
}

/// Lets every application wait in `send()`, and the other side have more messages to send than its
/// link has room for.
fn stall(session: &mut Session) -> Result<(), String> {
    let link = &mut session.link;
    let mut moved = Instant::now();
    while moved.elapsed() < STILL {
        for conn in &mut session.conns {
            conn.update(link)?;
            let room = conn.room().min(8192);
            if room > 0 {
                conn.write(link, room)?;
                moved = Instant::now();
            }
        }
    }
    // From now on each connection can send something, but the messages are not taken.
    link.habits.receives = false;
    let end = Instant::now() + SEND_LIMIT;
    while moved.elapsed() < STILL || !link.is_starved() {
        if Instant::now() > end {
            return Err("the other side does not use up all buffers".into());
        }
        for conn in &mut session.conns {
            conn.update(link)?;
            if conn.taken < conn.arrived {
                conn.taken = conn.arrived;
                conn.send_cdc(link, |_| {})?;
                moved = Instant::now();
            }
        }
    }
    Ok(())
}

/// All applications must have closed their ends soon after `start`.
fn expect_ends<'a>(
    start: Instant,
    limit: Duration,
    socks: impl Iterator<Item = &'a Sock>,
) -> Result<(), String> {
    for sock in socks {
        clc::await_tcp_end(
            sock,
            (start + limit).saturating_duration_since(Instant::now()),
        )?;
    }
    Ok(())
}

/// Resets every connection and has the other side's answers to that.
///
/// An answer is the last that its connection sends, and what was written for it is there before it,
/// so that from then on its ring belongs to nobody.
fn reset_all(session: &mut Session) -> Result<(), String> {
    let start = Instant::now();
    for conn in &mut session.conns {
        conn.own_flags = ConnFlags::ABORT;
        conn.send_cdc(&mut session.link, |_| {})?;
    }
    expect_ends(start, SEND_LIMIT, session.conns.iter().map(|c| &c.sock))?;
    session.link.feed()?;
    for mut conn in session.conns.drain(..) {
        if !conn.wait(&mut session.link, SEND_LIMIT, |c| {
            c.flags.contains(ConnFlags::ABORT)
        })? {
            return Err(format!(
                "the reset of connection {} has no answer",
                conn.ring
            ));
        }
        session.link.clear_ring(conn.ring);
    }
    Ok(())
}

pub(crate) const CLIENT: &[ClientCase] = &[
    client("waiting-senders-learn-of-the-end-of-the-link", |id| {
        let mut session = crowd(id, 64)?;
        stall(&mut session)?;
        let start = Instant::now();
        let all = DeleteLink {
            link: LinkId(0),
            all: true,
            orderly: false,
            reason: DeleteLinkReason::OPERATOR,
        };
        session.link.send_llc(&request(Body::DeleteLink(all)))?;
        expect_ends(start, WAKE_LIMIT, session.conns.iter().map(|c| &c.sock))?;
        session.check_guards()?;
        drop(session);
        Session::pair(id)?.finish()
    }),
    // To be run with as few slots for messages as there can be: one that is lost shows.
    client("waiting-connections-are-reset-and-leave-no-message", |id| {
        let mut session = crowd(id, 50)?;
        stall(&mut session)?;
        reset_all(&mut session)?;
        for n in 0..4 {
            session.join()?;
            session.echo(n, 20_000)?;
        }
        // Four tokens are in use again; the others belong to nobody.
        for ring in session.conns.len()..session.link.rings {
            let left = session.link.cdc.get(&clc::token(ring).0);
            if let Some(message) = left.and_then(|queue| queue.front()) {
                return Err(format!("connection {ring} has ended and sent {message:?}"));
            }
        }
        session.finish()
    }),
];

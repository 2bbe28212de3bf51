// SPDX-License-Identifier: GPL-2.0

//! RDMA operations where they are not allowed, receivers that are not ready, and links that break.

use crate::case::{client, ClientCase};
use crate::clc::{self, Identity};
use crate::conn::ECHO_LIMIT;
use crate::session::Session;
use crate::verbs::status_name;
use smc_proto::wire::clc::RdmaEndpoint;
use smc_proto::wire::llc::DeleteLinkReason;
use std::time::Duration;

/// Completion statuses of what the other side's device refused.
const REFUSED: [i32; 2] = [9, 10];

fn expect_refusal(session: &mut Session, id: u64) -> Result<(), String> {
    let status = session.link.finish(id)?;
    if !REFUSED.contains(&status) {
        return Err(format!("it ended with: {}", status_name(status)));
    }
    session.expect_end()
}

/// Writes one byte where `place` says; it must be refused and end the link.
fn write(id: &Identity, place: impl FnOnce(&RdmaEndpoint, u64) -> u64) -> Result<(), String> {
    let mut session = Session::connect(id)?;
    session.echo(0, 500)?;
    let peer = session.conns[0].peer;
    let addr = place(&peer, session.conns[0].peer_len());
    let request = session.link.post_write(addr, peer.rkey.0, &[0x66])?;
    expect_refusal(&mut session, request)?;
    drop(session);
    Session::pair(id)?.finish()
}

/// Breaks the link by `how` while data flows in both directions.
fn breaks(
    id: &Identity,
    how: impl FnOnce(&mut Session) -> Result<(), String>,
) -> Result<(), String> {
    let mut session = Session::pair(id)?;
    for n in 0..2 {
        let room = session.conns[n].room();
        session.conns[n].write(&mut session.link, room)?;
    }
    how(&mut session)?;
    let socks: Vec<_> = session.conns.drain(..).map(|c| c.sock).collect();
    drop(session);
    // The server's device gives up when its messages are not acknowledged.
    for sock in &socks {
        clc::await_tcp_end(sock, Duration::from_secs(40))?;
    }
    Session::pair(id)?.finish()
}

pub(crate) const CLIENT: &[ClientCase] = &[
    client("write-in-front-of-the-buffer", |id| {
        write(id, |peer, _| peer.rmb_addr.0 - 1)
    }),
    client("write-behind-the-buffer", |id| {
        write(id, |peer, len| peer.rmb_addr.0 + len)
    }),
    client("write-across-the-end-of-the-buffer", |id| {
        let mut session = Session::connect(id)?;
        session.echo(0, 500)?;
        let peer = session.conns[0].peer;
        let addr = peer.rmb_addr.0 + session.conns[0].peer_len() - 10;
        let request = session.link.post_write(addr, peer.rkey.0, &[0x66; 20])?;
        expect_refusal(&mut session, request)?;
        drop(session);
        Session::pair(id)?.finish()
    }),
    client("write-far-away", |id| {
        write(id, |peer, _| peer.rmb_addr.0 ^ 1 << 46)
    }),
    client("write-to-address-0", |id| write(id, |_, _| 0)),
    client("write-with-a-key-that-is-not-there", |id| {
        let mut session = Session::connect(id)?;
        session.echo(0, 500)?;
        let peer = session.conns[0].peer;
        let request = session
            .link
            .post_write(peer.rmb_addr.0, peer.rkey.0 ^ 0x55, &[1])?;
        expect_refusal(&mut session, request)
    }),
    client("read-from-the-buffer", |id| {
        let mut session = Session::connect(id)?;
        session.echo(0, 500)?;
        let peer = session.conns[0].peer;
        let request = session.link.post_read(peer.rmb_addr.0, peer.rkey.0, 64)?;
        expect_refusal(&mut session, request)
    }),
    client("write-with-the-key-of-another-link-group", |id| {
        let mut session = Session::connect(id)?;
        let other = Identity {
            number: id.number ^ 0x4000,
            ..id.clone()
        };
        let mut other = Session::connect(&other)?;
        session.echo(0, 500)?;
        other.echo(0, 500)?;
        let peer = other.conns[0].peer;
        let request = session
            .link
            .post_write(peer.rmb_addr.0, peer.rkey.0, &[0x66])?;
        expect_refusal(&mut session, request)?;
        other.finish()
    }),
    client("write-with-the-key-of-an-ended-link-group", |id| {
        let mut session = Session::connect(id)?;
        session.echo(0, 500)?;
        let old = session.conns[0].peer;
        session.delete_all(DeleteLinkReason::OPERATOR)?;
        session.expect_end()?;
        drop(session);
        let mut session = Session::connect(id)?;
        // A link that is lost before the other side has its confirmation leaves the program on TCP.
        session.echo(0, 500)?;
        let request = session
            .link
            .post_write(old.rmb_addr.0, old.rkey.0, &[0x66])?;
        expect_refusal(&mut session, request)
    })
    .slow(),
    client("writes-that-are-never-announced", |id| {
        let mut session = Session::pair(id)?;
        let peer = session.conns[0].peer;
        let at = session.conns[0].peer_address(0);
        for n in 0..400u64 {
            session
                .link
                .post_write(at + n * 64 % 8192, peer.rkey.0, &[0x99; 64])?;
        }
        session.finish()
    }),
    client("receiver-not-ready-for-five-seconds", |id| {
        let mut session = Session::pair(id)?;
        session.link.habits.receives = false;
        for _ in 0..120 {
            session.conns[0].write(&mut session.link, 10)?;
            session.conns[1].write(&mut session.link, 10)?;
            session
                .link
                .wait(Duration::from_millis(5), |_| None::<()>)?;
        }
        session.link.wait(Duration::from_secs(5), |_| None::<()>)?;
        session.link.feed()?;
        for conn in &mut session.conns {
            let total = conn.written;
            conn.read_echo(&mut session.link, total)?;
        }
        session.finish()
    }),
    client("receiver-never-ready-and-then-gone", |id| {
        breaks(id, |session| {
            session.link.habits.receives = false;
            for _ in 0..100 {
                session.conns[0].consumed = session.conns[0].written;
                let message = session.conns[0].cdc().emit();
                session.link.post_send(&message)?;
                session
                    .link
                    .wait(Duration::from_millis(5), |_| None::<()>)?;
            }
            session.link.kill()
        })
    })
    .slow(),
    client("queue-pair-breaks-while-data-flows", |id| {
        breaks(id, |s| s.link.kill())
    })
    .slow(),
    client("queue-pair-vanishes-while-data-flows", |id| {
        breaks(id, |_| Ok(()))
    })
    .slow(),
    client("queue-pair-breaks-while-a-key-is-exchanged", |id| {
        let mut session = Session::connect(id)?;
        session.echo(0, 300)?;
        session.link.habits.rkeys = crate::habits::RkeyHabit::Never;
        let sock = id.connect()?;
        clc::send(&sock, &id.proposal())?;
        let asked = session
            .link
            .wait(ECHO_LIMIT, |l| (l.rkey_requests > 0).then_some(()))?;
        if asked.is_none() {
            return Err("the server announced no key".into());
        }
        session.link.kill()?;
        let first = session.conns.remove(0).sock;
        drop(session);
        clc::await_tcp_end(&first, Duration::from_secs(40))?;
        drop(sock);
        Session::pair(id)?.finish()
    }),
];

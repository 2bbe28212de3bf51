// SPDX-License-Identifier: GPL-2.0

//! CDC flags at the wrong time, urgent data that is none, and floods.

use crate::case::{client, ClientCase};
use crate::clc::{self, Identity};
use crate::conn::ECHO_LIMIT;
use crate::session::Session;
use smc_proto::wire::cdc::{ConnFlags, ProdFlags};
use std::time::Duration;

const URGENT: ProdFlags = ProdFlags::URGENT_PENDING.with(ProdFlags::URGENT_PRESENT);

/// Ends the first connection in any way that suits the server; the second goes on.
fn first_ends(mut session: Session) -> Result<(), String> {
    let (link, conn) = (&mut session.link, &mut session.conns[0]);
    let gone =
        |flags: ConnFlags| flags.contains(ConnFlags::CLOSED) || flags.contains(ConnFlags::ABORT);
    if !conn.wait(link, ECHO_LIMIT, |c| gone(c.flags))? {
        return Err("the first connection does not end".into());
    }
    conn.own_flags = ConnFlags::SENDING_DONE
        .with(ConnFlags::CLOSED)
        .with_if(conn.flags.contains(ConnFlags::ABORT), ConnFlags::ABORT);
    conn.send_cdc(link, |_| {})?;
    clc::await_tcp_end(&conn.sock, ECHO_LIMIT)?;
    session.conns.remove(0);
    session.finish()
}

fn with_flags(id: &Identity, flags: &[ConnFlags]) -> Result<(), String> {
    let mut session = Session::pair(id)?;
    for flags in flags {
        session.conns[0].send_cdc(&mut session.link, |m| m.conn_flags = *flags)?;
    }
    first_ends(session)
}

/// Urgent flags for bytes that are not there.
fn urgent(id: &Identity, flags: ProdFlags, times: usize) -> Result<(), String> {
    let mut session = Session::pair(id)?;
    for _ in 0..times {
        session.conns[0].send_cdc(&mut session.link, |m| m.prod_flags = flags)?;
    }
    session.finish()
}

pub(crate) const CLIENT: &[ClientCase] = &[
    client("closed-without-done", |id| {
        with_flags(id, &[ConnFlags::CLOSED])
    }),
    client("abort", |id| with_flags(id, &[ConnFlags::ABORT])),
    client("abort-ten-times", |id| {
        with_flags(id, &[ConnFlags::ABORT; 10])
    }),
    client("done-taken-back", |id| {
        with_flags(
            id,
            &[
                ConnFlags::SENDING_DONE,
                ConnFlags::NONE,
                ConnFlags::SENDING_DONE,
            ],
        )
    }),
    client("abort-taken-back", |id| {
        with_flags(id, &[ConnFlags::ABORT, ConnFlags::NONE])
    }),
    client("all-close-flags", |id| {
        let all = ConnFlags::SENDING_DONE
            .with(ConnFlags::CLOSED)
            .with(ConnFlags::ABORT);
        with_flags(id, &[all, all])
    }),
    client("forged-cursor-with-abort", |id| {
        let mut session = Session::pair(id)?;
        session.conns[0].send_cdc(&mut session.link, |m| {
            m.prod.count = u32::MAX;
            m.conn_flags = ConnFlags::ABORT;
        })?;
        first_ends(session)
    }),
    client("data-after-done", |id| {
        let mut session = Session::pair(id)?;
        let (link, conn) = (&mut session.link, &mut session.conns[0]);
        conn.own_flags = ConnFlags::SENDING_DONE;
        conn.send_cdc(link, |_| {})?;
        conn.write(link, 1000)?;
        conn.write(link, 1000)?;
        first_ends(session)
    }),
    client("data-after-closed", |id| {
        let mut session = Session::pair(id)?;
        let (link, conn) = (&mut session.link, &mut session.conns[0]);
        conn.own_flags = ConnFlags::SENDING_DONE.with(ConnFlags::CLOSED);
        conn.send_cdc(link, |_| {})?;
        for _ in 0..5 {
            conn.write(link, 100)?;
        }
        first_ends(session)
    }),
    client("urgent-without-data", |id| urgent(id, URGENT, 3)),
    client("urgent-pending-for-ever", |id| {
        urgent(id, ProdFlags::URGENT_PENDING, 50)
    }),
    client("urgent-flood", |id| urgent(id, URGENT, 300)).slow(),
    client("urgent-on-every-byte", |id| {
        let mut session = Session::pair(id)?;
        let (link, conn) = (&mut session.link, &mut session.conns[0]);
        for n in 0..40u8 {
            conn.write_quietly(link, &[n])?;
            conn.send_cdc(link, |m| m.prod_flags = URGENT)?;
        }
        // Which bytes are left out of the stream is the application's affair.
        conn.wait(link, Duration::from_secs(1), |_| false)?;
        conn.taken = conn.arrived;
        conn.close(link)?;
        session.conns.remove(0);
        session.finish()
    }),
    client("blocked-and-update-flood", |id| {
        let flags = ProdFlags::WRITER_BLOCKED.with(ProdFlags::CONS_UPDATE_REQUESTED);
        urgent(id, flags, 500)
    })
    .slow(),
    client("unknown-tokens-by-the-hundred", |id| {
        let mut session = Session::pair(id)?;
        for n in 0..1000u32 {
            let mut message = session.conns[0].cdc();
            message.token.0 = 0x7700_0000 + n;
            session.link.post_send(&message.emit())?;
        }
        session.finish()
    })
    .slow(),
    client("wrong-lengths-by-the-hundred", |id| {
        let mut session = Session::pair(id)?;
        for n in 0..1000usize {
            let message = session.conns[0].cdc().emit();
            session.link.post_send(&message[..n % 44])?;
        }
        session.finish()
    })
    .slow(),
    client("flood-while-the-application-closes", |id| {
        let mut session = Session::pair(id)?;
        let (link, conn) = (&mut session.link, &mut session.conns[0]);
        for n in 0..600 {
            if n == 200 {
                conn.own_flags = ConnFlags::SENDING_DONE;
            }
            let message = conn.cdc().emit();
            link.post_send(&message)?;
        }
        first_ends(session)
    }),
    client("tcp-reset-while-data-flows", |id| {
        let mut session = Session::pair(id)?;
        session.conns[0].write(&mut session.link, 3000)?;
        let conn = session.conns.remove(0);
        let _ = conn.sock.set_linger(true, 0);
        drop(conn.sock);
        session.finish()
    }),
    client("tcp-end-while-data-flows", |id| {
        let mut session = Session::pair(id)?;
        session.conns[0].write(&mut session.link, 3000)?;
        let conn = session.conns.remove(0);
        drop(conn.sock);
        session.finish()
    }),
    client("bytes-over-tcp-after-the-handshake", |id| {
        let session = Session::pair(id)?;
        let junk = [0xe2; 3000];
        session.conns[0]
            .sock
            .send_all(&junk)
            .map_err(|e| format!("send: {e}"))?;
        // They are no data of the application: the echo has none of them.
        session.finish()
    }),
    client("decline-over-tcp-after-the-handshake", |id| {
        let session = Session::pair(id)?;
        let decline = id.decline(smc_proto::reason::DeclineReason::SYNCERR);
        clc::send(&session.conns[0].sock, &decline)?;
        session.finish()
    }),
    client("reader-that-never-reads", |id| {
        let mut session = Session::pair(id)?;
        let room = session.conns[0].room();
        session.conns[0].write(&mut session.link, room)?;
        // The application waits for room that never comes, and is not disturbed by that.
        session.conns[0].wait(&mut session.link, Duration::from_secs(35), |_| false)?;
        let total = session.conns[0].written;
        session.conns[0].read_echo(&mut session.link, total)?;
        session.finish()
    })
    .slow(),
];

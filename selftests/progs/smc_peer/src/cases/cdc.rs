// SPDX-License-Identifier: GPL-2.0

//! CDC messages with cursors, flags, tokens, numbers and lengths that cannot be.

use crate::case::{client, ClientCase};
use crate::clc::Identity;
use crate::conn::{cursor, Conn};
use crate::link::{Link, RING};
use crate::session::Session;
use smc_proto::wire::cdc::{CdcMessage, ConnFlags, ProdFlags, RawCursor};
use std::time::Duration;

/// Sends a message that must reset its connection; another one on the same link goes on.
fn resets(id: &Identity, spoil: impl FnOnce(&mut CdcMessage, &Conn)) -> Result<(), String> {
    let mut session = Session::pair(id)?;
    spoiled(&mut session, spoil)?;
    session.expect_reset(0)?;
    session.finish()
}

fn spoiled(
    session: &mut Session,
    spoil: impl FnOnce(&mut CdcMessage, &Conn),
) -> Result<(), String> {
    let conn = &mut session.conns[0];
    let mut message = conn.cdc();
    spoil(&mut message, conn);
    session.link.send(&message.emit())
}

/// Sends bytes that must change nothing in either connection.
fn ignored(
    id: &Identity,
    spoil: impl FnOnce(&mut Link, &mut Conn) -> Result<(), String>,
) -> Result<(), String> {
    let mut session = Session::pair(id)?;
    spoil(&mut session.link, &mut session.conns[0])?;
    session.finish()
}

/// Sends the bytes of the next message, changed.
fn send_changed(
    link: &mut Link,
    conn: &mut Conn,
    change: impl FnOnce(&mut Vec<u8>),
) -> Result<(), String> {
    let mut bytes = conn.cdc().emit().to_vec();
    change(&mut bytes);
    link.send(&bytes)
}

fn before(bytes: u64, len: u64) -> RawCursor {
    cursor(bytes - 1, len)
}

/// Lets both rings of the first connection run full: the application reads no more, since it cannot
/// send, as this peer takes nothing.
fn fill_up(session: &mut Session) -> Result<(), String> {
    let (link, conn) = (&mut session.link, &mut session.conns[0]);
    for _ in 0..200 {
        let room = conn.room().min(8192);
        if room > 0 {
            conn.write(link, room)?;
        }
        let full = conn.written;
        conn.wait(link, Duration::from_millis(400), |c| c.room() > 0)?;
        if conn.room() == 0 && conn.written == full {
            return Ok(());
        }
    }
    Err("the server takes more than it has buffers for".into())
}

pub(crate) const PRODUCER: &[ClientCase] = &[
    client("producer-one-past-the-ring", |id| {
        resets(id, |m, c| m.prod.count = c.peer_len() as u32)
    }),
    client("producer-at-the-end-of-numbers", |id| {
        resets(id, |m, _| m.prod.count = u32::MAX)
    }),
    client("producer-at-the-sign-bit", |id| {
        resets(id, |m, _| m.prod.count = 1 << 31)
    }),
    client("producer-backwards", |id| {
        resets(id, |m, c| m.prod = before(c.written, c.peer_len()))
    }),
    client("producer-back-at-the-start", |id| {
        resets(id, |m, _| m.prod.count = 0)
    }),
    client("producer-a-wrap-too-far", |id| {
        resets(id, |m, _| m.prod.wrap += 2)
    }),
    client("producer-one-wrap-and-one-byte", |id| {
        resets(id, |m, _| {
            m.prod.wrap += 1;
            m.prod.count += 1;
        })
    }),
    client("producer-wrap-at-the-end-of-numbers", |id| {
        resets(id, |m, _| m.prod.wrap = u16::MAX)
    }),
    client("producer-wrap-half-way-round", |id| {
        resets(id, |m, _| m.prod.wrap = 0x8000)
    }),
    client("producer-overtakes-a-reader-that-is-stuck", |id| {
        let mut session = Session::pair(id)?;
        fill_up(&mut session)?;
        spoiled(&mut session, |m, c| {
            m.prod = cursor(c.written + 1, c.peer_len())
        })?;
        session.expect_reset(0)?;
        session.finish()
    }),
    client("full-rings-and-a-good-end", |id| {
        let mut session = Session::pair(id)?;
        fill_up(&mut session)?;
        let total = session.conns[0].written;
        session.conns[0].read_echo(&mut session.link, total)?;
        session.finish()
    }),
    client("producer-announces-bytes-that-were-not-written", |id| {
        let mut session = Session::pair(id)?;
        let (link, conn) = (&mut session.link, &mut session.conns[0]);
        let n = 5_000;
        conn.written += n;
        conn.send_cdc(link, |_| {})?;
        let total = conn.written;
        if !conn.wait(link, Duration::from_secs(15), |c| c.arrived == total)? {
            return Err("the bytes did not come back".into());
        }
        // What the element held before must not come to light.
        let data = conn.peek(link);
        if let Some(at) = data.iter().position(|b| *b != 0) {
            return Err(format!(
                "byte {at} of memory never written is {:#04x}",
                data[at]
            ));
        }
        conn.taken = total;
        conn.send_cdc(link, |_| {})?;
        session.close()
    }),
    client("data-of-an-earlier-connection-is-gone", left_overs),
    client("ring-scribbled-over-while-it-is-read", |id| {
        let mut session = Session::pair(id)?;
        let (link, conn) = (&mut session.link, &mut session.conns[0]);
        let start = conn.written;
        for n in 0..30u8 {
            conn.write_quietly(link, &vec![n; 3_000])?;
            conn.send_cdc(link, |_| {})?;
            // The same place once more while the application copies.
            for _ in 0..3 {
                let addr = conn.peer_address(conn.written - 1000);
                if (conn.written - 1000) % conn.peer_len() + 1000 < conn.peer_len() {
                    link.post_write(addr, conn.peer.rkey.0, &[n ^ 0xff; 1000])?;
                }
            }
            let total = conn.written;
            if !conn.wait(link, Duration::from_secs(15), |c| c.arrived == total)? {
                return Err(format!(
                    "{} of {total} bytes came back",
                    conn.arrived - start
                ));
            }
            conn.taken = conn.arrived;
            conn.send_cdc(link, |_| {})?;
        }
        session.conns.remove(0).close(&mut session.link)?;
        session.finish()
    }),
];

/// Ends a connection whose application has gone with bytes in its element, and looks at the element
/// when the next connection has it.
fn left_overs(id: &Identity) -> Result<(), String> {
    let mut session = Session::pair(id)?;
    let secret = vec![0xa5; 9_000];
    let first = session.conns[0].peer;
    {
        let (link, conn) = (&mut session.link, &mut session.conns[0]);
        // The end of sending lets the application close.
        conn.own_flags = ConnFlags::SENDING_DONE;
        conn.send_cdc(link, |_| {})?;
        if !conn.wait(link, Duration::from_secs(15), |c| !c.flags.is_empty())? {
            return Err("the application does not close".into());
        }
        conn.write_quietly(link, &secret)?;
        conn.own_flags = ConnFlags::SENDING_DONE.with(ConnFlags::CLOSED);
        conn.send_cdc(link, |_| {})?;
    }
    session.conns.remove(0);
    for _ in 0..4 {
        let n = session.join()?;
        let (link, conn) = (&mut session.link, &mut session.conns[n]);
        if (conn.peer.rkey, conn.peer.rmbe_index) != (first.rkey, first.rmbe_index) {
            continue;
        }
        conn.written += 16_000;
        conn.send_cdc(link, |_| {})?;
        if !conn.wait(link, Duration::from_secs(15), |c| c.arrived == 16_000)? {
            return Err("the bytes did not come back".into());
        }
        let data = conn.peek(link);
        if let Some(at) = data.iter().position(|b| *b != 0) {
            return Err(format!("byte {at} of an earlier connection is still there"));
        }
        conn.taken = conn.arrived;
        conn.send_cdc(link, |_| {})?;
        return session.close();
    }
    Err("no later connection got the same element".into())
}

pub(crate) const CONSUMER: &[ClientCase] = &[
    client("consumer-one-past-the-ring", |id| {
        resets(id, |m, _| m.cons.count = RING as u32)
    }),
    client("consumer-at-the-end-of-numbers", |id| {
        resets(id, |m, _| m.cons.count = u32::MAX)
    }),
    client("consumer-backwards", |id| {
        resets(id, |m, c| m.cons = before(c.taken, RING as u64))
    }),
    client("consumer-ahead-of-what-was-sent", |id| {
        resets(id, |m, _| m.cons.count += 1)
    }),
    client("consumer-a-wrap-ahead", |id| {
        resets(id, |m, _| m.cons.wrap += 1)
    }),
    client("consumer-wrap-half-way-round", |id| {
        resets(id, |m, _| m.cons.wrap ^= 0x8000)
    }),
    client("consumer-the-same-hundreds-of-times", |id| {
        ignored(id, |link, conn| {
            for _ in 0..400 {
                let message = conn.cdc().emit();
                link.post_send(&message)?;
            }
            Ok(())
        })
    })
    .slow(),
    client("consumer-wrap-flips", |id| {
        let mut session = Session::pair(id)?;
        let (link, conn) = (&mut session.link, &mut session.conns[0]);
        for n in 0..300u16 {
            let mut message = conn.cdc();
            message.cons.wrap ^= n & 1;
            if link.post_send(&message.emit()).is_err() {
                break;
            }
        }
        session.expect_reset(0)?;
        session.finish()
    }),
];

pub(crate) const FORM: &[ClientCase] = &[
    client("number-of-an-older-message", |id| {
        ignored(id, |link, conn| {
            let mut message = conn.cdc();
            message.seq = message.seq.wrapping_sub(5);
            message.prod.count = u32::MAX;
            message.cons.wrap = 7;
            message.conn_flags = ConnFlags::ABORT;
            link.send(&message.emit())
        })
    }),
    client("number-jumps-ahead", |id| {
        ignored(id, |_, conn| {
            conn.seq = conn.seq.wrapping_add(0x7000);
            Ok(())
        })
    }),
    client("token-0", |id| {
        ignored(id, |l, c| c.send_cdc(l, |m| forged(m, 0)))
    }),
    client("token-unknown", |id| {
        ignored(id, |l, c| {
            let own = c.peer.token.0;
            for token in [
                !0,
                own ^ 0x80,
                own ^ 0x8000,
                own ^ 0x80_0000,
                own | 1 << 31,
                0xff,
            ] {
                c.send_cdc(l, |m| forged(m, token))?;
            }
            Ok(())
        })
    }),
    client("token-of-another-link-group", |id| {
        let mut session = Session::pair(id)?;
        let other = Identity {
            number: id.number ^ 0x4000,
            ..id.clone()
        };
        let mut other = Session::pair(&other)?;
        // Both groups give out the same tokens, so that the one has to be further.
        let last = other.join()?;
        other.echo(last, 300)?;
        let theirs = other.conns[last].peer.token;
        if session.conns.iter().any(|conn| conn.peer.token == theirs) {
            return Err("the token is one of this link group".into());
        }
        for _ in 0..20 {
            session.conns[0].send_cdc(&mut session.link, |m| forged(m, theirs.0))?;
        }
        session.finish()?;
        other.finish()
    }),
    client("token-of-an-ended-connection", |id| {
        let mut session = Session::pair(id)?;
        let mut gone = session.conns.remove(0);
        gone.close(&mut session.link)?;
        // The application's close must be through before the place is free.
        let old = gone.peer.token.0;
        session.join()?;
        for _ in 0..20 {
            session.conns[1].send_cdc(&mut session.link, |m| forged(m, old))?;
        }
        session.finish()
    }),
    client("message-of-43-bytes", |id| {
        ignored(id, |l, c| send_changed(l, c, |b| b.truncate(43)))
    }),
    client("message-of-45-bytes", |id| {
        ignored(id, |l, c| send_changed(l, c, |b| b.push(0)))
    }),
    client("message-of-1000-bytes", |id| {
        ignored(id, |l, c| send_changed(l, c, |b| b.resize(1000, 0xff)))
    }),
    client("message-of-no-bytes", |id| {
        ignored(id, |l, c| send_changed(l, c, Vec::clear))
    }),
    client("message-of-one-byte", |id| {
        ignored(id, |l, c| send_changed(l, c, |b| b.truncate(1)))
    }),
    client("length-byte-wrong", |id| {
        ignored(id, |l, c| {
            for len in [0, 43, 45, 255] {
                send_changed(l, c, |b| {
                    b[1] = len;
                    b[12..16].fill(0xff);
                })?;
            }
            Ok(())
        })
    }),
    client("reserved-fields-are-set", |id| {
        ignored(id, |l, c| {
            send_changed(l, c, |b| {
                b[8..10].fill(0xff);
                b[16..18].fill(0xff);
                b[24] |= 0x07;
                b[25] |= 0x1f;
                b[26..44].fill(0xff);
            })
        })
    }),
    client("failover-message-for-what-arrived", |id| {
        ignored(id, |l, c| {
            let seq = c.seq;
            c.send_cdc(l, |m| {
                m.seq = seq;
                m.prod.count = u32::MAX;
                m.prod_flags = ProdFlags::FAILOVER_VALIDATION;
            })
        })
    }),
    client("failover-message-for-what-was-lost", |id| {
        resets(id, |m, _| {
            m.seq = m.seq.wrapping_add(3);
            m.prod_flags = ProdFlags::FAILOVER_VALIDATION;
        })
    }),
];

/// A message that would do harm if it were taken.
fn forged(message: &mut CdcMessage, token: u32) {
    message.token.0 = token;
    message.prod.count = u32::MAX;
    message.cons.wrap = 7;
    message.conn_flags = ConnFlags::ABORT;
}

// SPDX-License-Identifier: GPL-2.0

//! Later contacts over a link that works, and the exchange of keys that some of them need.

use crate::case::{client, ClientCase};
use crate::clc::{self, Identity};
use crate::habits::RkeyHabit;
use crate::link::SEND_LIMIT;
use crate::session::{Joining, Session, END_LIMIT};
use smc_proto::ids::{Gid, Qpn, Rkey, VirtAddr};
use smc_proto::reason::DeclineReason as R;
use smc_proto::wire::cdc::ConnFlags;
use smc_proto::wire::clc::RdmaEndpoint;
use std::time::Duration;

/// Reads the Accept of a later contact and hands it over; the first connection must go on, and a
/// further one must come up.
fn joining(
    id: &Identity,
    spoil: impl FnOnce(&mut Session, Joining) -> Result<(), String>,
) -> Result<(), String> {
    let mut session = Session::connect(id)?;
    session.echo(0, 300)?;
    let joining = session.propose_again()?;
    spoil(&mut session, joining)?;
    session.echo(0, 300)?;
    let n = session.join()?;
    session.echo(n, 300)?;
    session.finish()
}

/// The server has given up a connection. Nobody else gets its element as long as this peer may write
/// there, which is until it says that it is gone.
fn kept_until_gone(session: &mut Session, lost: &RdmaEndpoint) -> Result<(), String> {
    let place = |end: &RdmaEndpoint| (end.rkey, end.rmbe_index);
    let other = session.join()?;
    session.echo(other, 300)?;
    if place(&session.conns[other].peer) == place(lost) {
        return Err("another connection got an element that this peer may write to".into());
    }
    session.conns[0].send_cdc(&mut session.link, |m| {
        m.token = lost.token;
        m.conn_flags = ConnFlags::CLOSED;
    })?;
    // What was sent before the test has been looked at when that is answered.
    session.link.test(1, SEND_LIMIT)?;
    let again = session.join()?;
    session.echo(again, 300)?;
    if place(&session.conns[again].peer) != place(lost) {
        return Err("this peer is gone, and nobody gets the element".into());
    }
    Ok(())
}

/// A later contact whose Confirm has another end, and whose first echo breaks the link.
fn breaks(id: &Identity, change: impl FnOnce(&mut RdmaEndpoint)) -> Result<(), String> {
    let mut session = Session::connect(id)?;
    let joining = session.propose_again()?;
    let n = session.confirm_again(joining, change)?;
    session.conns[n].write(&mut session.link, 100)?;
    session.expect_end()?;
    drop(session);
    Session::pair(id)?.finish()
}

/// A Confirm that the server can only reset the TCP connection for.
fn refused(id: &Identity, change: impl FnOnce(&mut RdmaEndpoint)) -> Result<(), String> {
    joining(id, |session, joining| {
        let n = session.confirm_again(joining, change)?;
        let conn = session.conns.remove(n);
        clc::await_tcp_end(&conn.sock, END_LIMIT)
    })
}

/// The server announces the RMB of a second connection, and this peer answers by `habit`.
fn announced(
    id: &Identity,
    habit: RkeyHabit,
    then: impl FnOnce(Session, Result<usize, String>) -> Result<(), String>,
) -> Result<(), String> {
    let mut session = Session::connect(id)?;
    session.echo(0, 300)?;
    session.link.habits.rkeys = habit;
    let joined = session.join();
    // A refusal is final, and an exchange that is to be tried again is, every 20 ms.
    let most = if habit == RkeyHabit::Retry { 300 } else { 1 };
    match session.link.rkey_requests {
        0 => return Err("the server announced no key".into()),
        n if n > most => return Err(format!("the server announced {n} keys")),
        _ => {}
    }
    session.link.habits.rkeys = RkeyHabit::Good;
    then(session, joined)
}

/// The connection that needed the key does not come up, and all else goes on.
fn declines(mut session: Session, joined: Result<usize, String>) -> Result<(), String> {
    match joined {
        Err(text) if text.starts_with("declined: ERR_REGBUF") => {}
        other => return Err(format!("a Decline was expected, not {other:?}")),
    }
    session.echo(0, 5000)?;
    let n = session.join()?;
    session.echo(n, 5000)?;
    session.finish()
}

fn ends(mut session: Session, _: Result<usize, String>) -> Result<(), String> {
    session.expect_end()?;
    let id = session.id.clone();
    drop(session);
    Session::pair(&id)?.finish()
}

fn works(mut session: Session, joined: Result<usize, String>) -> Result<(), String> {
    let n = joined?;
    session.echo(n, 5000)?;
    session.finish()
}

pub(crate) const CONFIRMS: &[ClientCase] = &[
    client("join-declined", |id| {
        joining(id, |s, j| {
            clc::send(&j.sock, &s.id.decline(R::MEM))?;
            clc::echo_over_tcp(&j.sock)
        })
    }),
    client("join-declined-and-used-nevertheless", |id| {
        joining(id, |s, j| {
            clc::send(&j.sock, &s.id.decline(R::MEM))?;
            clc::echo_over_tcp(&j.sock)?;
            let token = j.peer.token;
            s.conns[0].send_cdc(&mut s.link, |m| {
                m.token = token;
                m.prod.count = 5;
            })
        })
    }),
    client("join-declined-as-out-of-sync", |id| {
        let mut session = Session::connect(id)?;
        session.echo(0, 300)?;
        let joining = session.propose_again()?;
        clc::send(&joining.sock, &id.decline(R::SYNCERR))?;
        clc::echo_over_tcp(&joining.sock)?;
        // Both sides make the link group anew (RFC 7609 C.4).
        ends(session, Ok(1))
    }),
    client("join-reset-before-confirm", |id| {
        joining(id, |_, j| {
            let _ = j.sock.set_linger(true, 0);
            Ok(())
        })
    }),
    client("join-never-confirmed", |id| {
        joining(id, |s, j| {
            clc::await_tcp_end(&j.sock, END_LIMIT)?;
            kept_until_gone(s, &j.peer)
        })
    })
    .slow(),
    client("join-confirmed-late", |id| {
        joining(id, |s, j| {
            s.link.wait(Duration::from_secs(3), |_| None::<()>)?;
            let n = s.confirm_again(j, |_| {})?;
            s.echo(n, 3000)
        })
    }),
    client("join-confirmed-with-garbage", |id| {
        joining(id, |_, j| {
            j.sock
                .send_all(&[0x5a; 200])
                .map_err(|e| format!("send: {e}"))?;
            clc::await_tcp_end(&j.sock, END_LIMIT)
        })
    }),
    client("join-answered-with-a-proposal", |id| {
        joining(id, |s, j| {
            clc::send(&j.sock, &s.id.proposal())?;
            clc::await_tcp_end(&j.sock, END_LIMIT)
        })
    }),
    client("data-before-confirm", |id| {
        joining(id, |s, j| {
            let (peer, ring) = (j.peer, j.ring);
            let token = peer.token;
            let mut data = vec![0; 800];
            testlib::pattern::fill((u64::from(s.id.number) << 8) + ring as u64, 0, &mut data);
            s.link.post_write(
                peer.rmb_addr.0
                    + u64::from(peer.rmbe_index.zero_based()) * u64::from(peer.buf_size.bytes()),
                peer.rkey.0,
                &data,
            )?;
            let seq = s.conns[0].seq;
            s.conns[0].send_cdc(&mut s.link, |m| {
                m.token = token;
                m.seq = 1;
                m.prod.count = 800;
                m.prod.wrap = 0;
                m.cons = smc_proto::wire::cdc::RawCursor::default();
            })?;
            s.conns[0].seq = seq;
            let n = s.confirm_again(j, |_| {})?;
            s.conns[n].seq = 1;
            s.conns[n].written = 800;
            s.conns[n].read_echo(&mut s.link, 800)
        })
    }),
    client("forged-cursor-before-confirm", |id| {
        joining(id, |s, j| {
            let token = j.peer.token;
            let seq = s.conns[0].seq;
            for count in [5, u32::MAX] {
                s.conns[0].send_cdc(&mut s.link, |m| {
                    m.token = token;
                    m.seq = 1;
                    m.prod.count = count;
                })?;
            }
            s.conns[0].seq = seq;
            let n = s.confirm_again(j, |_| {})?;
            s.conns[n].seq = 1;
            let mut conn = s.conns.remove(n);
            conn.expect_reset(&mut s.link)
        })
    }),
    client("join-names-a-key-that-is-not-there", |id| {
        breaks(id, |end| end.rkey = Rkey(0xdead_0000))
    }),
    client("join-names-a-buffer-that-is-not-there", |id| {
        breaks(id, |end| end.rmb_addr = VirtAddr(0x10_0000))
    }),
    client("join-names-a-buffer-at-the-end-of-memory", |id| {
        refused(id, |end| end.rmb_addr = VirtAddr(u64::MAX - 100))
    }),
    client("join-names-another-queue-pair", |id| {
        refused(id, |end| {
            end.qpn = Qpn::new(end.qpn.get() ^ 1).unwrap_or(end.qpn)
        })
    }),
    client("join-names-another-gid", |id| {
        refused(id, |end| end.gid = Gid::from_ipv4([10, 9, 0, 99]))
    }),
];

pub(crate) const KEYS: &[ClientCase] = &[
    client("key-refused", |id| {
        announced(id, RkeyHabit::Negative, declines)
    }),
    client("key-to-be-tried-again-for-ever", |id| {
        announced(id, RkeyHabit::Retry, declines)
    })
    .slow(),
    client("key-never-answered", |id| {
        announced(id, RkeyHabit::Never, ends)
    }),
    client("key-answered-for-another", |id| {
        announced(id, RkeyHabit::WrongKey, ends)
    }),
    client("key-answered-twice", |id| {
        announced(id, RkeyHabit::Twice, works)
    }),
    client("key-answered-late", |id| {
        announced(id, RkeyHabit::Late(Duration::from_secs(2)), works)
    })
    .slow(),
    client("key-answered-too-short", |id| {
        announced(id, RkeyHabit::Short, ends)
    })
    .slow(),
    client("key-answered-with-delete-rkey", |id| {
        announced(id, RkeyHabit::OtherType, ends)
    })
    .slow(),
    client("key-refused-while-data-flows", |id| {
        let mut session = Session::connect(id)?;
        session.conns[0].write(&mut session.link, 3000)?;
        session.link.habits.rkeys = RkeyHabit::Negative;
        let joined = session.join();
        session.conns[0].read_echo(&mut session.link, 3000)?;
        session.link.habits.rkeys = RkeyHabit::Good;
        declines(session, joined)
    }),
];

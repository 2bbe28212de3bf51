// SPDX-License-Identifier: GPL-2.0

//! Data in the SYN: asked for by option or flag, it rules SMC out.

use crate::check::{fails, works};
use crate::ctx::{readable, talk, Ctx};
use crate::{loose, Check};
use libc::{EINPROGRESS, POLLOUT, SOCK_NONBLOCK};
use std::sync::Barrier;
use std::time::Duration;
use testlib::event::poll_until;
use testlib::opts::TCP_FASTOPEN_CONNECT;
use testlib::sock::Sock;
use testlib::tap::Outcome;

pub(crate) const CHECKS: &[Check] = &[
    loose("connect: TCP_FASTOPEN_CONNECT and MSG_FASTOPEN", fastopen),
    loose(
        "connect: TCP_FASTOPEN options and MSG_FASTOPEN race with it",
        fastopen_race,
    ),
];

fn fastopen(c: &Ctx) -> Outcome {
    for nonblock in [0, SOCK_NONBLOCK] {
        let (listener, addr) = c.listener(0)?;
        let s = c.client_socket(nonblock)?;
        works(
            "TCP_FASTOPEN_CONNECT",
            s.set_int(libc::IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1),
        )?;
        if let Err(e) = s.connect(addr) {
            fails("connect()", Err::<(), _>(e), &[EINPROGRESS])?;
            poll_until(&s, POLLOUT, Duration::from_secs(10))?;
        }
        works("fcntl", s.set_nonblocking(false))?;
        works("send()", s.send_all(b"first"))?;
        let (server, _) = works("accept()", listener.accept(0))?;
        let mut buf = [0u8; 5];
        works("recv()", server.recv_exact(&mut buf))?;
        same!("bytes", &buf, b"first");
        talk(&s, &server)?;

        let s = c.client_socket(nonblock)?;
        let mut sent = 0;
        match s.send_to(b"hello", libc::MSG_FASTOPEN, addr) {
            Ok(n) => sent = n,
            Err(e) => {
                fails("sendto(MSG_FASTOPEN)", Err::<(), _>(e), &[EINPROGRESS])?;
                poll_until(&s, POLLOUT, Duration::from_secs(10))?;
            }
        }
        works("fcntl", s.set_nonblocking(false))?;
        works("send()", s.send_all(&b"hello"[sent..]))?;
        let (server, _) = works("accept()", listener.accept(0))?;
        works("recv()", server.recv_exact(&mut buf))?;
        same!("bytes", &buf, b"hello");
        talk(&s, &server)?;
    }
    Ok(())
}

/// Whichever comes first, the socket connects once, and what it sends arrives in order.
fn fastopen_race(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(SOCK_NONBLOCK)?;
    for round in 0..150 {
        let s = c.client_socket(SOCK_NONBLOCK)?;
        let barrier = Barrier::new(3);
        let early = std::thread::scope(|scope| {
            let (s, barrier) = (&s, &barrier);
            scope.spawn(move || {
                barrier.wait();
                // Which of the two connects, and whether the options come too late, is chance.
                drop(s.connect(addr));
            });
            scope.spawn(move || {
                barrier.wait();
                drop(s.set_bytes(libc::IPPROTO_TCP, libc::TCP_FASTOPEN_KEY, &[7; 16]));
                drop(s.set_int(libc::IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1));
            });
            barrier.wait();
            let flags = libc::MSG_FASTOPEN | libc::MSG_NOSIGNAL;
            s.send_to(b"early", flags, addr).unwrap_or(0)
        });
        let outcome = race_outcome(&s, &listener, early);
        outcome.map_err(|e| format!("round {round}, {early} bytes sent early: {e}"))?;
    }
    let (a, b) = {
        works("fcntl", listener.set_nonblocking(false))?;
        c.pair_on(&listener, addr)?
    };
    talk(&a, &b)?;
    Ok(())
}

fn race_outcome(s: &Sock, listener: &Sock, early: usize) -> Result<(), String> {
    poll_until(s, POLLOUT, Duration::from_secs(10))?;
    works("fcntl", s.set_nonblocking(false))?;
    works("send()", s.send_all(b"late"))?;
    readable(listener)?;
    let (server, _) = works("accept()", listener.accept(0))?;
    let mut got = [0u8; 16];
    let want = [&b"early"[..early], b"late"].concat();
    works("recv()", server.recv_exact(&mut got[..want.len()]))?;
    if got[..want.len()] != want {
        return Err(format!("received {:?}", &got[..want.len()]));
    }
    talk(s, &server)
}

// SPDX-License-Identifier: GPL-2.0

//! What a program does while `connect()` is under way.

use crate::check::{fails, works};
use crate::ctx::{begin, readable, Ctx};
use crate::{check, loose, Check};
use libc::{EAGAIN, ENOTCONN, EPIPE, MSG_NOSIGNAL, SHUT_WR, SIGIO, SOCK_NONBLOCK};
use std::time::{Duration, Instant};
use testlib::pattern::Rng;
use testlib::process::{count_signal, signals_caught};
use testlib::sock::Sock;
use testlib::tap::Outcome;

pub(crate) const CHECKS: &[Check] = &[
    loose("connect: shut down for writing before it ends", shut_early),
    check("connect: driven by SIGIO", signal_driven),
];

/// The time between the TCP connection and the end of the handshake is a few milliseconds, and the
/// shutdown may fall anywhere in it.
fn shut_early(c: &Ctx) -> Outcome {
    const ROUNDS: u32 = 40;
    let seed = u64::from(std::process::id());
    let mut rng = Rng::new(seed);
    let mut shut = 0;
    for round in 0..ROUNDS {
        let (listener, addr) = c.listener(0)?;
        let s = c.client_socket(SOCK_NONBLOCK)?;
        begin(&s, addr)?;
        std::thread::sleep(Duration::from_micros(rng.range(0, 3000)));
        if let Err(e) = s.shutdown(SHUT_WR) {
            // TCP had no answer yet, and gives the attempt up.
            fails("shutdown()", Err::<(), _>(e), &[ENOTCONN])?;
            continue;
        }
        shut += 1;
        let (server, _) = works("accept()", listener.accept(0))?;
        half_closed(&s, &server).map_err(|e| format!("round {round}, seed {seed}: {e}"))?;
    }
    ensure!(shut > 0, "no shutdown() came in time");
    Ok(())
}

/// The peer sees the end at once, and what it sends arrives.
fn half_closed(s: &Sock, server: &Sock) -> Result<(), String> {
    let start = Instant::now();
    readable(server)?;
    let got = works("recv() of the server", server.recv(&mut [0u8; 8], 0))?;
    if got != 0 || start.elapsed() > Duration::from_secs(5) {
        return Err(format!("{got} bytes after {:?}", start.elapsed()));
    }
    works("send() of the server", server.send_all(b"answer"))?;
    works("fcntl", s.set_nonblocking(false))?;
    works("recv()", s.recv_exact(&mut [0u8; 6]))?;
    fails("send()", s.send(b"x", MSG_NOSIGNAL), &[EPIPE]).map(drop)
}

/// A program that tries again at each signal gets its turn.
fn signal_driven(c: &Ctx) -> Outcome {
    works("sigaction", count_signal(SIGIO))?;
    let (listener, addr) = c.listener(0)?;
    for round in 0..10 {
        let s = c.client_socket(0)?;
        works(
            "F_SETOWN",
            s.fcntl(libc::F_SETOWN, std::process::id() as i32),
        )?;
        works(
            "F_SETFL",
            s.fcntl(libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK),
        )?;
        begin(&s, addr)?;
        loop {
            let seen = signals_caught(SIGIO);
            match s.send(b"driven", 0) {
                Ok(_) => break,
                Err(e) => fails("send()", Err::<(), _>(e), &[EAGAIN])?,
            };
            let end = Instant::now() + Duration::from_secs(5);
            while signals_caught(SIGIO) == seen {
                ensure!(Instant::now() < end, "round {round}: no signal came");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let (server, _) = works("accept()", listener.accept(0))?;
        works("recv()", server.recv_exact(&mut [0u8; 6]))?;
    }
    Ok(())
}

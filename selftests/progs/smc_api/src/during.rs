// SPDX-License-Identifier: GPL-2.0

//! What a program does while `connect()` is under way.

use crate::check::{fails, works};
use crate::ctx::{begin, readable, Ctx};
use crate::{check, loose, Check};
use libc::{EAGAIN, ENOTCONN, EPIPE, MSG_NOSIGNAL, SHUT_WR, SIGIO, SOCK_NONBLOCK};
use std::io;
use std::time::{Duration, Instant};
use testlib::pattern::Rng;
use testlib::process::{count_signal_and_go_on, signals_caught};
use testlib::sock::Sock;
use testlib::tap::Outcome;

pub(crate) const CHECKS: &[Check] = &[
    loose("connect: shut down for writing before it ends", shut_early),
    check("connect: driven by SIGIO", signal_driven),
    check(
        "connect: threads that send and receive meanwhile",
        bystanders,
    ),
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
    // Signals for the client must not end the accept() of this thread.
    works("sigaction", count_signal_and_go_on(SIGIO))?;
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

/// What a call gives once it fails no more for want of a connection.
fn until_connected(errno: i32, mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        match call() {
            Err(e) if e.raw_os_error() == Some(errno) && Instant::now() < end => {}
            other => return other,
        }
    }
}

/// Their calls must not touch the stream before the handshake is over, however close they are to its
/// beginning.
fn bystanders(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    for round in 0..100 {
        let s = c.client_socket(0)?;
        let answer = std::thread::scope(|scope| -> Result<[u8; 6], String> {
            let reader = scope.spawn(|| {
                let mut data = [0u8; 6];
                let got = until_connected(ENOTCONN, || s.recv(&mut data, 0));
                got.map(|n| (n, data))
            });
            scope.spawn(|| until_connected(EPIPE, || s.send(b"call", MSG_NOSIGNAL)));
            std::thread::sleep(Duration::from_micros(200));
            works("connect()", s.connect(addr))?;
            let (server, _) = works("accept()", listener.accept(0))?;
            let mut got = [0u8; 4];
            works("recv() of the server", server.recv_exact(&mut got))?;
            works("send() of the server", server.send_all(b"answer"))?;
            let answer = reader.join().map_err(|_| "a thread panicked")?;
            let (n, data) = works("recv()", answer)?;
            match (&got, n) {
                (b"call", 6) => Ok(data),
                _ => Err(format!("the server received {got:?}, the client {n} bytes")),
            }
        });
        let answer = answer.map_err(|e| format!("round {round}: {e}"))?;
        same!("answer", &answer, b"answer");
    }
    Ok(())
}

// SPDX-License-Identifier: GPL-2.0

//! shutdown and close, in every order.

use crate::check::{fails, works};
use crate::ctx::{readable, talk, Ctx};
use crate::{check, Check};
use libc::{ECONNRESET, EINVAL, ENOTCONN, EPIPE, MSG_NOSIGNAL, SHUT_RD, SHUT_RDWR, SHUT_WR};
use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};
use testlib::event::poll_until;
use testlib::pattern::{fill, Rng, Tally};
use testlib::process::{count_signal, pipe, signals_caught, spawn, End};
use testlib::sock::Sock;
use testlib::tap::Outcome;

pub(crate) const CHECKS: &[Check] = &[
    check("close: half-close leaves the other direction", half_close),
    check("close: shutdown errors", shutdown_errors),
    check("close: shutdown for reading", shutdown_read),
    check("close: shutdown of both, and twice", shutdown_both),
    check("close: every order of ends", orders),
    check("close: EPIPE and SIGPIPE", broken_pipe),
    check("close: zero linger resets", linger_zero),
    check("close: linger waits for a bounded time", linger_wait),
    check(
        "close: linger ends when the data have arrived",
        linger_arrived,
    ),
    check("close: a killed process does not linger", linger_killed),
    check("close: data sent before close arrives", data_then_close),
    check("close: short answers, many times", short_answers),
    check("close: with unread data", unread),
    check("close: both ends at once", simultaneous),
    check("close: a blocked receiver is woken", wakes_receiver),
    check("close: a blocked sender is woken", wakes_sender),
];

fn at_end(s: &Sock) -> Result<(), String> {
    readable(s)?;
    match s.recv(&mut [0u8; 16], 0) {
        Ok(0) => Ok(()),
        other => Err(format!("recv() at the end returned {other:?}")),
    }
}

fn half_close(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works("send()", a.send_all(b"request"))?;
    works("shutdown(WR)", a.shutdown(SHUT_WR))?;
    works("recv()", b.recv_exact(&mut [0u8; 7]))?;
    at_end(&b)?;
    let size = 600_000usize;
    std::thread::scope(|s| {
        let answer = s.spawn(|| {
            let mut data = vec![0u8; size];
            fill(2, 0, &mut data);
            works("send() into the open direction", b.send_all(&data))?;
            works("shutdown(WR)", b.shutdown(SHUT_WR))
        });
        let mut got = vec![0u8; size];
        works("recv()", a.recv_exact(&mut got))?;
        Tally::new(2).verify(&got)?;
        at_end(&a)?;
        answer
            .join()
            .unwrap_or_else(|_| Err("a thread panicked".into()))
    })?;
    fails(
        "send() after shutdown",
        a.send(b"x", MSG_NOSIGNAL),
        &[EPIPE],
    )?;
    Ok(())
}

fn shutdown_errors(c: &Ctx) -> Outcome {
    let s = c.client_socket(0)?;
    for how in [SHUT_RD, SHUT_WR, SHUT_RDWR] {
        fails("shutdown() of a fresh socket", s.shutdown(how), &[ENOTCONN])?;
    }
    let (a, b) = c.pair()?;
    for how in [-1, 3, 100] {
        fails(
            "shutdown() of an unknown direction",
            a.shutdown(how),
            &[EINVAL],
        )?;
    }
    talk(&a, &b)?;
    Ok(())
}

fn shutdown_read(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works("shutdown(RD)", a.shutdown(SHUT_RD))?;
    same!(
        "recv() after it",
        works("recv()", a.recv(&mut [0u8; 4], 0))?,
        0
    );
    works("send() still", a.send_all(b"still"))?;
    works("recv()", b.recv_exact(&mut [0u8; 5]))?;
    // The peer learns nothing of it; what it sends must not block this end's sending.
    works("send() from the peer", b.send_all(b"unwanted"))?;
    works("send() still", a.send_all(b"still"))?;
    works("recv()", b.recv_exact(&mut [0u8; 5]))?;
    Ok(())
}

fn shutdown_both(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works("shutdown(RDWR)", a.shutdown(SHUT_RDWR))?;
    at_end(&b)?;
    at_end(&a)?;
    fails("send() after it", a.send(b"x", MSG_NOSIGNAL), &[EPIPE])?;
    works("shutdown(WR) at the peer", b.shutdown(SHUT_WR))?;
    if let Err(e) = a.shutdown(SHUT_RDWR) {
        fails("a second shutdown()", Err::<(), _>(e), &[ENOTCONN])?;
    }
    Ok(())
}

/// Both ends, each of them: shut down how, then close; who closes first.
fn orders(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    let ways = [None, Some(SHUT_WR), Some(SHUT_RD), Some(SHUT_RDWR)];
    for (i, first) in ways.into_iter().enumerate() {
        for (j, second) in ways.into_iter().enumerate() {
            for client_first in [true, false] {
                let (client, server) = c.pair_on(&listener, addr)?;
                talk(&client, &server)?;
                let (a, b) = if client_first {
                    (client, server)
                } else {
                    (server, client)
                };
                if let Some(how) = first {
                    works("shutdown() of the first", a.shutdown(how))?;
                }
                works("close() of the first", a.close())?;
                at_end(&b)
                    .map_err(|e| format!("order {i}/{j}, client first {client_first}: {e}"))?;
                if let Some(how) = second {
                    if let Err(e) = b.shutdown(how) {
                        fails("shutdown() of the second", Err::<(), _>(e), &[ENOTCONN])?;
                    }
                }
                works("close() of the second", b.close())?;
            }
        }
    }
    Ok(())
}

fn broken_pipe(c: &Ctx) -> Outcome {
    works("sigaction", count_signal(libc::SIGPIPE))?;
    let (a, _b) = c.pair()?;
    works("shutdown(WR)", a.shutdown(SHUT_WR))?;
    fails("send(NOSIGNAL)", a.send(b"x", MSG_NOSIGNAL), &[EPIPE])?;
    same!(
        "SIGPIPE in spite of MSG_NOSIGNAL",
        signals_caught(libc::SIGPIPE),
        0
    );
    fails("send()", a.send(b"x", 0), &[EPIPE])?;
    same!("SIGPIPE", signals_caught(libc::SIGPIPE), 1);
    let (a, b) = c.pair()?;
    drop(b);
    at_end(&a)?;
    // The first send may still find the connection half open.
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        match a.send(b"x", MSG_NOSIGNAL) {
            Ok(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(20)),
            Ok(_) => return Err("sending to a closed peer goes on for 10 s".into()),
            Err(e) => {
                fails(
                    "send() to a closed peer",
                    Err::<(), _>(e),
                    &[EPIPE, ECONNRESET],
                )?;
                return Ok(());
            }
        }
    }
}

fn linger_zero(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works("SO_LINGER", a.set_linger(true, 0))?;
    works("close()", a.close())?;
    poll_until(&b, libc::POLLHUP, Duration::from_secs(10))?;
    fails(
        "recv() after a reset",
        b.recv(&mut [0u8; 4], 0),
        &[ECONNRESET],
    )?;
    fails("send() after a reset", b.send(b"x", MSG_NOSIGNAL), &[EPIPE])?;
    Ok(())
}

/// Sends until nothing more goes, even after what was on its way has arrived; returns how much went.
fn fill_up(a: &Sock) -> usize {
    let mut sent = 0usize;
    let mut quiet = 0;
    while quiet < 4 {
        match a.send(&[3u8; 50_000], libc::MSG_DONTWAIT) {
            Ok(n) => sent += n,
            Err(_) => {
                quiet += 1;
                std::thread::sleep(Duration::from_millis(40));
            }
        }
    }
    sent
}

fn linger_wait(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works("SO_LINGER", a.set_linger(true, 2))?;
    let sent = fill_up(&a);
    // Nobody reads, so the wait must end by itself.
    let start = Instant::now();
    works("close()", a.close())?;
    let took = start.elapsed();
    ensure!(
        took > Duration::from_secs(1) && took < Duration::from_secs(6),
        "close() took {took:?}"
    );
    let mut buf = vec![0u8; 60_000];
    let mut got = 0usize;
    loop {
        match b.recv(&mut buf, 0) {
            Ok(0) | Err(_) => break,
            Ok(n) => got += n,
        }
    }
    ensure!(got <= sent, "{got} bytes came of {sent}");
    Ok(())
}

/// A few bytes, which the peer reads before the close, after it, or not at all before it is over; the
/// last of them corked.
fn linger_arrived(c: &Ctx) -> Outcome {
    const SIZE: usize = 100;
    for (reads_first, corked) in [(true, false), (false, false), (false, true)] {
        let (client, server) = c.pair()?;
        works("SO_LINGER", server.set_linger(true, 30))?;
        if corked {
            let set = server.set_int(libc::IPPROTO_TCP, libc::TCP_CORK, 1);
            works("TCP_CORK", set)?;
        }
        works("send()", server.send_all(&[7u8; SIZE]))?;
        if reads_first {
            works("recv()", client.recv_exact(&mut [0u8; SIZE]))?;
        }
        let start = Instant::now();
        works("close()", server.close())?;
        ensure!(
            start.elapsed() < Duration::from_secs(2),
            "close() took {:?}, read before: {reads_first}, corked: {corked}",
            start.elapsed()
        );
        if !reads_first {
            works("recv()", client.recv_exact(&mut [0u8; SIZE]))?;
        }
        at_end(&client)?;
    }
    Ok(())
}

fn linger_killed(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    let (ready, tell) = pipe()?;
    let child = spawn(|| {
        let begin = || -> Result<Sock, String> {
            let a = c.client_socket(0)?;
            works("connect()", a.connect(addr))?;
            works("SO_LINGER", a.set_linger(true, 30))?;
            fill_up(&a);
            Ok(a)
        };
        let Ok(a) = begin() else { return 1 };
        drop(tell);
        // Until it is killed.
        std::thread::sleep(Duration::from_secs(60));
        drop(a);
        0
    })?;
    let (_server, _) = works("accept()", listener.accept(libc::SOCK_CLOEXEC))?;
    // The end of the pipe says that the child is that far.
    works("read()", File::from(ready).read_to_end(&mut Vec::new()))?;
    works("kill()", child.kill(libc::SIGKILL))?;
    let end = works("waitpid()", child.wait(Duration::from_secs(3)))?;
    same!("end of the process", end, End::Signal(libc::SIGKILL));
    Ok(())
}

fn data_then_close(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    for size in [1usize, 1000, 20_000, 70_000, 250_000, 900_000] {
        let (a, b) = c.pair_on(&listener, addr)?;
        std::thread::scope(|s| {
            let sender = s.spawn(move || {
                let mut data = vec![0u8; size];
                fill(size as u64, 0, &mut data);
                works("send()", a.send_all(&data))?;
                works("close()", a.close())
            });
            // Slower than the sender, so that close() comes first.
            let mut tally = Tally::new(size as u64);
            let mut buf = vec![0u8; 9000];
            loop {
                let n = works("recv()", b.recv(&mut buf, 0))?;
                if n == 0 {
                    break;
                }
                tally.verify(&buf[..n])?;
                std::thread::sleep(Duration::from_micros(500));
            }
            if tally.count() != size as u64 {
                return Err(format!(
                    "{} of {size} bytes came before the end",
                    tally.count()
                ));
            }
            sender
                .join()
                .unwrap_or_else(|_| Err("a thread panicked".into()))
        })?;
    }
    Ok(())
}

fn short_answers(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    let mut rng = Rng::new(u64::from(addr.port()));
    for round in 0..150u64 {
        let size = rng.log_range(1, 16_000) as usize;
        let (client, server) = c.pair_on(&listener, addr)?;
        let mut data = vec![0u8; size];
        fill(round, 0, &mut data);
        works("send()", server.send_all(&data))?;
        works("close()", server.close())?;
        let mut got = vec![0u8; size];
        works("recv()", client.recv_exact(&mut got))
            .map_err(|e| format!("round {round}, {size} bytes: {e}"))?;
        ensure!(got == data, "round {round}: {size} bytes arrived changed");
        at_end(&client)?;
    }
    Ok(())
}

fn unread(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works("send()", a.send_all(b"never read"))?;
    readable(&b)?;
    works("close()", b.close())?;
    readable(&a)?;
    match a.recv(&mut [0u8; 4], 0) {
        Ok(0) => {}
        Ok(n) => return Err(format!("{n} bytes came from nowhere").into()),
        Err(e) => {
            fails("recv()", Err::<(), _>(e), &[ECONNRESET])?;
        }
    }
    Ok(())
}

fn simultaneous(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    for round in 0..60 {
        let (a, b) = c.pair_on(&listener, addr)?;
        let barrier = std::sync::Barrier::new(2);
        std::thread::scope(|s| {
            let one = s.spawn(|| {
                barrier.wait();
                if round % 2 == 0 {
                    a.close()
                } else {
                    a.shutdown(SHUT_WR).and_then(|()| a.close())
                }
            });
            barrier.wait();
            let own = b.close();
            let other = one.join().unwrap_or(Ok(()));
            works("close()", own)?;
            works("close()", other)
        })?;
    }
    if let Some(k) = c.counters(c.server_ns.as_deref()) {
        let end = Instant::now() + Duration::from_secs(15);
        let mut left = k.value("connections_active");
        while left > 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(100));
            left = c
                .counters(c.server_ns.as_deref())
                .map_or(0, |k| k.value("connections_active"));
        }
        ensure!(
            left == 0,
            "{left} connections are still there 15 s after both ends closed"
        );
    }
    Ok(())
}

fn wakes_receiver(c: &Ctx) -> Outcome {
    for reset in [false, true] {
        let (a, b) = c.pair()?;
        std::thread::scope(|s| {
            let reader = s.spawn(|| b.recv(&mut [0u8; 4], 0));
            std::thread::sleep(Duration::from_millis(100));
            works("SO_LINGER", a.set_linger(reset, 0))?;
            drop(a);
            let start = Instant::now();
            let got = reader.join().unwrap_or(Ok(usize::MAX));
            if start.elapsed() > Duration::from_secs(5) {
                return Err(format!(
                    "recv() woke up {:?} after the close",
                    start.elapsed()
                ));
            }
            match (reset, got) {
                (false, Ok(0)) => Ok(()),
                (true, Err(e)) if e.raw_os_error() == Some(ECONNRESET) => Ok(()),
                (_, other) => Err(format!("recv() returned {other:?}, reset {reset}")),
            }
        })?;
    }
    Ok(())
}

fn wakes_sender(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    std::thread::scope(|s| {
        let writer = s.spawn(|| a.send_all(&vec![1u8; 32 << 20]));
        std::thread::sleep(Duration::from_millis(300));
        works("SO_LINGER", b.set_linger(true, 0))?;
        drop(b);
        let start = Instant::now();
        let got = writer.join().unwrap_or(Ok(()));
        if start.elapsed() > Duration::from_secs(5) {
            return Err(format!(
                "send() woke up {:?} after the close",
                start.elapsed()
            ));
        }
        fails("send()", got, &[ECONNRESET, EPIPE]).map(drop)
    })?;
    Ok(())
}

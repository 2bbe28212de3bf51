// SPDX-License-Identifier: GPL-2.0

//! poll and epoll: masks, edges, and registrations older than the connection.

use crate::check::{fails, works};
use crate::ctx::{begin, readable, talk, Ctx};
use crate::{check, Check};
use libc::{
    EPOLLET, EPOLLIN, EPOLLONESHOT, EPOLLOUT, EPOLLRDHUP, POLLERR, POLLHUP, POLLIN, POLLOUT,
    POLLPRI, POLLRDHUP, SOCK_NONBLOCK,
};
use std::time::{Duration, Instant};
use testlib::event::{poll_one, poll_until, Epoll};
use testlib::sock::Sock;
use testlib::tap::Outcome;

pub(crate) const CHECKS: &[Check] = &[
    check("poll: fresh sockets and listeners", idle),
    check("poll: while data comes and goes", data),
    check("poll: ends of the stream", ends),
    check("poll: a reset by the peer", reset),
    check("epoll: level-triggered", level),
    check("epoll: edge-triggered input", edge_in),
    check("epoll: edge-triggered output after a full ring", edge_out),
    check("epoll: one-shot, modified and removed", registrations),
    check(
        "epoll: registered before connecting, level-triggered",
        early_level,
    ),
    check(
        "epoll: registered before connecting, edge-triggered",
        early_edge,
    ),
    check("poll: asleep before the connection is made", asleep),
    check("epoll: a listener reports each arrival", listener_edges),
    check("poll: sender and receiver alternate for long", alternate),
];

const ALL: i16 = POLLIN | POLLOUT | POLLPRI | POLLRDHUP;
const SOON: Duration = Duration::from_secs(10);

fn now(s: &Sock) -> Result<i16, String> {
    works("poll()", poll_one(s, ALL, 0))
}

fn idle(c: &Ctx) -> Outcome {
    let s = c.client_socket(0)?;
    let bits = now(&s)?;
    ensure!(
        bits & (POLLIN | POLLPRI | POLLERR) == 0,
        "a fresh socket shows {bits:#x}"
    );
    let (listener, addr) = c.listener(0)?;
    same!("an idle listener", now(&listener)?, 0);
    works("connect()", s.connect(addr))?;
    readable(&listener)?;
    same!("a listener with a connection", now(&listener)?, POLLIN);
    let (_server, _) = works("accept()", listener.accept(0))?;
    same!("the listener afterwards", now(&listener)?, 0);
    same!("an idle connection", now(&s)?, POLLOUT);
    Ok(())
}

fn data(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    for round in 0..20 {
        same!(format!("round {round}, idle"), now(&b)?, POLLOUT);
        works("send()", a.send_all(b"12345"))?;
        poll_until(&b, POLLIN, SOON)?;
        same!("with data", now(&b)?, POLLIN | POLLOUT);
        works("recv()", b.recv_exact(&mut [0u8; 4]))?;
        same!("with one byte left", now(&b)?, POLLIN | POLLOUT);
        works("recv()", b.recv_exact(&mut [0u8; 1]))?;
    }
    Ok(())
}

fn ends(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works("send()", a.send_all(b"bye"))?;
    works("shutdown(WR)", a.shutdown(libc::SHUT_WR))?;
    poll_until(&b, POLLIN | POLLRDHUP, SOON)?;
    same!(
        "peer ended, data left",
        now(&b)?,
        POLLIN | POLLOUT | POLLRDHUP
    );
    works("recv()", b.recv_exact(&mut [0u8; 3]))?;
    same!(
        "peer ended, all read",
        now(&b)?,
        POLLIN | POLLOUT | POLLRDHUP
    );
    same!("the end", works("recv()", b.recv(&mut [0u8; 4], 0))?, 0);
    same!(
        "this end has only stopped sending",
        now(&a)? & (POLLHUP | POLLERR | POLLIN),
        0
    );
    works("shutdown(WR)", b.shutdown(libc::SHUT_WR))?;
    for s in [&a, &b] {
        let bits = poll_until(s, POLLHUP | POLLIN | POLLRDHUP, SOON)?;
        ensure!(bits & POLLERR == 0, "an orderly end shows {bits:#x}");
    }
    Ok(())
}

fn reset(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works("SO_LINGER", a.set_linger(true, 0))?;
    drop(a);
    poll_until(&b, POLLHUP, SOON)?;
    let bits = now(&b)?;
    ensure!(
        bits & POLLIN != 0,
        "a reset connection shows {bits:#x}: recv() would not wait"
    );
    fails(
        "recv() after a reset",
        b.recv(&mut [0u8; 4], 0),
        &[libc::ECONNRESET],
    )?;
    same!(
        "recv() once more",
        works("recv()", b.recv(&mut [0u8; 4], 0))?,
        0
    );
    Ok(())
}

fn wait(e: &Epoll, ms: i32) -> Result<Vec<i32>, String> {
    let events = works("epoll_wait()", e.wait(ms))?;
    Ok(events.into_iter().map(|(_, bits)| bits).collect())
}

fn watch(s: &Sock, events: i32) -> Result<Epoll, String> {
    let e = works("epoll_create1()", Epoll::new())?;
    works("epoll_ctl(ADD)", e.add(s, events, 1))?;
    Ok(e)
}

fn level(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let e = watch(&b, EPOLLIN)?;
    same!("idle", wait(&e, 50)?, Vec::<i32>::new());
    works("send()", a.send_all(b"xy"))?;
    for _ in 0..3 {
        same!("unread data", wait(&e, 10_000)?, vec![EPOLLIN]);
    }
    works("recv()", b.recv_exact(&mut [0u8; 2]))?;
    same!("all read", wait(&e, 50)?, Vec::<i32>::new());
    Ok(())
}

fn edge_in(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let e = watch(&b, EPOLLIN | EPOLLET)?;
    for _ in 0..20 {
        works("send()", a.send_all(b"xy"))?;
        same!("new data", wait(&e, 10_000)?, vec![EPOLLIN]);
        // Spurious edges are allowed, but an edge for ever would be a level.
        let mut edges = 0;
        while !wait(&e, 20)?.is_empty() {
            edges += 1;
            ensure!(edges < 20, "an edge is reported again and again");
        }
        works("recv()", b.recv_exact(&mut [0u8; 1]))?;
    }
    works("shutdown(WR)", a.shutdown(libc::SHUT_WR))?;
    let got = wait(&e, 10_000)?;
    ensure!(
        got.first().is_some_and(|g| g & EPOLLIN != 0),
        "the end of the stream gave {got:x?}"
    );
    Ok(())
}

/// Sends until nothing more fits; returns the number of bytes.
fn fill(s: &Sock) -> Result<usize, String> {
    let data = vec![7u8; 60_000];
    let mut total = 0;
    let mut quiet = 0;
    // Buffers of both ends drain into each other for a while.
    while quiet < 5 {
        match s.send(&data, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) {
            Ok(n) => {
                total += n;
                quiet = 0;
            }
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {
                quiet += 1;
                std::thread::sleep(Duration::from_millis(40));
            }
            Err(e) => return Err(format!("send() failed while filling: {e}")),
        }
    }
    Ok(total)
}

fn drain(s: &Sock, mut count: usize) -> Result<(), String> {
    let mut buf = vec![0u8; 60_000];
    while count > 0 {
        let want = buf.len().min(count);
        let n = works("recv()", s.recv(&mut buf[..want], 0))?;
        if n == 0 {
            return Err(format!("the stream ended {count} bytes early"));
        }
        count -= n;
    }
    Ok(())
}

fn edge_out(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let e = watch(&a, EPOLLOUT | EPOLLET)?;
    wait(&e, 1000)?;
    for round in 0..6 {
        let total = fill(&a)?;
        ensure!(total > 0, "round {round}: nothing could be sent");
        same!("poll of a full socket", now(&a)? & POLLOUT, 0);
        // Edges from before the socket was full are of no interest.
        while !wait(&e, 20)?.is_empty() {}
        drain(&b, total)?;
        same!(
            format!("round {round}: room again"),
            wait(&e, 10_000)?,
            vec![EPOLLOUT]
        );
    }
    Ok(())
}

fn registrations(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let e = watch(&b, EPOLLIN | EPOLLONESHOT)?;
    works("send()", a.send_all(b"x"))?;
    same!("one shot", wait(&e, 10_000)?, vec![EPOLLIN]);
    same!("disarmed", wait(&e, 100)?, Vec::<i32>::new());
    works("epoll_ctl(MOD)", e.modify(&b, EPOLLIN | EPOLLOUT, 2))?;
    same!("armed again", wait(&e, 10_000)?, vec![EPOLLIN | EPOLLOUT]);
    works("epoll_ctl(MOD)", e.modify(&b, EPOLLRDHUP, 2))?;
    same!("not asked for", wait(&e, 100)?, Vec::<i32>::new());
    works("epoll_ctl(DEL)", e.remove(&b))?;
    works("shutdown(WR)", a.shutdown(libc::SHUT_WR))?;
    same!("removed", wait(&e, 100)?, Vec::<i32>::new());
    works("epoll_ctl(ADD)", e.add(&b, EPOLLRDHUP, 3))?;
    same!("added again", wait(&e, 10_000)?, vec![EPOLLRDHUP]);
    Ok(())
}

/// Registers, connects, and waits for one byte from the server.
fn early(c: &Ctx, extra: i32) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    let s = c.client_socket(SOCK_NONBLOCK)?;
    let e = watch(&s, EPOLLIN | EPOLLOUT | EPOLLRDHUP | extra)?;
    begin(&s, addr)?;
    let bits = wait_for(&e, EPOLLOUT, &s)?;
    ensure!(
        bits & (libc::EPOLLERR | libc::EPOLLHUP) == 0,
        "connecting gave {bits:#x}"
    );
    works(
        "epoll_ctl(MOD)",
        e.modify(&s, EPOLLIN | EPOLLRDHUP | extra, 1),
    )?;
    let (server, _) = works("accept()", listener.accept(0))?;
    for _ in 0..5 {
        works("send()", server.send_all(b"!"))?;
        wait_for(&e, EPOLLIN, &s)?;
        works("recv()", s.recv_exact(&mut [0u8; 1]))?;
    }
    works("shutdown(WR)", server.shutdown(libc::SHUT_WR))?;
    wait_for(&e, EPOLLRDHUP, &s)?;
    Ok(())
}

fn wait_for(e: &Epoll, want: i32, s: &Sock) -> Result<i32, String> {
    let end = Instant::now() + SOON;
    let mut seen = 0;
    while Instant::now() < end {
        for bits in wait(e, 100)? {
            seen |= bits;
        }
        if seen & want != 0 {
            return Ok(seen);
        }
    }
    Err(format!(
        "epoll gave {seen:#x}, never {want:#x}; poll says {:#x} now",
        now(s)?
    ))
}

fn early_level(c: &Ctx) -> Outcome {
    early(c, 0)
}

fn early_edge(c: &Ctx) -> Outcome {
    early(c, EPOLLET)
}

fn asleep(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    let s = c.client_socket(SOCK_NONBLOCK)?;
    begin(&s, addr)?;
    std::thread::scope(|scope| {
        // Sleeps across the handshake and across a change to TCP.
        let sleeper = scope.spawn(|| {
            let start = Instant::now();
            let bits = works("poll()", poll_one(&s, POLLIN, 15_000))?;
            Ok::<_, String>((bits, start.elapsed()))
        });
        let (server, _) = works("accept()", listener.accept(0))?;
        std::thread::sleep(Duration::from_millis(200));
        works("send()", server.send_all(b"!"))?;
        let (bits, took) = sleeper
            .join()
            .unwrap_or_else(|_| Err("a thread panicked".into()))?;
        if bits & POLLIN == 0 {
            return Err(format!(
                "poll() slept through the data, result {bits:#x} after {took:?}"
            ));
        }
        works("recv()", s.recv_exact(&mut [0u8; 1]))
    })?;
    Ok(())
}

fn listener_edges(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(SOCK_NONBLOCK)?;
    let e = watch(&listener, EPOLLIN | libc::EPOLLPRI | EPOLLET)?;
    for _ in 0..10 {
        let s = c.client_socket(0)?;
        works("connect()", s.connect(addr))?;
        same!("an arrival", wait(&e, 10_000)?, vec![EPOLLIN]);
        let (server, _) = works("accept()", listener.accept(0))?;
        talk(&s, &server)?;
    }
    Ok(())
}

fn alternate(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let (ea, eb) = (watch(&a, EPOLLIN | EPOLLET)?, watch(&b, EPOLLIN | EPOLLET)?);
    for round in 0..300u32 {
        for (from, to, e) in [(&a, &b, &eb), (&b, &a, &ea)] {
            works("send()", from.send_all(&round.to_le_bytes()))?;
            let mut got = [0u8; 4];
            let mut n = 0;
            while n < 4 {
                match to.recv(&mut got[n..], libc::MSG_DONTWAIT) {
                    Ok(0) => return Err("the stream ended".into()),
                    Ok(m) => n += m,
                    Err(e2) => {
                        fails("recv()", Err::<(), _>(e2), &[libc::EAGAIN])?;
                        wait_for(e, EPOLLIN, to)?;
                    }
                }
            }
            same!("number of the round", u32::from_le_bytes(got), round);
        }
    }
    Ok(())
}

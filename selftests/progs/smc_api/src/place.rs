// SPDX-License-Identifier: GPL-2.0

//! Descriptors in several hands, threads, and network namespaces.

use crate::check::{fails, works};
use crate::ctx::{begin, talk, Ctx, Expect};
use crate::{check, loose, Check};
use libc::{EADDRNOTAVAIL, ENETUNREACH};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::Duration;
use testlib::event::poll_one;
use testlib::extra::{recv_fd, send_fd, unix_pair};
use testlib::process::{new_netns, spawn, End};
use testlib::sock::{Family, Sock};
use testlib::tap::Outcome;

pub(crate) const CHECKS: &[Check] = &[
    check("mode: connections are of the expected kind", mode),
    check("place: dup keeps the connection", duplicate),
    check("place: fork shares it", forked),
    loose("place: fork while connecting", forked_early),
    check("place: passed to another process", passed),
    loose(
        "place: passed to another process while connecting",
        passed_early,
    ),
    check("place: exec keeps it", executed),
    check("place: exec closes what is close-on-exec", executed_without),
    check("place: both directions in several threads", threads),
    check(
        "place: one socket used by many threads while it connects",
        crowd,
    ),
    loose("place: namespaces have ports of their own", namespaces),
    check(
        "place: a socket outlives the last process of its namespace",
        orphan,
    ),
];

fn mode(c: &Ctx) -> Outcome {
    let want = match c.expect {
        Expect::Any => skip!("no kind is expected"),
        _ if !c.family.is_smc() => skip!("concerns SMC"),
        Expect::Smcr => true,
        Expect::Fallback => false,
    };
    let before = c.fallbacks();
    let (a, b) = c.pair()?;
    talk(&a, &b)?;
    let name = works("getsockname()", a.local())?.to_string();
    let Some(k) = c.counters(c.client_ns.as_deref()) else {
        return Err("/proc/net/smc_rs cannot be read".into());
    };
    let found = k
        .connections
        .iter()
        .any(|conn| conn.get("local") == Some(&*name) && conn.get("mode") == Some("SMCR"));
    ensure!(
        found == want,
        "connection {name} is listed as SMCR: {found}, expected {want}"
    );
    ensure!(
        (c.fallbacks() == before) == want,
        "fallbacks went from {before:?} to {:?}",
        c.fallbacks()
    );
    Ok(())
}

fn duplicate(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let copy = works("dup()", a.dup())?;
    works("close()", a.close())?;
    talk(&copy, &b)?;
    same!(
        "poll of the peer",
        works("poll()", poll_one(&b, libc::POLLIN, 100))?,
        0
    );
    works("close()", copy.close())?;
    same!("the end", works("recv()", b.recv(&mut [0u8; 4], 0))?, 0);
    Ok(())
}

fn forked(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let child = spawn(|| i32::from(a.send_all(b"from the child").is_err()))?;
    let mut buf = [0u8; 14];
    works("recv()", b.recv_exact(&mut buf))?;
    same!("bytes", &buf, b"from the child");
    same!(
        "the child",
        child.wait(Duration::from_secs(10))?,
        End::Exit(0)
    );
    talk(&a, &b)?;
    let child = spawn(|| {
        let mut buf = [0u8; 5];
        i32::from(b.recv_exact(&mut buf).is_err() || &buf != b"hello")
    })?;
    drop(b);
    works("send()", a.send_all(b"hello"))?;
    same!(
        "the child",
        child.wait(Duration::from_secs(10))?,
        End::Exit(0)
    );
    // The child held the last descriptor.
    same!("the end", works("recv()", a.recv(&mut [0u8; 4], 0))?, 0);
    Ok(())
}

fn forked_early(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    let s = c.client_socket(libc::SOCK_NONBLOCK)?;
    begin(&s, addr)?;
    let child = spawn(|| {
        let ready = poll_one(&s, libc::POLLIN, 10_000);
        let mut buf = [0u8; 2];
        let got = s.recv(&mut buf, 0);
        i32::from(!matches!((ready, got), (Ok(1..), Ok(2))))
    })?;
    drop(s);
    let (server, _) = works("accept()", listener.accept(0))?;
    works("send()", server.send(b"ok", 0))?;
    same!(
        "the child",
        child.wait(Duration::from_secs(15))?,
        End::Exit(0)
    );
    Ok(())
}

fn passed(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let (left, right) = works("socketpair()", unix_pair())?;
    let child = spawn(|| match recv_fd(&right) {
        Ok(s) => i32::from(s.send_all(b"passed on").is_err()),
        Err(_) => 2,
    })?;
    works("sendmsg(SCM_RIGHTS)", send_fd(&left, a.as_raw_fd()))?;
    drop(a);
    let mut buf = [0u8; 9];
    works("recv()", b.recv_exact(&mut buf))?;
    same!("bytes", &buf, b"passed on");
    same!(
        "the child",
        child.wait(Duration::from_secs(10))?,
        End::Exit(0)
    );
    same!("the end", works("recv()", b.recv(&mut [0u8; 4], 0))?, 0);
    Ok(())
}

fn passed_early(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    let (left, right) = works("socketpair()", unix_pair())?;
    for round in 0..10 {
        let s = c.client_socket(libc::SOCK_NONBLOCK)?;
        begin(&s, addr)?;
        works("sendmsg(SCM_RIGHTS)", send_fd(&left, s.as_raw_fd()))?;
        drop(s);
        let child = spawn(|| {
            let Ok(s) = recv_fd(&right) else { return 2 };
            let ready = poll_one(&s, libc::POLLIN, 10_000);
            let mut buf = [0u8; 2];
            let got = s.recv(&mut buf, 0);
            i32::from(!matches!((ready, got), (Ok(1..), Ok(2))))
        })?;
        let (server, _) = works("accept()", listener.accept(0))?;
        works("send()", server.send(b"ok", 0))?;
        same!(
            format!("round {round}: the child"),
            child.wait(Duration::from_secs(15))?,
            End::Exit(0)
        );
        same!("the end", works("recv()", server.recv(&mut [0], 0))?, 0);
    }
    Ok(())
}

/// A program that did not make the socket reads from it and writes to it.
fn executed(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let mut cat = Command::new("cat")
        .stdin(OwnedFd::from(works("dup()", b.dup())?))
        .stdout(OwnedFd::from(b))
        .spawn()?;
    for _ in 0..3 {
        talk(&a, &a)?;
    }
    works("shutdown()", a.shutdown(libc::SHUT_WR))?;
    same!("the end", works("recv()", a.recv(&mut [0u8; 4], 0))?, 0);
    ensure!(cat.wait()?.success(), "the program has failed");
    Ok(())
}

fn executed_without(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let mut cat = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    drop(b);
    let closed = poll_one(&a, libc::POLLRDHUP, 10_000);
    // Its standard input ends.
    drop(cat.stdin.take());
    cat.wait()?;
    ensure!(
        works("poll()", closed)? & libc::POLLRDHUP != 0,
        "the socket is still open in a program that was not given it"
    );
    Ok(())
}

fn threads(c: &Ctx) -> Outcome {
    const EACH: usize = 200_000;
    let (a, b) = c.pair()?;
    // Bytes of one value a writer: interleaved in any way, but none lost or new.
    let mut counts = [[0usize; 256]; 2];
    std::thread::scope(|s| {
        let mut writers = Vec::new();
        for (sock, first) in [(&a, 1u8), (&b, 11u8)] {
            for value in first..first + 3 {
                writers.push(s.spawn(move || sock.send_all(&vec![value; EACH])));
            }
        }
        let readers = [&b, &a].map(|sock| {
            s.spawn(move || {
                let mut seen = [0usize; 256];
                let mut buf = vec![0u8; 30_000];
                let mut left = 3 * EACH;
                while left > 0 {
                    let n = works("recv()", sock.recv(&mut buf, 0))?;
                    if n == 0 {
                        return Err(format!("ended {left} bytes early"));
                    }
                    buf[..n].iter().for_each(|v| seen[usize::from(*v)] += 1);
                    left -= n;
                }
                Ok(seen)
            })
        });
        for (slot, r) in counts.iter_mut().zip(readers) {
            *slot = r
                .join()
                .unwrap_or_else(|_| Err("a thread panicked".into()))?;
        }
        for w in writers {
            works("send()", w.join().unwrap_or(Ok(())))?;
        }
        Ok::<(), String>(())
    })?;
    for (seen, first) in counts.iter().zip([1usize, 11]) {
        same!("bytes of each writer", &seen[first..first + 3], &[EACH; 3]);
    }
    Ok(())
}

fn crowd(c: &Ctx) -> Outcome {
    for _ in 0..10 {
        let (listener, addr) = c.listener(0)?;
        let s = c.client_socket(libc::SOCK_NONBLOCK)?;
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for i in 0..6 {
                let (s, stop) = (&s, &stop);
                scope.spawn(move || {
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        // Results vary with the moment; only crashes and hangs count.
                        match i % 3 {
                            0 => drop(poll_one(s, libc::POLLIN | libc::POLLOUT, 1)),
                            1 => drop(s.local()),
                            _ => drop(s.int(libc::SOL_SOCKET, libc::SO_RCVBUF)),
                        }
                    }
                });
            }
            let outcome = (|| {
                begin(&s, addr)?;
                let (server, _) = works("accept()", listener.accept(0))?;
                works("fcntl", s.set_nonblocking(false))?;
                // The handshake is complete at the server; the client may lag behind.
                testlib::event::poll_until(&s, libc::POLLOUT, Duration::from_secs(10))?;
                talk(&s, &server)
            })();
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            outcome
        })?;
    }
    Ok(())
}

/// Runs `f` in a thread of a new namespace.
fn elsewhere<T: Send>(f: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    std::thread::scope(|s| {
        s.spawn(|| {
            works("unshare(CLONE_NEWNET)", new_netns())?;
            f()
        })
        .join()
        .unwrap_or_else(|_| Err("a thread panicked".into()))
    })
}

fn namespaces(c: &Ctx) -> Outcome {
    if c.server_ns.is_none() {
        skip!("needs network namespaces");
    }
    let (listener, addr) = c.listener(0)?;
    elsewhere(|| {
        let s = works("socket()", Sock::new(c.family))?;
        fails(
            "connect() into another namespace",
            s.connect(addr),
            &[ENETUNREACH, EADDRNOTAVAIL],
        )?;
        let any = SocketAddr::new(c.family.any(), addr.port());
        works("bind() to the same port", s.bind(any))?;
        works("listen()", s.listen(4))
    })?;
    let (a, b) = c.pair_on(&listener, addr)?;
    talk(&a, &b)?;
    Ok(())
}

fn orphan(c: &Ctx) -> Outcome {
    if c.server_ns.is_none() {
        skip!("needs network namespaces");
    }
    for round in 0..10 {
        let family = if round % 2 == 0 {
            c.family
        } else {
            Family::Tcp
        };
        let s = elsewhere(|| {
            let s = works("socket()", Sock::new(family))?;
            works("bind()", s.bind(SocketAddr::new(family.any(), 0)))?;
            works("listen()", s.listen(4))?;
            Ok(s)
        })?;
        ensure!(
            works("getsockname()", s.local())?.port() != 0,
            "the port is gone"
        );
        fails(
            "accept()",
            {
                works("fcntl", s.set_nonblocking(true))?;
                s.accept(0)
            },
            &[libc::EAGAIN],
        )?;
        works("close()", s.close())?;
    }
    Ok(())
}

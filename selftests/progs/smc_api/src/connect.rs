// SPDX-License-Identifier: GPL-2.0

//! connect, blocking and not.

use crate::check::{fails, works};
use crate::ctx::{begin, readable, talk, Ctx};
use crate::{check, loose, Check};
use libc::{
    EAFNOSUPPORT, EALREADY, ECONNREFUSED, EHOSTUNREACH, EINPROGRESS, EINTR, EINVAL, EISCONN,
    ENETUNREACH, ENOTCONN, POLLERR, POLLHUP, POLLIN, POLLOUT, SOCK_NONBLOCK,
};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use testlib::event::{poll_one, poll_until};
use testlib::pattern::Rng;
use testlib::process::{
    count_signal, count_signal_and_go_on, in_netns, interval_timer, signals_caught,
};
use testlib::sock::{Family, RawAddr, Sock};
use testlib::tap::Outcome;

pub(crate) const CHECKS: &[Check] = &[
    check("connect: names of both ends", names),
    check("connect: refused, blocking", refused),
    check("connect: refused, non-blocking", refused_later),
    check("connect: non-blocking states", states),
    check(
        "connect: non-blocking to a host that does not answer",
        silence,
    ),
    check("connect: data at the very moment of success", data_at_once),
    check("connect: errors", errors),
    loose("connect: closed while connecting", closed_early),
    check("connect: signals during a blocking call", interrupted),
    check("connect: signals that let a blocking call go on", restarted),
    check("connect: both ends to each other at once", crossed),
    loose("connect: to an own listener", own_listener),
    check("connect: IPv4-mapped address", mapped),
];

fn names(c: &Ctx) -> Outcome {
    let s = c.client_socket(0)?;
    fails("getpeername() before connecting", s.peer_raw(), &[ENOTCONN])?;
    let (client, server) = c.pair()?;
    for raw in [&client, &server] {
        let own = works("getsockname()", raw.name_raw())?;
        let peer = works("getpeername()", raw.peer_raw())?;
        same!(
            "family of getsockname()",
            own.family(),
            c.family.name_family()
        );
        same!(
            "family of getpeername()",
            peer.family(),
            c.family.name_family()
        );
    }
    let near = works("getsockname()", client.local())?;
    let far = works(
        "decode",
        works("getpeername()", server.peer_raw())?.decode(),
    )?;
    same!("peer's name", near, far);
    same!(
        "server's name",
        works("getsockname()", server.local())?,
        works(
            "decode",
            works("getpeername()", client.peer_raw())?.decode()
        )?
    );
    Ok(())
}

/// Programs that ask without pause write as soon as `connect()` says yes: the bytes must go where the
/// server reads. Several at a time, so that the kernel is interrupted where it should not matter.
fn data_at_once(c: &Ctx) -> Outcome {
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 30;
    let (listener, addr) = c.listener(0)?;
    let server = || -> Result<(), String> {
        for round in 0..CLIENTS * ROUNDS {
            let (s, _) = works("accept()", listener.accept(0))?;
            readable(&s).map_err(|e| format!("connection {round}: {e}"))?;
            let mut got = [0u8; 16];
            let n = works("recv()", s.recv(&mut got, 0))?;
            if &got[..n] != b"at once" {
                return Err(format!("connection {round}: received {:?}", &got[..n]));
            }
        }
        Ok(())
    };
    let client = || -> Result<(), String> {
        for _ in 0..ROUNDS {
            let s = c.client_socket(SOCK_NONBLOCK)?;
            let end = Instant::now() + Duration::from_secs(30);
            while let Err(e) = s.connect(addr) {
                if !matches!(e.raw_os_error(), Some(EINPROGRESS | EALREADY)) {
                    return Err(format!("connect() failed: {e}"));
                }
                if Instant::now() > end {
                    return Err("still connecting after 30 s".to_string());
                }
            }
            works("send()", s.send(b"at once", 0))?;
            works("fcntl", s.set_nonblocking(false))?;
            // Until the server has read and closed.
            works("recv()", s.recv(&mut [0], 0))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        let served = server();
        for client in clients {
            let ended = client.join().map_err(|_| "a client died".to_string())?;
            served.clone().and(ended)?;
        }
        Ok(())
    })
}

fn refused(c: &Ctx) -> Outcome {
    let s = c.client_socket(0)?;
    fails("connect()", s.connect(c.closed_port()?), &[ECONNREFUSED])?;
    same!("SO_ERROR afterwards", works("SO_ERROR", s.take_error())?, 0);
    let (listener, addr) = c.listener(0)?;
    works("connect() after a refused one", s.connect(addr))?;
    let (server, _) = works("accept()", listener.accept(0))?;
    talk(&s, &server)?;
    Ok(())
}

fn refused_later(c: &Ctx) -> Outcome {
    let s = c.client_socket(SOCK_NONBLOCK)?;
    // In one namespace the answer can come back within the call.
    let first = fails(
        "connect()",
        s.connect(c.closed_port()?),
        &[EINPROGRESS, ECONNREFUSED],
    )?;
    if first == EINPROGRESS {
        let bits = poll_until(&s, POLLERR | POLLHUP, Duration::from_secs(10))?;
        ensure!(bits & POLLERR != 0, "poll gave {bits:#x} after a refusal");
        same!("SO_ERROR", works("SO_ERROR", s.take_error())?, ECONNREFUSED);
    }
    same!(
        "SO_ERROR a second time",
        works("SO_ERROR", s.take_error())?,
        0
    );
    Ok(())
}

fn states(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    let s = c.client_socket(SOCK_NONBLOCK)?;
    fails("the first connect()", s.connect(addr), &[EINPROGRESS])?;
    let bits = poll_until(&s, POLLOUT, Duration::from_secs(10))?;
    ensure!(
        bits & (POLLERR | POLLHUP) == 0,
        "poll gave {bits:#x} for a good connection"
    );
    same!("SO_ERROR", works("SO_ERROR", s.take_error())?, 0);
    works("connect() once it is connected", s.connect(addr))?;
    fails("connect() after that", s.connect(addr), &[EISCONN])?;
    let (server, _) = works("accept()", listener.accept(0))?;
    works("fcntl", s.set_nonblocking(false))?;
    talk(&s, &server)?;
    Ok(())
}

/// An address on the link at which no host is, so that connecting stays undecided.
fn nobody(c: &Ctx) -> Option<SocketAddr> {
    match c.ip {
        IpAddr::V4(a) if !a.is_loopback() => {
            let [x, y, z, _] = a.octets();
            Some(SocketAddr::new([x, y, z, 77].into(), 9))
        }
        _ => None,
    }
}

fn silence(c: &Ctx) -> Outcome {
    let Some(addr) = nobody(c) else {
        skip!("needs an IPv4 link")
    };
    let s = c.client_socket(SOCK_NONBLOCK)?;
    fails("the first connect()", s.connect(addr), &[EINPROGRESS])?;
    same!(
        "poll while connecting",
        works("poll()", poll_one(&s, POLLIN | POLLOUT, 0))?,
        0
    );
    fails("connect() while connecting", s.connect(addr), &[EALREADY])?;
    fails(
        "send() while connecting",
        s.send(b"x", libc::MSG_NOSIGNAL),
        &[libc::EAGAIN, ENOTCONN],
    )?;
    let start = Instant::now();
    poll_until(&s, POLLERR | POLLHUP, Duration::from_secs(20))?;
    ensure!(
        start.elapsed() > Duration::from_millis(200),
        "gave up at once"
    );
    same!("SO_ERROR", works("SO_ERROR", s.take_error())?, EHOSTUNREACH);
    Ok(())
}

fn errors(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    let s = c.client_socket(0)?;
    let mut raw = RawAddr::from(addr);
    raw.storage.ss_family = libc::AF_UNIX as u16;
    fails(
        "connect() to a Unix address",
        s.connect_raw(&raw),
        &[EAFNOSUPPORT, EINVAL],
    )?;
    let mut raw = RawAddr::from(addr);
    raw.len = 1;
    fails(
        "connect() with a short address",
        s.connect_raw(&raw),
        &[EINVAL],
    )?;
    fails(
        "connect() on a listener",
        listener.connect(addr),
        &[EISCONN, EINVAL],
    )?;
    if c.client_ns.is_some() {
        let far: IpAddr = if c.family.is_v6() {
            [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x99].into()
        } else {
            [192, 0, 2, 99].into()
        };
        fails(
            "connect() without a route",
            s.connect(SocketAddr::new(far, 9)),
            &[ENETUNREACH],
        )?;
    }
    works("connect() after errors", s.connect(addr))?;
    let (server, _) = works("accept()", listener.accept(0))?;
    fails("connect() when connected", s.connect(addr), &[EISCONN])?;
    talk(&s, &server)?;
    Ok(())
}

fn closed_early(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(SOCK_NONBLOCK)?;
    let mut rng = Rng::new(u64::from(addr.port()));
    let mut accepted = Vec::new();
    for _ in 0..40 {
        let s = c.client_socket(SOCK_NONBLOCK)?;
        begin(&s, addr)?;
        std::thread::sleep(Duration::from_micros(rng.range(0, 5000)));
        drop(s);
        while let Ok((server, _)) = listener.accept(0) {
            accepted.push(server);
        }
    }
    // A handshake whose client is gone may take as long as its time-out.
    let quiet = Duration::from_millis(if c.family.is_smc() { 7000 } else { 300 });
    let mut last = Instant::now();
    while last.elapsed() < quiet && accepted.len() < 40 {
        match listener.accept(0) {
            Ok((server, _)) => {
                accepted.push(server);
                last = Instant::now();
            }
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    for server in &accepted {
        readable(server)?;
        let mut buf = [0u8; 8];
        match server.recv(&mut buf, libc::MSG_DONTWAIT) {
            Ok(0) => {}
            Ok(n) => return Err(format!("{n} bytes came from a client that sent none").into()),
            Err(e) => {
                fails(
                    "recv()",
                    Err::<(), _>(e),
                    &[libc::ECONNRESET, ENOTCONN, libc::EPIPE],
                )?;
            }
        }
    }
    let (a, b) = {
        works("fcntl", listener.set_nonblocking(false))?;
        c.pair_on(&listener, addr)?
    };
    talk(&a, &b)?;
    Ok(())
}

fn interrupted(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    works("sigaction", count_signal(libc::SIGALRM))?;
    for _ in 0..20 {
        let s = c.client_socket(0)?;
        works("setitimer", interval_timer(Duration::from_micros(300)))?;
        let end = Instant::now() + Duration::from_secs(15);
        let outcome = loop {
            match s.connect(addr) {
                Ok(()) => break Ok(()),
                Err(e) => match e.raw_os_error() {
                    Some(EISCONN) => break Ok(()),
                    Some(EINTR | EALREADY | EINPROGRESS) if Instant::now() < end => {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    _ => break Err(format!("connect() under signals failed: {e}")),
                },
            }
        };
        works("setitimer", interval_timer(Duration::ZERO))?;
        outcome?;
        let (server, _) = works("accept()", listener.accept(0))?;
        talk(&s, &server)?;
    }
    Ok(())
}

/// With `SA_RESTART` a program sees nothing of signals: TCP connects in one call.
fn restarted(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    works("sigaction", count_signal_and_go_on(libc::SIGALRM))?;
    for round in 0..20 {
        let s = c.client_socket(0)?;
        works("setitimer", interval_timer(Duration::from_micros(300)))?;
        let outcome = s.connect(addr);
        works("setitimer", interval_timer(Duration::ZERO))?;
        works("connect() under signals", outcome).map_err(|e| format!("round {round}: {e}"))?;
        fails("connect() once more", s.connect(addr), &[EISCONN])?;
        let (server, _) = works("accept()", listener.accept(0))?;
        talk(&s, &server)?;
    }
    // TCP may be faster than the timer.
    ensure!(
        !c.family.is_smc() || signals_caught(libc::SIGALRM) > 0,
        "no signal came while connecting"
    );
    Ok(())
}

fn crossed(c: &Ctx) -> Outcome {
    let (Some(_), Some(client_ns)) = (&c.server_ns, &c.client_ns) else {
        skip!("needs two network namespaces")
    };
    let (right, right_addr) = c.listener(0)?;
    // The client's end of a connection tells the address of its namespace.
    let (probe, _server) = c.pair_on(&right, right_addr)?;
    let ip = works("getsockname()", probe.local())?.ip();
    let left = in_netns(Some(client_ns), || Sock::listener(c.family, ip, 0, 64))?;
    let left_addr = works("getsockname()", left.local())?;
    std::thread::scope(|s| {
        let mut threads = Vec::new();
        for i in 0..16 {
            threads.push(s.spawn(move || {
                let (sock, to) = if i % 2 == 0 {
                    (c.client_socket(0)?, right_addr)
                } else {
                    (c.server_socket(0)?, left_addr)
                };
                works(
                    "SO_RCVTIMEO",
                    sock.set_timeout(libc::SO_RCVTIMEO, Duration::from_secs(20)),
                )?;
                works("connect()", sock.connect(to))?;
                works("recv()", sock.recv_exact(&mut [0u8; 1]))
            }));
        }
        for listener in [&right, &left] {
            works(
                "SO_RCVTIMEO",
                listener.set_timeout(libc::SO_RCVTIMEO, Duration::from_secs(20)),
            )?;
            threads.push(s.spawn(move || {
                for _ in 0..8 {
                    let (sock, _) = works("accept()", listener.accept(0))?;
                    works("send()", sock.send_all(b"x"))?;
                }
                Ok(())
            }));
        }
        threads
            .into_iter()
            .try_for_each(|t| t.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    })?;
    Ok(())
}

fn own_listener(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    let s = c.server_socket(0)?;
    works("connect()", s.connect(addr))?;
    let (server, _) = works("accept()", listener.accept(0))?;
    talk(&s, &server)?;
    Ok(())
}

fn mapped(c: &Ctx) -> Outcome {
    let IpAddr::V4(v4) = c.ip else {
        skip!("run with an IPv4 address")
    };
    let family = if c.family.is_smc() {
        Family::Smc6
    } else {
        Family::Tcp6
    };
    let (listener, addr) = c.listener(0)?;
    let client = in_netns(c.client_ns.as_deref(), || Sock::new(family))?;
    let to = SocketAddr::new(v4.to_ipv6_mapped().into(), addr.port());
    works("connect()", client.connect(to))?;
    let (server, _) = works("accept()", listener.accept(0))?;
    talk(&client, &server)?;
    same!(
        "family",
        works("getsockname()", client.name_raw())?.family(),
        libc::AF_INET6 as u16
    );
    // A listener of the IPv6 kind on all addresses takes IPv4 clients, too.
    let any = in_netns(c.server_ns.as_deref(), || {
        Sock::listener(family, family.any(), 0, 8)
    })?;
    let port = works("getsockname()", any.local())?.port();
    let client = c.client_socket(0)?;
    works("connect()", client.connect(SocketAddr::new(c.ip, port)))?;
    let (server, from) = works("accept()", any.accept(0))?;
    same!(
        "family of the peer's name",
        from.family(),
        libc::AF_INET6 as u16
    );
    talk(&client, &server)?;
    Ok(())
}

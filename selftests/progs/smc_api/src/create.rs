// SPDX-License-Identifier: GPL-2.0

//! socket, bind, listen, accept.

use crate::check::{fails, works};
use crate::ctx::{readable, talk, Ctx, Expect};
use crate::{check, loose, Check};
use libc::{
    EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, ECONNREFUSED, ECONNRESET, EINVAL, EOPNOTSUPP,
    EPIPE, EPROTONOSUPPORT, ESOCKTNOSUPPORT, SOCK_CLOEXEC, SOCK_NONBLOCK, SOL_SOCKET,
};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use testlib::event::{poll_one, poll_until};
use testlib::sock::{raw_socket, raw_socketpair, RawAddr, Sock, AF_SMC};
use testlib::tap::Outcome;

pub(crate) const CHECKS: &[Check] = &[
    check("socket: other types and protocols are refused", types),
    check(
        "socket: flags for non-blocking and close-on-exec",
        socket_flags,
    ),
    check("bind: errors", bind_errors),
    check(
        "bind: port 0 and listening unbound choose a port",
        port_zero,
    ),
    check("listen: again with another backlog", listen_twice),
    check("accept: flags of the new socket", accept_flags),
    check("accept: errors", accept_errors),
    check("accept: address of the peer", accept_address),
    check("accept: receive time-out", accept_timeout),
    check("accept: many connections wait in the backlog", backlog),
    check(
        "accept: blocked threads are woken one by one",
        accept_threads,
    ),
    check(
        "listener: SO_REUSEADDR while clients are connected",
        reuse_address,
    ),
    check("listener: SO_REUSEPORT", reuse_port),
    loose(
        "listener: closed with connections that nobody accepted",
        closed_with_children,
    ),
    check("listener: children outlive it", children_outlive),
    check("listener: the last of two thousand is served at once", many),
];

fn types(c: &Ctx) -> Outcome {
    if !c.family.is_smc() {
        skip!("concerns the SMC family");
    }
    for ty in [
        libc::SOCK_DGRAM,
        libc::SOCK_RAW,
        libc::SOCK_SEQPACKET,
        libc::SOCK_RDM,
    ] {
        fails(
            "socket() of another type",
            raw_socket(AF_SMC, ty, 0),
            &[ESOCKTNOSUPPORT],
        )?;
    }
    for protocol in [2, 6, 255, 256] {
        let r = raw_socket(AF_SMC, libc::SOCK_STREAM, protocol);
        fails("socket() of another protocol", r, &[EPROTONOSUPPORT])?;
    }
    fails(
        "socketpair()",
        raw_socketpair(AF_SMC, libc::SOCK_STREAM, 0),
        &[EOPNOTSUPP],
    )?;
    Ok(())
}

fn flags_of(s: &Sock) -> Result<(bool, bool), String> {
    let status = works("fcntl(F_GETFL)", s.fcntl(libc::F_GETFL, 0))?;
    let fd = works("fcntl(F_GETFD)", s.fcntl(libc::F_GETFD, 0))?;
    Ok((status & libc::O_NONBLOCK != 0, fd & libc::FD_CLOEXEC != 0))
}

fn socket_flags(c: &Ctx) -> Outcome {
    let s = works(
        "socket()",
        Sock::with_flags(c.family, SOCK_NONBLOCK | SOCK_CLOEXEC),
    )?;
    same!("non-blocking, close-on-exec", flags_of(&s)?, (true, true));
    let s = works("socket()", Sock::with_flags(c.family, 0))?;
    same!("non-blocking, close-on-exec", flags_of(&s)?, (false, false));
    Ok(())
}

fn foreign(c: &Ctx) -> SocketAddr {
    let text = if c.family.is_v6() {
        "[2001:db8::99]:0"
    } else {
        "192.0.2.99:0"
    };
    // Both texts are addresses reserved for documentation and always parse.
    text.parse().unwrap_or_else(|_| SocketAddr::new(c.ip, 0))
}

fn bind_errors(c: &Ctx) -> Outcome {
    let (_first, addr) = c.listener(0)?;
    let s = c.server_socket(0)?;
    fails("bind() to a port in use", s.bind(addr), &[EADDRINUSE])?;
    works(
        "bind() after a failed one",
        s.bind(SocketAddr::new(c.ip, 0)),
    )?;
    fails(
        "a second bind()",
        s.bind(SocketAddr::new(c.ip, 0)),
        &[EINVAL],
    )?;
    let s = c.server_socket(0)?;
    fails(
        "bind() to a foreign address",
        s.bind(foreign(c)),
        &[EADDRNOTAVAIL],
    )?;
    let mut raw = RawAddr::from(SocketAddr::new(c.ip, 0));
    let whole = raw.len;
    raw.len = 5;
    fails("bind() with a short address", s.bind_raw(&raw), &[EINVAL])?;
    raw.len = whole;
    raw.storage.ss_family = libc::AF_UNIX as u16;
    fails(
        "bind() to a Unix address",
        s.bind_raw(&raw),
        &[EAFNOSUPPORT],
    )?;
    Ok(())
}

fn port_zero(c: &Ctx) -> Outcome {
    let s = c.server_socket(0)?;
    works("bind()", s.bind(SocketAddr::new(c.ip, 0)))?;
    ensure!(
        works("getsockname()", s.local())?.port() != 0,
        "bind() chose no port"
    );
    let s = c.server_socket(0)?;
    works("listen() unbound", s.listen(1))?;
    let addr = works("getsockname()", s.local())?;
    ensure!(addr.port() != 0, "listen() chose no port");
    same!("address", addr.ip(), c.family.any());
    let (a, b) = c.pair_on(&s, SocketAddr::new(c.ip, addr.port()))?;
    talk(&a, &b)?;
    Ok(())
}

fn listen_twice(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    for backlog in [0, 1, 200] {
        works("listen() again", listener.listen(backlog))?;
    }
    same!(
        "SO_ACCEPTCONN",
        works(
            "getsockopt()",
            listener.int(SOL_SOCKET, libc::SO_ACCEPTCONN)
        )?,
        1
    );
    let (a, b) = c.pair_on(&listener, addr)?;
    talk(&a, &b)?;
    fails("listen() on a connected socket", a.listen(1), &[EINVAL])?;
    Ok(())
}

fn accept_flags(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(SOCK_NONBLOCK)?;
    let wants = [
        (0, (false, false)),
        (SOCK_NONBLOCK | SOCK_CLOEXEC, (true, true)),
    ];
    for (flags, want) in wants {
        let client = c.client_socket(0)?;
        works("connect()", client.connect(addr))?;
        readable(&listener)?;
        let (s, _) = works("accept4()", listener.accept(flags))?;
        // The listener's own flags must not be inherited.
        same!("non-blocking, close-on-exec", flags_of(&s)?, want);
    }
    fails(
        "accept4() with an unknown flag",
        listener.accept(0x40),
        &[EINVAL],
    )?;
    Ok(())
}

fn accept_errors(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(SOCK_NONBLOCK)?;
    fails(
        "accept() without a connection",
        listener.accept(0),
        &[EAGAIN],
    )?;
    let s = c.server_socket(SOCK_NONBLOCK)?;
    fails("accept() on a fresh socket", s.accept(0), &[EINVAL])?;
    let client = c.client_socket(0)?;
    works("connect()", client.connect(addr))?;
    fails(
        "accept() on a connected socket",
        client.accept(0),
        &[EINVAL],
    )?;
    readable(&listener)?;
    works("accept()", listener.accept(0))?;
    fails("accept() once more", listener.accept(0), &[EAGAIN])?;
    Ok(())
}

fn accept_address(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    let client = c.client_socket(0)?;
    works("connect()", client.connect(addr))?;
    let (server, from) = works("accept()", listener.accept(0))?;
    same!("family", from.family(), c.family.name_family());
    same!(
        "address",
        works("decode", from.decode())?,
        works("getsockname()", client.local())?
    );
    same!(
        "length",
        from.len,
        works("getpeername()", server.peer_raw())?.len
    );
    Ok(())
}

fn accept_timeout(c: &Ctx) -> Outcome {
    let (listener, _) = c.listener(0)?;
    works(
        "SO_RCVTIMEO",
        listener.set_timeout(libc::SO_RCVTIMEO, Duration::from_millis(200)),
    )?;
    let start = Instant::now();
    fails("accept() with a time-out", listener.accept(0), &[EAGAIN])?;
    let took = start.elapsed();
    ensure!(
        took >= Duration::from_millis(150),
        "accept() gave up after {took:?}"
    );
    ensure!(
        took < Duration::from_secs(5),
        "accept() waited {took:?} for 200 ms"
    );
    Ok(())
}

fn backlog(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    let mut clients = Vec::new();
    for _ in 0..24 {
        let client = c.client_socket(0)?;
        works("connect()", client.connect(addr))?;
        works("send() before accept", client.send_all(b"early"))?;
        clients.push(client);
    }
    for _ in 0..24 {
        let (server, _) = works("accept()", listener.accept(0))?;
        let mut buf = [0u8; 5];
        works("recv()", server.recv_exact(&mut buf))?;
        same!("bytes sent before accept", &buf, b"early");
    }
    Ok(())
}

fn accept_threads(c: &Ctx) -> Outcome {
    const ROUNDS: usize = 40;
    let (listener, addr) = c.listener(0)?;
    works(
        "SO_RCVTIMEO",
        listener.set_timeout(libc::SO_RCVTIMEO, Duration::from_secs(3)),
    )?;
    let done = std::sync::atomic::AtomicUsize::new(0);
    let slowest = std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| loop {
                match listener.accept(0) {
                    Ok((sock, _)) => {
                        done.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        let _ = sock.send_all(b"!");
                    }
                    Err(_) => return,
                }
            });
        }
        let mut slowest = Duration::ZERO;
        for _ in 0..ROUNDS {
            let client = c.client_socket(0)?;
            works("connect()", client.connect(addr))?;
            let start = Instant::now();
            works(
                "recv() from an accepting thread",
                client.recv_exact(&mut [0u8; 1]),
            )?;
            slowest = slowest.max(start.elapsed());
        }
        Ok::<Duration, String>(slowest)
    })?;
    same!("accepted", done.into_inner(), ROUNDS);
    ensure!(
        slowest < Duration::from_secs(2),
        "a sleeping accept() was woken after {slowest:?}"
    );
    Ok(())
}

fn reuse_address(c: &Ctx) -> Outcome {
    let bound = |addr: SocketAddr| -> Result<Sock, String> {
        let s = c.server_socket(0)?;
        works("SO_REUSEADDR", s.set_int(SOL_SOCKET, libc::SO_REUSEADDR, 1))?;
        works("bind()", s.bind(addr))?;
        works("listen()", s.listen(8))?;
        Ok(s)
    };
    let first = bound(SocketAddr::new(c.ip, 0))?;
    let addr = works("getsockname()", first.local())?;
    let (a, b) = c.pair_on(&first, addr)?;
    drop(first);
    let again = bound(addr)?;
    talk(&a, &b)?;
    let (x, y) = c.pair_on(&again, addr)?;
    talk(&x, &y)?;
    // The server closes first, so its side of the connection lingers.
    drop((b, y));
    drop(again);
    let third = bound(addr)?;
    let (x, y) = c.pair_on(&third, addr)?;
    talk(&x, &y)?;
    Ok(())
}

fn reuse_port(c: &Ctx) -> Outcome {
    let mut listeners = Vec::new();
    let mut addr = SocketAddr::new(c.ip, 0);
    // That the kernel's choice leaves one out of four without any is as good as impossible.
    const CLIENTS: usize = 120;
    for _ in 0..4 {
        let s = c.server_socket(SOCK_NONBLOCK)?;
        works("SO_REUSEPORT", s.set_int(SOL_SOCKET, libc::SO_REUSEPORT, 1))?;
        works("bind()", s.bind(addr))?;
        works("listen()", s.listen(64))?;
        addr = works("getsockname()", s.local())?;
        listeners.push(s);
    }
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let client = c.client_socket(0)?;
        works("connect()", client.connect(addr))?;
        clients.push(client);
    }
    let end = Instant::now() + Duration::from_secs(10);
    let mut accepted = Vec::new();
    let mut shares = [0; 4];
    while accepted.len() < clients.len() && Instant::now() < end {
        for (l, share) in listeners.iter().zip(&mut shares) {
            while let Ok((s, _)) = l.accept(0) {
                accepted.push(s);
                *share += 1;
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    same!(
        "connections accepted by four listeners",
        accepted.len(),
        clients.len()
    );
    ensure!(
        shares.iter().all(|share| *share > 0),
        "one listener is left out: {shares:?}"
    );
    Ok(())
}

fn closed_with_children(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    let mut clients = Vec::new();
    for i in 0..12 {
        // Some are still in their handshake when the listener goes away.
        let client = c.client_socket(if i < 6 { 0 } else { SOCK_NONBLOCK })?;
        match client.connect(addr) {
            Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => {
                return Err(format!("connect() failed: {e}").into());
            }
            _ => clients.push(client),
        }
    }
    drop(listener);
    for client in &clients {
        poll_until(client, libc::POLLHUP, Duration::from_secs(10)).or_else(|_| readable(client))?;
        works("fcntl", client.set_nonblocking(true))?;
        let mut buf = [0u8; 1];
        match client.recv(&mut buf, 0) {
            Ok(0) => {}
            Ok(n) => return Err(format!("{n} bytes came from a closed listener").into()),
            Err(e) => {
                let allowed = [ECONNRESET, ECONNREFUSED, EPIPE, libc::ENOTCONN];
                fails("recv()", Err::<(), _>(e), &allowed)?;
            }
        }
    }
    let again = c.server_socket(0)?;
    works(
        "SO_REUSEADDR",
        again.set_int(SOL_SOCKET, libc::SO_REUSEADDR, 1),
    )?;
    works("bind() after the listener was closed", again.bind(addr))?;
    works("listen()", again.listen(8))?;
    let (a, b) = c.pair_on(&again, addr)?;
    talk(&a, &b)?;
    Ok(())
}

fn children_outlive(c: &Ctx) -> Outcome {
    let (listener, addr) = c.listener(0)?;
    let pairs = (0..8)
        .map(|_| c.pair_on(&listener, addr))
        .collect::<Result<Vec<_>, _>>()?;
    drop(listener);
    for (a, b) in &pairs {
        talk(a, b)?;
        same!("poll", works("poll()", poll_one(a, libc::POLLIN, 0))?, 0);
    }
    Ok(())
}

/// None of the others may stand in the way of the last one.
fn many(c: &Ctx) -> Outcome {
    const LISTENERS: usize = 2000;
    if c.family.is_smc() && c.expect != Expect::Smcr {
        skip!("it takes long, and is the same for all SMC sockets");
    }
    let listeners = (0..LISTENERS)
        .map(|_| c.listener(0))
        .collect::<Result<Vec<_>, _>>()?;
    // The first connection between two hosts makes the link, which takes a while.
    let (first, last) = (&listeners[0], &listeners[LISTENERS - 1]);
    c.pair_on(&first.0, first.1)?;
    let start = Instant::now();
    let (a, b) = c.pair_on(&last.0, last.1)?;
    let took = start.elapsed();
    ensure!(
        took < Duration::from_secs(1),
        "the last of {LISTENERS} listeners accepted after {took:?}"
    );
    talk(&a, &b)?;
    Ok(())
}

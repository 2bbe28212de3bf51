// SPDX-License-Identifier: GPL-2.0

//! Socket options and ioctls.

use crate::check::{fails, works};
use crate::ctx::{readable, talk, Ctx};
use crate::{check, loose, Check};
use libc::{
    EINVAL, ENOENT, EOPNOTSUPP, IPPROTO_TCP, SOL_SOCKET, SO_DOMAIN, SO_ERROR, SO_KEEPALIVE,
    SO_LINGER, SO_RCVBUF, SO_SNDBUF, SO_TYPE, TCP_CORK, TCP_KEEPIDLE, TCP_NODELAY,
};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use testlib::lazy::LazyPage;
use testlib::opts::{SIOCATMARK, SIOCINQ, SIOCOUTQ, SIOCOUTQNSD, TCP_ULP};
use testlib::process::in_netns;
use testlib::sock::{Family, Sock};
use testlib::tap::Outcome;

pub(crate) const CHECKS: &[Check] = &[
    check("options: SO_TYPE, SO_DOMAIN, SO_ERROR", information),
    check("options: buffer sizes", buffers),
    check(
        "options: buffer sizes of a listener are inherited",
        inherited,
    ),
    loose(
        "options: after a fallback, as much goes unread as on TCP",
        unread_as_on_tcp,
    ),
    check("options: TCP_NODELAY and TCP_CORK", delay_and_cork),
    check("options: keepalive and linger", keepalive),
    check("options: short values and IP level", short_values),
    check("options: TCP_ULP is refused", ulp),
    check("options: wrong lengths", lengths),
    check(
        "options: a value that is long in coming holds up nobody else",
        late_value,
    ),
    check("options: SMC_LIMIT_HS", handshake_limit),
    check("ioctl: SIOCINQ counts what can be read", input_queue),
    check("ioctl: SIOCOUTQ counts what is on its way", output_queue),
    check("ioctl: on sockets that are not connected", idle_ioctl),
];

fn information(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let (domain, _) = c.family.domain_and_protocol();
    for s in [&a, &b] {
        same!(
            "SO_TYPE",
            works("getsockopt()", s.int(SOL_SOCKET, SO_TYPE))?,
            libc::SOCK_STREAM
        );
        same!(
            "SO_DOMAIN",
            works("getsockopt()", s.int(SOL_SOCKET, SO_DOMAIN))?,
            domain
        );
        same!(
            "SO_ERROR",
            works("getsockopt()", s.int(SOL_SOCKET, SO_ERROR))?,
            0
        );
        same!(
            "SO_ACCEPTCONN",
            works("getsockopt()", s.int(SOL_SOCKET, libc::SO_ACCEPTCONN))?,
            0
        );
    }
    Ok(())
}

fn buffers(c: &Ctx) -> Outcome {
    for size in [16 << 10, 64 << 10, 100_000, 200 << 10] {
        let (listener, addr) = c.listener(0)?;
        let s = c.client_socket(0)?;
        for name in [SO_SNDBUF, SO_RCVBUF] {
            works("setsockopt()", s.set_int(SOL_SOCKET, name, size))?;
            let got = works("getsockopt()", s.int(SOL_SOCKET, name))?;
            ensure!(
                got >= size && got <= 4 * size,
                "asked for {size}, getsockopt() says {got}"
            );
        }
        works("connect()", s.connect(addr))?;
        let (server, _) = works("accept()", listener.accept(0))?;
        talk(&s, &server)?;
        for name in [SO_SNDBUF, SO_RCVBUF] {
            let got = works("getsockopt()", s.int(SOL_SOCKET, name))?;
            ensure!(
                got >= size && got <= 4 * size,
                "connected: asked for {size}, got {got}"
            );
        }
    }
    Ok(())
}

fn inherited(c: &Ctx) -> Outcome {
    let listener = c.server_socket(0)?;
    for name in [SO_SNDBUF, SO_RCVBUF] {
        works("setsockopt()", listener.set_int(SOL_SOCKET, name, 48 << 10))?;
    }
    works("bind()", listener.bind(SocketAddr::new(c.ip, 0)))?;
    works("listen()", listener.listen(4))?;
    let addr = works("getsockname()", listener.local())?;
    let (a, b) = c.pair_on(&listener, addr)?;
    for name in [SO_SNDBUF, SO_RCVBUF] {
        let got = works("getsockopt()", b.int(SOL_SOCKET, name))?;
        ensure!(
            (48 << 10..=192 << 10).contains(&got),
            "the accepted socket has {got} bytes"
        );
    }
    talk(&a, &b)?;
    Ok(())
}

/// How many bytes a receiver of one family holds that reads nothing, from a sender of another.
fn unread(c: &Ctx, to: Family, from: Family, room: Option<i32>) -> Result<usize, String> {
    let make = |ns: Option<&str>, family| works("socket()", in_netns(ns, || Sock::new(family)));
    let listener = make(c.server_ns.as_deref(), to)?;
    if let Some(room) = room {
        works("SO_RCVBUF", listener.set_int(SOL_SOCKET, SO_RCVBUF, room))?;
    }
    works("bind()", listener.bind(SocketAddr::new(c.ip, 0)))?;
    works("listen()", listener.listen(4))?;
    let sender = make(c.client_ns.as_deref(), from)?;
    let addr = works("getsockname()", listener.local())?;
    works("connect()", sender.connect(addr))?;
    let (receiver, _) = works("accept()", listener.accept(0))?;
    let mut quiet = 0;
    while quiet < 5 {
        if sender.send(&[2u8; 10_000], libc::MSG_DONTWAIT).is_err() {
            quiet += 1;
            std::thread::sleep(Duration::from_millis(40));
        }
    }
    works("ioctl", receiver.ioctl_int(SIOCINQ)).map(|n| n as usize)
}

/// The window of TCP is TCP's own, whatever size the rings of SMC-R would have had.
fn unread_as_on_tcp(c: &Ctx) -> Outcome {
    let tcp = c.family.tcp();
    for room in [None, Some(20_000), Some(64 << 10), Some(200 << 10)] {
        let on_tcp = unread(c, tcp, tcp, room)?;
        for (to, from) in [(c.family, tcp), (tcp, c.family)] {
            let here = unread(c, to, from, room)?;
            ensure!(
                here < 2 * on_tcp && on_tcp < 2 * here,
                "with SO_RCVBUF {room:?}, {to:?} holds {here} bytes of {from:?}, TCP {on_tcp}"
            );
        }
    }
    Ok(())
}

fn delay_and_cork(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    for (name, value) in [
        (TCP_NODELAY, 1),
        (TCP_NODELAY, 0),
        (TCP_CORK, 1),
        (TCP_CORK, 0),
    ] {
        works("setsockopt()", a.set_int(IPPROTO_TCP, name, value))?;
        same!(
            "value read back",
            works("getsockopt()", a.int(IPPROTO_TCP, name))?,
            value
        );
    }
    for _ in 0..5 {
        works("TCP_CORK on", a.set_int(IPPROTO_TCP, TCP_CORK, 1))?;
        works("send()", a.send_all(b"corked"))?;
        works("TCP_CORK off", a.set_int(IPPROTO_TCP, TCP_CORK, 0))?;
        let start = Instant::now();
        readable(&b)?;
        ensure!(
            start.elapsed() < Duration::from_secs(2),
            "uncorking took {:?}",
            start.elapsed()
        );
        works("recv()", b.recv_exact(&mut [0u8; 6]))?;
    }
    // A cork that is never pulled holds for a fifth of a second with TCP.
    works("TCP_CORK on", a.set_int(IPPROTO_TCP, TCP_CORK, 1))?;
    works("send()", a.send_all(b"corked"))?;
    readable(&b)?;
    works("recv()", b.recv_exact(&mut [0u8; 6]))?;
    Ok(())
}

fn keepalive(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works("SO_KEEPALIVE", a.set_int(SOL_SOCKET, SO_KEEPALIVE, 1))?;
    same!(
        "SO_KEEPALIVE",
        works("getsockopt()", a.int(SOL_SOCKET, SO_KEEPALIVE))?,
        1
    );
    works("TCP_KEEPIDLE", a.set_int(IPPROTO_TCP, TCP_KEEPIDLE, 77))?;
    same!(
        "TCP_KEEPIDLE",
        works("getsockopt()", a.int(IPPROTO_TCP, TCP_KEEPIDLE))?,
        77
    );
    works("SO_LINGER", a.set_linger(true, 3))?;
    let mut value = [0u8; 8];
    works(
        "getsockopt()",
        a.get_bytes(SOL_SOCKET, SO_LINGER, &mut value, 8),
    )?;
    same!("SO_LINGER", value, [1, 0, 0, 0, 3, 0, 0, 0]);
    talk(&a, &b)?;
    Ok(())
}

fn short_values(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    if !c.family.is_v6() {
        works(
            "IP_TOS of one byte",
            a.set_bytes(libc::IPPROTO_IP, libc::IP_TOS, &[0x10]),
        )?;
        same!(
            "IP_TOS",
            works("getsockopt()", a.int(libc::IPPROTO_IP, libc::IP_TOS))? & 0xff,
            0x10
        );
    }
    works(
        "TCP_CONGESTION",
        a.set_bytes(IPPROTO_TCP, libc::TCP_CONGESTION, b"reno"),
    )?;
    let mut name = [0u8; 16];
    works(
        "getsockopt()",
        a.get_bytes(IPPROTO_TCP, libc::TCP_CONGESTION, &mut name, 16),
    )?;
    ensure!(name.starts_with(b"reno"), "TCP_CONGESTION is {name:?}");
    for name in [&b"bbr"[..], b"lp"] {
        match a.set_bytes(IPPROTO_TCP, libc::TCP_CONGESTION, name) {
            Ok(()) => {}
            // Not every kernel has these.
            Err(e) => drop(fails("TCP_CONGESTION", Err::<(), _>(e), &[ENOENT])?),
        }
    }
    fails(
        "TCP_NODELAY of one byte",
        a.set_bytes(IPPROTO_TCP, TCP_NODELAY, &[1]),
        &[EINVAL],
    )?;
    talk(&a, &b)?;
    Ok(())
}

fn ulp(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    if c.family.is_smc() {
        for name in [&b"tls"[..], b"mptcp", b"smc", b"espintcp"] {
            let fresh = c.client_socket(0)?;
            fails(
                "TCP_ULP on a fresh socket",
                fresh.set_bytes(IPPROTO_TCP, TCP_ULP, name),
                &[EOPNOTSUPP],
            )?;
            fails(
                "TCP_ULP",
                a.set_bytes(IPPROTO_TCP, TCP_ULP, name),
                &[EOPNOTSUPP],
            )?;
        }
    }
    // The upper layer protocol by which TCP sockets were once turned into SMC ones.
    let tcp = works("socket()", Sock::new(c.family.tcp()))?;
    fails(
        "TCP_ULP smc on TCP",
        tcp.set_bytes(IPPROTO_TCP, TCP_ULP, b"smc"),
        &[ENOENT],
    )?;
    talk(&a, &b)?;
    Ok(())
}

fn lengths(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let mut buf = [0u8; 8];
    for (level, name) in [(SOL_SOCKET, SO_TYPE), (IPPROTO_TCP, TCP_NODELAY)] {
        for len in [-1, i32::MIN] {
            fails(
                "getsockopt() of a negative length",
                a.get_bytes(level, name, &mut buf, len),
                &[EINVAL],
            )?;
        }
        works(
            "getsockopt() of no length",
            a.get_bytes(level, name, &mut buf, 0),
        )?;
        same!(
            "length",
            works("getsockopt()", a.get_bytes(level, name, &mut buf, 8))?,
            4
        );
    }
    talk(&a, &b)?;
    Ok(())
}

/// Level of SMC's own options, and the one that limits handshakes.
const SOL_SMC: i32 = 286;
const SMC_LIMIT_HS: i32 = 1;

/// The value is in memory that comes only when the test says so; the socket must not be locked then.
fn late_value(c: &Ctx) -> Outcome {
    const OPTIONS: [(i32, i32); 3] = [
        (IPPROTO_TCP, TCP_NODELAY),
        (SOL_SOCKET, SO_KEEPALIVE),
        (SOL_SMC, SMC_LIMIT_HS),
    ];
    for option in OPTIONS {
        if option.0 == SOL_SMC && !c.family.is_smc() {
            continue;
        }
        let (a, b) = c.pair()?;
        let page = match LazyPage::new() {
            Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => {
                skip!("this kernel has no userfaultfd")
            }
            made => works("userfaultfd()", made)?,
        };
        std::thread::scope(|s| {
            let setter = s.spawn(|| page.set_option(&a, option, 4));
            let wanted = works("poll()", page.is_wanted(10_000));
            let start = Instant::now();
            let others = talk(&a, &b)
                .and_then(|()| works("getsockopt()", a.int(SOL_SOCKET, SO_ERROR)))
                .and_then(|_| works("setsockopt()", a.set_int(IPPROTO_TCP, TCP_NODELAY, 1)))
                .and_then(|()| works("shutdown()", a.shutdown(libc::SHUT_RDWR)));
            let took = start.elapsed();
            works("the page", page.give())?;
            let set = setter.join();
            ensure!(wanted?, "option {option:?}: nobody asked for the value");
            others?;
            works("setsockopt()", set.unwrap_or(Ok(())))?;
            ensure!(
                took < Duration::from_secs(3),
                "other calls took {took:?} while option {option:?} had no value"
            );
            Ok::<(), testlib::tap::Problem>(())
        })?;
    }
    Ok(())
}

fn handshake_limit(c: &Ctx) -> Outcome {
    if !c.family.is_smc() {
        skip!("TCP sockets do not have it");
    }
    let (listener, _) = c.listener(0)?;
    let limit = || works("getsockopt()", listener.int(SOL_SMC, SMC_LIMIT_HS));
    same!("at first", limit()?, 0);
    for (value, want) in [(1, 1), (0, 0), (-7, 1)] {
        works(
            "setsockopt()",
            listener.set_int(SOL_SMC, SMC_LIMIT_HS, value),
        )?;
        same!(format!("after {value} was set"), limit()?, want);
    }
    fails(
        "a value of one byte",
        listener.set_bytes(SOL_SMC, SMC_LIMIT_HS, &[1]),
        &[EINVAL],
    )?;
    fails(
        "an option that is not there",
        listener.set_int(SOL_SMC, 99, 1),
        &[EOPNOTSUPP],
    )?;
    fails("its value", listener.int(SOL_SMC, 99), &[EOPNOTSUPP])?;
    Ok(())
}

/// Waits until an ioctl returns a value.
fn becomes(s: &Sock, request: libc::c_ulong, want: i32) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        let got = works("ioctl", s.ioctl_int(request))?;
        if got == want {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(format!("ioctl {request:#x} says {got}, expected {want}"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn input_queue(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    becomes(&b, SIOCINQ, 0)?;
    for round in 0..40 {
        let size = 700 + round * 37;
        works("send()", a.send_all(&vec![1u8; size]))?;
        becomes(&b, SIOCINQ, size as i32)?;
        works("recv()", b.recv_exact(&mut vec![0u8; size - 10]))?;
        becomes(&b, SIOCINQ, 10)?;
        works("recv()", b.recv_exact(&mut [0u8; 10]))?;
    }
    becomes(&b, SIOCINQ, 0)?;
    Ok(())
}

fn output_queue(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    becomes(&a, SIOCOUTQ, 0)?;
    works("send()", a.send_all(&[1u8; 5000]))?;
    works("recv()", b.recv_exact(&mut [0u8; 5000]))?;
    becomes(&a, SIOCOUTQ, 0)?;
    becomes(&a, SIOCOUTQNSD, 0)?;
    let mut total = 0;
    let mut quiet = 0;
    while quiet < 5 {
        match a.send(&[2u8; 50_000], libc::MSG_DONTWAIT) {
            Ok(n) => total += n,
            Err(_) => {
                quiet += 1;
                std::thread::sleep(Duration::from_millis(40));
            }
        }
    }
    let queued = works("ioctl", a.ioctl_int(SIOCOUTQ))?;
    ensure!(
        queued > 0 && queued as usize <= total,
        "SIOCOUTQ says {queued} of {total} sent"
    );
    works("recv()", b.recv_exact(&mut vec![0u8; total]))?;
    becomes(&a, SIOCOUTQ, 0)?;
    Ok(())
}

fn idle_ioctl(c: &Ctx) -> Outcome {
    let s = c.client_socket(0)?;
    same!(
        "SIOCINQ on a fresh socket",
        works("ioctl", s.ioctl_int(SIOCINQ))?,
        0
    );
    let (listener, _) = c.listener(0)?;
    for request in [SIOCINQ, SIOCOUTQ, SIOCOUTQNSD] {
        fails(
            "ioctl on a listener",
            listener.ioctl_int(request),
            &[EINVAL],
        )?;
    }
    same!(
        "SIOCATMARK on a fresh socket",
        works("ioctl", s.ioctl_int(SIOCATMARK))?,
        0
    );
    Ok(())
}

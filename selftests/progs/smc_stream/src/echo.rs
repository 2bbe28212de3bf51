// SPDX-License-Identifier: GPL-2.0

//! A small echo server and a client that checks what comes back.
//!
//! They are the good peers next to bad ones, and the applications whose
//! connections fall back: the client can register with epoll before it
//! connects, and both can use the options that rule SMC out.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use testlib::event::{poll_one, Epoll};
use testlib::json::Object;
use testlib::opts::{TCP_FASTOPEN_CONNECT, TCP_MD5SIG};
use testlib::pattern::{fill, Tally};
use testlib::sock::{Family, RawAddr, Sock};

/// How the client waits for its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Wait {
    /// Blocking calls.
    Block,
    /// `poll`, with a socket registered before connecting.
    Poll,
    /// Level-triggered epoll, registered before connecting.
    EpollLevel,
    /// Edge-triggered epoll, registered before connecting.
    EpollEdge,
}

/// What is done to a socket before it connects or listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Before {
    /// Nothing.
    Nothing,
    /// `TCP_FASTOPEN_CONNECT` on the connecting side.
    FastopenConnect,
    /// `TCP_FASTOPEN` on the listening side.
    Fastopen,
    /// `sendto(MSG_FASTOPEN)` in place of `connect`.
    FastopenSend,
    /// MD5 signatures with the peer.
    Md5,
}

/// What to connect to and how.
#[derive(Clone, Debug)]
pub(crate) struct Ping {
    pub(crate) family: Family,
    pub(crate) addr: SocketAddr,
    /// Connections, one after the other; all are open at the end.
    pub(crate) conns: usize,
    pub(crate) count: u64,
    pub(crate) size: u64,
    pub(crate) wait: Wait,
    pub(crate) before: Before,
    pub(crate) limit: Duration,
    pub(crate) hold: Duration,
    pub(crate) watch: bool,
}

fn md5(sock: &Sock, peer: IpAddr) -> io::Result<()> {
    // struct tcp_md5sig: address 128, flags 1, prefix 1, key length 2, interface 4, key 80.
    let mut value = [0u8; 216];
    let raw = RawAddr::from(SocketAddr::new(peer, 0));
    let family = raw.family().to_ne_bytes();
    value[..2].copy_from_slice(&family);
    match peer {
        IpAddr::V4(a) => value[4..8].copy_from_slice(&a.octets()),
        IpAddr::V6(a) => value[8..24].copy_from_slice(&a.octets()),
    }
    value[130..132].copy_from_slice(&4u16.to_ne_bytes());
    value[136..140].copy_from_slice(b"test");
    sock.set_bytes(libc::IPPROTO_TCP, TCP_MD5SIG, &value)
}

/// Echoes everything on every connection, for ever.
///
/// # Errors
///
/// When the listener cannot be set up.
pub(crate) fn echo(
    family: Family,
    addr: SocketAddr,
    backlog: i32,
    before: Before,
    md5_peer: Option<IpAddr>,
) -> io::Result<()> {
    let listener = Sock::new(family)?;
    listener.set_int(libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    if before == Before::Fastopen {
        listener.set_int(libc::IPPROTO_TCP, libc::TCP_FASTOPEN, 16)?;
    }
    if let Some(peer) = md5_peer {
        md5(&listener, peer)?;
    }
    listener.bind(addr)?;
    listener.listen(backlog)?;
    loop {
        let sock = match listener.accept(libc::SOCK_CLOEXEC) {
            Ok((sock, _)) => sock,
            // A connection that died before it was accepted is not the server's end.
            Err(e) => {
                eprintln!("smc_stream echo: accept failed: {e}");
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
        };
        let thread = std::thread::Builder::new()
            .stack_size(128 << 10)
            .spawn(move || {
                let mut buf = vec![0u8; 64 << 10];
                while let Ok(n) = sock.recv(&mut buf, 0) {
                    if n == 0 || sock.send_all(&buf[..n]).is_err() {
                        return;
                    }
                }
            });
        if let Err(e) = thread {
            eprintln!("smc_stream echo: no thread for a connection: {e}");
        }
    }
}

/// Waits until the socket can be read or written.
struct Waiter {
    wait: Wait,
    epoll: Option<Epoll>,
    bits: i32,
    end: Instant,
}

impl Waiter {
    fn new(sock: &Sock, wait: Wait, limit: Duration) -> io::Result<Waiter> {
        let both = libc::EPOLLIN | libc::EPOLLOUT;
        let epoll = match wait {
            Wait::Block | Wait::Poll => None,
            Wait::EpollLevel | Wait::EpollEdge => {
                let e = Epoll::new()?;
                let edge = if wait == Wait::EpollEdge {
                    libc::EPOLLET
                } else {
                    0
                };
                e.add(sock, both | edge, 1)?;
                Some(e)
            }
        };
        Ok(Waiter {
            wait,
            epoll,
            bits: 0,
            end: Instant::now() + limit,
        })
    }

    /// After `EAGAIN`: forget what was known and wait for the wanted event.
    fn wait(&mut self, sock: &Sock, want: i16) -> Result<(), String> {
        let want = i32::from(want);
        self.bits &= !want;
        loop {
            if Instant::now() > self.end {
                let now = poll_one(sock, libc::POLLIN | libc::POLLOUT, 0).unwrap_or_default();
                return Err(format!(
                    "{:?} did not report {want:#x} in time; poll says {now:#x} now",
                    self.wait
                ));
            }
            let broken = libc::EPOLLERR | libc::EPOLLHUP;
            match &self.epoll {
                None => {
                    let got = poll_one(sock, want as i16, 200).map_err(|e| format!("poll: {e}"))?;
                    self.bits |= i32::from(got);
                }
                Some(e) => {
                    for (_, bits) in e.wait(200).map_err(|e| format!("epoll_wait: {e}"))? {
                        self.bits |= bits;
                    }
                }
            }
            if self.bits & (want | broken) != 0 {
                self.bits &= !broken;
                return Ok(());
            }
        }
    }
}

fn open(p: &Ping) -> Result<(Sock, Waiter, u64), String> {
    let flags = if p.wait == Wait::Block {
        0
    } else {
        libc::SOCK_NONBLOCK
    };
    let sock = Sock::with_flags(p.family, flags | libc::SOCK_CLOEXEC)
        .map_err(|e| format!("socket: {e}"))?;
    if p.wait == Wait::Block {
        for name in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            sock.set_timeout(name, p.limit)
                .map_err(|e| format!("time-out: {e}"))?;
        }
    }
    match p.before {
        Before::FastopenConnect => {
            sock.set_int(libc::IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
                .map_err(|e| format!("TCP_FASTOPEN_CONNECT: {e}"))?;
        }
        Before::Md5 => md5(&sock, p.addr.ip()).map_err(|e| format!("TCP_MD5SIG: {e}"))?,
        _ => {}
    }
    let mut waiter = Waiter::new(&sock, p.wait, p.limit).map_err(|e| format!("epoll: {e}"))?;
    if p.before == Before::FastopenSend {
        let mut first = [0u8; 1];
        fill(0, 0, &mut first);
        match sock.send_to(&first, libc::MSG_FASTOPEN | libc::MSG_NOSIGNAL, p.addr) {
            Ok(n) => return Ok((sock, waiter, n as u64)),
            Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(e) => return Err(format!("sendto(MSG_FASTOPEN) failed: {e}")),
        }
        waiter.wait(&sock, libc::POLLOUT)?;
        return Ok((sock, waiter, 0));
    }
    match sock.connect(p.addr) {
        Ok(()) => {}
        Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) && p.wait != Wait::Block => {
            waiter.wait(&sock, libc::POLLOUT)?;
            let error = sock.take_error().map_err(|e| format!("SO_ERROR: {e}"))?;
            if error != 0 {
                return Err(format!("connect: {}", io::Error::from_raw_os_error(error)));
            }
        }
        Err(e) => return Err(format!("connect: {e}")),
    }
    Ok((sock, waiter, 0))
}

/// Leaves the connection open for a while; where it is watched, not longer than it lives.
fn hold(sock: &Sock, p: &Ping) -> Result<(), String> {
    if p.watch {
        let time = p.hold.as_millis() as i32;
        poll_one(sock, libc::POLLIN, time).map_err(|e| format!("poll: {e}"))?;
    } else {
        std::thread::sleep(p.hold);
    }
    Ok(())
}

/// A new connection after `count` messages out and back, compared byte by byte; how many bytes.
fn exchange(p: &Ping) -> Result<(Sock, Waiter, u64), String> {
    let (sock, mut waiter, mut sent) = open(p)?;
    let mut tally = Tally::new(0);
    let mut out = vec![0u8; p.size as usize];
    let mut buf = vec![0u8; p.size.max(1) as usize];
    for round in 0..p.count {
        let target = (round + 1) * p.size;
        while tally.count() < target {
            if sent < target {
                let part = &mut out[..(target - sent) as usize];
                fill(0, sent, part);
                match sock.send(part, libc::MSG_NOSIGNAL) {
                    Ok(n) => sent += n as u64,
                    Err(e) if e.raw_os_error() == Some(libc::EAGAIN) && p.wait != Wait::Block => {}
                    Err(e) => return Err(format!("send after {sent} bytes: {e}")),
                }
            }
            let want = (target - tally.count()).min(p.size) as usize;
            match sock.recv(&mut buf[..want], 0) {
                Ok(0) => return Err(format!("the peer closed after {} bytes", tally.count())),
                Ok(n) => tally.verify(&buf[..n])?,
                Err(e) if e.raw_os_error() == Some(libc::EAGAIN) && p.wait != Wait::Block => {
                    let want = if sent < target {
                        libc::POLLIN | libc::POLLOUT
                    } else {
                        libc::POLLIN
                    };
                    waiter.wait(&sock, want)?;
                }
                Err(e) => return Err(format!("recv after {} bytes: {e}", tally.count())),
            }
        }
    }
    Ok((sock, waiter, tally.count()))
}

/// Ends the connection, whose peer must not have more to say.
fn end(sock: &Sock, waiter: &mut Waiter) -> Result<(), String> {
    sock.shutdown(libc::SHUT_WR)
        .map_err(|e| format!("shutdown: {e}"))?;
    let mut buf = [0u8; 256];
    loop {
        match sock.recv(&mut buf, 0) {
            Ok(0) => return Ok(()),
            Ok(n) => return Err(format!("{n} bytes came back that were never sent")),
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) && waiter.wait != Wait::Block => {
                waiter.wait(sock, libc::POLLIN)?;
            }
            Err(e) => return Err(format!("recv at the end: {e}")),
        }
    }
}

/// All connections from beginning to end; how many bytes came back.
fn exchange_all(p: &Ping) -> Result<u64, String> {
    let mut open = Vec::with_capacity(p.conns);
    for _ in 0..p.conns {
        open.push(exchange(p)?);
    }
    if let Some((last, _, _)) = open.last() {
        hold(last, p)?;
    }
    let mut bytes = 0;
    for (sock, waiter, received) in &mut open {
        end(sock, waiter)?;
        bytes += *received;
    }
    Ok(bytes)
}

/// Runs the client and prints its summary; returns the exit status.
pub(crate) fn ping(p: &Ping) -> i32 {
    let start = Instant::now();
    let outcome = exchange_all(p);
    let (bytes, error) = match &outcome {
        Ok(n) => (*n, String::new()),
        Err(e) => (0, e.clone()),
    };
    testlib::tap::say(
        &Object::new()
            .raw("ok", outcome.is_ok())
            .text("mode", "ping")
            .raw("bytes", bytes)
            .raw("seconds", format!("{:.2}", start.elapsed().as_secs_f64()))
            .text("error", &error)
            .finish(),
    );
    i32::from(outcome.is_err())
}

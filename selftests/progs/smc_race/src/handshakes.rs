// SPDX-License-Identifier: GPL-2.0

//! Sockets that are closed while handshakes are under way.

use crate::race::{fair, limit_calls, pause, socket, Race, PATIENCE};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::thread;
use testlib::event::{poll_one, Epoll};
use testlib::pattern::Rng;
use testlib::process::spawn;
use testlib::sock::{Family, Sock};

const CLIENTS: u64 = 6;

/// A listener that accepts a few connections, or none, and is closed with the others waiting.
pub(crate) fn listener_closed(race: &Race) {
    close_listeners(race, Family::Smc, &[Family::Smc]);
}

/// The same with a listener of IPv6 on all addresses, whose clients have an IPv4 address, written as
/// one or mapped into IPv6, and offer SMC or not.
pub(crate) fn dual_stack_listener_closed(race: &Race) {
    let clients = [Family::Smc, Family::Smc6, Family::Tcp];
    close_listeners(race, Family::Smc6, &clients);
}

fn close_listeners(race: &Race, family: Family, clients: &[Family]) {
    let place = Mutex::new(None::<u16>);
    let there = || *place.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|s| {
        s.spawn(|| {
            let mut rng = race.rng(0);
            race.repeat(&race.place.server_ns, || {
                open_and_close(race, &mut rng, family, &place)
            });
        });
        for (client, family) in (1..=CLIENTS).zip(clients.iter().cycle()) {
            s.spawn(move || {
                let mut rng = race.rng(client);
                race.repeat(&race.place.client_ns, || match there() {
                    Some(port) => connect_and_talk(race, &mut rng, *family, port),
                    None => {
                        thread::yield_now();
                        Ok(())
                    }
                });
            });
        }
    });
}

fn open_and_close(
    race: &Race,
    rng: &mut Rng,
    family: Family,
    place: &Mutex<Option<u16>>,
) -> Result<(), String> {
    let (listener, to) = race
        .listener(family)
        .map_err(|e| format!("listen(): {e}"))?;
    limit_calls(&listener, PATIENCE / 40).map_err(|e| format!("setsockopt(): {e}"))?;
    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(to.port());
    let mut accepted = Vec::new();
    for _ in 0..rng.range(0, 5) {
        pause(rng, 30_000);
        if let Ok((sock, _)) = listener.accept(0) {
            if rng.one_in(2) {
                // The client may be anywhere, so this may fail.
                let _ = sock.send(b"hello", libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT);
            }
            accepted.push(sock);
        }
    }
    pause(rng, 100_000);
    if rng.one_in(4) {
        let _ = listener.shutdown(libc::SHUT_RDWR);
    }
    if rng.one_in(2) {
        accepted.clear();
    }
    drop(listener);
    race.count();
    Ok(())
}

fn connect_and_talk(race: &Race, rng: &mut Rng, family: Family, port: u16) -> Result<(), String> {
    let ip = match race.place.ip {
        IpAddr::V4(ip) if family.is_v6() => ip.to_ipv6_mapped().into(),
        ip => ip,
    };
    let sock = socket(family, PATIENCE).map_err(|e| format!("socket(): {e}"))?;
    if let Err(e) = sock.connect(SocketAddr::new(ip, port)) {
        return fair("connect()", &e);
    }
    race.count();
    let sends = rng.one_in(2);
    if sends {
        if let Err(e) = sock.send(b"hi", libc::MSG_NOSIGNAL) {
            fair("send()", &e)?;
        }
    }
    // Where the ACK of its opening crosses the listener's end, TCP drops it without a reset: a client
    // that sends nothing, which on SMC it does in any case, is never told.
    let told = sends || family != Family::Tcp;
    if rng.one_in(2) && told {
        if let Err(e) = sock.recv(&mut [0; 16], 0) {
            fair("recv()", &e)?;
        }
    }
    Ok(())
}

/// Serves connections: some answer, some are closed at once.
fn serve(race: &Race, rng: &mut Rng, listener: &Sock) -> Result<(), String> {
    match poll_one(listener, libc::POLLIN, 100) {
        Ok(0) => return Ok(()),
        Ok(_) => {}
        Err(e) => return Err(format!("poll(): {e}")),
    }
    let sock = match listener.accept(libc::SOCK_NONBLOCK) {
        Ok((sock, _)) => sock,
        // The client may have gone meanwhile.
        Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => return Ok(()),
        Err(e) => return fair("accept()", &e),
    };
    race.count();
    let _ = sock.send(b"hello", libc::MSG_NOSIGNAL);
    pause(rng, 10_000);
    Ok(())
}

/// Sockets that are closed, shut down or lose their process while they connect.
pub(crate) fn closed_while_connecting(race: &Race) {
    let (listener, to) = match race.listener(Family::Smc) {
        Ok(both) => both,
        Err(e) => return race.fault(format!("listen(): {e}")),
    };
    if let Err(e) = listener.set_nonblocking(true) {
        return race.fault(format!("fcntl(): {e}"));
    }
    thread::scope(|s| {
        s.spawn(|| {
            let mut rng = race.rng(0);
            race.repeat(&race.place.server_ns, || serve(race, &mut rng, &listener));
        });
        for client in 1..=CLIENTS {
            s.spawn(move || {
                let mut rng = race.rng(client);
                race.repeat(&race.place.client_ns, || {
                    match rng.range(0, 2) {
                        0 => close_soon(&mut rng, to),
                        1 => shut_down_soon(&mut rng, to),
                        _ => die_soon(&mut rng, to),
                    }
                    .map_err(|e| format!("a call that cannot fail: {e}"))
                });
            });
        }
    });
}

fn close_soon(rng: &mut Rng, to: SocketAddr) -> std::io::Result<()> {
    let sock = Sock::with_flags(Family::Smc, libc::SOCK_NONBLOCK)?;
    let epoll = Epoll::new()?;
    epoll.add(&sock, libc::EPOLLIN | libc::EPOLLOUT, 0)?;
    let _ = sock.connect(to);
    pause(rng, 50_000);
    if rng.one_in(3) {
        let _ = epoll.wait(1);
    }
    if rng.one_in(3) {
        let _ = sock.set_linger(true, 0);
    }
    Ok(())
}

/// A thread waits in connect() while this one ends the connection.
fn shut_down_soon(rng: &mut Rng, to: SocketAddr) -> std::io::Result<()> {
    let sock = socket(Family::Smc, PATIENCE)?;
    thread::scope(|s| {
        s.spawn(|| sock.connect(to));
        pause(rng, 50_000);
        let _ = sock.shutdown(libc::SHUT_RDWR);
    });
    Ok(())
}

fn die_soon(rng: &mut Rng, to: SocketAddr) -> std::io::Result<()> {
    let child = spawn(|| {
        let sock = Sock::new(Family::Smc);
        i32::from(sock.and_then(|sock| sock.connect(to)).is_err())
    })?;
    pause(rng, 50_000);
    child.kill(libc::SIGKILL)?;
    child.wait(PATIENCE).map(drop)
}

/// Sockets that are in epoll sets when they fall back, or do not, with registrations that change.
pub(crate) fn watched_by_epoll(race: &Race) {
    thread::scope(|s| {
        for pair in 0..CLIENTS / 2 {
            // Every second server is on TCP, so that its clients fall back.
            let family = if pair % 2 == 0 {
                Family::Tcp
            } else {
                Family::Smc
            };
            let (listener, to) = match race.listener(family) {
                Ok(both) => both,
                Err(e) => return race.fault(format!("listen(): {e}")),
            };
            if let Err(e) = listener.set_nonblocking(true) {
                return race.fault(format!("fcntl(): {e}"));
            }
            let client = s.spawn(move || {
                let mut rng = race.rng(2 * pair + 1);
                race.repeat(&race.place.client_ns, || watch(race, &mut rng, to));
            });
            s.spawn(move || {
                let mut rng = race.rng(2 * pair);
                race.repeat(&race.place.server_ns, || serve(race, &mut rng, &listener));
                // The client may still wait for an answer.
                while !client.is_finished() {
                    if let Err(text) = serve(race, &mut rng, &listener) {
                        race.fault(text);
                    }
                }
            });
        }
    });
}

/// Connects; the readiness of the socket must show in an epoll set that it was in all the time, and
/// in one that it comes into and leaves at any time.
fn watch(race: &Race, rng: &mut Rng, to: SocketAddr) -> Result<(), String> {
    let of = |e: std::io::Error| format!("a call that cannot fail: {e}");
    let sock = Sock::with_flags(Family::Smc, libc::SOCK_NONBLOCK).map_err(of)?;
    let (steady, fleeting) = (Epoll::new().map_err(of)?, Epoll::new().map_err(of)?);
    let both = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
    steady.add(&sock, both, 1).map_err(of)?;
    match sock.connect(to) {
        Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(e) => return fair("connect()", &e),
        Ok(()) => {}
    }
    let end = std::time::Instant::now() + PATIENCE;
    let mut seen = 0;
    while seen & libc::EPOLLIN == 0 {
        let _ = fleeting.add(&sock, both, 2);
        let _ = fleeting.wait(0);
        pause(rng, 5_000);
        let _ = fleeting.remove(&sock);
        match steady.wait(20) {
            Ok(events) => events.iter().for_each(|(_, bits)| seen |= bits),
            Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
            Err(e) => return Err(of(e)),
        }
        if std::time::Instant::now() > end {
            let now = poll_one(&sock, libc::POLLIN | libc::POLLOUT, 0);
            let mut state = [0u8; 8];
            let known = sock.get_bytes(libc::IPPROTO_TCP, libc::TCP_INFO, &mut state, 8);
            return Err(format!(
                "epoll told of {seen:#x} only within {PATIENCE:?}; poll() says {now:x?} and TCP is \
                 in state {} ({known:?})",
                state[0]
            ));
        }
    }
    match sock.recv(&mut [0; 16], 0) {
        Ok(_) => race.count(),
        Err(e) => fair("recv()", &e)?,
    }
    Ok(())
}

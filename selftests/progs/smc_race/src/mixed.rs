// SPDX-License-Identifier: GPL-2.0

//! Any call on any socket, by several threads at once.

use crate::race::{limit_calls, pause, run, Race};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use testlib::event::poll_one;
use testlib::opts::{SIOCATMARK, SIOCINQ, SIOCOUTQ, SIOCOUTQNSD};
use testlib::pattern::Rng;
use testlib::process::in_netns;
use testlib::sock::{Family, Sock};

const THREADS: u64 = 5;
const PAIRS: usize = 6;
/// Calls that wait do so for this long.
const SHORT: Duration = Duration::from_millis(100);

/// Sockets that all threads use; each place is filled again after its socket was closed.
type Table = Mutex<Vec<Option<Arc<Sock>>>>;

fn lock(table: &Table) -> std::sync::MutexGuard<'_, Vec<Option<Arc<Sock>>>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calls alone.
pub(crate) fn calls(race: &Race) {
    mix(race, None);
}

/// The calls, with the client's RDMA device going and coming.
pub(crate) fn calls_without_device(race: &Race) {
    mix(race, Some("rxe1"));
}

fn mix(race: &Race, device: Option<&str>) {
    let (listener, to) = match race.listener(Family::Smc) {
        Ok(both) => both,
        Err(e) => return race.fault(format!("listen(): {e}")),
    };
    if let Err(e) = limit_calls(&listener, SHORT * 20) {
        return race.fault(format!("setsockopt(): {e}"));
    }
    let table: Table = Mutex::new(vec![None; 2 * PAIRS]);
    let (table, listener) = (&table, &listener);
    thread::scope(|s| {
        for n in 0..THREADS {
            s.spawn(move || {
                let mut rng = race.rng(n);
                race.repeat(&race.place.client_ns, || {
                    step(race, &mut rng, table, listener, to);
                    Ok(())
                });
            });
        }
        s.spawn(move || {
            race.repeat(&race.place.client_ns, || {
                // Listings may fail while a device goes; that they end is what counts.
                for line in ["smcss -a -d", "smcr linkgroup", "cat /proc/net/smc_rs"] {
                    let _ = run(line);
                }
                thread::sleep(SHORT);
                Ok(())
            });
        });
        if let Some(device) = device {
            s.spawn(move || {
                let mut rng = race.rng(THREADS);
                race.repeat(&race.place.client_ns, || {
                    pause(&mut rng, 1_000_000);
                    run(&format!("rdma link delete {device}"))?;
                    pause(&mut rng, 300_000);
                    run(&format!("rdma link add {device} type rxe netdev veth0"))?;
                    run(&format!(
                        "nsenter -t 1 -n rdma dev set {device} netns {}",
                        race.place.client_ns
                    ))
                });
            });
        }
    });
}

/// One call on one socket.
fn step(race: &Race, rng: &mut Rng, table: &Table, listener: &Sock, to: SocketAddr) {
    let place = rng.range(0, 2 * PAIRS as u64 - 1) as usize;
    let sock = lock(table)[place].clone();
    let Some(sock) = sock else {
        connect(race, rng, table, listener, to);
        return;
    };
    race.count();
    match rng.range(0, 19) {
        0..=5 => {
            let data = vec![7; rng.log_range(1, 200_000) as usize];
            let flags = match rng.range(0, 9) {
                0 => libc::MSG_OOB,
                1 => libc::MSG_MORE,
                2 | 3 => libc::MSG_DONTWAIT,
                _ => 0,
            };
            let _ = sock.send(&data, flags | libc::MSG_NOSIGNAL);
        }
        6..=11 => {
            let mut data = vec![0; rng.log_range(1, 200_000) as usize];
            let flags = [
                0,
                0,
                libc::MSG_DONTWAIT,
                libc::MSG_PEEK,
                libc::MSG_WAITALL,
                libc::MSG_OOB,
            ];
            let _ = sock.recv(&mut data, flags[rng.range(0, 5) as usize]);
        }
        12 => {
            let _ = poll_one(&sock, libc::POLLIN | libc::POLLOUT, rng.range(0, 50) as i32);
        }
        13 => {
            let requests = [SIOCINQ, SIOCOUTQ, SIOCOUTQNSD, SIOCATMARK];
            let _ = sock.ioctl_int(requests[rng.range(0, 3) as usize]);
        }
        14 => {
            let mut info = [0; 256];
            let _ = sock.get_bytes(libc::IPPROTO_TCP, libc::TCP_INFO, &mut info, 256);
            let _ = sock.take_error();
        }
        15 => {
            let on = i32::from(rng.one_in(2));
            let name = [libc::TCP_NODELAY, libc::TCP_CORK][rng.range(0, 1) as usize];
            let _ = sock.set_int(libc::IPPROTO_TCP, name, on);
        }
        16 => {
            let how = [libc::SHUT_RD, libc::SHUT_WR, libc::SHUT_RDWR];
            let _ = sock.shutdown(how[rng.range(0, 2) as usize]);
        }
        17 => {
            let _ = sock.set_linger(rng.one_in(2), rng.range(0, 1) as i32);
        }
        _ => {
            lock(table)[place] = None;
        }
    }
}

/// A new pair in the first free places.
fn connect(race: &Race, rng: &mut Rng, table: &Table, listener: &Sock, to: SocketAddr) {
    let made = Sock::new(Family::Smc).and_then(|client| {
        limit_calls(&client, SHORT * 20)?;
        client.connect(to)?;
        Ok(client)
    });
    let mut new = Vec::new();
    if let Ok(client) = made {
        new.push(client);
    }
    // It may be the other end of a connection that another thread made.
    let accepted = in_netns(Some(&race.place.server_ns), || listener.accept(0));
    if let Ok((server, _)) = accepted {
        new.push(server);
    }
    for sock in new {
        let _ = limit_calls(&sock, SHORT);
        if rng.one_in(4) {
            let _ = sock.set_nonblocking(true);
        }
        let mut table = lock(table);
        if let Some(place) = table.iter_mut().find(|place| place.is_none()) {
            *place = Some(Arc::new(sock));
        }
    }
}

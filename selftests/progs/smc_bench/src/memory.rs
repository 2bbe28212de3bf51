// SPDX-License-Identifier: GPL-2.0

//! Kernel memory of idle connections.

use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use socket2::Socket;

use testlib::counters::Counters;

use crate::measure::broken;
use crate::net::{Family, Request};
use crate::probe::{has_own_counters, Probe};

/// Work that follows an opened or closed connection is done after this time.
const SETTLE: Duration = Duration::from_secs(1);
/// Memory counts as given back when less than this is left for each connection.
const GIVEN_BACK: i64 = 4096;
const POLL: Duration = Duration::from_millis(500);

/// Memory in use at one time, in bytes.
#[derive(Clone, Copy)]
struct Use {
    /// What the module counts for this namespace.
    module: i64,
    /// What the whole machine has in use beyond caches that it can drop.
    machine: i64,
}

impl Use {
    fn now() -> Self {
        let module = Counters::read().unwrap_or_default().value("memory_bytes");
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Use {
            module: module as i64,
            machine: in_use(&meminfo),
        }
    }

    fn since(self, before: Use) -> Use {
        Use {
            module: self.module - before.module,
            machine: self.machine - before.machine,
        }
    }
}

/// Bytes that are neither free nor cache, from the text of `/proc/meminfo`.
fn in_use(meminfo: &str) -> i64 {
    let kilobytes = |key: &str| {
        meminfo
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
            .and_then(|value| value.split_whitespace().next()?.parse::<i64>().ok())
            .unwrap_or(0)
    };
    let free: i64 = ["MemFree", "Buffers", "Cached", "SReclaimable"]
        .map(kilobytes)
        .iter()
        .sum();
    (kilobytes("MemTotal") - free) * 1024
}

/// Opens idle connections, reads the memory, closes them and waits for the memory.
pub(crate) fn idle(
    family: Family,
    server: SocketAddr,
    connections: u32,
    wait: Duration,
    ends: u32,
) -> Result<(), String> {
    let probe = Probe::take(family)?;
    let before = Use::now();
    let sockets: Vec<Socket> = (0..connections)
        .map(|_| keep(family, server))
        .collect::<Result<_, _>>()?;
    thread::sleep(SETTLE);
    let open = Use::now().since(before);
    release(family, server)?;
    drop(sockets);
    let closed_at = Instant::now();
    let mut given_back = None;
    while closed_at.elapsed() < wait {
        thread::sleep(POLL.min(wait));
        let left = Use::now().since(before);
        if left.module > GIVEN_BACK * i64::from(connections) {
            given_back = None;
        } else if given_back.is_none() {
            given_back = Some(closed_at.elapsed().as_secs_f64());
        }
    }
    let left = Use::now().since(before);
    probe.finish(u64::from(connections) + 1, 1)?;
    let each = |bytes: i64| bytes as f64 / f64::from(connections.max(1));
    // Another module counts no memory.
    let counted = has_own_counters();
    let by_module = |bytes: i64| counted.then(|| each(bytes));
    let line = json!({
        "test": "idle",
        "family": family.name(),
        "connections": connections,
        "ends": ends,
        "module_bytes_per_connection": by_module(open.module),
        "machine_bytes_per_end": each(open.machine) / f64::from(ends.max(1)),
        "module_bytes_left_per_connection": by_module(left.module),
        "machine_bytes_left_per_end": each(left.machine) / f64::from(ends.max(1)),
        "wait_seconds": wait.as_secs_f64(),
        "given_back_after_seconds": given_back.filter(|_| counted),
    });
    println!("{line}");
    Ok(())
}

/// Opens one connection that the server keeps.
fn keep(family: Family, server: SocketAddr) -> Result<Socket, String> {
    let mut socket = family.connect(server)?;
    Request::Keep.send(&socket).map_err(broken)?;
    socket.read_exact(&mut [0]).map_err(broken)?;
    Ok(socket)
}

/// Makes the server close its ends.
fn release(family: Family, server: SocketAddr) -> Result<(), String> {
    let mut socket = family.connect(server)?;
    Request::Release.send(&socket).map_err(broken)?;
    socket.read_exact(&mut [0]).map_err(broken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::tests::start;

    #[test]
    fn caches_are_not_in_use() {
        let text = "MemTotal:    1000 kB\nMemFree:  100 kB\nMemAvailable: 900 kB\nBuffers: 10 kB\n\
                    Cached:  20 kB\nSwapCached: 500 kB\nSReclaimable:  30 kB\n";
        assert_eq!(in_use(text), 840 * 1024);
        assert_eq!(in_use(""), 0);
    }

    #[test]
    fn idle_connections_are_opened_and_closed() {
        let wait = Duration::from_millis(10);
        assert_eq!(idle(Family::Tcp, start(), 3, wait, 2), Ok(()));
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Connections with their rates.

use std::collections::HashMap;
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use smc_netlink::diag::{self, Connection, Cursor, Details, Mode, Socket, State};
use smc_tools::number::abbreviated;
use smc_tools::output::{self, Outcome};

/// A connection and how fast it is.
#[derive(Debug, PartialEq, Serialize)]
struct Row {
    local: String,
    peer: String,
    mode: Mode,
    device: String,
    /// Bytes a second.
    sent: u64,
    /// Bytes a second.
    received: u64,
    /// Bytes that wait to be read.
    unread: u32,
    /// Bytes that wait to be sent.
    unsent: u32,
}

/// A look at all connections.
struct Look {
    at: Instant,
    connections: HashMap<u64, Connection>,
}

pub(crate) fn run(interval: f64, count: Option<u32>, json: bool) -> Outcome {
    let pause = Duration::try_from_secs_f64(interval)
        .ok()
        .filter(|pause| *pause >= Duration::from_millis(50))
        .ok_or("the interval must be at least 0.05 seconds.")?;
    let clear = io::stdout().is_terminal() && !json;
    let mut last = look()?.0;
    let mut left = count;
    while left != Some(0) {
        sleep(pause);
        let (now, sockets) = look()?;
        let rows = rows(&last, &now, &sockets);
        if json {
            output::print_json(&rows)?;
        } else {
            let screen = if clear { "\x1b[H\x1b[2J" } else { "" };
            output::print(&format!("{screen}{}", text(&rows)))?;
        }
        last = now;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

fn look() -> Result<(Look, Vec<Socket>), String> {
    let details = Details {
        cursors: true,
        link: true,
        shared_memory: false,
    };
    let sockets = diag::sockets(details).map_err(|error| error.to_string())?;
    let connections = sockets
        .iter()
        .filter_map(|socket| Some((socket.cookie, socket.connection.clone()?)))
        .collect();
    let at = Instant::now();
    Ok((Look { at, connections }, sockets))
}

fn rows(last: &Look, now: &Look, sockets: &[Socket]) -> Vec<Row> {
    let elapsed = now.at.duration_since(last.at).as_secs_f64().max(0.001);
    // CAST: A rate is shown with four digits.
    let rate = |bytes: u64| (bytes as f64 / elapsed) as u64;
    let connected =
        |socket: &&Socket| !matches!(socket.state, State::INIT | State::LISTEN | State::CLOSED);
    let mut rows: Vec<Row> = sockets
        .iter()
        .filter(connected)
        .map(|socket| {
            let new = socket.connection.as_ref();
            let old = last.connections.get(&socket.cookie);
            let (sent, received) = match (old, new) {
                (Some(old), Some(new)) => (
                    between(old.tx_sent, new.tx_sent, new.sndbuf_size),
                    between(old.rx_prod, new.rx_prod, new.rmbe_size),
                ),
                _ => (0, 0),
            };
            let waiting = |from: Cursor, to: Cursor, size: u32| {
                u32::try_from(between(from, to, size)).unwrap_or(u32::MAX)
            };
            Row {
                local: socket.local.to_string(),
                peer: socket.peer.to_string(),
                mode: socket.mode,
                device: socket
                    .link
                    .as_ref()
                    .map_or_else(String::new, |link| link.device.clone()),
                sent: rate(sent),
                received: rate(received),
                unread: new.map_or(0, |c| waiting(c.tx_cons, c.rx_prod, c.rmbe_size)),
                unsent: new.map_or(0, |c| waiting(c.tx_sent, c.tx_prep, c.sndbuf_size)),
            }
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.sent + row.received));
    rows
}

/// Bytes from one place in a ring to a later one. Wraps are counted modulo 2^16.
fn between(from: Cursor, to: Cursor, size: u32) -> u64 {
    let wraps = u64::from(to.wrap.wrapping_sub(from.wrap));
    (wraps * u64::from(size) + u64::from(to.count)).saturating_sub(u64::from(from.count))
}

fn text(rows: &[Row]) -> String {
    let mut out = format!(
        "{:<24} {:<24} {:<4} {:<10} {:>8} {:>8} {:>7} {:>7}\n",
        "Local", "Peer", "Mode", "Device", "Sent/s", "Recv/s", "Unread", "Unsent"
    );
    for row in rows {
        let mode = match row.mode {
            Mode::Rdma => "SMCR",
            Mode::SharedMemory => "SMCD",
            Mode::Tcp => "TCP",
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{:<24} {:<24} {mode:<4} {:<10} {:>8} {:>8} {:>7} {:>7}",
            row.local,
            row.peer,
            row.device,
            abbreviated(row.sent),
            abbreviated(row.received),
            abbreviated(row.unread.into()),
            abbreviated(row.unsent.into()),
        );
    }
    let (sent, received) = rows
        .iter()
        .fold((0, 0), |sum, row| (sum.0 + row.sent, sum.1 + row.received));
    let _ = writeln!(
        out,
        "{} connections, {} bytes/s sent, {} bytes/s received",
        rows.len(),
        abbreviated(sent).trim_start(),
        abbreviated(received).trim_start()
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_go_round() {
        let at = |wrap, count| Cursor { wrap, count };
        assert_eq!(between(at(0, 10), at(0, 30), 100), 20);
        assert_eq!(between(at(0, 90), at(1, 10), 100), 20);
        assert_eq!(between(at(65535, 90), at(0, 10), 100), 20);
        assert_eq!(between(at(2, 0), at(5, 50), 100), 350);
        // A look in the middle of a change.
        assert_eq!(between(at(0, 30), at(0, 10), 100), 0);
    }

    #[test]
    fn the_busiest_come_first_and_are_added_up() {
        let row = |sent, mode| Row {
            local: "192.0.2.7:9000".to_owned(),
            peer: "192.0.2.9:51404".to_owned(),
            mode,
            device: "rxe0".to_owned(),
            sent,
            received: 0,
            unread: 0,
            unsent: 0,
        };
        let text = text(&[row(204_800, Mode::Rdma), row(0, Mode::Tcp)]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].contains("SMCR rxe0         204.8K"), "{text}");
        assert_eq!(
            lines[3],
            "2 connections, 204.8K bytes/s sent, 0 bytes/s received"
        );
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Rates in words and columns.

use std::fmt::Write;

use smc_netlink::diag::Mode;
use smc_netlink::{FallbackSide, Fallbacks};
use smc_tools::number::abbreviated;

use super::rates::{ConnectionRate, LinkRate, Rates};

/// Columns of the table of connections.
pub(super) const CONNECTION: [&str; 8] = [
    "Local", "Peer", "Mode", "Device", "Sent/s", "Recv/s", "Unread", "Unsent",
];

/// Columns of the table of links.
pub(super) const LINK: [&str; 7] = [
    "Group", "Link", "Device", "Peer", "Conns", "Sent/s", "Recv/s",
];

/// The cells of a connection. The kernel's SMC does not count the bytes of one on TCP.
pub(super) fn connection(row: &ConnectionRate) -> [String; 8] {
    let (mode, known) = match row.mode {
        Mode::Rdma => ("SMCR", true),
        Mode::SharedMemory => ("SMCD", true),
        Mode::Tcp => ("TCP", false),
    };
    let number = |number: u64| {
        if known {
            abbreviated(number)
        } else {
            "-".to_owned()
        }
    };
    [
        row.local.clone(),
        row.peer.clone(),
        mode.to_owned(),
        row.device.clone(),
        number(row.sent),
        number(row.received),
        number(row.unread.into()),
        number(row.unsent.into()),
    ]
}

/// The cells of a link.
pub(super) fn link(row: &LinkRate) -> [String; 7] {
    let group = match row.groups.as_slice() {
        [] => "-".to_owned(),
        [one] => format!("{one:08x}"),
        [first, others @ ..] => format!("{first:08x}+{}", others.len()),
    };
    [
        group,
        row.link.to_string(),
        format!("{}/{}", row.device, row.port),
        row.peer.clone(),
        row.connections.to_string(),
        abbreviated(row.sent),
        abbreviated(row.received),
    ]
}

/// A number with its unit and no blanks around it.
pub(super) fn short(number: u64) -> String {
    abbreviated(number).trim_start().to_owned()
}

/// How many connections there are of each kind.
pub(super) fn connections(rates: &Rates) -> String {
    let smcd = match rates.smcd {
        0 => String::new(),
        some => format!(", {some} over SMC-D"),
    };
    format!("{} over SMC-R{smcd}, {} on TCP", rates.smcr, rates.tcp)
}

/// How many connections stayed on TCP, and why: the most frequent reasons first.
pub(super) fn fallbacks(fallbacks: &Fallbacks) -> String {
    let mut reasons: Vec<_> = fallbacks.reasons.iter().collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
    let words = reasons.iter().map(|reason| {
        let side = match reason.side {
            FallbackSide::Server => "server",
            FallbackSide::Client => "client",
        };
        format!("{} {side} {}", reason.count, reason.reason.name())
    });
    let words: Vec<String> = words.collect();
    let sum = fallbacks.client + fallbacks.server;
    match words.as_slice() {
        [] => sum.to_string(),
        some => format!("{sum} ({})", some.join(", ")),
    }
}

/// All rates as text.
pub(super) fn text(rates: &Rates) -> String {
    let mut out = String::new();
    connection_line(&mut out, &CONNECTION.map(str::to_owned));
    for row in &rates.connections {
        connection_line(&mut out, &connection(row));
    }
    if !rates.links.is_empty() {
        out.push('\n');
        link_line(&mut out, &LINK.map(str::to_owned));
        for row in &rates.links {
            link_line(&mut out, &link(row));
        }
        out.push('\n');
    }
    // Writing to a string does not fail, here and below.
    let _ = writeln!(
        out,
        "{} connections, {} bytes/s sent, {} bytes/s received",
        rates.connections.len(),
        short(rates.sent),
        short(rates.received)
    );
    if let Some(new) = &rates.fallbacks {
        let _ = writeln!(
            out,
            "{}; fallbacks in {:.1} s: {}",
            connections(rates),
            rates.seconds,
            fallbacks(new)
        );
    }
    out
}

fn connection_line(out: &mut String, cells: &[String; 8]) {
    let [local, peer, mode, device, sent, received, unread, unsent] = cells;
    let _ = writeln!(
        out,
        "{local:<24} {peer:<24} {mode:<4} {device:<10} {sent:>8} {received:>8} {unread:>7} {unsent:>7}"
    );
}

fn link_line(out: &mut String, cells: &[String; 7]) {
    let [group, link, device, peer, connections, sent, received] = cells;
    let _ = writeln!(
        out,
        "{group:<11} {link:>4} {device:<14} {peer:<31} {connections:>5} {sent:>8} {received:>8}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::rates::example;

    #[test]
    fn the_text_has_connections_links_and_sums() {
        let text = text(&example());
        let expected = "\
Local                    Peer                     Mode Device       Sent/s   Recv/s  Unread  Unsent
10.9.0.2:51404           10.9.0.1:7400            SMCR rxe1         204.8K        0       0  65.54K
10.9.0.2:51406           10.9.0.1:7401            SMCR rxe1              0   1.500K     300       0
10.9.0.2:51500           10.9.0.1:7002            TCP                    -        -       -       -

Group       Link Device         Peer                            Conns   Sent/s   Recv/s
00000300+1     1 rxe1/1         nodea                               2   204.8K   1.500K
-              1 rxe2/1         10.9.1.1                            0        0        0

3 connections, 204.8K bytes/s sent, 1.500K bytes/s received
2 over SMC-R, 1 on TCP; fallbacks in 1.0 s: 4 (3 client PEERNOSMC, 1 server IPSEC)
";
        let trimmed: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(trimmed, expected.lines().collect::<Vec<_>>(), "{text}");
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_left_out() {
        let rates = Rates {
            smcd: 2,
            ..Rates::default()
        };
        let text = text(&rates);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!(
            lines[1],
            "0 connections, 0 bytes/s sent, 0 bytes/s received"
        );
        assert_eq!(connections(&rates), "0 over SMC-R, 2 over SMC-D, 0 on TCP");
    }
}

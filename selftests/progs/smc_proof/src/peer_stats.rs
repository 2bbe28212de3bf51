// SPDX-License-Identifier: GPL-2.0

//! The statistics of the SMC that comes with the kernel, which has no file in `/proc`.
//!
//! They are asked for over generic netlink and written in the words of `/proc/net/smc_rs`, so that
//! a test need not know whom it asks.

use std::fmt::Write;

use smc_netlink::{FallbackSide, Fallbacks, Group, Smc, Stats};

/// Asks for the statistics of the calling process's network namespace.
///
/// # Errors
///
/// A sentence for the user, when the kernel has no SMC or does not answer.
pub fn read() -> Result<String, String> {
    let ask = || {
        let mut smc = Smc::open()?;
        Ok((smc.stats()?, smc.fallbacks()?, smc.groups_only()?))
    };
    let answers: smc_netlink::Result<_> = ask();
    let (stats, fallbacks, groups) = answers.map_err(|error| error.to_string())?;
    Ok(text(&stats, &fallbacks, &groups))
}

fn text(stats: &Stats, fallbacks: &Fallbacks, groups: &[Group]) -> String {
    let mut text = String::from("smc 1\n");
    for (name, transport) in [("smcd", &stats.smcd), ("smcr", &stats.smcr)] {
        // Writing to a string does not fail, here and below.
        let _ = writeln!(text, "connections_{name} {}", transport.connections());
        let (received, sent) = (transport.rx.bytes, transport.tx.bytes);
        let _ = writeln!(text, "rx_bytes_{name} {received}\ntx_bytes_{name} {sent}");
    }
    let errors = stats.client_handshake_errors + stats.server_handshake_errors;
    let _ = writeln!(text, "handshake_errors {errors}");
    let total = fallbacks.server + fallbacks.client;
    let _ = writeln!(text, "fallback_total {total}");
    for entry in &fallbacks.reasons {
        let side = match entry.side {
            FallbackSide::Server => "server",
            FallbackSide::Client => "client",
        };
        let (reason, count) = (entry.reason.0, entry.count);
        let _ = writeln!(text, "fallback {reason:#010x} {side} {count}");
    }
    for group in groups {
        let v2 = group.v2.clone().unwrap_or_default();
        let _ = writeln!(
            text,
            "lgr {:08x} role={} conns={} version={}.{} max_conns={} max_links={}",
            group.id,
            group.role_name(),
            group.connections,
            v2.version,
            v2.peer_release,
            v2.max_connections.unwrap_or(0),
            v2.max_links.unwrap_or(0)
        );
    }
    let _ = writeln!(text, "link_groups {}", groups.len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use smc_netlink::{Fallback, GroupV2, Reason, Transport};

    #[test]
    fn everything_is_in_the_words_of_the_module() {
        let mut smcr = Transport {
            client_v1: 1,
            client_v2: 2,
            server_v1: 4,
            server_v2: 8,
            ..Transport::default()
        };
        smcr.tx.bytes = 500;
        let stats = Stats {
            smcr,
            client_handshake_errors: 1,
            server_handshake_errors: 2,
            ..Stats::default()
        };
        let reason = |side, code, count| Fallback {
            side,
            reason: Reason(code),
            count,
        };
        let fallbacks = Fallbacks {
            server: 3,
            client: 2,
            reasons: vec![
                reason(FallbackSide::Server, 0x0500_0000, 3),
                reason(FallbackSide::Client, 0x0301_0000, 2),
            ],
        };
        let group = Group {
            id: 0x0102_0304,
            connections: 5,
            v2: Some(GroupV2 {
                version: 2,
                peer_release: 1,
                max_connections: Some(16),
                max_links: Some(1),
                ..GroupV2::default()
            }),
            ..Group::default()
        };
        assert_eq!(
            text(&stats, &fallbacks, &[group]),
            "smc 1\nconnections_smcd 0\nrx_bytes_smcd 0\ntx_bytes_smcd 0\n\
             connections_smcr 15\nrx_bytes_smcr 0\ntx_bytes_smcr 500\nhandshake_errors 3\n\
             fallback_total 5\nfallback 0x05000000 server 3\nfallback 0x03010000 client 2\n\
             lgr 01020304 role=CLNT conns=5 version=2.1 max_conns=16 max_links=1\nlink_groups 1\n"
        );
    }
}

// SPDX-License-Identifier: GPL-2.0

//! `stats`: counters.

use std::fmt::Write;

use smc_netlink::{Direction, Fallback, FallbackSide, Fallbacks, Sizes, Smc, Stats, Transport};

use crate::baseline;
use crate::number::abbreviated;
use crate::object::{misused, stem, Options, Program};
use crate::output::{self, Outcome};

/// Reasons of a side that are shown, the most frequent ones.
const TOP_REASONS: usize = 3;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Show,
    Reset,
    Json,
}

/// Runs `stats`.
///
/// # Errors
///
/// A sentence for the user.
pub fn run(program: Program, options: Options, words: &[&str], mut smc: Smc) -> Outcome {
    let action = match words {
        [] => Action::Show,
        [word] if stem(word, "show") => Action::Show,
        [word] if stem(word, "reset") => Action::Reset,
        [word] if stem(word, "json") => Action::Json,
        _ => return Err(misused(program, "stats")),
    };
    let now = baseline::Counters {
        stats: smc.stats().map_err(|error| error.to_string())?,
        fallbacks: smc.fallbacks().map_err(|error| error.to_string())?,
    };
    if action == Action::Reset {
        return baseline::save(&now);
    }
    let counters = if options.absolute {
        now
    } else {
        baseline::subtract(now)
    };
    let transport = match program {
        Program::Smcr => &counters.stats.smcr,
        Program::Smcd => &counters.stats.smcd,
    };
    if action == Action::Json || options.json {
        return output::print(&json(program, &counters, transport, options.detail > 0));
    }
    output::print(&text(program, &counters, transport, options.detail > 0))
}

/// The counters in one line, with the names that scripts know; in detail with errors and fallbacks,
/// which are of the host and not of one transport.
pub fn json(
    program: Program,
    counters: &baseline::Counters,
    transport: &Transport,
    detailed: bool,
) -> String {
    const CLASSES: [&str; 9] = [
        "8K", "16K", "32K", "64K", "128K", "256K", "512K", "1024K", "G_1024K",
    ];
    let mut pairs: Vec<(String, u64)> = Vec::new();
    let (tx, rx) = (&transport.tx, &transport.rx);
    for (kind, sizes) in [
        ("INT_TX", &tx.buffer_sizes),
        ("INT_RX", &rx.buffer_sizes),
        ("USR_TX", &tx.call_sizes),
        ("USR_RX", &rx.call_sizes),
    ] {
        for (class, count) in CLASSES.iter().zip(sizes) {
            pairs.push((format!("SMC_{kind}_BUF_{class}"), *count));
        }
    }
    for (kind, direction) in [("TX", tx), ("RX", rx)] {
        let buffers = &direction.buffers;
        for (name, count) in [
            ("SIZE_SM_PEER", buffers.small_peer),
            ("SIZE_SM", buffers.small),
            ("FULL_PEER", buffers.full_peer),
            ("FULL", buffers.full),
            ("REUSE", buffers.reused),
            ("ALLOC", buffers.allocated),
            ("DGRADE", buffers.downgraded),
        ] {
            pairs.push((format!("SMC_INT_{kind}_BUF_{name}_CNT"), count));
        }
    }
    for (name, count) in [
        ("CLNT_V1_SUCC_CNT", transport.client_v1),
        ("CLNT_V2_SUCC_CNT", transport.client_v2),
        ("SRV_V1_SUCC_CNT", transport.server_v1),
        ("SRV_V2_SUCC_CNT", transport.server_v2),
        ("SENDPAGE_CNT", transport.sendpage),
        ("URG_DATA_CNT", transport.urgent),
        ("SPLICE_CNT", transport.splice),
        ("CORK_CNT", transport.cork),
        ("NDLY_CNT", transport.nodelay),
        ("RX_BYTES", rx.bytes),
        ("TX_BYTES", tx.bytes),
        ("RX_CNT", rx.calls),
        ("TX_CNT", tx.calls),
        ("RX_RMB_USAGE", rx.buffer_usage),
        ("TX_RMB_USAGE", tx.buffer_usage),
    ] {
        pairs.push((format!("SMC_{name}"), count));
    }
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, count)| format!("\"{name}\":{count}"))
        .collect();
    let object = match program {
        Program::Smcr => "SMCR",
        Program::Smcd => "SMCD",
    };
    let mut more = String::new();
    if detailed {
        let stats = &counters.stats;
        let errors = serde_json::json!({
            "client": stats.client_handshake_errors, "server": stats.server_handshake_errors,
        });
        let fallbacks = serde_json::json!(counters.fallbacks);
        more = format!(", \"handshake_errors\": {errors}, \"fallbacks\": {fallbacks}");
    }
    format!("{{\"{object}\": {{{}}}{more}}}\n", pairs.join(","))
}

/// The counters as text.
pub fn text(
    program: Program,
    counters: &baseline::Counters,
    transport: &Transport,
    detailed: bool,
) -> String {
    let mut out = Text::default();
    out.line(match program {
        Program::Smcr => "SMC-R Connections Summary",
        Program::Smcd => "SMC-D Connections Summary",
    });
    summary(
        &mut out,
        &counters.stats,
        &counters.fallbacks,
        transport,
        detailed,
    );
    out.line("\nRX Stats");
    let rx = &transport.rx;
    traffic(&mut out, rx);
    out.share("  Buffer full", rx.buffers.full, rx.calls);
    if detailed {
        out.count("  Buffer downgrades", rx.buffers.downgraded);
        out.count("  Buffer reuses", rx.buffers.reused);
    }
    sizes(&mut out, rx);
    out.line("\nTX Stats");
    let tx = &transport.tx;
    traffic(&mut out, tx);
    out.share("  Buffer full", tx.buffers.full, tx.calls);
    out.share("  Buffer full (remote)", tx.buffers.full_peer, tx.calls);
    out.share("  Buffer too small", tx.buffers.small, tx.calls);
    out.share(
        "  Buffer too small (remote)",
        tx.buffers.small_peer,
        tx.calls,
    );
    if detailed {
        out.count("  Buffer downgrades", tx.buffers.downgraded);
        out.count("  Buffer reuses", tx.buffers.reused);
    }
    sizes(&mut out, tx);
    extras(&mut out, transport, detailed);
    out.0
}

fn summary(
    out: &mut Text,
    stats: &Stats,
    fallbacks: &Fallbacks,
    transport: &Transport,
    detailed: bool,
) {
    let connections = transport.connections();
    let (client_errors, server_errors) =
        (stats.client_handshake_errors, stats.server_handshake_errors);
    let errors = client_errors + server_errors;
    let fallback = fallbacks.client + fallbacks.server;
    out.count(
        "  Total connections handled",
        connections + errors + fallback,
    );
    let sides = |client: u64, server: u64| {
        if detailed {
            format!(" (client {client}, server {server})")
        } else {
            String::new()
        }
    };
    let clients = transport.client_v1 + transport.client_v2;
    let servers = transport.server_v1 + transport.server_v2;
    out.counted("  SMC connections", connections, &sides(clients, servers));
    if detailed {
        out.count("    v1", transport.client_v1 + transport.server_v1);
        out.count("    v2", transport.client_v2 + transport.server_v2);
    }
    out.counted(
        "  Handshake errors",
        errors,
        &sides(client_errors, server_errors),
    );
    let calls = transport.rx.calls + transport.tx.calls;
    out.average("  Avg requests per SMC conn", calls, connections);
    let by_side = sides(fallbacks.client, fallbacks.server);
    out.counted("  TCP fallback", fallback, &by_side);
    if detailed {
        reasons(out, fallbacks, FallbackSide::Server, "    Server");
        reasons(out, fallbacks, FallbackSide::Client, "    Client");
    }
}

fn reasons(out: &mut Text, fallbacks: &Fallbacks, side: FallbackSide, caption: &str) {
    let mut entries: Vec<&Fallback> = fallbacks
        .reasons
        .iter()
        .filter(|entry| entry.side == side && entry.count > 0)
        .collect();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.count));
    if !entries.is_empty() {
        out.line(caption);
    }
    for entry in entries.iter().take(TOP_REASONS) {
        // Scripts know a few names in another spelling.
        let name = match entry.reason.name() {
            "PEERNOSMC" => "PEER_NO_SMC",
            "MEM" => "MEMORY",
            "CNFERR" => "CNF_ERR",
            name => name,
        };
        out.line(&format!("     {name:<12}            {:>12}", entry.count));
    }
}

fn traffic(out: &mut Text, direction: &Direction) {
    let short = abbreviated(direction.bytes);
    let bytes = direction.bytes;
    out.line(&format!("  Data transmitted (Bytes) {bytes:>14} ({short})"));
    out.count("  Total requests", direction.calls);
    let short = abbreviated(direction.buffer_usage);
    let usage = format!(" ({short})");
    out.counted("  Buffer usage (Bytes)", direction.buffer_usage, &usage);
}

fn sizes(out: &mut Text, direction: &Direction) {
    out.line("            8KB    16KB    32KB    64KB   128KB   256KB   512KB  >512KB");
    for (name, sizes) in [
        ("Bufs", &direction.buffer_sizes),
        ("Reqs", &direction.call_sizes),
    ] {
        let columns: Vec<String> = columns(sizes)
            .iter()
            .map(|count| format!("{:>6}", abbreviated(*count)))
            .collect();
        out.line(&format!("  {name}   {}", columns.join("  ")));
    }
}

/// The two largest classes share a column.
fn columns(sizes: &Sizes) -> [u64; 8] {
    let [a, b, c, d, e, f, g, h, larger] = *sizes;
    [a, b, c, d, e, f, g, h + larger]
}

fn extras(out: &mut Text, transport: &Transport, detailed: bool) {
    let calls = [
        ("    cork", transport.cork),
        ("    nodelay", transport.nodelay),
        ("    sendpage", transport.sendpage),
        ("    splice", transport.splice),
        ("    urgent data", transport.urgent),
    ];
    out.line("\nExtras");
    out.count(
        "  Special socket calls",
        calls.iter().map(|call| call.1).sum(),
    );
    if detailed {
        for (name, count) in calls {
            out.count(name, count);
        }
    }
}

/// Lines of a name and a number.
#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn count(&mut self, name: &str, count: u64) {
        self.counted(name, count, "");
    }

    fn counted(&mut self, name: &str, count: u64, more: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{name:<27}  {count:>12}{more}");
    }

    /// A number and its share of the calls.
    fn share(&mut self, name: &str, count: u64, calls: u64) {
        let percent = match calls {
            0 => 0.0,
            // CAST: Two digits after the point are shown.
            calls => count as f64 / calls as f64 * 100.0,
        };
        self.counted(name, count, &format!(" ({percent:.2}%)"));
    }

    fn average(&mut self, name: &str, calls: u64, connections: u64) {
        let average = match connections {
            0 => 0.0,
            // CAST: One digit after the point is shown.
            connections => calls as f64 / connections as f64,
        };
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{name:<27}  {average:>14.1}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smc_netlink::Reason;

    fn counters() -> baseline::Counters {
        let mut counters = baseline::Counters::default();
        let smcr = &mut counters.stats.smcr;
        smcr.client_v2 = 40;
        smcr.server_v1 = 10;
        smcr.server_v2 = 50;
        smcr.rx.calls = 1700;
        smcr.tx.calls = 1650;
        smcr.rx.bytes = 204_800;
        smcr.rx.buffers.full = 3;
        smcr.rx.call_sizes = [1500, 120, 60, 20, 0, 0, 0, 2, 1];
        smcr.nodelay = 6;
        counters.stats.client_handshake_errors = 1;
        counters.fallbacks = Fallbacks {
            server: 15,
            client: 4,
            reasons: vec![Fallback {
                side: FallbackSide::Server,
                reason: Reason(0x0301_0000),
                count: 15,
            }],
        };
        counters
    }

    #[test]
    fn the_summary_adds_up() {
        let counters = counters();
        let text = text(Program::Smcr, &counters, &counters.stats.smcr, true);
        for line in [
            "SMC-R Connections Summary\n",
            "  Total connections handled           120\n",
            "  SMC connections                     100 (client 40, server 60)\n",
            "    v1                                 10\n",
            "  Handshake errors                      1 (client 1, server 0)\n",
            "  Avg requests per SMC conn            33.5\n",
            "  TCP fallback                         19 (client 4, server 15)\n    Server\n     PEER_NO_SMC                       15\n",
            "  Data transmitted (Bytes)         204800 (204.8K)\n",
            "  Buffer full                           3 (0.18%)\n",
            "  Reqs   1.500K     120      60      20       0       0       0       3\n",
            "    nodelay                             6\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn json_has_the_names_that_scripts_know() {
        let counters = counters();
        let parsed = |detailed| {
            let line = json(Program::Smcr, &counters, &counters.stats.smcr, detailed);
            let value = serde_json::from_str::<serde_json::Value>(&line);
            (value.expect("it is JSON"), line)
        };
        let (value, line) = parsed(false);
        assert_eq!(value.as_object().map(|value| value.len()), Some(1));
        let smcr = value["SMCR"].as_object().expect("there is an object");
        assert_eq!(smcr.len(), 65);
        assert_eq!(smcr["SMC_USR_RX_BUF_8K"], 1500);
        assert_eq!(smcr["SMC_USR_RX_BUF_G_1024K"], 1);
        assert_eq!(smcr["SMC_SRV_V2_SUCC_CNT"], 50);
        assert_eq!(smcr["SMC_INT_RX_BUF_FULL_CNT"], 3);
        assert!(line.starts_with("{\"SMCR\": {\"SMC_INT_TX_BUF_8K\":0,"));
        let (value, _) = parsed(true);
        assert_eq!(value["SMCR"].as_object(), Some(smcr));
        assert_eq!(value["handshake_errors"]["client"], 1);
        assert_eq!(value["fallbacks"]["reasons"][0]["count"], 15);
    }
}

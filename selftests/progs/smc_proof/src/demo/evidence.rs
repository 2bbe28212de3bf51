// SPDX-License-Identifier: GPL-2.0

//! The proof of how the bytes went: kernel counters, RDMA counters and the TCP capture.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{json, Value};

use smc_proof::capture::{self, Summary};
use smc_proof::rdma::DeviceCounters;
use smc_proof::table;
use testlib::counters::{Counters, Fields};

/// One statement and whether it is as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) passed: bool,
    pub(super) sentence: String,
}

/// What one network namespace showed.
struct Namespace {
    name: &'static str,
    before: Counters,
    after: Counters,
    rdma_before: DeviceCounters,
    rdma_after: DeviceCounters,
    /// Connections seen while the programs ran, one for each pair of ends.
    seen: BTreeMap<(String, String), Fields>,
}

/// What both namespaces and the capture showed.
pub(super) struct Evidence {
    namespaces: Vec<Namespace>,
    tcp: Summary,
    /// Packets that the capture missed; `None` when tcpdump did not tell.
    missed: Option<u64>,
}

impl Evidence {
    /// Reads the snapshots of the namespaces `a` and `b` and the capture.
    pub(super) fn from_folder(folder: &Path) -> Result<Self, String> {
        let capture = folder.join("tcp.pcap");
        let bytes = fs::read(&capture)
            .map_err(|error| format!("cannot read {}: {error}.", capture.display()))?;
        Ok(Evidence {
            namespaces: vec![
                Namespace::from_folder("a", &folder.join("a"))?,
                Namespace::from_folder("b", &folder.join("b"))?,
            ],
            tcp: capture::summary(&capture::connections(&bytes)?),
            missed: missed(&fs::read_to_string(folder.join("tcpdump.log")).unwrap_or_default()),
        })
    }

    /// Judges the evidence; `moved` is the number of bytes that must have gone by RDMA at least.
    pub(super) fn checks(&self, moved: u64) -> Vec<Check> {
        let mut checks = Vec::new();
        for namespace in &self.namespaces {
            checks.push(namespace.counted());
            checks.push(namespace.listed());
        }
        checks.push(self.rdma(moved));
        checks.push(self.capture());
        checks
    }

    fn sum(&self, key: &str) -> u64 {
        let growth = |one: &Namespace| one.after.growth(&one.before, key);
        self.namespaces.iter().map(growth).sum()
    }

    fn rdma_sum(&self, counter: &str) -> u64 {
        let growth = |one: &Namespace| one.rdma_after.growth(&one.rdma_before, counter);
        self.namespaces.iter().map(growth).sum()
    }

    fn rdma(&self, moved: u64) -> Check {
        let packets = self.rdma_sum("sent_pkts");
        let written = self.sum("rdma_write_bytes");
        Check {
            passed: packets > 0 && written >= moved,
            sentence: format!(
                "RDMA counters: {packets} packets sent by both devices, {} in {} writes, \
                 {} cursor updates",
                table::bytes(written),
                self.sum("rdma_writes"),
                self.sum("cdc_sent"),
            ),
        }
    }

    fn capture(&self) -> Check {
        let tcp = &self.tcp;
        let all_smc = tcp.payload == 0 && tcp.offered == tcp.connections && tcp.connections > 0;
        let missed = match self.missed {
            Some(0) => String::new(),
            Some(count) => format!(", but {count} packets were MISSED"),
            None => ", but tcpdump did not tell whether it missed packets".to_owned(),
        };
        Check {
            passed: all_smc && self.missed == Some(0),
            sentence: format!(
                "TCP capture: {} connections, {} with SMC on both ends, {} of handshake, \
                 {} of payload{missed}",
                tcp.connections,
                tcp.offered,
                table::bytes(tcp.handshake),
                table::bytes(tcp.payload),
            ),
        }
    }

    /// For the JSON report.
    pub(super) fn json(&self) -> Value {
        let namespaces = self.namespaces.iter().map(Namespace::json);
        json!({
            "namespaces": namespaces.collect::<Vec<_>>(),
            "rdma": {
                "packets_sent": self.rdma_sum("sent_pkts"),
                "packets_received": self.rdma_sum("rcvd_pkts"),
                "writes": self.sum("rdma_writes"),
                "write_bytes": self.sum("rdma_write_bytes"),
                "cdc_sent": self.sum("cdc_sent"),
            },
            "tcp": {
                "connections": self.tcp.connections,
                "smc_offered": self.tcp.offered,
                "declined": self.tcp.declined,
                "handshake_bytes": self.tcp.handshake,
                "payload_bytes": self.tcp.payload,
                "packets_missed": self.missed,
            },
        })
    }
}

impl Namespace {
    fn from_folder(name: &'static str, folder: &Path) -> Result<Self, String> {
        let read = |part: &str| {
            let file = folder.join(part);
            fs::read_to_string(&file)
                .map_err(|error| format!("cannot read {}: {error}.", file.display()))
        };
        Ok(Namespace {
            name,
            before: Counters::parse(&read("before/smc_rs")?),
            after: Counters::parse(&read("after/smc_rs")?),
            rdma_before: DeviceCounters::parse(&read("before/rdma")?),
            rdma_after: DeviceCounters::parse(&read("after/rdma")?),
            seen: connections(&read("during")?),
        })
    }

    fn side(&self) -> &'static str {
        if self.name == "a" {
            "server"
        } else {
            "client"
        }
    }

    /// The totals: connections over SMC-R there must be, fallbacks there must not.
    fn counted(&self) -> Check {
        let side = self.side();
        if !self.after.is_module() {
            return Check {
                passed: false,
                sentence: format!("{side}: the module smc_rs is not loaded"),
            };
        }
        let over_smc = self.after.growth(&self.before, "connections_smcr");
        let fallbacks = self.after.growth(&self.before, "fallback_total");
        let reasons: Vec<String> = self
            .after
            .new_fallbacks(&self.before)
            .iter()
            .map(|one| format!("{} times {}", one.count, one.describe()))
            .collect();
        let fell_back = match (fallbacks, reasons.is_empty()) {
            (0, true) => "none fell back to TCP".to_owned(),
            (_, true) => format!("{fallbacks} FELL BACK to TCP"),
            (_, false) => format!("{fallbacks} FELL BACK to TCP ({})", reasons.join(", ")),
        };
        Check {
            passed: over_smc > 0 && fallbacks == 0 && reasons.is_empty(),
            sentence: format!("{side}: {over_smc} connections over SMC-R, {fell_back}"),
        }
    }

    /// The kernel's list while the programs ran: each connection's mode and link group.
    fn listed(&self) -> Check {
        let field = |connection: &Fields, key: &str| connection.get(key).unwrap_or("?").to_owned();
        let others: BTreeSet<String> = self
            .seen
            .values()
            .filter(|one| one.get("mode") != Some("SMCR"))
            .map(|one| field(one, "mode"))
            .collect();
        let groups: BTreeSet<String> = self
            .seen
            .values()
            .map(|one| format!("{} on {}", field(one, "lgr"), field(one, "dev")))
            .collect();
        let groups: Vec<String> = groups.into_iter().collect();
        let count = self.seen.len();
        let side = self.side();
        let sentence = if others.is_empty() {
            format!(
                "{side}: {count} of them seen in the kernel's list in mode SMCR, link group {}",
                groups.join(", ")
            )
        } else {
            let others: Vec<&str> = others.iter().map(String::as_str).collect();
            format!(
                "{side}: the kernel's list shows connections in mode {}",
                others.join(", ")
            )
        };
        Check {
            passed: count > 0 && others.is_empty(),
            sentence,
        }
    }

    fn json(&self) -> Value {
        let fallbacks = self.after.new_fallbacks(&self.before);
        let fallbacks = fallbacks
            .iter()
            .map(|one| json!({ "reason": one.reason, "words": one.words, "side": one.side, "count": one.count }));
        let seen = self.seen.iter().map(|((local, peer), fields)| {
            json!({
                "local": local,
                "peer": peer,
                "mode": fields.get("mode"),
                "link_group": fields.get("lgr"),
                "device": fields.get("dev"),
            })
        });
        json!({
            "namespace": self.name,
            "connections_smcr": self.after.growth(&self.before, "connections_smcr"),
            "fallbacks": fallbacks.collect::<Vec<_>>(),
            "connections_seen": seen.collect::<Vec<_>>(),
        })
    }
}

/// Packets that came to tcpdump's filter and are not in the file, from what it says at its end:
/// those that the kernel dropped and those that were not read yet.
fn missed(log: &str) -> Option<u64> {
    let number = |what: &str| {
        let line = log.lines().find(|line| line.ends_with(what))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let captured = number("captured")?;
    let unread = number("received by filter")?.saturating_sub(captured);
    Some(unread.max(number("dropped by kernel")?))
}

/// Unites the connections of several readings. A connection whose set-up was still going on in
/// one reading has its mode from a later one.
fn connections(readings: &str) -> BTreeMap<(String, String), Fields> {
    let mut seen = BTreeMap::new();
    for connection in Counters::parse(readings).connections {
        let is_active = connection.get("state") == Some("ACTIVE");
        if let (true, Some(local), Some(peer)) =
            (is_active, connection.get("local"), connection.get("peer"))
        {
            seen.insert((local.to_owned(), peer.to_owned()), connection);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_packets_are_counted() {
        let log = |captured: u64, received: u64, dropped: u64| {
            format!(
                "tcpdump: listening on veth0, link-type EN10MB (Ethernet)\n{captured} packets \
                 captured\n{received} packets received by filter\n{dropped} packets dropped by \
                 kernel\n"
            )
        };
        assert_eq!(missed(&log(90, 90, 0)), Some(0));
        assert_eq!(missed(&log(90, 100, 0)), Some(10));
        assert_eq!(missed(&log(90, 110, 20)), Some(20));
        assert_eq!(missed("tcpdump: no permission\n"), None);
    }
}

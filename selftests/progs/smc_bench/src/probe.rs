// SPDX-License-Identifier: GPL-2.0

//! Counters before and after a measurement.

use std::path::Path;

use serde_json::{json, Value};

use smc_netlink::Smc;
use smc_proof::rdma::DeviceCounters;
use testlib::counters::{self, Counters, Fallback};

use crate::net::Family;

/// One reading of the counters of this network namespace.
pub(crate) struct Probe {
    family: Family,
    smc: Counters,
    rdma: DeviceCounters,
}

impl Probe {
    /// Reads all counters.
    ///
    /// # Errors
    ///
    /// A sentence for the user when SMC is to be measured and no module for it is there.
    pub(crate) fn take(family: Family) -> Result<Self, String> {
        let smc = match family {
            Family::Smc if has_own_counters() => {
                Counters::read().map_err(|error| error.to_string())?
            }
            Family::Smc => netlink_counters().map_err(|error| error.to_string())?,
            Family::Tcp => Counters::read().unwrap_or_default(),
        };
        Ok(Probe {
            family,
            smc,
            rdma: DeviceCounters::read(),
        })
    }

    /// Makes sure that all `connections` since this reading were over SMC-R, and counts what
    /// one of `operations` needed.
    ///
    /// # Errors
    ///
    /// A sentence for the user when a connection fell back to TCP.
    pub(crate) fn finish(&self, connections: u64, operations: u64) -> Result<Value, String> {
        let after = Probe::take(self.family)?;
        if self.family == Family::Smc {
            self.require_smc(&after.smc, connections)?;
        }
        let per_operation = |count: u64| count as f64 / operations.max(1) as f64;
        // What is not counted is null, and not zero.
        let own = has_own_counters();
        let smc = |key: &str| own.then(|| per_operation(after.smc.growth(&self.smc, key)));
        let rdma = |key: &str| per_operation(after.rdma.growth(&self.rdma, key));
        Ok(json!({
            "packets_sent": rdma("sent_pkts"),
            "packets_received": rdma("rcvd_pkts"),
            "cdc_sent": smc("cdc_sent"),
            "cdc_received": smc("cdc_received"),
            "rdma_writes": smc("rdma_writes"),
            "llc_sent": smc("llc_sent"),
        }))
    }

    fn require_smc(&self, after: &Counters, connections: u64) -> Result<(), String> {
        let fallbacks = after.growth(&self.smc, "fallback_total");
        let over_smc = after.growth(&self.smc, "connections_smcr");
        if fallbacks == 0 && over_smc >= connections {
            return Ok(());
        }
        let reasons: Vec<String> = after
            .new_fallbacks(&self.smc)
            .iter()
            .map(Fallback::describe)
            .collect();
        Err(format!(
            "of {connections} connections {over_smc} were over SMC-R and {fallbacks} fell back to \
             TCP ({}): this measures nothing.",
            reasons.join(", ")
        ))
    }
}

/// Whether the module is the one of this project, which counts messages.
pub(crate) fn has_own_counters() -> bool {
    Path::new(counters::PATH).exists()
}

/// What is counted of connections by any module for SMC, in the names of this project's.
fn netlink_counters() -> smc_netlink::Result<Counters> {
    let mut smc = Smc::open()?;
    let used = smc.stats()?.smcr;
    let fallbacks = smc.fallbacks()?;
    Ok(Counters::parse(&format!(
        "connections_smcr {}\nfallback_total {}\n",
        used.client_v1 + used.client_v2 + used.server_v1 + used.server_v2,
        fallbacks.client + fallbacks.server,
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(text: &str) -> Probe {
        Probe {
            family: Family::Smc,
            smc: Counters::parse(text),
            rdma: DeviceCounters::default(),
        }
    }

    #[test]
    fn a_fallback_spoils_the_measurement() {
        let before = probe("smc_rs 1\nconnections_smcr 5\nfallback_total 1\n");
        let good = Counters::parse("smc_rs 1\nconnections_smcr 7\nfallback_total 1\n");
        assert_eq!(before.require_smc(&good, 2), Ok(()));
        assert!(before.require_smc(&good, 3).is_err());
        let bad = Counters::parse(
            "smc_rs 1\nconnections_smcr 7\nfallback_total 2\nfallback 0x05000000 client 1\n",
        );
        let error = before.require_smc(&bad, 2).expect_err("one fell back");
        assert!(error.contains("0x05000000 on the client"), "{error}");
    }
}

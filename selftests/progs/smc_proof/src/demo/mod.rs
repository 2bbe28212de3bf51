// SPDX-License-Identifier: GPL-2.0

//! The demo's report: what the programs did, and proof of how their bytes went.

mod evidence;
mod programs;

use std::path::Path;

use serde_json::{json, Value};

use smc_proof::style::Style;
use smc_proof::table;

use evidence::{Check, Evidence};
use programs::Results;

/// Everything that the report says.
pub(crate) struct Report {
    plain: Results,
    smc: Results,
    evidence: Evidence,
}

impl Report {
    /// Reads what the demo left: `plain/` and `smc/` with the programs' results, and in `smc/`
    /// the capture `tcp.pcap` and for both namespaces `a` and `b` the snapshots `before` and
    /// `after` and the file `during`.
    ///
    /// # Errors
    ///
    /// A sentence for the user that names the missing or unreadable file.
    pub(crate) fn from_folder(folder: &Path) -> Result<Self, String> {
        Ok(Report {
            plain: Results::from_folder(&folder.join("plain"))?,
            smc: Results::from_folder(&folder.join("smc"))?,
            evidence: Evidence::from_folder(&folder.join("smc"))?,
        })
    }

    fn checks(&self) -> Vec<Check> {
        let mut checks = self.evidence.checks(self.smc.bytes_moved());
        for (name, results) in [("TCP", &self.plain), ("SMC", &self.smc)] {
            checks.extend(results.errors().into_iter().map(|error| Check {
                passed: false,
                sentence: format!("in the run on {name} {error}"),
            }));
        }
        checks
    }

    /// Whether the second run was entirely over RDMA.
    pub(crate) fn passed(&self) -> bool {
        self.checks().iter().all(|check| check.passed)
    }

    /// The report for a person.
    pub(crate) fn text(&self, style: &Style) -> String {
        let mut rows = vec![vec![String::new(), "TCP".to_owned(), "SMC-R".to_owned()]];
        rows.extend(programs::rows(&self.plain, &self.smc));
        let title = "The same programs, without and with smc_run";
        let mut text = format!("\n{}\n{}", style.heading(title), table::layout(&rows));
        text.push_str(&format!(
            "\n{}\n",
            style.heading("How the second run moved its bytes")
        ));
        for check in self.checks() {
            let mark = if check.passed {
                style.good("[ ok ]")
            } else {
                style.bad("[FAIL]")
            };
            text.push_str(&format!("  {mark} {}\n", check.sentence));
        }
        let verdict = if self.passed() {
            style.good("All bytes went by RDMA.")
        } else {
            style.bad("NOT all bytes went by RDMA: see the lines marked FAIL.")
        };
        text.push_str(&format!("\n{verdict}\n"));
        text
    }

    /// The report for a program.
    pub(crate) fn json(&self) -> Value {
        let checks = self.checks();
        let checks = checks
            .iter()
            .map(|check| json!({ "passed": check.passed, "what": check.sentence }));
        json!({
            "passed": self.passed(),
            "tcp": self.plain.json(),
            "smc": self.smc.json(),
            "evidence": self.evidence.json(),
            "checks": checks.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
#[path = "../demo_tests.rs"]
mod tests;

// SPDX-License-Identifier: GPL-2.0

//! The report on one set-up: all figures, their ratios, and the goals.

mod goals;
mod results;

use std::fs;
use std::path::Path;

use serde_json::{json, Value};

use smc_proof::style::Style;
use smc_proof::table;

use goals::Goal;
use results::{Figure, Results};

/// Reads the results in `folder`, prints the report and writes it as JSON.
pub(crate) fn run(folder: &Path, topology: &str, json: Option<&Path>) -> Result<(), String> {
    let report = Report::new(Results::from_folder(folder)?, topology);
    print!("{}", report.text(&Style::of_stdout()));
    if let Some(file) = json {
        let text = format!("{:#}\n", report.json());
        fs::write(file, text)
            .map_err(|error| format!("cannot write {}: {error}.", file.display()))?;
    }
    Ok(())
}

/// One line of the report.
struct Line {
    label: &'static str,
    /// Digits after the point.
    digits: usize,
    tcp: Figure,
    smc: Figure,
    raw: Figure,
}

/// Everything that the report says.
struct Report {
    topology: String,
    lines: Vec<Line>,
    goals: Vec<Goal>,
    results: Results,
}

impl Report {
    fn new(results: Results, topology: &str) -> Self {
        let lines = lines(&results);
        let goals = goals::judge(&results);
        Report {
            topology: topology.to_owned(),
            lines,
            goals,
            results,
        }
    }

    fn text(&self, style: &Style) -> String {
        let head = ["", "TCP", "SMC-R", "raw RDMA", "SMC/TCP", "SMC/raw"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for line in &self.lines {
            let number = |figure: &Figure| {
                figure
                    .median()
                    .map_or("-".to_owned(), |value| format!("{value:.*}", line.digits))
            };
            let ratio = |other: &Figure| {
                line.smc
                    .ratio(other)
                    .map_or(String::new(), |value| format!("{value:.2}"))
            };
            rows.push(vec![
                line.label.to_owned(),
                number(&line.tcp),
                number(&line.smc),
                number(&line.raw),
                ratio(&line.tcp),
                ratio(&line.raw),
            ]);
        }
        let title = format!(
            "Topology {}: medians of {} runs",
            self.topology,
            self.results.rounds()
        );
        let mut text = format!("\n{}\n{}\n", style.heading(&title), table::layout(&rows));
        for goal in &self.goals {
            let mark = match goal.met {
                true => style.good("[ met  ]"),
                false => style.bad("[MISSED]"),
            };
            text.push_str(&format!("  {mark} {}\n", goal.sentence));
        }
        text
    }

    fn json(&self) -> Value {
        let lines = self.lines.iter().map(|line| {
            json!({
                "what": line.label,
                "tcp": line.tcp.json(),
                "smc": line.smc.json(),
                "raw_rdma": line.raw.json(),
                "smc_to_tcp": line.smc.ratio(&line.tcp),
                "smc_to_raw": line.smc.ratio(&line.raw),
            })
        });
        let goals = self.goals.iter();
        let goals = goals.map(|goal| json!({ "met": goal.met, "what": goal.sentence }));
        json!({
            "topology": self.topology,
            "rounds": self.results.rounds(),
            "figures": lines.collect::<Vec<_>>(),
            "goals": goals.collect::<Vec<_>>(),
            "measurements": self.results.measurements(),
            "raw": self.results.raw_json(),
        })
    }
}

/// All lines in their order.
fn lines(results: &Results) -> Vec<Line> {
    let both = |label, digits, test: &'static str, size: Option<u64>, path: &'static str| Line {
        label,
        digits,
        tcp: results.figure(test, "tcp", size, path),
        smc: results.figure(test, "smc", size, path),
        raw: Figure::none(),
    };
    let smc_only = |label, test, size, path| Line {
        tcp: Figure::none(),
        ..both(label, 2, test, size, path)
    };
    let half = |label: &'static str, size: u64, path: &'static str, raw: Figure| {
        let line = both(label, 0, "latency", Some(size), path);
        Line {
            tcp: line.tcp.scaled(0.5),
            smc: line.smc.scaled(0.5),
            raw,
            ..line
        }
    };
    let kib = |line: Line| Line {
        tcp: line.tcp.scaled(1.0 / 1024.0),
        smc: line.smc.scaled(1.0 / 1024.0),
        ..line
    };
    let block = Some(65_536);
    let (p50, p99_9) = ("/round_trip_us/p50", "/round_trip_us/p99_9");
    let module = "/module_bytes_per_connection";
    let module_left = "/module_bytes_left_per_connection";
    vec![
        Line {
            raw: results.raw_bandwidth(),
            ..both(
                "64 KiB writes, Mbit/s",
                0,
                "stream",
                block,
                "/mbit_per_second",
            )
        },
        half(
            "1 B half round trip, median us",
            1,
            p50,
            results.raw_latency(1),
        ),
        half(
            "1 B half round trip, 99.9% us",
            1,
            p99_9,
            results.raw_latency_p99_9(1),
        ),
        half(
            "4 KiB half round trip, median us",
            4096,
            p50,
            results.raw_latency(4096),
        ),
        half(
            "4 KiB half round trip, 99.9% us",
            4096,
            p99_9,
            results.raw_latency_p99_9(4096),
        ),
        both(
            "connections/s",
            0,
            "connect",
            None,
            "/connections_per_second",
        ),
        kib(smc_only(
            "idle connection, one end, by module KiB",
            "idle",
            None,
            module,
        )),
        kib(both(
            "idle connection, one end, by machine KiB",
            1,
            "idle",
            None,
            "/machine_bytes_per_end",
        )),
        kib(smc_only(
            "left after waiting, by module KiB",
            "idle",
            None,
            module_left,
        )),
        kib(both(
            "left after waiting, by machine KiB",
            1,
            "idle",
            None,
            "/machine_bytes_left_per_end",
        )),
        smc_only(
            "packets out per 64 KiB write",
            "stream",
            block,
            "/per_operation/packets_sent",
        ),
        smc_only(
            "packets in per 64 KiB write",
            "stream",
            block,
            "/per_operation/packets_received",
        ),
        smc_only(
            "CDC messages out per 64 KiB write",
            "stream",
            block,
            "/per_operation/cdc_sent",
        ),
        smc_only(
            "CDC messages in per 64 KiB write",
            "stream",
            block,
            "/per_operation/cdc_received",
        ),
        smc_only(
            "packets out per 1 B round trip",
            "latency",
            Some(1),
            "/per_operation/packets_sent",
        ),
        smc_only(
            "packets in per 1 B round trip",
            "latency",
            Some(1),
            "/per_operation/packets_received",
        ),
        smc_only(
            "CDC messages out per 1 B round trip",
            "latency",
            Some(1),
            "/per_operation/cdc_sent",
        ),
        smc_only(
            "CDC messages in per 1 B round trip",
            "latency",
            Some(1),
            "/per_operation/cdc_received",
        ),
        smc_only(
            "packets out per connection",
            "connect",
            None,
            "/per_operation/packets_sent",
        ),
        smc_only(
            "LLC messages out per connection",
            "connect",
            None,
            "/per_operation/llc_sent",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let lines = [
            r#"{"test":"stream","family":"tcp","size":65536,"mbit_per_second":800.0}"#,
            r#"{"test":"stream","family":"smc","size":65536,"mbit_per_second":100.0,
                "per_operation":{"packets_sent":66.0}}"#,
            r#"{"test":"stream","family":"smc","size":65536,"mbit_per_second":140.0}"#,
            r#"{"test":"latency","family":"smc","size":1,
                "round_trip_us":{"p50":1800.0,"p99_9":2000.0}}"#,
        ];
        let lines = lines.map(|line| line.replace('\n', ""));
        Results::parse(&lines.join("\n")).expect("the lines are JSON")
    }

    #[test]
    fn figures_are_medians_and_ratios() {
        let report = Report::new(results(), "pair");
        let text = report.text(&Style::plain());
        let line = |label: &str| {
            let found = text
                .lines()
                .find(|line| line.trim_start().starts_with(label));
            found
                .expect("every label has a line")
                .split_whitespace()
                .collect::<Vec<_>>()
        };
        assert_eq!(
            line("64 KiB writes, Mbit/s")[4..],
            ["800", "120", "-", "0.15"]
        );
        assert_eq!(line("1 B half round trip, median")[7..], ["-", "900", "-"]);
        assert!(text.contains("Topology pair: medians of 2 runs"), "{text}");
        let json = report.json();
        assert_eq!(json["figures"][0]["smc"]["median"], 120.0);
        assert_eq!(json["figures"][0]["smc_to_tcp"], 0.15);
        assert_eq!(json["figures"][0]["raw_rdma"], Value::Null);
    }
}

// SPDX-License-Identifier: GPL-2.0

//! The results that `redis-benchmark --csv` and `iperf3 --json` printed.

use std::fs;
use std::path::Path;

use serde_json::{json, Value};

/// One test of redis-benchmark.
#[derive(Clone, Debug, PartialEq)]
struct RedisTest {
    name: String,
    requests_per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// What both programs reported in one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    redis: Vec<RedisTest>,
    iperf_bits_per_second: f64,
    iperf_bytes: u64,
    iperf_error: Option<String>,
}

impl Results {
    /// Reads `redis.csv` and `iperf3.json`.
    pub(super) fn from_folder(folder: &Path) -> Result<Self, String> {
        let read = |name: &str| {
            let file = folder.join(name);
            fs::read_to_string(&file)
                .map_err(|error| format!("cannot read {}: {error}.", file.display()))
        };
        Ok(Results::parse(&read("redis.csv")?, &read("iperf3.json")?))
    }

    /// Reads the text of both; what is missing shows up in [`Results::errors`].
    pub(super) fn parse(csv: &str, iperf: &str) -> Self {
        let iperf: Value = serde_json::from_str(iperf).unwrap_or_default();
        let received = &iperf["end"]["sum_received"];
        Results {
            redis: csv.lines().filter_map(redis_test).collect(),
            iperf_bits_per_second: received["bits_per_second"].as_f64().unwrap_or(0.0),
            iperf_bytes: received["bytes"].as_u64().unwrap_or(0),
            iperf_error: iperf["error"].as_str().map(str::to_owned),
        }
    }

    /// What went wrong with the programs themselves, as parts of a sentence.
    pub(super) fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        if self.redis.is_empty() {
            errors.push("redis-benchmark reported nothing".to_owned());
        }
        if let Some(error) = &self.iperf_error {
            errors.push(format!("iperf3 failed: {error}"));
        } else if self.iperf_bytes == 0 {
            errors.push("iperf3 moved no bytes".to_owned());
        }
        errors
    }

    /// Payload bytes that iperf3's receiver counted.
    pub(super) fn bytes_moved(&self) -> u64 {
        self.iperf_bytes
    }

    /// For the JSON report.
    pub(super) fn json(&self) -> Value {
        let redis = self.redis.iter().map(|test| {
            json!({
                "test": test.name,
                "requests_per_second": test.requests_per_second,
                "p50_ms": test.p50_ms,
                "p99_ms": test.p99_ms,
            })
        });
        json!({
            "redis": redis.collect::<Vec<_>>(),
            "iperf3": {
                "bits_per_second": self.iperf_bits_per_second,
                "bytes": self.iperf_bytes,
                "error": self.iperf_error,
            },
        })
    }
}

/// One line of the form `"SET","1234.5","0.4","0.1","0.3","0.8","1.2","3.0"`: requests per
/// second, then latencies in ms: average, least, p50, p95, p99, most.
fn redis_test(line: &str) -> Option<RedisTest> {
    let cells: Vec<&str> = line
        .split(',')
        .map(|cell| cell.trim().trim_matches('"'))
        .collect();
    let number = |index: usize| cells.get(index)?.parse::<f64>().ok();
    Some(RedisTest {
        name: (*cells.first()?).to_owned(),
        requests_per_second: number(1)?,
        p50_ms: number(4)?,
        p99_ms: number(6)?,
    })
}

/// The lines of the comparison.
pub(super) fn rows(plain: &Results, smc: &Results) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for test in &plain.redis {
        let other = smc.redis.iter().find(|other| other.name == test.name);
        let mut add = |label: &str, value: fn(&RedisTest) -> String| {
            rows.push(vec![
                format!("redis {} {label}", test.name),
                value(test),
                other.map_or("-".to_owned(), value),
            ]);
        };
        add("requests/s", |test| {
            format!("{:.0}", test.requests_per_second)
        });
        add("median ms", |test| format!("{:.2}", test.p50_ms));
        add("99% ms", |test| format!("{:.2}", test.p99_ms));
    }
    let megabits = |results: &Results| format!("{:.0}", results.iperf_bits_per_second / 1e6);
    rows.push(vec![
        "iperf3 Mbit/s".to_owned(),
        megabits(plain),
        megabits(smc),
    ]);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
        \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
        \"SET\",\"1234.50\",\"0.500\",\"0.100\",\"0.400\",\"0.800\",\"1.200\",\"3.000\"\n\
        \"GET\",\"1500.00\",\"0.400\",\"0.100\",\"0.300\",\"0.700\",\"1.100\",\"2.000\"\n";
    const IPERF: &str = r#"{"end":{"sum_received":{"bytes":1000000,"bits_per_second":8.0e6}}}"#;

    #[test]
    fn results_are_read_and_compared() {
        let results = Results::parse(CSV, IPERF);
        assert_eq!(results.errors(), Vec::<String>::new());
        assert_eq!(results.bytes_moved(), 1_000_000);
        assert_eq!(results.redis.len(), 2);
        assert_eq!(
            (results.redis[0].p50_ms, results.redis[0].p99_ms),
            (0.4, 1.2)
        );
        let slower = Results::parse(
            "\"SET\",\"10\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\"\n",
            IPERF,
        );
        let rows = rows(&results, &slower);
        assert_eq!(rows[0], ["redis SET requests/s", "1234", "10"]);
        assert_eq!(rows[3], ["redis GET requests/s", "1500", "-"]);
        assert_eq!(rows[6], ["iperf3 Mbit/s", "8", "8"]);
    }

    #[test]
    fn failures_of_the_programs_are_told() {
        let nothing = Results::parse("", "");
        assert_eq!(nothing.errors().len(), 2);
        let refused = Results::parse(CSV, r#"{"error":"unable to connect"}"#);
        assert_eq!(refused.errors(), ["iperf3 failed: unable to connect"]);
        let cut = Results::parse("Could not connect to Redis\n", IPERF);
        assert_eq!(cut.errors(), ["redis-benchmark reported nothing"]);
    }
}

// SPDX-License-Identifier: GPL-2.0

//! The measurements of one set-up, as files left them.

use std::fs;
use std::path::Path;

use serde_json::{json, Value};

use crate::perftest;
use crate::stats::Range;

/// The values of one quantity in all runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Figure(Vec<f64>);

impl Figure {
    /// A quantity that was not measured.
    pub(super) fn none() -> Self {
        Figure::default()
    }

    /// Of all runs; `None` when it was not measured.
    pub(super) fn range(&self) -> Option<Range> {
        Range::of(self.0.iter().copied())
    }

    /// The median of all runs.
    pub(super) fn median(&self) -> Option<f64> {
        self.range().map(|range| range.median)
    }

    /// The same quantity in another unit.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        Figure(self.0.iter().map(|value| value * factor).collect())
    }

    /// The ratio of the medians.
    pub(super) fn ratio(&self, other: &Figure) -> Option<f64> {
        let ratio = self.median()? / other.median()?;
        ratio.is_finite().then_some(ratio)
    }

    /// For the JSON report.
    pub(super) fn json(&self) -> Value {
        self.range().map_or(Value::Null, Range::json)
    }
}

/// All measurements.
#[derive(Debug, Default)]
pub(super) struct Results {
    measurements: Vec<Value>,
    bandwidth: Vec<f64>,
    latency: Vec<(u64, perftest::Latency)>,
}

impl Results {
    /// Reads `results.jsonl`, and `raw-bw-N.txt` and `raw-lat-SIZE-N.txt` of perftest.
    pub(super) fn from_folder(folder: &Path) -> Result<Self, String> {
        let read = |file: &Path| {
            fs::read_to_string(file)
                .map_err(|error| format!("cannot read {}: {error}.", file.display()))
        };
        let mut results = Results::parse(&read(&folder.join("results.jsonl"))?)?;
        let entries = fs::read_dir(folder)
            .map_err(|error| format!("cannot read {}: {error}.", folder.display()))?;
        let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        files.sort();
        for file in files {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("raw-bw-") {
                results.bandwidth.extend(perftest::bandwidth(&read(&file)?));
            } else if let Some(rest) = name.strip_prefix("raw-lat-") {
                let size = rest.split('-').next().and_then(|size| size.parse().ok());
                let latency = perftest::latency(&read(&file)?);
                results.latency.extend(size.zip(latency));
            }
        }
        Ok(results)
    }

    /// Reads lines of JSON.
    pub(super) fn parse(lines: &str) -> Result<Self, String> {
        let measurements = lines
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| {
                serde_json::from_str(line)
                    .map_err(|error| format!("a result is no JSON ({error}): {line}"))
            })
            .collect::<Result<_, _>>()?;
        Ok(Results {
            measurements,
            ..Results::default()
        })
    }

    /// The value at `path` (a JSON pointer) of all measurements of one kind.
    pub(super) fn figure(&self, test: &str, family: &str, size: Option<u64>, path: &str) -> Figure {
        let is_wanted = |one: &&Value| {
            one["test"] == test
                && one["family"] == family
                && size.is_none_or(|size| one["size"].as_u64() == Some(size))
        };
        let values = self.measurements.iter().filter(is_wanted);
        Figure(
            values
                .filter_map(|one| one.pointer(path)?.as_f64())
                .collect(),
        )
    }

    /// `ib_write_bw` in Mbit/s.
    pub(super) fn raw_bandwidth(&self) -> Figure {
        Figure(self.bandwidth.clone())
    }

    /// Medians of `ib_write_lat` for messages of `size` bytes, in microseconds.
    pub(super) fn raw_latency(&self, size: u64) -> Figure {
        self.latency_of(size, |latency| latency.median)
    }

    /// What 99.9 % of the messages of `ib_write_lat` did not exceed, in microseconds.
    pub(super) fn raw_latency_p99_9(&self, size: u64) -> Figure {
        self.latency_of(size, |latency| latency.p99_9)
    }

    fn latency_of(&self, size: u64, value: fn(&perftest::Latency) -> f64) -> Figure {
        let of_size = self.latency.iter().filter(|(other, _)| *other == size);
        Figure(of_size.map(|(_, latency)| value(latency)).collect())
    }

    /// How often the throughput over SMC was measured.
    pub(super) fn rounds(&self) -> usize {
        self.figure("stream", "smc", None, "/mbit_per_second")
            .0
            .len()
    }

    /// All measurements as they were printed.
    pub(super) fn measurements(&self) -> &[Value] {
        &self.measurements
    }

    /// The results of perftest for the JSON report.
    pub(super) fn raw_json(&self) -> Value {
        let latency = self.latency.iter().map(|(size, latency)| {
            json!({ "size": size, "median_us": latency.median, "p99_9_us": latency.p99_9 })
        });
        json!({
            "write_bw_mbit_per_second": self.bandwidth,
            "write_lat": latency.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_are_told_apart() {
        let text = r#"{"test":"latency","family":"smc","size":1,"round_trip_us":{"p50":10}}
            {"test":"latency","family":"smc","size":4096,"round_trip_us":{"p50":30}}

            {"test":"latency","family":"tcp","size":1,"round_trip_us":{"p50":5}}"#;
        let results = Results::parse(text).expect("the lines are JSON");
        let p50 = "/round_trip_us/p50";
        assert_eq!(results.figure("latency", "smc", Some(1), p50).0, [10.0]);
        assert_eq!(results.figure("latency", "smc", None, p50).0, [10.0, 30.0]);
        assert_eq!(
            results
                .figure("latency", "tcp", Some(1), "/round_trip_us/p51")
                .median(),
            None
        );
        assert!(Results::parse("smc_bench: failed").is_err());
    }

    #[test]
    fn ratios_need_both_sides() {
        let one = Figure(vec![2.0]);
        assert_eq!(one.ratio(&Figure(vec![4.0])), Some(0.5));
        assert_eq!(one.ratio(&Figure::none()), None);
        assert_eq!(one.ratio(&Figure(vec![0.0])), None);
    }
}

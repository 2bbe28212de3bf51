// SPDX-License-Identifier: GPL-2.0

//! Percentiles of times and medians of runs.

use std::time::Duration;

use serde_json::{json, Value};

/// Times of single operations.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<u64>);

impl Times {
    /// Adds one time.
    pub(crate) fn push(&mut self, time: Duration) {
        self.0
            .push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// How many times there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Mean, percentiles and extremes in microseconds; `null` without any times.
    pub(crate) fn json(mut self) -> Value {
        self.0.sort_unstable();
        let Some(most) = self.0.last() else {
            return Value::Null;
        };
        let sum: u128 = self.0.iter().copied().map(u128::from).sum();
        json!({
            "mean": microseconds(sum as f64 / self.0.len() as f64),
            "min": microseconds(self.0[0] as f64),
            "p50": self.percentile(50.0),
            "p99": self.percentile(99.0),
            "p99_9": self.percentile(99.9),
            "max": microseconds(*most as f64),
        })
    }

    /// The least time that `percent` of the sorted times do not exceed.
    fn percentile(&self, percent: f64) -> f64 {
        let rank = (self.0.len() as f64 * percent / 100.0).ceil() as usize;
        microseconds(self.0[rank.clamp(1, self.0.len()) - 1] as f64)
    }
}

fn microseconds(nanoseconds: f64) -> f64 {
    (nanoseconds / 100.0).round() / 10.0
}

/// Least, median and most of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

impl Range {
    /// Takes the values of all runs; `None` without any.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values
            .into_iter()
            .filter(|value| value.is_finite())
            .collect();
        values.sort_unstable_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            (values.get(middle)? + values.get(middle.checked_sub(1)?)?) / 2.0
        };
        Some(Range {
            least: *values.first()?,
            median,
            most: *values.last()?,
        })
    }

    /// For the JSON report.
    pub(crate) fn json(self) -> Value {
        json!({ "min": self.least, "median": self.median, "max": self.most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_occurred() {
        let mut times = Times::default();
        for microsecond in (1..=1000).rev() {
            times.push(Duration::from_micros(microsecond));
        }
        assert_eq!(times.count(), 1000);
        let json = times.json();
        assert_eq!(json["p50"], 500.0);
        assert_eq!(json["p99"], 990.0);
        assert_eq!(json["p99_9"], 999.0);
        assert_eq!((&json["min"], &json["max"]), (&json!(1.0), &json!(1000.0)));
        assert_eq!(json["mean"], 500.5);
        assert_eq!(Times::default().json(), Value::Null);
    }

    #[test]
    fn one_time_is_every_percentile() {
        let mut times = Times::default();
        times.push(Duration::from_nanos(1_250));
        let json = times.json();
        assert_eq!((&json["p50"], &json["p99_9"]), (&json!(1.3), &json!(1.3)));
    }

    #[test]
    fn medians_of_odd_and_even_counts() {
        let range = Range::of([3.0, 1.0, 2.0]).expect("there are values");
        assert_eq!((range.least, range.median, range.most), (1.0, 2.0, 3.0));
        assert_eq!(Range::of([4.0, 1.0]).map(|range| range.median), Some(2.5));
        assert_eq!(Range::of([]), None);
        assert_eq!(Range::of([f64::NAN]), None);
    }
}

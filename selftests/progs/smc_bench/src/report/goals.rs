// SPDX-License-Identifier: GPL-2.0

//! What the figures are to be.

use super::results::{Figure, Results};

/// Throughput against raw RDMA writes, at least.
const THROUGHPUT_RATIO: f64 = 0.85;
/// Latency against raw RDMA writes, at most.
const LATENCY_RATIO: f64 = 1.2;
/// The slowest of a thousand round trips against the median; more is a stall.
const STALL_RATIO: f64 = 20.0;
/// Two buffers of the default 64 KiB and 16 KiB for everything else, in KiB.
const IDLE_KIB: f64 = 2.0 * 64.0 + 16.0;

/// One goal and whether it was met.
pub(super) struct Goal {
    pub(super) met: bool,
    pub(super) sentence: String,
}

/// Judges the figures; a figure that is missing misses its goal.
pub(super) fn judge(results: &Results) -> Vec<Goal> {
    let stream = results.figure("stream", "smc", Some(65_536), "/mbit_per_second");
    let mut goals = vec![at_least(
        "throughput of 64 KiB writes against raw RDMA",
        stream.ratio(&results.raw_bandwidth()),
        THROUGHPUT_RATIO,
    )];
    for (size, name) in [(1, "1 B"), (4096, "4 KiB")] {
        let latency = |percentile: &str| {
            let path = format!("/round_trip_us/{percentile}");
            results.figure("latency", "smc", Some(size), &path)
        };
        let half = latency("p50").scaled(0.5);
        goals.push(at_most(
            &format!("median of {name} round trips against raw RDMA"),
            half.ratio(&results.raw_latency(size)),
            LATENCY_RATIO,
        ));
        goals.push(at_most(
            &format!("99.9% of {name} round trips against their median"),
            latency("p99_9").ratio(&latency("p50")),
            STALL_RATIO,
        ));
    }
    let idle = |path: &str| results.figure("idle", "smc", None, path);
    let kib = |figure: Figure| figure.scaled(1.0 / 1024.0).median();
    goals.push(at_most(
        "memory of one end of an idle connection in KiB",
        kib(idle("/module_bytes_per_connection")),
        IDLE_KIB,
    ));
    let wait = idle("/wait_seconds").median().unwrap_or(30.0);
    goals.push(at_most(
        "seconds until the memory of closed connections is given back",
        idle("/given_back_after_seconds").median(),
        wait,
    ));
    goals
}

fn at_least(what: &str, value: Option<f64>, goal: f64) -> Goal {
    Goal {
        met: value.is_some_and(|value| value >= goal),
        sentence: format!("{what}: {}, at least {goal} wanted", number(value)),
    }
}

fn at_most(what: &str, value: Option<f64>, goal: f64) -> Goal {
    Goal {
        met: value.is_some_and(|value| value <= goal),
        sentence: format!("{what}: {}, at most {goal} wanted", number(value)),
    }
}

fn number(value: Option<f64>) -> String {
    value.map_or("not measured".to_owned(), |value| format!("{value:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_follow_the_figures() {
        let results = |memory: u32, p99_9: u32| {
            let text = format!(
                "{{\"test\":\"idle\",\"family\":\"smc\",\"wait_seconds\":30,\
                 \"module_bytes_per_connection\":{memory},\"given_back_after_seconds\":2}}\n\
                 {{\"test\":\"latency\",\"family\":\"smc\",\"size\":1,\
                 \"round_trip_us\":{{\"p50\":100,\"p99_9\":{p99_9}}}}}"
            );
            Results::parse(&text).expect("the lines are JSON")
        };
        let met = |results: &Results, what: &str| {
            let goals = judge(results);
            let goal = goals.iter().find(|goal| goal.sentence.starts_with(what));
            goal.expect("the goal is listed").met
        };
        let good = results(147_456, 2000);
        assert!(met(&good, "memory of one end"));
        assert!(met(&good, "99.9% of 1 B"));
        assert!(met(&good, "seconds until"));
        let bad = results(147_457, 2001);
        assert!(!met(&bad, "memory of one end"));
        assert!(!met(&bad, "99.9% of 1 B"));
        assert!(!met(&bad, "throughput"), "what was not measured is not met");
    }
}

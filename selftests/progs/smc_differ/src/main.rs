// SPDX-License-Identifier: GPL-2.0

//! Runs scripted socket scenarios on TCP, on SMC-R and on SMC sockets that fell back, and compares
//! every return value, error number, poll mask and received byte.
//!
//! A scenario is a state and a list of calls. What TCP does is the measure: any difference fails,
//! unless it is listed with a reason in `excuse.rs`. A listed difference that does not show fails a
//! full run as well, so the list stays true.

mod call;
mod company;
mod excuse;
mod matrix;
mod name;
mod options;
mod patience;
mod ring;
mod run;
mod scenario;
mod scripts;
mod stage;
mod state;
mod world;

use clap::Parser;
use excuse::EXCUSES;
use scenario::Scenario;
use std::collections::BTreeMap;
use std::process::ExitCode;
use testlib::process::raise_file_limit;
use testlib::sock::{Family, Sock};
use testlib::tap::{say, Problem, Reporter};
use world::{Network, World};

#[derive(Parser)]
#[command(about = "Compares SMC sockets with TCP sockets, call by call")]
struct Cli {
    /// Network with RDMA devices: namespace,IPv4,IPv6 of the server's end, then of the client's
    #[arg(long)]
    rdma: Network,
    /// Network without RDMA devices, in the same form
    #[arg(long)]
    plain: Network,
    /// Only the scenarios whose names contain one of these
    #[arg(long)]
    only: Vec<String>,
    /// Only one in so many scenarios, spread over all of them
    #[arg(long, default_value_t = 1)]
    one_in: usize,
    /// Says which of them
    #[arg(long, default_value_t = 0)]
    seed: usize,
    /// How many scenarios run at a time
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Run on TCP only, to see what it does
    #[arg(long)]
    tcp: bool,
    /// Print the records on TCP as if they were differences
    #[arg(long)]
    show: bool,
    /// Print the names of all scenarios
    #[arg(long)]
    list: bool,
}

fn all() -> Vec<Scenario> {
    [
        scripts::scenarios(),
        matrix::scenarios(),
        options::scenarios(),
    ]
    .concat()
}

/// Each entry of the list must have been seen, or it is not true any more.
fn check_list(seen: &BTreeMap<usize, usize>, reporter: &mut Reporter) {
    for (n, excuse) in EXCUSES.iter().enumerate() {
        let outcome = match seen.get(&n) {
            Some(_) => Ok(()),
            None => Err(Problem::Failed("this difference did not show".into())),
        };
        reporter.report(&format!("listed: {}", excuse.reason), &outcome);
    }
}

fn times_packets() -> std::io::Result<Sock> {
    let sock = Sock::new(Family::Tcp)?;
    sock.set_int(libc::SOL_SOCKET, libc::SO_TIMESTAMP, 1)?;
    Ok(sock)
}

fn main() -> ExitCode {
    raise_file_limit();
    let cli = Cli::parse();
    let one_in = cli.one_in.max(1);
    let scenarios: Vec<Scenario> = all()
        .into_iter()
        .filter(|s| {
            cli.only.is_empty() || cli.only.iter().any(|only| s.name.contains(only.as_str()))
        })
        .skip(cli.seed % one_in)
        .step_by(one_in)
        .collect();
    if cli.list {
        for scenario in &scenarios {
            say(&scenario.name);
        }
        return ExitCode::SUCCESS;
    }
    let world = World {
        rdma: cli.rdma,
        plain: cli.plain,
        tcp_only: cli.tcp,
    };
    if one_in > 1 {
        say(&format!("# seed {}, one in {one_in}", cli.seed));
    }
    let full = cli.only.is_empty() && one_in == 1 && !cli.show && !cli.tcp;
    let planned = scenarios.len() + if full { EXCUSES.len() } else { 0 };
    let mut reporter = Reporter::new(planned);
    let mut seen = BTreeMap::new();
    // Packets get their times from a moment after some socket has asked for them on, which is too
    // late for the scenario that asks: one asks all the time.
    let _clock = times_packets();
    let run = run::run_all(&scenarios, &world, cli.jobs.max(1), cli.show, |verdict| {
        for n in &verdict.listed {
            *seen.entry(*n).or_insert(0) += 1;
        }
        let outcome = if verdict.faults.is_empty() {
            Ok(())
        } else {
            Err(Problem::Failed(verdict.faults.join("\n")))
        };
        reporter.report(&scenarios[verdict.number].name, &outcome);
    });
    if let Err(error) = run {
        say(&format!(
            "Bail out! The scenarios could not be run: {error}"
        ));
        return ExitCode::FAILURE;
    }
    if full {
        check_list(&seen, &mut reporter);
    }
    ExitCode::from(u8::from(reporter.failed() > 0))
}

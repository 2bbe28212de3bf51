// SPDX-License-Identifier: GPL-2.0

//! `smc_bench` measures TCP and SMC with the same code and writes what it found as JSON.
//!
//! Every measurement over SMC fails when one of its connections fell back to TCP.

#![forbid(unsafe_code)]

mod measure;
mod memory;
mod net;
mod perftest;
mod probe;
mod report;
mod serve;
mod stats;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use net::Family;

/// Measure throughput, latency, connection rate and memory of TCP and SMC.
#[derive(Parser)]
#[command(name = "smc_bench", version)]
struct Options {
    #[command(subcommand)]
    action: Action,
}

/// Where a client connects to.
#[derive(Args)]
struct Target {
    /// Socket family
    #[arg(long, value_enum)]
    family: Family,
    /// Address and port of the server
    #[arg(long, value_name = "IP:PORT")]
    connect: SocketAddr,
}

#[derive(Subcommand)]
enum Action {
    /// Serve clients until killed
    Serve {
        /// Socket family
        #[arg(long, value_enum)]
        family: Family,
        /// Address and port to listen on
        #[arg(long, value_name = "IP:PORT")]
        bind: SocketAddr,
    },
    /// One-way throughput
    Stream {
        #[command(flatten)]
        target: Target,
        /// Bytes in each write
        #[arg(long, default_value_t = 65_536)]
        size: usize,
        /// How long to send
        #[arg(long, default_value = "3", value_parser = seconds)]
        seconds: Duration,
    },
    /// Round-trip times
    Latency {
        #[command(flatten)]
        target: Target,
        /// Bytes in each direction
        #[arg(long, default_value_t = 1)]
        size: usize,
        /// How long to measure
        #[arg(long, default_value = "3", value_parser = seconds)]
        seconds: Duration,
    },
    /// Connections per second: connect, one byte there and back, close
    Connect {
        #[command(flatten)]
        target: Target,
        /// How long to measure
        #[arg(long, default_value = "3", value_parser = seconds)]
        seconds: Duration,
    },
    /// Kernel memory of idle connections, and what is left of it after they were closed
    Idle {
        #[command(flatten)]
        target: Target,
        /// How many connections to open
        #[arg(long, default_value_t = 200)]
        connections: u32,
        /// How long to wait for the memory after closing
        #[arg(long, default_value = "30", value_parser = seconds)]
        wait: Duration,
        /// How many ends of each connection are in this kernel
        #[arg(long, default_value_t = 2)]
        ends: u32,
    },
    /// Report on the measurements in a folder
    Report {
        /// The folder with `results.jsonl` and the outputs of perftest
        folder: PathBuf,
        /// Name of the set-up, for the heading
        #[arg(long)]
        topology: String,
        /// Also write the report as JSON into this file
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
}

/// Parses a time in seconds with an optional fraction.
fn seconds(text: &str) -> Result<Duration, String> {
    text.parse::<f64>()
        .ok()
        .and_then(|value| Duration::try_from_secs_f64(value).ok())
        .filter(|value| !value.is_zero())
        .ok_or_else(|| "a time is a number of seconds above zero".to_owned())
}

fn run(action: Action) -> Result<(), String> {
    match action {
        Action::Serve { family, bind } => serve::run(family, bind),
        Action::Stream {
            target,
            size,
            seconds,
        } => measure::stream(target.family, target.connect, size, seconds),
        Action::Latency {
            target,
            size,
            seconds,
        } => measure::latency(target.family, target.connect, size, seconds),
        Action::Connect { target, seconds } => {
            measure::connect(target.family, target.connect, seconds)
        }
        Action::Idle {
            target,
            connections,
            wait,
            ends,
        } => memory::idle(target.family, target.connect, connections, wait, ends),
        Action::Report {
            folder,
            topology,
            json,
        } => report::run(&folder, &topology, json.as_deref()),
    }
}

fn main() -> ExitCode {
    match run(Options::parse().action) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("smc_bench: {message}");
            ExitCode::FAILURE
        }
    }
}

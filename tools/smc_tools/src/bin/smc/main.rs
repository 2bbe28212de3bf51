// SPDX-License-Identifier: GPL-2.0

//! `smc` tells how SMC does on this host: what there is, why connections stay on TCP, and what to do
//! about it.

mod check;
mod monitor;
mod status;
mod top;
mod why;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use smc_tools::output::finish;

/// Tell how SMC does on this host.
#[derive(Parser)]
#[command(name = "smc", version)]
struct Options {
    /// JSON instead of text
    #[arg(short, long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// What there is: devices, identifiers, link groups, connections, fallbacks
    Status,
    /// Why connections stay on TCP, and what to do about it
    Why {
        /// Only connections with this address, or address and port, at either end
        address: Option<String>,
    },
    /// Whether this host can do SMC, with a remedy for each thing that is missing
    Check,
    /// What happens, as it happens: link groups, connections, fallbacks
    Monitor {
        /// Events to wait for; without end if not given
        #[arg(short = 'n', long)]
        count: Option<u32>,
    },
    /// Connections with their rates, again and again
    Top {
        /// Seconds between two looks
        #[arg(short, long, default_value_t = 1.0)]
        interval: f64,
        /// Looks to take; without end if not given
        #[arg(short = 'n', long)]
        count: Option<u32>,
    },
}

fn main() -> ExitCode {
    let options = Options::parse();
    let json = options.json;
    finish(
        "smc",
        match options.action {
            Action::Status => status::run(json),
            Action::Why { address } => why::run(address.as_deref(), json),
            Action::Check => check::run(json),
            Action::Monitor { count } => monitor::run(count, json),
            Action::Top { interval, count } => top::run(interval, count, json),
        },
    )
}

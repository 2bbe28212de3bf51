// SPDX-License-Identifier: GPL-2.0

//! `smc` tells how SMC does on this host: what there is, why connections stay on TCP, and what to do
//! about it.

mod check;
mod devices;
mod limit;
mod monitor;
mod status;
mod top;
mod why;

use std::process::ExitCode;

use clap::Parser;
use smc_cli::smc::{Action, Options};
use smc_tools::output::finish;

fn main() -> ExitCode {
    let options = Options::parse();
    let json = options.json;
    let outcome = match options.action {
        Action::Status => status::run(json),
        Action::Why { address } => why::run(address.as_deref(), json),
        Action::Devices => devices::run(json),
        Action::LimitHandshakes { set } => limit::run(set, json),
        Action::Check(check) => return check::run(check.what, json),
        Action::Monitor { count } => monitor::run(count, json),
        Action::Top { interval, count } => top::run(interval, count, json),
    };
    finish("smc", outcome)
}

// SPDX-License-Identifier: GPL-2.0

//! `smc_ueid` sets and shows the user-defined enterprise identifiers of this host.
//!
//! Two hosts use SMC version 2 with each other only when they have an identifier in common.

use std::process::ExitCode;

use clap::Parser;
use smc_cli::smc_ueid::{Action, Options};
use smc_netlink::Smc;
use smc_tools::output::{self, finish, Outcome};
use smc_tools::ueid;

fn main() -> ExitCode {
    finish("smc_ueid", run(&Options::parse()))
}

fn run(options: &Options) -> Outcome {
    let mut smc = Smc::open().map_err(|error| error.to_string())?;
    match &options.action {
        Action::Add { eid } => ueid::add(&mut smc, eid),
        Action::Del { eid } => ueid::remove(&mut smc, eid),
        Action::Flush => smc.flush_ueids().map_err(|error| error.to_string()),
        Action::List => {
            let eids = smc.ueids().map_err(|error| error.to_string())?;
            if options.json {
                return output::print_json(&eids);
            }
            let lines: Vec<String> = eids.iter().map(|eid| format!("{eid}\n")).collect();
            output::print(&lines.concat())
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! `smc_ueid` sets and shows the user-defined enterprise identifiers (UEIDs) of this host.
//!
//! Two hosts use SMC version 2 with each other only when they have an identifier in common.
//! The table is kept by the kernel and reached through the generic netlink family
//! `SMC_GEN_NETLINK` (`<linux/smc.h>`).

mod eid;
mod netlink;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use eid::Eid;

/// Set or show the enterprise identifiers that SMC version 2 peers must have in common.
#[derive(Parser)]
#[command(name = "smc_ueid", version)]
struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Add an identifier; up to four can be set
    Add {
        /// Up to 32 of A-Z, 0-9, dot and hyphen, beginning with a letter or digit
        eid: Eid,
    },
    /// Remove an identifier
    Del {
        /// The identifier as it was added
        eid: Eid,
    },
    /// Remove all identifiers
    Flush,
    /// Show all identifiers, one a line
    List,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let result = match &options.action {
        Action::Add { eid } => netlink::add(eid),
        Action::Del { eid } => netlink::remove(eid),
        Action::Flush => netlink::flush(),
        Action::List => netlink::list().map(|eids| {
            for eid in eids {
                println!("{eid}");
            }
        }),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("smc_ueid: {message}");
            ExitCode::FAILURE
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! `smc_ueid`.

use clap::{Parser, Subcommand};

use crate::eid;

/// Set or show the enterprise identifiers that SMC version 2 peers must have in common.
#[derive(Debug, Parser)]
#[command(name = "smc_ueid", version)]
pub struct Options {
    /// JSON instead of text
    #[arg(short, long, global = true)]
    pub json: bool,
    /// What is to be done.
    #[command(subcommand)]
    pub action: Action,
}

/// What is to be done.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Add an identifier; up to four can be set
    Add {
        /// Up to 32 of A-Z, 0-9, dot and hyphen, beginning with a letter or digit
        #[arg(value_parser = eid::parse)]
        eid: String,
    },
    /// Remove an identifier
    Del {
        /// The identifier as it was added
        #[arg(value_parser = eid::parse)]
        eid: String,
    },
    /// Remove all identifiers
    Flush,
    /// Show all identifiers, one a line
    List,
}

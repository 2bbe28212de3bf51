// SPDX-License-Identifier: GPL-2.0

//! `smcss`.

use clap::Parser;

/// List SMC sockets: the connected ones unless an option says otherwise.
#[derive(Debug, Parser)]
#[command(name = "smcss", version, disable_version_flag = true)]
pub struct Options {
    /// All sockets
    #[arg(short, long)]
    pub all: bool,
    /// Sockets that accept connections
    #[arg(short, long, conflicts_with_all = ["all", "debug", "smcr", "smcd"])]
    pub listening: bool,
    /// Cursors and flags as well
    #[arg(short, long)]
    pub debug: bool,
    /// Addresses as long as they are
    #[arg(short = 'W', long)]
    pub wide: bool,
    /// Only sockets over SMC-D, with their buffers
    #[arg(short = 'D', long, conflicts_with = "smcr")]
    pub smcd: bool,
    /// Only sockets over SMC-R, with their links
    #[arg(short = 'R', long)]
    pub smcr: bool,
    /// All that is known, as JSON
    #[arg(short, long)]
    pub json: bool,
    /// Show the version
    #[arg(short, long, action = clap::ArgAction::Version)]
    pub version: Option<bool>,
}

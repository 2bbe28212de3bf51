// SPDX-License-Identifier: GPL-2.0

//! `smcss` lists SMC sockets.

use std::process::ExitCode;

use clap::Parser;
use smc_netlink::diag;
use smc_tools::output::{self, finish, Outcome};
use smc_tools::sockets::View;

/// List SMC sockets: the connected ones unless an option says otherwise.
#[derive(Parser)]
#[command(name = "smcss", version, disable_version_flag = true)]
struct Options {
    /// All sockets
    #[arg(short, long)]
    all: bool,
    /// Sockets that accept connections
    #[arg(short, long, conflicts_with_all = ["all", "debug", "smcr", "smcd"])]
    listening: bool,
    /// Cursors and flags as well
    #[arg(short, long)]
    debug: bool,
    /// Addresses as long as they are
    #[arg(short = 'W', long)]
    wide: bool,
    /// Only sockets over SMC-D, with their buffers
    #[arg(short = 'D', long, conflicts_with = "smcr")]
    smcd: bool,
    /// Only sockets over SMC-R, with their links
    #[arg(short = 'R', long)]
    smcr: bool,
    /// All that is known, as JSON
    #[arg(short, long)]
    json: bool,
    /// Show the version
    #[arg(short, long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

fn main() -> ExitCode {
    finish("smcss", run(&Options::parse()))
}

fn run(options: &Options) -> Outcome {
    let view = View {
        all: options.all,
        listening: options.listening,
        debug: options.debug,
        wide: options.wide,
        smcd: options.smcd,
        smcr: options.smcr,
    };
    let details = if options.json {
        diag::Details::ALL
    } else {
        view.details()
    };
    let mut sockets = diag::sockets(details).map_err(|error| error.to_string())?;
    if options.json {
        sockets.retain(|socket| view.shows(socket));
        return output::print_json(&sockets);
    }
    output::print(&view.text(&sockets))
}

// SPDX-License-Identifier: GPL-2.0

//! `smcss` lists SMC sockets.

use std::process::ExitCode;

use clap::Parser;
use smc_cli::smcss::Options;
use smc_netlink::diag;
use smc_tools::output::{self, finish, Outcome};
use smc_tools::sockets::View;

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

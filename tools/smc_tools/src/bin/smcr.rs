// SPDX-License-Identifier: GPL-2.0

//! `smcr` shows and sets what concerns SMC-R: `smcr help` says how.

use std::process::ExitCode;

use smc_tools::object::{run, Program};
use smc_tools::output::finish;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    finish("smcr", run(Program::Smcr, &arguments))
}

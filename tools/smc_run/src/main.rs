// SPDX-License-Identifier: GPL-2.0

//! `smc_run PROGRAM ARGS…` runs a TCP program with its stream sockets turned into SMC sockets.
//!
//! It sets the environment for `libsmc_preload.so` and execs the program, so process id,
//! arguments, signals and exit status are the program's own.

// The runtime's own `main` would set SIGPIPE to "ignore", and the program would inherit that.
#![cfg_attr(not(test), no_main)]

mod elf;
mod library;
mod program;

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::Parser;
use nix::errno::Errno;
use smc_cli::smc_run::Options;

/// Exit status for a mistake in smc_run's own use, as `env` and `timeout` have it.
const EXIT_OWN_FAILURE: i32 = 125;
/// Exit status for a program that cannot be executed.
const EXIT_NOT_EXECUTABLE: i32 = 126;
/// Exit status for a program that does not exist.
const EXIT_NOT_FOUND: i32 = 127;

/// Why the program could not be started.
struct Failure {
    message: String,
    status: i32,
}

/// The process's entry point, called by the C library.
#[cfg_attr(not(test), export_name = "main")]
#[cfg_attr(
    test,
    expect(dead_code, reason = "the test harness has its own entry point")
)]
extern "C" fn start() -> i32 {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => {
            // Help and version come this way too and are no failure.
            let status = if error.use_stderr() {
                EXIT_OWN_FAILURE
            } else {
                0
            };
            let _ = error.print();
            return status;
        }
    };
    let failure = run(options);
    say(&failure.message);
    failure.status
}

/// Execs the program; returns only when that failed.
fn run(options: Options) -> Failure {
    let name = &options.command[0];
    let found = program::find(name, std::env::var_os("PATH").as_deref());
    // A program that cannot be read is run all the same.
    let obstacle = found.and_then(|file| program::obstacle(&file).ok().flatten());
    if let Some(obstacle) = &obstacle {
        let name = name.to_string_lossy();
        say(&format!(
            "{name} {obstacle}, so its sockets cannot be replaced: it runs on plain TCP."
        ));
    }
    if !obstacle.is_some_and(|obstacle| obstacle.forbids_preload()) {
        if let Err(message) = prepare_environment(&options) {
            return Failure {
                message,
                status: EXIT_OWN_FAILURE,
            };
        }
    }
    exec(&options.command)
}

/// Sets the variables that the linker and the preload library read.
fn prepare_environment(options: &Options) -> Result<(), String> {
    let library = library::find()?;
    if options.debug {
        say(&format!("preloading {}", library.display()));
        std::env::set_var("SMC_DEBUG", "1");
    }
    let sizes = [
        ("SMC_SNDBUF", options.sndbuf),
        ("SMC_RCVBUF", options.rcvbuf),
    ];
    for (variable, size) in sizes {
        if let Some(size) = size {
            std::env::set_var(variable, size.to_string());
        }
    }
    std::env::set_var("SMC_FAMILY", &options.family);
    let before = std::env::var_os("LD_PRELOAD");
    std::env::set_var("LD_PRELOAD", library::append(before.as_deref(), &library));
    Ok(())
}

fn exec(command: &[OsString]) -> Failure {
    let name = command[0].to_string_lossy();
    let arguments: Vec<CString> = command
        .iter()
        .map(|argument| {
            // Arguments come from the kernel as C strings, so there is no NUL in them.
            CString::new(argument.clone().into_vec()).unwrap_or_default()
        })
        .collect();
    let Err(error) = nix::unistd::execvp(&arguments[0], &arguments);
    let has_slash = OsStr::as_bytes(&command[0]).contains(&b'/');
    match error {
        Errno::ENOENT if !has_slash => Failure {
            message: format!("there is no program \"{name}\" in the search path."),
            status: EXIT_NOT_FOUND,
        },
        Errno::ENOENT | Errno::ENOTDIR => Failure {
            message: format!("the program \"{name}\" or its interpreter does not exist."),
            status: EXIT_NOT_FOUND,
        },
        error => Failure {
            message: format!("the program \"{name}\" cannot be run: {}.", error.desc()),
            status: EXIT_NOT_EXECUTABLE,
        },
    }
}

/// Tells the user something; a closed standard error is no reason to stop.
fn say(message: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "smc_run: {message}");
}

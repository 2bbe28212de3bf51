// SPDX-License-Identifier: GPL-2.0

//! Checks the socket interface call by call and prints TAP.
//!
//! Every check must pass on TCP as well, which is what keeps it honest; the few
//! that concern the SMC family alone are skipped there. Each runs in a process
//! of its own with a time limit. Where SMC-R is expected, a check during which
//! the fallback counter moves fails, unless falling back is what it is about.

#[macro_use]
mod check;
mod absent;
mod close;
mod connect;
mod create;
mod ctx;
mod data;
mod during;
mod fastopen;
mod flags;
mod options;
mod pipes;
mod place;
mod poll;

use clap::Parser;
use ctx::{Ctx, Expect};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;
use testlib::process::{pipe, raise_file_limit, spawn, End};
use testlib::sock::Family;
use testlib::tap::{Outcome, Problem, Reporter};

/// Longest time one check may take.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Parser)]
#[command(about = "Checks the socket interface call by call, on TCP and on SMC")]
struct Cli {
    /// Socket family: tcp, tcp6, smc or smc6
    #[arg(long, default_value = "smc")]
    family: Family,
    /// Network namespace of the listening sockets
    #[arg(long)]
    server_ns: Option<String>,
    /// Network namespace of the connecting sockets
    #[arg(long)]
    client_ns: Option<String>,
    /// Address of the listening sockets
    #[arg(long)]
    addr: Option<IpAddr>,
    /// What connections must use
    #[arg(long, value_enum, default_value = "any")]
    expect: Expect,
    /// Only the checks whose names contain this
    #[arg(long)]
    only: Option<String>,
    /// Print the names of all checks
    #[arg(long)]
    list: bool,
}

/// One check: its name and what it does.
pub(crate) struct Check {
    name: &'static str,
    run: fn(&Ctx) -> Outcome,
    /// It makes connections fall back, or may do so.
    falls_back: bool,
}

/// A check during which no connection may fall back.
pub(crate) const fn check(name: &'static str, run: fn(&Ctx) -> Outcome) -> Check {
    Check {
        name,
        run,
        falls_back: false,
    }
}

/// A check that falls back on purpose or breaks handshakes.
pub(crate) const fn loose(name: &'static str, run: fn(&Ctx) -> Outcome) -> Check {
    Check {
        name,
        run,
        falls_back: true,
    }
}

fn all() -> Vec<&'static Check> {
    [
        create::CHECKS,
        connect::CHECKS,
        fastopen::CHECKS,
        during::CHECKS,
        poll::CHECKS,
        data::CHECKS,
        pipes::CHECKS,
        flags::CHECKS,
        options::CHECKS,
        absent::CHECKS,
        close::CHECKS,
        place::CHECKS,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Runs one check in a child and brings its result back.
fn run_one(check: &Check, ctx: &Ctx) -> Outcome {
    let before = ctx.fallbacks();
    let (from_child, to_parent) = pipe()?;
    let child = spawn(|| {
        let text = match (check.run)(ctx) {
            Ok(()) => "P".to_owned(),
            Err(Problem::Skipped(why)) => format!("S{why}"),
            Err(Problem::Failed(why)) => format!("F{why}"),
        };
        match to_parent.try_clone() {
            Ok(fd) => i32::from(std::fs::File::from(fd).write_all(text.as_bytes()).is_err()),
            Err(_) => 1,
        }
    })?;
    drop(to_parent);
    let end = child.wait(LIMIT)?;
    if end == End::TimedOut {
        return Err(format!("no result within {LIMIT:?}: a call hangs").into());
    }
    let mut text = String::new();
    std::fs::File::from(from_child).read_to_string(&mut text)?;
    match text.split_at_checked(1) {
        Some(("P", _)) => {}
        Some(("S", why)) => return Err(Problem::Skipped(why.to_owned())),
        Some(("F", why)) => return Err(Problem::Failed(why.to_owned())),
        _ => return Err(format!("the check's process ended with {end:?}").into()),
    }
    let after = ctx.fallbacks();
    if ctx.expect == Expect::Smcr && !check.falls_back && after != before {
        return Err(format!("fallbacks rose from {before:?} to {after:?}").into());
    }
    Ok(())
}

fn main() -> ExitCode {
    raise_file_limit();
    let cli = Cli::parse();
    let checks: Vec<&Check> = all()
        .into_iter()
        .filter(|c| {
            cli.only
                .as_ref()
                .is_none_or(|only| c.name.contains(only.as_str()))
        })
        .collect();
    if cli.list {
        for c in &checks {
            testlib::tap::say(c.name);
        }
        return ExitCode::SUCCESS;
    }
    let ctx = Ctx {
        family: cli.family,
        server_ns: cli.server_ns,
        client_ns: cli.client_ns,
        ip: cli.addr.unwrap_or_else(|| cli.family.loopback()),
        expect: cli.expect,
    };
    let mut reporter = Reporter::new(checks.len());
    for c in checks {
        reporter.report(c.name, &run_one(c, &ctx));
    }
    ExitCode::from(u8::from(reporter.failed() > 0))
}

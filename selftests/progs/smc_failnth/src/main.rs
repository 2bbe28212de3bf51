// SPDX-License-Identifier: GPL-2.0

//! Lets every allocation that the module makes fail, one at a time, and looks what
//! becomes of it: an error or a connection on TCP is right, a call that does not
//! return, wrong bytes, or a later connection that fails are not. What the kernel
//! itself has to say, selftests/vm finds.
//!
//! Needs a kernel with fault injection, and topology `pair`. Prints TAP.

mod inject;
mod load;
mod scenes;
mod talk;

use clap::{Parser, Subcommand};
use inject::{arm_thread, disarm_thread, Everybody, Kind};
use scenes::{Reach, Scene, SCENES};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use testlib::counters::Counters;
use testlib::process::{enter_netns, in_netns, pipe, spawn, Child, End};
use testlib::sock::{Family, Sock};
use testlib::tap::{say, Outcome, Problem, Reporter};

/// Longest time one attempt may take: calls give up before it, see [`talk::PATIENCE`].
const LIMIT: Duration = Duration::from_secs(100);
/// How long connections that were closed may take to leave the module.
const CLOSING: Duration = Duration::from_secs(5);
/// So many attempts in which the allocation did not come end a scene: their number
/// is not the same in each.
const ENOUGH: u32 = 3;
const PORT: u16 = 7400;

#[derive(Parser)]
#[command(about = "Lets each memory allocation of the module fail once, one after the other")]
struct Cli {
    #[command(subcommand)]
    what: What,
    /// The kernel's log gets the stack of each failed allocation
    #[arg(long, global = true)]
    verbose: bool,
}

#[derive(Subcommand)]
enum What {
    /// Sockets, connections, devices, listings, while the module is loaded
    Run {
        /// Only the scenes whose names contain this
        #[arg(long)]
        only: Option<String>,
        /// The first allocation to fail
        #[arg(long, default_value_t = 1)]
        from: u32,
        /// Fail every so manieth only
        #[arg(long, default_value_t = 1)]
        step: u32,
        /// Namespaces of server and client
        #[arg(long, num_args = 2, default_values = ["a", "b"])]
        ns: Vec<String>,
        /// Addresses of server and client
        #[arg(long, num_args = 2, default_values = ["10.9.0.1", "10.9.0.2"])]
        addr: Vec<IpAddr>,
        /// RDMA device and network device of the client
        #[arg(long, num_args = 2, default_values = ["rxe1", "veth0"])]
        device: Vec<String>,
    },
    /// Loading the module, which must not be loaded
    Load {
        /// The module's file
        file: PathBuf,
        /// Its parameters
        #[arg(default_value = "")]
        params: String,
    },
    /// Whether the kernel can do this: exit status 0 if so
    Supported,
}

/// Where and between whom.
pub(crate) struct Ctx {
    pub(crate) server: SocketAddr,
    pub(crate) client_ip: IpAddr,
    pub(crate) client_ns: String,
    pub(crate) device: String,
    pub(crate) netdev: String,
    server_ns: String,
}

/// What is going to fail in an attempt.
pub(crate) struct Fault<'a> {
    nth: u32,
    everybody: Option<&'a Everybody>,
    failed: Cell<bool>,
}

impl Fault<'_> {
    /// From now on.
    pub(crate) fn start(&self) -> Result<(), String> {
        match self.everybody {
            Some(everybody) => everybody.arm(),
            None => arm_thread(self.nth),
        }
        .map_err(|e| e.to_string())
    }

    /// Until now; what everybody does ends later, when the dust has settled.
    pub(crate) fn stop(&self) -> Result<(), String> {
        if self.everybody.is_none() {
            self.failed.set(disarm_thread().map_err(|e| e.to_string())?);
        }
        Ok(())
    }
}

/// Runs a program in the calling process's namespace.
///
/// # Errors
///
/// Its standard error output, when it fails.
pub(crate) fn run_tool(tool: &str, args: &[&str]) -> Result<(), String> {
    let done = Command::new(tool)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{tool}: {e}"))?;
    if done.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&done.stderr);
    Err(format!("{tool} {}: {}", args.join(" "), text.trim()))
}

/// Runs `body` in a process in the client's namespace and brings its words back.
fn apart(ctx: &Ctx, body: impl FnOnce() -> Result<String, String>) -> Result<String, String> {
    let fail = |e: std::io::Error| format!("the test itself failed: {e}");
    let (from_child, to_parent) = pipe().map_err(fail)?;
    let child = spawn(|| {
        let text = match enter_netns(&ctx.client_ns) {
            Ok(()) => body(),
            Err(e) => Err(format!("namespace {}: {e}", ctx.client_ns)),
        };
        let text = text.map_or_else(|e| format!("!{e}"), |t| format!("={t}"));
        match to_parent.try_clone() {
            Ok(fd) => i32::from(File::from(fd).write_all(text.as_bytes()).is_err()),
            Err(_) => 1,
        }
    })
    .map_err(fail)?;
    drop(to_parent);
    match child.wait(LIMIT).map_err(fail)? {
        End::Exit(0) => {}
        End::TimedOut => return Err(format!("not finished within {LIMIT:?}")),
        end => return Err(format!("the process ended with {end:?}")),
    }
    let mut text = String::new();
    File::from(from_child)
        .read_to_string(&mut text)
        .map_err(fail)?;
    match text.split_at_checked(1) {
        Some(("=", text)) => Ok(text.to_owned()),
        Some((_, text)) => Err(text.to_owned()),
        None => Err("the process said nothing".to_owned()),
    }
}

/// One attempt: whether the allocation came and failed, and what was seen.
fn attempt(
    ctx: &Ctx,
    scene: &Scene,
    n: u32,
    everybody: Option<&mut Everybody>,
) -> Result<(bool, String), String> {
    apart(ctx, || (scene.prepare)(ctx).map(|()| String::new()))
        .map_err(|e| format!("before it: {e}"))?;
    if scene.reach == Reach::Everybody {
        // What was closed may still be busy, and would be taken for the scene's doing.
        settle(ctx);
    }
    let run = |everybody: Option<&Everybody>| {
        apart(ctx, || {
            let fault = Fault {
                nth: n,
                everybody,
                failed: Cell::new(false),
            };
            let seen = (scene.run)(ctx, &fault)?;
            Ok(format!("{} {seen:?}", u8::from(fault.failed.get())))
        })
    };
    let Some(everybody) = everybody else {
        let text = run(None)?;
        let (failed, seen) = text.split_once(' ').unwrap_or(("0", &text));
        return Ok((failed == "1", seen.to_owned()));
    };
    everybody.plan(n);
    let result = run(Some(everybody));
    settle(ctx);
    let failed = everybody.disarm().map_err(|e| e.to_string())?;
    let text = result?;
    Ok((failed, text.split_once(' ').map_or("", |w| w.1).to_owned()))
}

/// Waits until closed connections have left the module, or for as long as that may take.
fn settle(ctx: &Ctx) {
    let end = Instant::now() + CLOSING;
    let busy =
        |ns: &str| in_netns(Some(ns), Counters::read).map_or(0, |c| c.value("connections_active"));
    while Instant::now() < end && busy(&ctx.server_ns) + busy(&ctx.client_ns) > 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Everything works again.
fn works(ctx: &Ctx) -> Result<(), String> {
    match apart(ctx, || talk::whole(ctx.server).map(|s| format!("{s:?}")))?.as_str() {
        "Smcr" | "Tcp" => Ok(()),
        other => Err(format!("a connection afterwards was {other}")),
    }
}

/// Lets one allocation after the other fail.
fn play(
    ctx: &Ctx,
    scene: &Scene,
    (from, step): (u32, u32),
    mut everybody: Option<&mut Everybody>,
) -> Outcome {
    let what = everybody
        .as_ref()
        .map_or(String::new(), |e| format!(" of {}", e.kind()));
    let (mut n, mut failures, mut none) = (from, 0u32, 0u32);
    let mut tally: BTreeMap<String, u32> = BTreeMap::new();
    let start = Instant::now();
    while none < ENOUGH {
        let at = |text: String| {
            Problem::Failed(format!(
                "allocation {n}{what} (run --only '{}' --from {n}): {text}",
                scene.name
            ))
        };
        let begin = Instant::now();
        let (failed, seen) = attempt(ctx, scene, n, everybody.as_deref_mut()).map_err(at)?;
        if begin.elapsed() > CLOSING * 2 {
            say(&format!(
                "# allocation {n}{what} took {:?}: {seen}",
                begin.elapsed()
            ));
        }
        if failed {
            failures += 1;
            none = 0;
            *tally.entry(seen).or_default() += 1;
        } else {
            none += 1;
        }
        if scene.reach == Reach::Everybody || n % 8 == 0 {
            works(ctx).map_err(at)?;
        }
        n += step;
    }
    works(ctx)?;
    // Some scenes need no page of their own.
    if failures == 0 && everybody.is_none_or(|e| e.kind() == Kind::Slab) {
        return Err("no allocation was seen that could fail".into());
    }
    let seen: Vec<String> = tally.iter().map(|(k, v)| format!("{v} {k}")).collect();
    say(&format!(
        "# {}: {failures} allocations{what} failed: {} ({} s)",
        scene.name,
        seen.join(", "),
        start.elapsed().as_secs()
    ));
    Ok(())
}

/// The server, in a process of its own.
fn server(ctx: &Ctx) -> std::io::Result<Child> {
    let listener = in_netns(Some(&ctx.server_ns), || {
        Sock::listener(Family::Smc, ctx.server.ip(), PORT, 128)
    })?;
    spawn(move || match talk::serve(&listener) {
        Ok(()) => 0,
        Err(e) => {
            say(&format!("# the server stopped: {e}"));
            1
        }
    })
}

fn run(ctx: &Ctx, only: Option<&str>, range: (u32, u32)) -> std::io::Result<usize> {
    let _server = server(ctx)?;
    let mut counts = Kind::ALL.map(Everybody::new);
    let chosen: Vec<&Scene> = SCENES
        .iter()
        .filter(|s| only.is_none_or(|only| s.name.contains(only)))
        .collect();
    let tests = chosen.iter().map(|s| match s.reach {
        Reach::Thread => 1,
        Reach::Everybody => counts.len(),
    });
    let mut reporter = Reporter::new(tests.sum());
    for scene in chosen {
        match scene.reach {
            Reach::Thread => reporter.report(scene.name, &play(ctx, scene, range, None)),
            Reach::Everybody => {
                for count in &mut counts {
                    let name = format!("{}, {}", scene.name, count.kind());
                    reporter.report(&name, &play(ctx, scene, range, Some(count)));
                }
            }
        }
    }
    Ok(reporter.failed())
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if !inject::is_supported() {
        say("Bail out! This kernel cannot inject faults: use --kernel debug or kasan.");
        return ExitCode::FAILURE;
    }
    let result = match cli.what {
        What::Supported => return ExitCode::SUCCESS,
        What::Load { file, params } => load::run(&file, &params),
        What::Run {
            only,
            from,
            step,
            ns,
            addr,
            device,
        } => {
            let ctx = Ctx {
                server: SocketAddr::new(addr[0], PORT),
                client_ip: addr[1],
                client_ns: ns[1].clone(),
                server_ns: ns[0].clone(),
                device: device[0].clone(),
                netdev: device[1].clone(),
            };
            inject::only_for("smc_rs", cli.verbose)
                .and_then(|()| run(&ctx, only.as_deref(), (from, step)))
        }
    };
    match result {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            say(&format!("Bail out! {e}"));
            ExitCode::FAILURE
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! A peer with a real RDMA link that sends good and bad CLC, LLC and CDC messages.
//!
//! It sets up links and connections by hand: TCP sockets for the handshake (to whose packets
//! `smc_middlebox add` gives the SMC option), and a queue pair through libibverbs. Each case breaks
//! one rule and then looks at what the other side makes of it: the connection or link concerned
//! ends, another one on the same link or to the same host goes on, and nothing was written outside
//! of the rings.

mod case;
mod cases;
mod clc;
mod conn;
mod habits;
mod link;
mod message;
mod session;
mod verbs;

use clap::{Args, Parser, Subcommand};
use clc::Identity;
use link::RINGS;
use session::Session;
use smc_proto::ids::{Eid, Version};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use testlib::cases::{finish, in_parallel, list};
use testlib::process::raise_file_limit;
use testlib::tap::{say, Outcome, Reporter};

/// Longest time for two round trips of connections that have nothing to do with a case.
const WITNESS_LIMIT: Duration = Duration::from_secs(20);

#[derive(Parser)]
#[command(about = "Sends good and bad SMC messages over TCP and a real RDMA link")]
struct Cli {
    #[command(subcommand)]
    role: RoleArgs,
}

#[derive(Subcommand)]
enum RoleArgs {
    /// Connect to an SMC listener whose application echoes
    Client {
        #[command(flatten)]
        common: Common,
        /// Cases at one time
        #[arg(long, default_value_t = 4)]
        jobs: usize,
    },
    /// Accept a connection of an SMC application, started for each case
    Server {
        #[command(flatten)]
        common: Common,
        /// The application; it must connect, expect an echo, and exit with 0 if it came
        #[arg(last = true, required = true)]
        app: Vec<String>,
    },
    /// Print the names of all cases
    List,
}

#[derive(Args, Clone)]
struct Common {
    /// Address of the server
    #[arg(long)]
    addr: Ipv4Addr,
    /// Port of the server
    #[arg(long)]
    port: u16,
    /// Address of this peer's RDMA device; that of the server by default
    #[arg(long)]
    own: Option<Ipv4Addr>,
    /// Enterprise ID that the other side knows
    #[arg(long, default_value = "SMC-RS-TEST")]
    eid: String,
    /// Only the cases whose name begins so
    #[arg(long)]
    case: Option<String>,
    /// Also the cases that take long
    #[arg(long)]
    all: bool,
    /// The cases of version 1 in place of those of version 2; the module must have been told
    /// v1_over_rocev2=1
    #[arg(long)]
    v1: bool,
}

impl Common {
    fn identity(&self, number: usize) -> Result<Identity, String> {
        Ok(Identity {
            at: SocketAddr::new(IpAddr::V4(self.addr), self.port),
            own: self.own.unwrap_or(self.addr),
            eid: Eid::parse(self.eid.as_bytes())
                .map_err(|_| format!("'{}' is no enterprise ID", self.eid))?,
            number: number as u16,
            version: self.version(),
            rings: RINGS,
        })
    }

    fn version(&self) -> Version {
        if self.v1 {
            Version::V1
        } else {
            Version::V2
        }
    }

    fn wants(&self, name: &str, slow: bool, version: Version) -> bool {
        let chosen = match &self.case {
            Some(case) => name.starts_with(case.as_str()),
            None => self.all || !slow,
        };
        chosen && version == self.version()
    }
}

/// Says how long a case took beside its result.
fn timed(name: &str, run: impl FnOnce() -> Result<(), String>) -> Outcome {
    let start = Instant::now();
    let outcome = run();
    say(&format!("# {name}: {:.1} s", start.elapsed().as_secs_f64()));
    outcome.map_err(Into::into)
}

/// A session that has nothing to do with the cases, and must go on whatever they do.
struct Witness<'a> {
    common: &'a Common,
    /// Round trips so far.
    rounds: AtomicU64,
    stop: AtomicBool,
}

impl Witness<'_> {
    fn run(&self) -> Result<(), String> {
        let mut session = Session::connect(&self.common.identity(1)?)?;
        session.join()?;
        while !self.stop.load(Ordering::Relaxed) {
            for n in 0..2 {
                session.echo(n, 3000)?;
            }
            self.rounds.fetch_add(1, Ordering::Relaxed);
            session
                .link
                .wait(Duration::from_millis(50), |_| None::<()>)?;
        }
        say(&format!(
            "# {} round trips meanwhile",
            self.rounds.load(Ordering::Relaxed)
        ));
        session.finish()
    }

    /// Waits for a round trip that began after the call.
    fn check(&self) -> Result<(), String> {
        let goal = self.rounds.load(Ordering::Relaxed) + 2;
        let end = Instant::now() + WITNESS_LIMIT;
        while self.rounds.load(Ordering::Relaxed) < goal {
            if Instant::now() > end {
                return Err("connections that have nothing to do with it stand still".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

fn run_client(common: &Common, jobs: usize) -> Result<usize, String> {
    let chosen: Vec<_> = cases::client()
        .enumerate()
        .filter(|(_, c)| common.wants(c.name, c.slow, c.version))
        .collect();
    if chosen.is_empty() {
        return Err("there is no case of this name: see 'smc_peer list'".into());
    }
    let jobs = jobs.clamp(1, chosen.len());
    let reporter = Mutex::new(Reporter::new(chosen.len() + 1));
    let witness = Witness {
        common,
        rounds: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    let witnessed = std::thread::scope(|s| {
        let witnessing = s.spawn(|| witness.run());
        let outcome = in_parallel(chosen, jobs, |(number, case)| {
            let id = common.identity(100 + number)?;
            let outcome = timed(case.name, || {
                (case.run)(&id)?;
                witness.check()
            });
            let mut reporter = reporter.lock().map_err(|_| "a case panicked")?;
            reporter.report(&format!("client {}", case.name), &outcome);
            Ok(())
        });
        witness.stop.store(true, Ordering::Relaxed);
        let panicked = |_| Err("a case panicked".to_owned());
        outcome.and(witnessing.join().unwrap_or_else(panicked))
    });
    let mut reporter = reporter.into_inner().map_err(|_| "a case panicked")?;
    reporter.report(
        "connections that have nothing to do with it go on",
        &witnessed.map_err(Into::into),
    );
    Ok(reporter.failed())
}

fn run_server(common: &Common, app: &[String]) -> Result<usize, String> {
    let chosen: Vec<_> = cases::server()
        .enumerate()
        .filter(|(_, c)| common.wants(c.name, c.slow, c.version))
        .collect();
    if chosen.is_empty() {
        return Err("there is no case of this name: see 'smc_peer list'".into());
    }
    let listener = Identity::listen(common.addr, common.port)?;
    let mut reporter = Reporter::new(chosen.len());
    for (number, case) in chosen {
        let id = common.identity(1000 + number)?;
        let outcome = timed(case.name, || case::play_server(case, &id, &listener, app));
        reporter.report(&format!("server {}", case.name), &outcome);
    }
    Ok(reporter.failed())
}

fn list_all() -> usize {
    list("client", cases::client().map(|case| case.name));
    list("server", cases::server().map(|case| case.name));
    0
}

fn main() -> ExitCode {
    raise_file_limit();
    let outcome = match Cli::parse().role {
        RoleArgs::Client { common, jobs } => run_client(&common, jobs),
        RoleArgs::Server { common, app } => run_server(&common, &app),
        RoleArgs::List => Ok(list_all()),
    };
    finish("smc_peer", outcome)
}

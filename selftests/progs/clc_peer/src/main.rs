// SPDX-License-Identifier: GPL-2.0

//! A peer on plain TCP that sends good and bad CLC messages and watches the answer.
//!
//! `smc_middlebox add` gives its packets the SMC option. As a client it talks to
//! a listener whose application echoes; as a server it starts an application that
//! connects to it. Each case is one connection and one line of TAP.

mod case;
mod client_cases;
mod messages;
mod play;
mod server_cases;

use case::Case;
use clap::{Args, Parser, Subcommand};
use messages::{Identity, GOOD};
use play::{judge, play, Ending, Role, Seen};
use smc_proto::ids::Eid;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Child, Command, ExitCode};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use testlib::cases;
use testlib::event::poll_one;
use testlib::json::Object;
use testlib::process::raise_file_limit;
use testlib::sock::{Family, Sock};
use testlib::tap::{say, Outcome, Reporter};

#[derive(Parser)]
#[command(about = "Sends good and bad CLC messages over plain TCP and watches the answer")]
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
        /// Connections at one time
        #[arg(long, default_value_t = 6)]
        jobs: usize,
    },
    /// Accept a connection of an SMC application, started for each case
    Server {
        #[command(flatten)]
        common: Common,
        /// Connections at one time
        #[arg(long, default_value_t = 6)]
        jobs: usize,
        /// The application; it must connect, expect an echo, and exit with 0 if it came
        #[arg(last = true, required = true)]
        app: Vec<String>,
    },
    /// Open many connections that stay silent, and run a command meanwhile
    Flood {
        /// Address of the server
        #[arg(long)]
        addr: Ipv4Addr,
        /// Port of the server
        #[arg(long)]
        port: u16,
        /// Number of silent connections
        #[arg(long, default_value_t = 300)]
        count: usize,
        /// Send the head of a Proposal on each, whose rest never comes
        #[arg(long)]
        begin: bool,
        /// The command; its exit status becomes that of this program
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
    /// Address this peer names in its messages; that of the server by default
    #[arg(long)]
    own: Option<Ipv4Addr>,
    /// Enterprise ID that the other side knows
    #[arg(long, default_value = "SMC-RS-TEST")]
    eid: String,
    /// Only the case of this name
    #[arg(long)]
    case: Option<String>,
}

impl Common {
    fn identity(&self, number: usize) -> Identity {
        Identity {
            addr: self.own.unwrap_or(self.addr),
            eid: self.eid.clone(),
            number: number as u16 + 1,
            terms: GOOD,
        }
    }

    fn at(&self) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(self.addr), self.port)
    }

    /// The cases to play, each with its number.
    fn select(&self, cases: &[&'static Case]) -> Result<Vec<(usize, &'static Case)>, String> {
        let chosen: Vec<_> = cases
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, c)| self.case.as_ref().is_none_or(|name| name == c.name))
            .collect();
        if chosen.is_empty() {
            return Err("there is no case of this name: see 'clc_peer list'".into());
        }
        if Eid::parse(self.eid.as_bytes()).is_err() {
            return Err(format!("'{}' is no enterprise ID", self.eid));
        }
        Ok(chosen)
    }
}

fn client_cases() -> Vec<&'static Case> {
    [
        client_cases::FRAMES,
        client_cases::PROPOSALS,
        client_cases::CONFIRMS,
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn server_cases() -> Vec<&'static Case> {
    server_cases::ACCEPTS.iter().collect()
}

fn describe(case: &Case, ending: &Ending) -> String {
    let seen = match &ending.seen {
        Seen::Declined(r) => format!("decline {:#010x} {}", r.0, r.name()),
        other => format!("{other:?}"),
    };
    let data = match &ending.data {
        None => "not tried",
        Some(Ok(())) => "ok",
        Some(Err(_)) => "failed",
    };
    Object::new()
        .text("case", case.name)
        .text("answer", &seen)
        .text("data", data)
        .raw("seconds", format!("{:.2}", ending.seconds))
        .finish()
}

fn connected(common: &Common) -> Result<Sock, String> {
    let sock = Sock::new(Family::Tcp).map_err(|e| format!("socket: {e}"))?;
    sock.connect(common.at())
        .map_err(|e| format!("connect: {e}"))?;
    set_up(&sock)?;
    Ok(sock)
}

/// Every send in a segment of its own, and no send that blocks for ever.
fn set_up(sock: &Sock) -> Result<(), String> {
    sock.set_int(libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)
        .and_then(|()| sock.set_timeout(libc::SO_SNDTIMEO, Duration::from_secs(10)))
        .map_err(|e| format!("setsockopt: {e}"))
}

fn play_client(common: &Common, number: usize, case: &Case) -> (String, Outcome) {
    let sock = match connected(common) {
        Ok(s) => s,
        Err(e) => return (String::new(), Err(e.into())),
    };
    let ending = play(case, &common.identity(number), sock, Role::Client);
    let outcome = judge(case, &ending).map_err(Into::into);
    (describe(case, &ending), outcome)
}

/// Plays all cases, `jobs` at one time, and reports each.
fn run_all(
    role: &str,
    chosen: Vec<(usize, &'static Case)>,
    jobs: usize,
    play: impl Fn(usize, &'static Case) -> (String, Outcome) + Sync,
) -> Result<usize, String> {
    let reporter = Mutex::new(Reporter::new(chosen.len()));
    cases::in_parallel(chosen, jobs, |(number, case)| {
        let (text, outcome) = play(number, case);
        let mut reporter = reporter.lock().map_err(|_| "a case panicked")?;
        say(&format!("# {text}"));
        reporter.report(&format!("{role} {}", case.name), &outcome);
        Ok(())
    })?;
    let reporter = reporter.into_inner().map_err(|_| "a case panicked")?;
    Ok(reporter.failed())
}

fn run_client(common: &Common, jobs: usize) -> Result<usize, String> {
    let chosen = common.select(&client_cases())?;
    run_all("client", chosen, jobs, |number, case| {
        play_client(common, number, case)
    })
}

/// Starts the application, plays the server, and waits for both.
fn play_server(
    common: &Common,
    listener: &Mutex<Sock>,
    app: &[String],
    number: usize,
    case: &Case,
) -> Result<(Ending, bool, f64), String> {
    let start = Instant::now();
    let (mut child, accepted) = meet(listener, app)?;
    let ending = accepted.and_then(|sock| answer(common, sock, number, case));
    let end = Instant::now() + Duration::from_secs(case.within + 20);
    loop {
        if let Some(status) = child.try_wait().map_err(|e| format!("waitpid: {e}"))? {
            return Ok((ending?, status.success(), start.elapsed().as_secs_f64()));
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("the application hangs; this peer saw {ending:?}"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts the application and accepts its connection. One at a time, so that the connection is
/// surely that of this application.
fn meet(listener: &Mutex<Sock>, app: &[String]) -> Result<(Child, Result<Sock, String>), String> {
    let listener = listener.lock().map_err(|_| "a case panicked")?;
    let child = Command::new(&app[0])
        .args(&app[1..])
        .spawn()
        .map_err(|e| format!("the application cannot be started: {e}"))?;
    let arrived = poll_one(&listener, libc::POLLIN, 10_000).map_err(|e| format!("poll: {e}"))?;
    let accepted = if arrived == 0 {
        Err("the application did not connect within 10 s".to_owned())
    } else {
        listener
            .accept(libc::SOCK_CLOEXEC)
            .map(|(sock, _)| sock)
            .map_err(|e| format!("accept: {e}"))
    };
    Ok((child, accepted))
}

fn answer(common: &Common, sock: Sock, number: usize, case: &Case) -> Result<Ending, String> {
    set_up(&sock)?;
    // The Proposal comes first in every case, and it must be a good one.
    let terms = play::proposal(&sock)?;
    let id = Identity {
        terms,
        ..common.identity(number)
    };
    Ok(play(case, &id, sock, Role::Server))
}

fn judge_server(case: &Case, result: Result<(Ending, bool, f64), String>) -> (String, Outcome) {
    let (ending, app_ok, seconds) = match result {
        Ok(r) => r,
        Err(e) => return (String::new(), Err(e.into())),
    };
    let mut outcome: Outcome = judge(case, &ending).map_err(Into::into);
    if outcome.is_ok() && case.must_work && !app_ok {
        outcome = Err("the connection must work over TCP, but the application failed".into());
    }
    let text = format!(
        "{} application ok: {app_ok}, {seconds:.1} s",
        describe(case, &ending)
    );
    (text, outcome)
}

fn run_server(common: &Common, jobs: usize, app: &[String]) -> Result<usize, String> {
    let chosen = common.select(&server_cases())?;
    let listener = Sock::listener(Family::Tcp, IpAddr::V4(common.addr), common.port, 16)
        .map_err(|e| format!("cannot listen on {}: {e}", common.at()))?;
    let listener = Mutex::new(listener);
    run_all("server", chosen, jobs, |number, case| {
        judge_server(case, play_server(common, &listener, app, number, case))
    })
}

/// Longest time until all silent connections are there.
const FLOOD_LIMIT: Duration = Duration::from_secs(20);

/// Runs the command while silent connections wait; returns 0 if it succeeds.
fn flood(at: SocketAddr, count: usize, begin: bool, app: &[String]) -> Result<usize, String> {
    let start = Instant::now();
    let mut silent = Vec::new();
    for n in 0..count {
        let sock = Sock::with_flags(Family::Tcp, libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC)
            .map_err(|e| format!("socket {n}: {e}"))?;
        match sock.connect(at) {
            Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => {
                return Err(format!("connection {n}: {e}"))
            }
            _ => silent.push(sock),
        }
    }
    for (n, sock) in silent.iter().enumerate() {
        let left = FLOOD_LIMIT.saturating_sub(start.elapsed());
        match poll_one(sock, libc::POLLOUT, left.as_millis() as i32) {
            Ok(bits) if bits & libc::POLLOUT != 0 => {}
            other => return Err(format!("{n} of {count} connections came up: {other:?}")),
        }
    }
    say(&format!(
        "# {count} silent connections after {:.1} s",
        start.elapsed().as_secs_f64()
    ));
    if begin {
        // Of a Proposal of 512 bytes.
        let head = [0xe2, 0xd4, 0xc3, 0xd9, 1, 2, 0, 0x20];
        for sock in &silent {
            sock.send(&head, libc::MSG_NOSIGNAL)
                .map_err(|e| format!("the head of a message cannot be sent: {e}"))?;
        }
    }
    let status = Command::new(&app[0])
        .args(&app[1..])
        .status()
        .map_err(|e| format!("the command cannot be started: {e}"))?;
    Ok(usize::from(!status.success()))
}

fn list() -> usize {
    cases::list("client", client_cases().iter().map(|case| case.name));
    cases::list("server", server_cases().iter().map(|case| case.name));
    0
}

fn main() -> ExitCode {
    raise_file_limit();
    let outcome = match Cli::parse().role {
        RoleArgs::Client { common, jobs } => run_client(&common, jobs),
        RoleArgs::Server { common, jobs, app } => run_server(&common, jobs, &app),
        RoleArgs::Flood {
            addr,
            port,
            count,
            begin,
            app,
        } => flood(SocketAddr::new(IpAddr::V4(addr), port), count, begin, &app),
        RoleArgs::List => Ok(list()),
    };
    cases::finish("clc_peer", outcome)
}

// SPDX-License-Identifier: GPL-2.0

//! Sends seeded streams over TCP or SMC sockets and accounts for every byte.
//!
//! Both ends derive every byte, size and choice from one seed. Receivers compare
//! each byte with what must come next; at the end both sides exchange counts and
//! SHA-256 digests over a separate TCP connection. The exit status is 0 only if
//! everything was right, and the last line of output is one JSON object.

mod abort;
mod blocking;
mod client;
mod echo;
mod edge;
mod kill;
mod oob;
mod plan;
mod report;
mod server;

use clap::{Args, Parser, Subcommand};
use plan::{Io, Mode, Own, Plan, Recv, Victim};
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use testlib::pattern::parse_size;
use testlib::process::{enter_netns, raise_file_limit, spawn, End};
use testlib::sock::Family;

#[derive(Parser)]
#[command(about = "Sends seeded streams over TCP or SMC sockets and accounts for every byte")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Wait for one client and carry out its plan
    Server(Endpoint),
    /// Carry out a plan with a server
    Client {
        #[command(flatten)]
        at: Endpoint,
        #[command(flatten)]
        plan: PlanArgs,
    },
    /// Run a server and a client, each in a network namespace of its own
    Both {
        #[command(flatten)]
        at: Endpoint,
        #[command(flatten)]
        plan: PlanArgs,
        /// Network namespace of the server
        #[arg(long)]
        server_ns: Option<String>,
        /// Network namespace of the client
        #[arg(long)]
        client_ns: Option<String>,
    },
    /// Send everything back on every connection until killed
    Echo {
        #[command(flatten)]
        at: Endpoint,
        /// How many connections may wait to be accepted
        #[arg(long, default_value_t = 512)]
        backlog: i32,
        /// What to do to the listener first
        #[arg(long, value_enum, default_value = "nothing")]
        before: echo::Before,
        /// Demand MD5 signatures from this peer
        #[arg(long)]
        md5_peer: Option<IpAddr>,
    },
    /// Send messages to an echo server and check what comes back
    Ping {
        #[command(flatten)]
        at: Endpoint,
        /// Number of connections, made one after the other
        #[arg(long, default_value_t = 1)]
        conns: usize,
        /// Number of messages
        #[arg(long, default_value_t = 3)]
        count: u64,
        /// Bytes of each message
        #[arg(long, default_value = "1000", value_parser = parse_size)]
        size: u64,
        /// How to wait
        #[arg(long, value_enum, default_value = "block")]
        wait: echo::Wait,
        /// What to do to the socket before connecting
        #[arg(long, value_enum, default_value = "nothing")]
        before: echo::Before,
        /// Seconds until the run counts as hung
        #[arg(long, default_value_t = 30)]
        timeout: u64,
        /// Milliseconds to keep the connections open before closing them
        #[arg(long, default_value_t = 0)]
        hold: u64,
        /// Notice meanwhile when the connection made last ends
        #[arg(long)]
        watch: bool,
    },
}

#[derive(Args, Clone)]
struct Endpoint {
    /// Socket family: tcp, tcp6, smc or smc6
    #[arg(long, default_value = "smc")]
    family: Family,
    /// Address of the server
    #[arg(long)]
    addr: Option<IpAddr>,
    /// Port of the server; the next one carries the control connection
    #[arg(long, default_value_t = 7000)]
    port: u16,
    /// End a direction or a connection only when all was sent: the SMC that comes with the
    /// kernel says after two seconds that it is done, whatever is left
    #[arg(long)]
    drain: bool,
}

impl Endpoint {
    fn ip(&self) -> IpAddr {
        self.addr.unwrap_or_else(|| self.family.loopback())
    }

    fn socket_addr(&self) -> SocketAddr {
        SocketAddr::new(self.ip(), self.port)
    }
}

#[derive(Args, Clone)]
struct PlanArgs {
    #[arg(long, value_enum, default_value = "fixed")]
    mode: Mode,
    /// Seed of all data and choices; printed in the summary
    #[arg(long)]
    seed: Option<u64>,
    /// Connections in total
    #[arg(long, default_value_t = 1)]
    conns: u64,
    /// Connections at one time; all of them by default
    #[arg(long)]
    parallel: Option<u64>,
    /// Connections being set up at one time, 0 for all
    #[arg(long, default_value_t = 0)]
    connecting: u64,
    /// Bytes of each direction, or their upper limit in modes with random amounts
    #[arg(long, default_value = "1M", value_parser = parse_size)]
    bytes: u64,
    /// Send in both directions at once
    #[arg(long)]
    bidir: bool,
    /// Smallest message
    #[arg(long, default_value = "1", value_parser = parse_size)]
    msg_min: u64,
    /// Largest message, at most 64M
    #[arg(long, default_value = "64K", value_parser = parse_size)]
    msg_max: u64,
    /// SO_SNDBUF, 0 for the default
    #[arg(long, default_value = "0", value_parser = parse_size)]
    sndbuf: u64,
    /// SO_RCVBUF, 0 for the default
    #[arg(long, default_value = "0", value_parser = parse_size)]
    rcvbuf: u64,
    /// How the client drives its sockets
    #[arg(long, value_enum, default_value = "blocking")]
    io: Io,
    /// How the server drives its sockets
    #[arg(long, value_enum, default_value = "blocking")]
    server_io: Io,
    /// How blocking receivers read
    #[arg(long, value_enum, default_value = "plain")]
    recv: Recv,
    /// Whose processes are killed in mode kill, and which side resets in mode abort
    #[arg(long, value_enum, default_value = "client")]
    victim: Victim,
    /// Seconds until the run counts as hung
    #[arg(long, default_value_t = 120)]
    timeout: u64,
}

impl PlanArgs {
    fn plan(&self, at: &Endpoint) -> Result<Plan, String> {
        let epoll = self.io == Io::Epoll || self.server_io == Io::Epoll;
        if epoll && self.mode != Mode::Fixed {
            return Err(
                "epoll works with --mode fixed only: the other modes use blocking calls".into(),
            );
        }
        if self.msg_max > 64 << 20 || self.msg_min > self.msg_max || self.msg_min == 0 {
            return Err(
                "message sizes must be 1 to 64M and the smallest not above the largest".into(),
            );
        }
        let clock = || {
            SystemTime::UNIX_EPOCH
                .elapsed()
                .map_or(1, |d| d.as_nanos() as u64 % 1_000_000_007)
        };
        Ok(Plan {
            mode: self.mode,
            seed: self.seed.unwrap_or_else(clock),
            conns: self.conns,
            parallel: self.parallel.unwrap_or(self.conns).max(1),
            bytes: self.bytes,
            bidir: self.bidir,
            msg_min: self.msg_min,
            msg_max: self.msg_max,
            sndbuf: self.sndbuf,
            rcvbuf: self.rcvbuf,
            server_io: self.server_io,
            recv: self.recv,
            victim: self.victim,
            timeout: self.timeout,
            own: Own {
                drain: at.drain,
                connecting: self.connecting,
            },
        })
    }
}

fn enter(ns: Option<&str>) -> Result<(), String> {
    ns.map_or(Ok(()), |n| {
        enter_netns(n).map_err(|e| format!("cannot enter network namespace '{n}': {e}"))
    })
}

fn serve(at: &Endpoint) -> Result<i32, String> {
    let own = Own {
        drain: at.drain,
        ..Own::default()
    };
    server::serve(at.family, at.ip(), at.port, own)
}

fn both(
    at: &Endpoint,
    args: &PlanArgs,
    server_ns: Option<&str>,
    client_ns: Option<&str>,
) -> Result<i32, String> {
    let plan = args.plan(at)?;
    let server = spawn(|| {
        let done = enter(server_ns).and_then(|()| serve(at));
        finish(done)
    })
    .map_err(|e| format!("fork failed: {e}"))?;
    enter(client_ns)?;
    let own = client::run(&plan, args.io, at.family, at.socket_addr());
    // A server whose client gave up is of no more use.
    let patience = if own.is_ok() { 30 } else { 1 };
    let end = server
        .wait(Duration::from_secs(patience))
        .map_err(|e| format!("waitpid: {e}"))?;
    match (own?, end) {
        (0, End::Exit(0)) => Ok(0),
        (0, end) => Err(format!("the server ended with {end:?}")),
        (status, _) => Ok(status),
    }
}

fn finish(outcome: Result<i32, String>) -> i32 {
    outcome.unwrap_or_else(|e| {
        eprintln!("smc_stream: {e}");
        2
    })
}

fn main() -> ExitCode {
    raise_file_limit();
    let outcome = match Cli::parse().command {
        Command::Server(at) => serve(&at),
        Command::Client { at, plan } => plan
            .plan(&at)
            .and_then(|p| client::run(&p, plan.io, at.family, at.socket_addr())),
        Command::Both {
            at,
            plan,
            server_ns,
            client_ns,
        } => both(&at, &plan, server_ns.as_deref(), client_ns.as_deref()),
        Command::Echo {
            at,
            backlog,
            before,
            md5_peer,
        } => echo::echo(at.family, at.socket_addr(), backlog, before, md5_peer)
            .map(|()| 0)
            .map_err(|e| format!("cannot serve on {}: {e}", at.socket_addr())),
        Command::Ping {
            at,
            conns,
            count,
            size,
            wait,
            before,
            timeout,
            hold,
            watch,
        } => Ok(echo::ping(&echo::Ping {
            family: at.family,
            addr: at.socket_addr(),
            conns,
            count,
            size: size.max(1),
            wait,
            before,
            limit: Duration::from_secs(timeout),
            hold: Duration::from_millis(hold),
            watch,
        })),
    };
    ExitCode::from(finish(outcome) as u8)
}

// SPDX-License-Identifier: GPL-2.0

//! Lets things happen at the same time that do not go together: sockets are closed
//! while they connect, listeners during handshakes, devices, network namespaces and
//! the module go away under traffic, and every call is made on every socket at once.
//! Calls return and nothing else is harmed; what the kernel has to say about it,
//! selftests/vm finds. Prints TAP; its seed repeats the choices, not the moments.

mod handshakes;
mod mixed;
mod race;
mod system;

use clap::Parser;
use race::{Place, Race};
use std::fs::File;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use testlib::counters::Counters;
use testlib::process::{in_netns, pipe, raise_file_limit, spawn, End};
use testlib::sock::{Family, Sock};
use testlib::tap::{say, Outcome, Reporter};

#[derive(Parser)]
#[command(about = "Lets things happen at the same time that do not go together")]
struct Cli {
    /// Seed of all random choices; by default it is taken from the clock
    #[arg(long)]
    seed: Option<u64>,
    /// How long each race lasts
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Only the races whose names contain this
    #[arg(long)]
    only: Option<String>,
    /// Namespaces of servers and clients
    #[arg(long, num_args = 2, default_values = ["a", "b"])]
    ns: Vec<String>,
    /// Address of the servers
    #[arg(long, default_value = "10.9.0.1")]
    addr: IpAddr,
}

type Runner = fn(&Race);

const RACES: &[(&str, Runner)] = &[
    (
        "listeners are closed during handshakes",
        handshakes::listener_closed,
    ),
    (
        "listeners of both kinds of addresses are closed during handshakes",
        handshakes::dual_stack_listener_closed,
    ),
    (
        "sockets are closed while they connect",
        handshakes::closed_while_connecting,
    ),
    (
        "epoll sets watch sockets that fall back",
        handshakes::watched_by_epoll,
    ),
    ("all calls on all sockets", mixed::calls),
    (
        "all calls while the device goes and comes",
        mixed::calls_without_device,
    ),
    (
        "namespaces are deleted under traffic",
        system::namespaces_deleted,
    ),
    (
        "the module is unloaded after the last close",
        system::module_unloaded,
    ),
];

/// Runs a race in a process of its own, which can be left behind when it hangs.
fn run(race: Runner, name: &str, place: &Place, seed: u64, time: Duration) -> Outcome {
    let (from_child, to_parent) = pipe()?;
    let child = spawn(|| {
        let state = Race::new(place.clone(), seed, time);
        race(&state);
        let text = match state.result() {
            Ok(count) => format!("={count}"),
            Err(text) => format!("!{text}"),
        };
        match to_parent.try_clone() {
            Ok(fd) => i32::from(File::from(fd).write_all(text.as_bytes()).is_err()),
            Err(_) => 1,
        }
    })?;
    drop(to_parent);
    let limit = time + race::PATIENCE * 2;
    match child.wait(limit)? {
        End::Exit(0) => {}
        End::TimedOut => return Err(format!("a call hangs: not finished within {limit:?}").into()),
        end => return Err(format!("the process ended with {end:?}").into()),
    }
    let mut text = String::new();
    File::from(from_child).read_to_string(&mut text)?;
    match text.split_at_checked(1) {
        Some(("=", count)) => say(&format!("# {name}: {count} times")),
        Some((_, fault)) => return Err(fault.to_owned().into()),
        None => return Err("the process said nothing".into()),
    }
    works(place).map_err(|e| format!("afterwards: {e}").into())
}

/// All that was closed is gone, and a new connection can be made.
fn works(place: &Place) -> Result<(), String> {
    let end = std::time::Instant::now() + race::PATIENCE;
    for ns in [&place.server_ns, &place.client_ns] {
        loop {
            let counters = in_netns(Some(ns), Counters::read).map_err(|e| e.to_string())?;
            let left = counters.value("connections_active");
            if left == 0 {
                break;
            }
            if std::time::Instant::now() > end {
                return Err(format!("{left} connections are left in {ns}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    let of = |e: std::io::Error| format!("a connection: {e}");
    let listener = in_netns(Some(&place.server_ns), || {
        Sock::listener(Family::Smc, place.ip, 0, 4)
    })
    .map_err(of)?;
    let to = listener.local().map_err(of)?;
    let client = in_netns(Some(&place.client_ns), || {
        race::socket(Family::Smc, race::PATIENCE)
    })
    .map_err(of)?;
    client.connect(to).map_err(of)?;
    race::limit_calls(&listener, race::PATIENCE).map_err(of)?;
    let (server, _) = listener.accept(0).map_err(of)?;
    server.send_all(b"x").map_err(of)?;
    client.recv_exact(&mut [0]).map_err(of)
}

fn main() -> ExitCode {
    raise_file_limit();
    let cli = Cli::parse();
    let seed = cli.seed.unwrap_or_else(|| {
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(1, |d| u64::from(d.subsec_nanos()) ^ d.as_secs())
    });
    let place = Place {
        server_ns: cli.ns[0].clone(),
        client_ns: cli.ns[1].clone(),
        ip: cli.addr,
    };
    let chosen: Vec<_> = RACES
        .iter()
        .filter(|(name, _)| {
            cli.only
                .as_ref()
                .is_none_or(|only| name.contains(only.as_str()))
        })
        .collect();
    say(&format!("# seed {seed}"));
    let mut reporter = Reporter::new(chosen.len());
    for (name, race) in chosen {
        let outcome = run(*race, name, &place, seed, Duration::from_secs(cli.seconds));
        reporter.report(name, &outcome);
    }
    ExitCode::from(u8::from(reporter.failed() > 0))
}

// SPDX-License-Identifier: GPL-2.0

//! Sends random requests to the kernel's SMC over generic netlink and `sock_diag`, for a bounded time.
//!
//! Attributes have wrong types, lengths and nesting; lists are begun and not read, or read while
//! others run. In between the kernel has to answer good requests. A caller without rights must have
//! every change refused. The kernel's log says whether it survived; the caller looks there.

mod kernel;
mod message;

use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use kernel::{family, Link, Verdict};
use message::{all_sockets, generic, message, nl, pick, random_diag, random_generic};
use smc_proto::genl::{self, event, pnet, smc};
use testlib::pattern::Rng;

/// Requests between two good ones.
const ROUND: usize = 64;
/// Sockets that are kept with lists begun and not read.
const IDLE: usize = 6;

#[derive(Parser)]
#[command(about = "Sends random netlink requests to the kernel's SMC")]
struct Cli {
    /// Decides all random choices
    #[arg(long)]
    seed: u64,
    /// How long to go on
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// The caller has no rights: every change must be refused
    #[arg(long)]
    unprivileged: bool,
}

/// What was done, for the last line.
#[derive(Default)]
struct Counts {
    requests: u64,
    lists: u64,
    done: u64,
    refused: BTreeMap<i32, u64>,
}

struct Fuzzer {
    rng: Rng,
    families: Vec<(u16, &'static genl::Family)>,
    generic: Link,
    diag: Link,
    sequence: u32,
    idle: Vec<Link>,
    counts: Counts,
    unprivileged: bool,
}

impl Fuzzer {
    fn new(cli: &Cli) -> io::Result<Self> {
        const FAMILIES: [&genl::Family; 3] = [&smc::FAMILY, &pnet::FAMILY, &event::FAMILY];
        let mut families = Vec::new();
        for known in FAMILIES {
            // The SMC that comes with the kernel tells no events.
            match family(known.name) {
                Ok(number) => families.push((number, known)),
                Err(error) if known.name == smc::FAMILY.name => return Err(error),
                Err(_) => {}
            }
        }
        Ok(Self {
            rng: Rng::new(cli.seed),
            families,
            generic: Link::generic()?,
            diag: Link::diag()?,
            sequence: 0,
            idle: Vec::new(),
            counts: Counts::default(),
            unprivileged: cli.unprivileged,
        })
    }

    fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.counts.requests += 1;
        self.sequence
    }

    /// A random request to a family, whose answer is read.
    fn change_or_ask(&mut self) -> Result<(), String> {
        let (number, known) = *pick(&mut self.rng, &self.families);
        let (body, flags, command) = random_generic(&mut self.rng, known);
        let sequence = self.next_sequence();
        // Without the wish for an answer there might be none.
        let flags = flags | nl::ACK;
        let bytes = message(number, flags, sequence, &body);
        let verdict = exchange(&self.generic, &bytes, sequence)?;
        if self.unprivileged && is_change(known, command) && verdict == Verdict::Done {
            return Err(format!(
                "command {command} of {} was not refused",
                known.name
            ));
        }
        self.count(verdict);
        Ok(())
    }

    /// The same for sockets.
    fn ask_for_sockets(&mut self) -> Result<(), String> {
        let (body, flags) = random_diag(&mut self.rng);
        let sequence = self.next_sequence();
        let kind = match self.rng.below(16) {
            0 => self.rng.next_u64() as u16,
            _ => nl::SOCK_DIAG_BY_FAMILY,
        };
        let bytes = message(kind, flags | nl::ACK, sequence, &body);
        // Numbers below 16 are netlink's own: no request, hence no answer.
        if kind < nl::CONTROLLER {
            return self.diag.send(&bytes).map_err(|error| error.to_string());
        }
        let verdict = exchange(&self.diag, &bytes, sequence)?;
        self.count(verdict);
        Ok(())
    }

    /// Begins a list and leaves it; an older one goes in the middle.
    fn begin_list(&mut self) -> Result<(), String> {
        let sequence = self.next_sequence();
        let flags = nl::REQUEST | nl::DUMP;
        let begun = if self.rng.below(2) == 0 {
            let body = all_sockets(0xff);
            let bytes = message(nl::SOCK_DIAG_BY_FAMILY, flags, sequence, &body);
            Link::diag().and_then(|link| link.send(&bytes).map(|()| link))
        } else {
            let (number, known) = *pick(&mut self.rng, &self.families);
            let command = pick(&mut self.rng, known.commands).number;
            let bytes = message(number, flags, sequence, &generic(command, 1, &[]));
            Link::generic().and_then(|link| link.send(&bytes).map(|()| link))
        };
        self.idle.push(begun.map_err(|error| error.to_string())?);
        self.counts.lists += 1;
        if self.idle.len() > IDLE {
            let at = self.rng.below(self.idle.len());
            drop(self.idle.swap_remove(at));
        }
        Ok(())
    }

    /// Requests that have to work at any time.
    fn good(&mut self) -> Result<(), String> {
        let number = self.families[0].0;
        for command in [
            smc::cmd::GET_SYS_INFO,
            smc::cmd::GET_STATS,
            smc::cmd::GET_LINK_SMCR,
        ] {
            let sequence = self.next_sequence();
            let body = generic(command, 1, &[]);
            let bytes = message(number, nl::REQUEST | nl::DUMP, sequence, &body);
            let verdict = exchange(&self.generic, &bytes, sequence)?;
            if verdict != Verdict::Done {
                return Err(format!(
                    "good command {command} was answered with {verdict:?}"
                ));
            }
        }
        let sequence = self.next_sequence();
        let body = all_sockets(0xff);
        let flags = nl::REQUEST | nl::DUMP;
        let bytes = message(nl::SOCK_DIAG_BY_FAMILY, flags, sequence, &body);
        match exchange(&self.diag, &bytes, sequence)? {
            Verdict::Done => Ok(()),
            other => Err(format!("a list of sockets was answered with {other:?}")),
        }
    }

    fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Done => self.counts.done += 1,
            Verdict::Refused(error) => *self.counts.refused.entry(error).or_default() += 1,
        }
    }

    fn run(&mut self, end: Instant) -> Result<(), String> {
        while Instant::now() < end {
            for _ in 0..ROUND {
                match self.rng.below(16) {
                    0 => self.begin_list()?,
                    1..=5 => self.ask_for_sockets()?,
                    _ => self.change_or_ask()?,
                }
            }
            self.good()?;
        }
        Ok(())
    }
}

/// Whether a command of a family changes something, for which rights are needed: all do whose name
/// does not say that they show something.
fn is_change(family: &genl::Family, command: u8) -> bool {
    let mut commands = family.commands.iter();
    let known = commands.find(|known| known.number == command);
    let shows = ["GET", "DUMP", "EVENT"];
    known.is_some_and(|known| !shows.iter().any(|word| known.name.starts_with(word)))
}

/// Sends a request and waits until its answer is complete.
fn exchange(link: &Link, bytes: &[u8], sequence: u32) -> Result<Verdict, String> {
    let words = |error: io::Error| {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("no answer ({error}) to {hex}")
    };
    link.send(bytes).map_err(words)?;
    link.finish(sequence).map(|answer| answer.0).map_err(words)
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    println!("# seed {}", cli.seed);
    let result = Fuzzer::new(&cli)
        .map_err(|error| error.to_string())
        .and_then(|mut fuzzer| {
            let end = Instant::now() + Duration::from_secs(cli.seconds);
            let result = fuzzer.run(end);
            let counts = &fuzzer.counts;
            println!(
                "# {} requests, {} done, {} lists begun, refused by error number: {:?}",
                counts.requests, counts.done, counts.lists, counts.refused
            );
            result
        });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            println!("# {sentence}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_changes_are_known() {
        let changes = |family: &genl::Family| -> Vec<u8> {
            let all = 0..=u8::MAX;
            all.filter(|command| is_change(family, *command)).collect()
        };
        assert_eq!(changes(&smc::FAMILY), [10, 11, 12, 14, 15, 17, 18]);
        assert_eq!(changes(&pnet::FAMILY), [2, 3, 4]);
        assert_eq!(changes(&event::FAMILY), []);
    }
}

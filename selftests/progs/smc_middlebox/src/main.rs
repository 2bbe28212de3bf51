// SPDX-License-Identifier: GPL-2.0

//! A middlebox in user space that treats the SMC option as some in the field do.
//!
//! It takes SYN and SYN-ACK packets of one port out of the kernel through
//! NFQUEUE, changes their options and puts them back. It works in the network
//! namespace it is started in, prints `ready` when its rules are in place, and
//! removes them at its end (SIGTERM or SIGINT), when it prints what it did.

mod packet;

use clap::{Parser, ValueEnum};
use nfq::{Queue, Verdict};
use packet::{crowded, has_smc, with_smc, without_smc, Segment};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use testlib::json::Object;
use testlib::process::{count_signal, signals_caught};
use testlib::tap::say;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Remove the option from SYNs that arrive
    StripSyn,
    /// Remove the option from SYN-ACKs that arrive
    StripSynack,
    /// Copy the option of an arriving SYN into the SYN-ACK that leaves
    Reflect,
    /// The same, and the server sees no option: a SYN proxy answers with what it got
    SynProxy,
    /// Add the option to SYNs and SYN-ACKs that arrive, for a peer on plain TCP
    Add,
    /// Fill all room that is left for options in SYNs and SYN-ACKs that leave
    Fill,
    /// Discard arriving SYNs that carry the option
    Drop,
}

#[derive(Parser)]
#[command(about = "Strips, reflects, adds, crowds or drops the SMC option of TCP connections")]
struct Cli {
    /// What to do
    #[arg(value_enum)]
    mode: Mode,
    /// Server port of the connections to treat
    #[arg(long)]
    port: u16,
    /// Number of the netfilter queue
    #[arg(long, default_value_t = 43)]
    queue: u16,
}

/// The rules of one run: packets of the port with SYN set go to the queue. What the host sends to
/// itself meets no middlebox.
fn ruleset(mode: Mode, port: u16, queue: u16) -> String {
    // Early on arrival, before anything that looks at the option; late on
    // departure, after it was added, which is the first thing that happens.
    let hooks: &[(&str, i32)] = match mode {
        Mode::Fill => &[("output", -400)],
        Mode::Reflect | Mode::SynProxy => &[("prerouting", -400), ("postrouting", 400)],
        _ => &[("prerouting", -400)],
    };
    let mut text = format!("table inet {} {{\n", table(queue));
    for (hook, priority) in hooks {
        text += &format!(
            " chain {hook} {{\n  type filter hook {hook} priority {priority}; policy accept;\n"
        );
        for side in ["sport", "dport"] {
            text += &format!(
                "  iifname != \"lo\" tcp {side} {port} tcp flags & syn == syn queue flags bypass to {queue}\n"
            );
        }
        text += " }\n";
    }
    text + "}\n"
}

fn table(queue: u16) -> String {
    format!("smc_middlebox_{queue}")
}

fn nft(script: &str) -> io::Result<()> {
    let mut child = Command::new("nft")
        .arg("-f")
        .arg("-")
        .stdin(Stdio::piped())
        .spawn()?;
    if let Some(stdin) = &mut child.stdin {
        stdin.write_all(script.as_bytes())?;
    }
    drop(child.stdin.take());
    let status = child.wait()?;
    if !status.success() {
        return Err(io::Error::other(
            "nft refused the rules, see its message above",
        ));
    }
    Ok(())
}

/// Removes the rules again, whatever happens.
struct Rules(u16);

impl Rules {
    fn install(mode: Mode, port: u16, queue: u16) -> io::Result<Rules> {
        let name = table(queue);
        // Adding first makes the deletion of an old table succeed in every case.
        let fresh = format!("table inet {name}\ndelete table inet {name}\n");
        nft(&(fresh + &ruleset(mode, port, queue)))?;
        Ok(Rules(queue))
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        if let Err(e) = nft(&format!("delete table inet {}\n", table(self.0))) {
            eprintln!("smc_middlebox: the rules could not be removed: {e}");
        }
    }
}

#[derive(Default)]
struct Counts {
    seen: u64,
    with_option: u64,
    changed: u64,
    dropped: u64,
}

/// What becomes of a packet.
enum Fate {
    Pass,
    Change(Vec<u8>),
    Discard,
}

struct Middlebox {
    mode: Mode,
    counts: Counts,
    /// Connections whose SYN carried the option.
    marked: BTreeSet<Vec<u8>>,
}

impl Middlebox {
    fn treat(&mut self, p: &[u8]) -> Fate {
        let Some(s) = Segment::parse(p) else {
            return Fate::Pass;
        };
        let options = s.options(p);
        let smc = has_smc(options);
        self.counts.seen += 1;
        self.counts.with_option += u64::from(smc);
        let options = match self.mode {
            Mode::StripSyn if s.is_syn() && smc => Some(without_smc(options)),
            Mode::StripSynack if s.is_syn_ack() && smc => Some(without_smc(options)),
            Mode::Reflect | Mode::SynProxy if s.is_syn() => {
                if smc {
                    self.marked.insert(s.connection(p));
                }
                (smc && self.mode == Mode::SynProxy).then(|| without_smc(options))
            }
            Mode::Reflect | Mode::SynProxy if !smc && self.marked.contains(&s.connection(p)) => {
                with_smc(options)
            }
            Mode::Add if !smc => with_smc(options),
            Mode::Fill => Some(crowded(options)),
            Mode::Drop if s.is_syn() && smc => {
                self.counts.dropped += 1;
                return Fate::Discard;
            }
            _ => None,
        };
        match options.and_then(|o| s.with_options(p, &o)) {
            Some(changed) => {
                self.counts.changed += 1;
                Fate::Change(changed)
            }
            None => Fate::Pass,
        }
    }
}

fn stopped() -> bool {
    signals_caught(libc::SIGTERM) + signals_caught(libc::SIGINT) > 0
}

/// Treats packets until the queue breaks, which it only does at the very end.
fn work(mut queue: Queue, middlebox: &Mutex<Middlebox>) -> io::Error {
    loop {
        let mut message = match queue.recv() {
            Ok(m) => m,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return e,
        };
        let fate = lock(middlebox).treat(message.get_payload());
        match fate {
            Fate::Pass => message.set_verdict(Verdict::Accept),
            Fate::Discard => message.set_verdict(Verdict::Drop),
            Fate::Change(packet) => {
                message.set_payload(packet);
                message.set_verdict(Verdict::Accept);
            }
        }
        if let Err(e) = queue.verdict(message) {
            return e;
        }
    }
}

fn lock(m: &Mutex<Middlebox>) -> MutexGuard<'_, Middlebox> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(cli: &Cli) -> io::Result<()> {
    count_signal(libc::SIGTERM)?;
    count_signal(libc::SIGINT)?;
    let mut queue = Queue::open()?;
    queue.bind(cli.queue)?;
    let rules = Rules::install(cli.mode, cli.port, cli.queue)?;
    let middlebox = Arc::new(Mutex::new(Middlebox {
        mode: cli.mode,
        counts: Counts::default(),
        marked: BTreeSet::new(),
    }));
    let shared = Arc::clone(&middlebox);
    let worker = std::thread::spawn(move || work(queue, &shared));
    say("ready");
    while !stopped() && !worker.is_finished() {
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(rules);
    if worker.is_finished() {
        return Err(worker
            .join()
            .unwrap_or_else(|_| io::Error::other("the worker panicked")));
    }
    let m = lock(&middlebox);
    say(&Object::new()
        .raw("seen", m.counts.seen)
        .raw("with_option", m.counts.with_option)
        .raw("changed", m.counts.changed)
        .raw("dropped", m.counts.dropped)
        .finish());
    Ok(())
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("smc_middlebox: packets cannot be intercepted: {e}");
            ExitCode::from(2)
        }
    }
}

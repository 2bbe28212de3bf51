// SPDX-License-Identifier: GPL-2.0

//! Results of connections, their comparison between both ends, and the watchdog.

use crate::plan::{Mode, Plan, Side};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testlib::json::Object;
use testlib::pattern::Tally;

/// Longest time without any progress. Above every time-out of the modes that wait.
const STALL: Duration = Duration::from_secs(40);

/// What one end saw of one connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnReport {
    pub(crate) sent: u64,
    pub(crate) sent_digest: String,
    pub(crate) received: u64,
    pub(crate) received_digest: String,
}

impl ConnReport {
    /// Takes the results of both directions.
    pub(crate) fn new(sent: &Tally, received: &Tally) -> ConnReport {
        ConnReport {
            sent: sent.count(),
            sent_digest: sent.digest(),
            received: received.count(),
            received_digest: received.digest(),
        }
    }
}

/// Progress of a connection that is still open, for the watchdog.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
}

/// Everything one side found out, shared by its threads.
pub(crate) struct Results {
    side: Side,
    plan: Plan,
    start: Instant,
    reports: Mutex<BTreeMap<u64, ConnReport>>,
    errors: Mutex<Vec<String>>,
    open: Mutex<BTreeMap<u64, Arc<Progress>>>,
    peak: AtomicU64,
    finished: AtomicBool,
}

impl Results {
    /// Starts a run and its watchdog, which ends the process when time is over.
    pub(crate) fn start(side: Side, plan: &Plan) -> Arc<Results> {
        let results = Arc::new(Results {
            side,
            plan: plan.clone(),
            start: Instant::now(),
            reports: Mutex::default(),
            errors: Mutex::default(),
            open: Mutex::default(),
            peak: AtomicU64::new(0),
            finished: AtomicBool::new(false),
        });
        let watched = Arc::clone(&results);
        std::thread::spawn(move || {
            let limit = Duration::from_secs(watched.plan.timeout);
            // One send of many megabytes shows no progress until it is over.
            let large = watched.plan.msg_max > 4 << 20;
            let patience = if large { limit } else { STALL };
            let (mut moved, mut last) = (Instant::now(), 0);
            let why = loop {
                std::thread::sleep(Duration::from_millis(100));
                if watched.finished.load(Ordering::Relaxed) {
                    return;
                }
                let now = watched.moved();
                if now != last {
                    (moved, last) = (Instant::now(), now);
                }
                if moved.elapsed() > patience {
                    break "nothing moved for 40 s";
                }
                if watched.start.elapsed() > limit {
                    break "time is over";
                }
            };
            watched.stalled(why);
            watched.print();
            std::process::exit(1);
        });
        results
    }

    /// A number that changes whenever any byte moves or a connection comes up.
    fn moved(&self) -> u64 {
        let open: u64 = lock(&self.open)
            .values()
            .map(|p| p.sent.load(Ordering::Relaxed) + p.received.load(Ordering::Relaxed))
            .sum();
        let done = lock(&self.reports).len() as u64;
        open.wrapping_add(done << 48)
            .wrapping_add(self.peak() << 36)
    }

    fn stalled(&self, why: &str) {
        let open = lock(&self.open);
        self.fail(format!("{why} with {} connections open", open.len()));
        for (id, p) in open.iter().take(8) {
            let script = self.plan.script(*id);
            self.fail(format!(
                "connection {id}: sent {} of {}, received {} of {}",
                p.sent.load(Ordering::Relaxed),
                script.out(self.side).len,
                p.received.load(Ordering::Relaxed),
                script.inp(self.side).len
            ));
        }
    }

    /// Notes that a connection is open.
    pub(crate) fn opened(&self, id: u64) -> Arc<Progress> {
        let progress = Arc::new(Progress::default());
        let mut open = lock(&self.open);
        if open.insert(id, Arc::clone(&progress)).is_some() {
            self.fail(format!("connection {id} appeared twice"));
        }
        self.peak.fetch_max(open.len() as u64, Ordering::Relaxed);
        progress
    }

    /// The largest number of connections open at one time.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Notes the end of a connection.
    pub(crate) fn done(&self, id: u64, outcome: Result<ConnReport, String>) {
        lock(&self.open).remove(&id);
        match outcome {
            Ok(report) => {
                lock(&self.reports).insert(id, report);
            }
            Err(e) => self.fail(format!("connection {id}: {e}")),
        }
    }

    /// Notes an error.
    pub(crate) fn fail(&self, text: String) {
        lock(&self.errors).push(text);
    }

    /// True when something went wrong so far.
    pub(crate) fn failed(&self) -> bool {
        !lock(&self.errors).is_empty()
    }

    /// Sends this side's results to the peer, one line for each connection.
    ///
    /// # Errors
    ///
    /// A sentence when the control connection breaks.
    pub(crate) fn send(&self, control: &mut TcpStream) -> Result<(), String> {
        let mut text = String::new();
        for (id, r) in lock(&self.reports).iter() {
            text += &format!(
                "CONN {id} {} {} {} {}\n",
                r.sent, r.sent_digest, r.received, r.received_digest
            );
        }
        text += &format!("END {}\n", lock(&self.errors).len());
        control
            .write_all(text.as_bytes())
            .map_err(|e| format!("control connection: {e}"))
    }

    /// Reads the peer's results and compares them with this side's.
    ///
    /// # Errors
    ///
    /// A sentence when the control connection breaks.
    pub(crate) fn compare(&self, control: &mut BufReader<TcpStream>) -> Result<(), String> {
        let mut matched = 0;
        loop {
            let line = read_line(control)?;
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["CONN", id, sent, sent_digest, received, received_digest] => {
                    let peer = ConnReport {
                        sent: parse(sent)?,
                        sent_digest: sent_digest.to_owned(),
                        received: parse(received)?,
                        received_digest: received_digest.to_owned(),
                    };
                    if self.plan.mode != Mode::Kill {
                        self.compare_one(parse(id)?, &peer);
                    }
                    matched += 1;
                }
                ["END", errors] => {
                    if errors != "0" {
                        self.fail(format!("the other end saw {errors} errors"));
                    }
                    break;
                }
                _ => {
                    return Err(format!(
                        "the peer sent '{line}' where results were expected"
                    ))
                }
            }
        }
        if self.plan.mode != Mode::Kill && matched != self.plan.conns {
            self.fail(format!(
                "{matched} of {} connections were reported",
                self.plan.conns
            ));
        }
        Ok(())
    }

    fn compare_one(&self, id: u64, peer: &ConnReport) {
        let Some(own) = lock(&self.reports).get(&id).cloned() else {
            self.fail(format!("connection {id} is complete at the other end only"));
            return;
        };
        if self.plan.mode == Mode::Abort {
            // What was on its way is lost.
            if own.received > peer.sent || peer.received > own.sent {
                self.fail(format!("connection {id}: more arrived than was sent"));
            }
            return;
        }
        if (own.received, &own.received_digest) != (peer.sent, &peer.sent_digest) {
            self.fail(format!(
                "connection {id}: received {} bytes but {} other bytes were sent",
                own.received, peer.sent
            ));
        }
        if (own.sent, &own.sent_digest) != (peer.received, &peer.received_digest) {
            self.fail(format!(
                "connection {id}: sent {} bytes but {} other bytes arrived",
                own.sent, peer.received
            ));
        }
    }

    /// Prints the summary line; returns the exit status.
    pub(crate) fn print(&self) -> i32 {
        self.finished.store(true, Ordering::Relaxed);
        let errors = lock(&self.errors).clone();
        let reports = lock(&self.reports);
        let sent: u64 = reports.values().map(|r| r.sent).sum();
        let received: u64 = reports.values().map(|r| r.received).sum();
        let shown: Vec<String> = errors.iter().take(12).cloned().collect();
        let side = if self.side == Side::Client {
            "client"
        } else {
            "server"
        };
        testlib::tap::say(
            &Object::new()
                .raw("ok", errors.is_empty())
                .text("side", side)
                .text("mode", self.plan.mode.text())
                .raw("seed", self.plan.seed)
                .raw("connections", reports.len())
                .raw("peak", self.peak.load(Ordering::Relaxed))
                .raw("sent", sent)
                .raw("received", received)
                .raw(
                    "seconds",
                    format!("{:.2}", self.start.elapsed().as_secs_f64()),
                )
                .raw("errors", errors.len())
                .list("first_errors", &shown)
                .finish(),
        );
        i32::from(!errors.is_empty())
    }
}

/// Reads one line of the control connection.
///
/// # Errors
///
/// A sentence when the connection ends or breaks.
pub(crate) fn read_line(control: &mut BufReader<TcpStream>) -> Result<String, String> {
    let mut line = String::new();
    match control.read_line(&mut line) {
        Ok(0) => Err("the other end closed the control connection early".into()),
        Ok(_) => Ok(line.trim_end().to_owned()),
        Err(e) => Err(format!("control connection: {e}")),
    }
}

fn parse(word: &str) -> Result<u64, String> {
    word.parse()
        .map_err(|_| format!("the peer sent '{word}' where a number was expected"))
}

/// Locks a mutex; a panic elsewhere has already failed the run.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

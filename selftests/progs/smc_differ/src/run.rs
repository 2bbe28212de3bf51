// SPDX-License-Identifier: GPL-2.0

//! Runs scenarios in processes of their own, several at a time, and compares.

use crate::excuse::{self, EXCUSES};
use crate::scenario::{play, Record, Scenario};
use crate::world::World;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;
use testlib::process::{pipe, spawn, End};

/// Longest time one scenario may take, in all modes together, on a machine that has much else to do.
const LIMIT: Duration = Duration::from_secs(400);

/// Between the fields of a line that one process tells another.
const FIELD: char = '\x1f';

/// How a scenario came out.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) number: usize,
    /// Differences that are not listed, or why there is no result.
    pub(crate) faults: Vec<String>,
    /// Places in the list of known differences that were seen.
    pub(crate) listed: Vec<usize>,
}

/// Runs the scenarios in `jobs` processes; each verdict goes to `report` as it comes.
///
/// # Errors
///
/// When no process can be started.
pub(crate) fn run_all(
    scenarios: &[Scenario],
    world: &World,
    jobs: usize,
    show: bool,
    mut report: impl FnMut(Verdict) + Send,
) -> io::Result<()> {
    let mut workers = Vec::new();
    for job in 0..jobs {
        let (output, input) = pipe()?;
        let child = spawn(|| i32::from(work(scenarios, world, job, jobs, show, &input).is_err()))?;
        drop(input);
        workers.push((child, output));
    }
    let (sender, verdicts) = std::sync::mpsc::channel();
    let mut children = Vec::new();
    for (child, output) in workers {
        children.push(child);
        let sender = sender.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(File::from(output))
                .lines()
                .map_while(Result::ok)
            {
                if let Some(verdict) = parse(&line) {
                    // The receiver lives until all senders are gone.
                    let _ = sender.send(verdict);
                }
            }
        });
    }
    drop(sender);
    for verdict in verdicts {
        report(verdict);
    }
    for child in children {
        child.wait(Duration::from_secs(5))?;
    }
    Ok(())
}

fn work(
    scenarios: &[Scenario],
    world: &World,
    job: usize,
    jobs: usize,
    show: bool,
    input: &OwnedFd,
) -> io::Result<()> {
    let mut out = File::from(input.try_clone()?);
    for (number, scenario) in scenarios.iter().enumerate().skip(job).step_by(jobs) {
        let verdict = judge(number, scenario, world, show);
        let faults = verdict.faults.join(&FIELD.to_string());
        let listed: Vec<String> = verdict.listed.iter().map(usize::to_string).collect();
        writeln!(out, "{number}{FIELD}{}{FIELD}{faults}", listed.join(","))?;
    }
    Ok(())
}

fn parse(line: &str) -> Option<Verdict> {
    let mut fields = line.split(FIELD);
    let number = fields.next()?.parse().ok()?;
    let listed = fields
        .next()?
        .split(',')
        .filter_map(|n| n.parse().ok())
        .collect();
    Some(Verdict {
        number,
        faults: fields
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .collect(),
        listed,
    })
}

fn judge(number: usize, scenario: &Scenario, world: &World, show: bool) -> Verdict {
    let mut verdict = Verdict {
        number,
        faults: Vec::new(),
        listed: Vec::new(),
    };
    match records(scenario, world) {
        Ok(records) => compare(scenario, &records, world, show, &mut verdict),
        Err(why) => verdict.faults.push(why),
    }
    verdict
}

/// The records of all modes, from a child process.
fn records(scenario: &Scenario, world: &World) -> Result<Vec<Record>, String> {
    let (output, input) = pipe().map_err(|e| e.to_string())?;
    let child = spawn(|| i32::from(perform(scenario, world, &input).is_err()));
    drop(input);
    let end = child
        .and_then(|child| child.wait(LIMIT))
        .map_err(|e| e.to_string())?;
    let mut text = String::new();
    let read = File::from(output).read_to_string(&mut text);
    let mut records: Vec<Record> = Vec::new();
    for line in text.lines() {
        match (line.split_once(FIELD), records.last_mut()) {
            (Some((label, outcome)), Some(record)) => {
                record.push((label.to_owned(), outcome.to_owned()));
            }
            _ => records.push(Record::new()),
        }
    }
    if end == End::Exit(0) && read.is_ok() && records.len() == world.modes(scenario.addresses).len()
    {
        return Ok(records);
    }
    let at = world
        .modes(scenario.addresses)
        .get(records.len().saturating_sub(1))
        .map_or("", |mode| mode.name);
    Err(format!(
        "the process of the scenario ended with {end:?}, in mode {at}"
    ))
}

fn perform(scenario: &Scenario, world: &World, input: &OwnedFd) -> io::Result<()> {
    let mut out = File::from(input.try_clone()?);
    let mut first: Option<Record> = None;
    for mode in world.modes(scenario.addresses) {
        writeln!(out, "{}", mode.name)?;
        let record = play(scenario, mode, world, first.as_ref());
        for (label, outcome) in &record {
            writeln!(out, "{label}{FIELD}{}", outcome.replace('\n', " "))?;
        }
        first.get_or_insert(record);
    }
    Ok(())
}

fn compare(
    scenario: &Scenario,
    records: &[Record],
    world: &World,
    show: bool,
    verdict: &mut Verdict,
) {
    let Some((measure, others)) = records.split_first() else {
        return;
    };
    if show {
        for (label, outcome) in measure {
            verdict.faults.push(format!("tcp: {label} -> {outcome}"));
        }
    }
    for (record, mode) in others.iter().zip(&world.modes(scenario.addresses)[1..]) {
        let steps = measure.len().max(record.len());
        let mut consequence_of = None;
        for n in 0..steps {
            let missing = (String::new(), "nothing".to_owned());
            let on_tcp = measure.get(n).unwrap_or(&missing);
            let here = record.get(n).unwrap_or(&missing);
            if on_tcp.1 == here.1 {
                continue;
            }
            let label = if on_tcp.0.is_empty() {
                &here.0
            } else {
                &on_tcp.0
            };
            let found = excuse::find(mode, scenario, label, &on_tcp.1, &here.1);
            if let Some(excuse) = consequence_of.or(found) {
                if EXCUSES[excuse].and_rest {
                    consequence_of = Some(excuse);
                }
                verdict.listed.push(excuse);
                continue;
            }
            verdict.faults.push(format!(
                "{}: {label} -> {}, on TCP {}",
                mode.name, here.1, on_tcp.1
            ));
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Test results in the Test Anything Protocol.

use std::io::Write;

/// Why a test did not simply pass.
#[derive(Debug)]
pub enum Problem {
    /// The behaviour is wrong; the text says how.
    Failed(String),
    /// The test does not apply here; the text says why.
    Skipped(String),
}

impl From<String> for Problem {
    fn from(text: String) -> Problem {
        Problem::Failed(text)
    }
}

impl From<&str> for Problem {
    fn from(text: &str) -> Problem {
        Problem::Failed(text.to_owned())
    }
}

impl From<std::io::Error> for Problem {
    fn from(e: std::io::Error) -> Problem {
        Problem::Failed(format!("a system call of the test itself failed: {e}"))
    }
}

/// The result of one test.
pub type Outcome = Result<(), Problem>;

/// Prints results and counts them.
pub struct Reporter {
    count: usize,
    failed: usize,
}

impl Reporter {
    /// Prints the version and plan lines for `planned` tests.
    pub fn new(planned: usize) -> Reporter {
        say(&format!("TAP version 13\n1..{planned}"));
        Reporter {
            count: 0,
            failed: 0,
        }
    }

    /// Prints one result.
    pub fn report(&mut self, name: &str, outcome: &Outcome) {
        self.count += 1;
        match outcome {
            Ok(()) => say(&format!("ok {} - {name}", self.count)),
            Err(Problem::Skipped(why)) => say(&format!("ok {} - {name} # SKIP {why}", self.count)),
            Err(Problem::Failed(why)) => {
                self.failed += 1;
                say(&format!("not ok {} - {name}", self.count));
                for line in why.lines() {
                    say(&format!("# {line}"));
                }
            }
        }
    }

    /// How many tests failed so far.
    pub fn failed(&self) -> usize {
        self.failed
    }
}

/// Prints a line at once, so that a crash later loses nothing.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // A closed pipe must not turn a test result into a panic.
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

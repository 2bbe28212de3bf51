// SPDX-License-Identifier: GPL-2.0

//! `smc check`: findings, each with a remedy.

mod basic;
mod connect;
mod firewall;
mod listen;
mod peer;
mod segment;
mod ssh;
mod syn;

use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use smc_cli::smc::What;
use smc_tools::output;

pub(crate) use basic::mapped_gid;

/// Exit code when something is missing.
const MISSING: u8 = 1;
/// Exit code when the check could not be made.
const NOT_MADE: u8 = 3;

/// How a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Good,
    /// It may be good; a person has to look.
    Unsure,
    Missing,
}

/// A thing that was looked at.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Finding {
    what: String,
    verdict: Verdict,
    remedy: Option<String>,
}

impl Finding {
    fn good(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            verdict: Verdict::Good,
            remedy: None,
        }
    }

    fn missing(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            verdict: Verdict::Missing,
            remedy: Some(remedy.into()),
        }
    }

    fn unsure(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Unsure,
            ..Self::missing(what, remedy)
        }
    }

    /// The remedy is for when it is missing.
    fn new(what: impl Into<String>, good: bool, remedy: impl Into<String>) -> Self {
        if good {
            Self::good(what)
        } else {
            Self::missing(what, remedy)
        }
    }
}

/// Runs a check.
pub(crate) fn run(what: Option<What>, json: bool) -> ExitCode {
    let findings = match what.unwrap_or(What::Basic) {
        What::Basic => basic::look(),
        What::Syn { url, timeout } => seconds(timeout).and_then(|limit| syn::look(&url, limit)),
        What::Connect { peer, ssh, timeout } => {
            seconds(timeout).and_then(|limit| connect::look(peer.as_deref(), ssh.as_deref(), limit))
        }
        What::Listen {
            address,
            port,
            count,
            attached,
        } => match listen::run((address, port).into(), count, attached, json) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(sentence) => Err(sentence),
        },
    };
    let shown = findings.and_then(|findings| {
        if json {
            output::print_json(&findings)?;
        } else {
            output::print(&text(&findings))?;
        }
        Ok(findings)
    });
    match shown {
        Ok(findings) => exit_code(&findings),
        Err(sentence) => {
            eprintln!("smc: {sentence}");
            ExitCode::from(NOT_MADE)
        }
    }
}

fn seconds(number: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(number)
        .ok()
        .filter(|limit| !limit.is_zero())
        .ok_or_else(|| format!("{number} is no number of seconds to wait."))
}

fn exit_code(findings: &[Finding]) -> ExitCode {
    let missing = findings.iter();
    match missing
        .filter(|finding| finding.verdict == Verdict::Missing)
        .count()
    {
        0 => return ExitCode::SUCCESS,
        1 => eprintln!("smc: one thing is missing."),
        n => eprintln!("smc: {n} things are missing."),
    }
    ExitCode::from(MISSING)
}

fn text(findings: &[Finding]) -> String {
    let mut out = String::new();
    for finding in findings {
        let mark = match finding.verdict {
            Verdict::Good => "good   ",
            Verdict::Unsure => "unsure ",
            Verdict::Missing => "MISSING",
        };
        out.push_str(&format!("{mark}  {}\n", finding.what));
        if let Some(remedy) = &finding.remedy {
            out.push_str(&format!("         {remedy}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_has_a_remedy() {
        let findings = [
            Finding::new("there is a RoCE device", true, "no remedy"),
            Finding::new("an identifier is set", false, "Set one."),
            Finding::unsure("the firewall lets it through", "Look."),
        ];
        assert_eq!(
            text(&findings),
            "good     there is a RoCE device\n\
             MISSING  an identifier is set\n         Set one.\n\
             unsure   the firewall lets it through\n         Look.\n"
        );
    }

    #[test]
    fn times_must_be_positive() {
        assert_eq!(seconds(0.5), Ok(Duration::from_millis(500)));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}

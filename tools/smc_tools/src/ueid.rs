// SPDX-License-Identifier: GPL-2.0

//! `ueid` and `seid`: enterprise IDs.

use smc_cli::eid;
use smc_netlink::{Error, Smc};

use crate::object::{misused, stem, Options, Program};
use crate::output::{self, Outcome};

/// Checks an identifier as the kernel does.
///
/// # Errors
///
/// A sentence that says what is wrong.
pub fn check(text: &str) -> Result<String, String> {
    eid::parse(text).map_err(|error| error + ".")
}

/// Runs `ueid`.
///
/// # Errors
///
/// A sentence for the user.
pub fn run(program: Program, options: Options, words: &[&str], mut smc: Smc) -> Outcome {
    match words {
        [] => show(options, &mut smc),
        [word] if stem(word, "show") => show(options, &mut smc),
        [word] if stem(word, "flush") => smc.flush_ueids().map_err(|error| error.to_string()),
        [word, eid] if stem(word, "add") => add(&mut smc, &check(eid)?),
        [word, eid] if stem(word, "del") => remove(&mut smc, &check(eid)?),
        _ => Err(misused(program, "ueid")),
    }
}

fn show(options: Options, smc: &mut Smc) -> Outcome {
    let eids = smc.ueids().map_err(|error| error.to_string())?;
    if options.json {
        return output::print_json(&eids);
    }
    // Scripts expect the padding.
    let lines: Vec<String> = eids.iter().map(|eid| format!("{eid:<32}\n")).collect();
    output::print(&lines.concat())
}

/// Adds an identifier.
///
/// # Errors
///
/// A sentence for the user, here and below.
pub fn add(smc: &mut Smc, eid: &str) -> Outcome {
    smc.add_ueid(eid).map_err(|error| match error {
        Error::Kernel(libc::EEXIST) => format!("the identifier {eid} is set already."),
        Error::Kernel(libc::ERANGE) => {
            "four identifiers are set already: remove one with \"ueid del\" first.".to_owned()
        }
        Error::Kernel(libc::EINVAL) => format!("the kernel refuses the identifier {eid}."),
        other => other.to_string(),
    })
}

/// Removes an identifier.
///
/// # Errors
///
/// As above.
pub fn remove(smc: &mut Smc, eid: &str) -> Outcome {
    match smc.remove_ueid(eid) {
        Ok(false) => Ok(()),
        Ok(true) => output::print("The system's own identifier is in use from now on.\n"),
        Err(Error::Kernel(libc::ENOENT)) => Err(format!("the identifier {eid} is not set.")),
        Err(other) => Err(other.to_string()),
    }
}

/// Runs `seid`.
///
/// # Errors
///
/// A sentence for the user.
pub fn run_seid(options: Options, words: &[&str], mut smc: Smc) -> Outcome {
    match words {
        [] => show_seid(options, &mut smc),
        [word] if stem(word, "show") => show_seid(options, &mut smc),
        [word] if stem(word, "enable") => set_seid(&mut smc, true),
        [word] if stem(word, "disable") => set_seid(&mut smc, false),
        _ => Err(misused(Program::Smcd, "seid")),
    }
}

fn show_seid(options: Options, smc: &mut Smc) -> Outcome {
    let seid = smc.seid().map_err(|error| error.to_string())?;
    if options.json {
        let value = seid.map(|(eid, enabled)| serde_json::json!({"seid": eid, "enabled": enabled}));
        return output::print_json(&value);
    }
    output::print(&match seid {
        None => "n/a\n".to_owned(),
        Some((eid, enabled)) => {
            let state = if enabled { "enabled" } else { "disabled" };
            format!("{eid} [{state}]\n")
        }
    })
}

fn set_seid(smc: &mut Smc, on: bool) -> Outcome {
    smc.set_seid(on).map_err(|error| match error {
        Error::Kernel(libc::EOPNOTSUPP) => {
            "this kind of machine has no system identifier: use \"ueid add\".".to_owned()
        }
        Error::Kernel(libc::ENOENT) => {
            "the last identifier cannot be switched off: add another one first.".to_owned()
        }
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_checked() {
        assert_eq!(check("LAB-1.X  ").as_deref(), Ok("LAB-1.X"));
        for bad in ["", "a"] {
            let sentence = check(bad).expect_err("it is bad");
            assert!(sentence.ends_with('.'), "{sentence}");
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! The command line of `smcr` and `smcd`: `[OPTIONS] OBJECT [COMMAND [WORDS]]`, every word of which
//! may be cut as long as it stays unique.

use crate::output::{self, Outcome};
use crate::{device, group, info, stats, ueid};
pub use smc_cli::object::Program;
use smc_netlink::Smc;

/// What the programs tell of; where beginnings of words are the same, the first one is meant.
const OBJECTS: [&str; 7] = [
    "device",
    "linkgroup",
    "info",
    "stats",
    "ueid",
    "seid",
    "help",
];

/// Options before the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How much is shown: 0, 1 for `-d`, 2 for `-dd`.
    pub detail: u8,
    /// Counters since the module was loaded, whatever was reset.
    pub absolute: bool,
    /// JSON instead of text.
    pub json: bool,
}

/// The options, and the words after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandLine {
    /// Show how to call the program.
    Help,
    /// Show its version.
    Version,
    /// Do something.
    Run(Options, Vec<String>),
}

/// Whether `word` is a beginning of `full`.
pub fn stem(word: &str, full: &str) -> bool {
    !word.is_empty() && full.starts_with(word)
}

/// Takes the arguments apart.
///
/// # Errors
///
/// A sentence about an option that is not known.
pub fn parse(program: Program, arguments: &[String]) -> Result<CommandLine, String> {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    let mut words = Vec::new();
    for argument in rest.by_ref() {
        match argument.as_str() {
            "--" => break,
            "-ad" | "-da" => {
                options.absolute = true;
                options.detail = 1;
            }
            "-j" | "--json" => options.json = true,
            option if option.starts_with('-') => {
                let name = option.trim_start_matches('-');
                if stem(name, "absolute") {
                    options.absolute = true;
                } else if stem(name, "version") {
                    return Ok(CommandLine::Version);
                } else if stem(name, "details") {
                    options.detail = 1;
                } else if stem(name, "ddetails") {
                    options.detail = 2;
                } else if stem(name, "help") {
                    return Ok(CommandLine::Help);
                } else {
                    let program = program.name();
                    return Err(format!(
                        "option {option} is unknown: see \"{program} help\"."
                    ));
                }
            }
            word => {
                words.push(word.to_owned());
                break;
            }
        }
    }
    words.extend(rest.cloned());
    // The option is taken behind the object too.
    words.retain(|word| {
        let json = word == "--json" || word == "-j";
        options.json |= json;
        !json
    });
    if words.is_empty() {
        return Ok(CommandLine::Help);
    }
    Ok(CommandLine::Run(options, words))
}

/// How the program is called.
pub fn usage(program: Program) -> String {
    let (objects, details) = match program {
        Program::Smcr => ("info | linkgroup | device | stats | ueid", " | -dd[etails]"),
        Program::Smcd => ("info | linkgroup | device | stats | ueid | seid", ""),
    };
    format!(
        "Usage: {} [OPTIONS] OBJECT [COMMAND | help]\n\
         where  OBJECT  := {{{objects}}}\n       \
         OPTIONS := {{-v[ersion] | -d[etails]{details} | -a[bsolute] | -j|--json}}\n",
        program.name()
    )
}

/// How an object is called.
fn usage_of(program: Program, object: &str) -> String {
    let name = program.name();
    let smcr = program == Program::Smcr;
    let lines: &[&str] = match object {
        "device" if smcr => &["[show] [all] [ibdev <dev>] [netdev <dev>]"],
        "device" => &["[show] [all]"],
        "linkgroup" if smcr => &["[show | link-show] [all | LG-ID] [ibdev <dev>] [netdev <dev>]"],
        "linkgroup" => &["[show] [all | LG-ID]"],
        "stats" => &["[show | reset | json]"],
        "ueid" => &["[show]", "add <eid>", "del <eid>", "flush"],
        "seid" => &["[show | enable | disable]"],
        _ => &["[show]"],
    };
    let lines: Vec<String> = lines
        .iter()
        .map(|words| format!("{name} {object} {words}\n"))
        .collect();
    format!("Usage: {}", lines.join("       "))
}

/// A sentence for words that are no command of an object.
pub fn misused(program: Program, object: &str) -> String {
    let name = program.name();
    format!("these words after \"{object}\" are no command: see \"{name} {object} help\".")
}

/// Runs the program.
///
/// # Errors
///
/// A sentence for the user.
pub fn run(program: Program, arguments: &[String]) -> Outcome {
    let (options, words) = match parse(program, arguments)? {
        CommandLine::Help => return output::print(&usage(program)),
        CommandLine::Version => {
            let version = env!("CARGO_PKG_VERSION");
            return output::print(&format!("{} {version}\n", program.name()));
        }
        CommandLine::Run(options, words) => (options, words),
    };
    let (object, words) = words.split_first().ok_or("an object is missing.")?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some(object) = OBJECTS.iter().find(|name| stem(object, name)).copied() else {
        let program = program.name();
        return Err(format!(
            "object {object} is unknown: see \"{program} help\"."
        ));
    };
    if object == "help" {
        return output::print(&usage(program));
    }
    if object == "seid" && program == Program::Smcr {
        return Err("only SMC-D has a system identifier: see \"smcd seid help\".".to_owned());
    }
    if words == ["help"] {
        return output::print(&usage_of(program, object));
    }
    let smc = Smc::open().map_err(|error| error.to_string())?;
    match object {
        "device" => device::run(program, options, &words, smc),
        "linkgroup" => group::run(program, options, &words, smc),
        "info" => info::run(program, options, &words, smc),
        "stats" => stats::run(program, options, &words, smc),
        "ueid" => ueid::run(program, options, &words, smc),
        _ => ueid::run_seid(options, &words, smc),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> CommandLine {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        parse(Program::Smcr, &words).expect("the line is good")
    }

    #[test]
    fn options_come_before_the_object() {
        let run = |options, words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            CommandLine::Run(options, words)
        };
        let plain = Options::default();
        assert_eq!(line(&["link", "show"]), run(plain, &["link", "show"]));
        let detail = |detail| Options { detail, ..plain };
        assert_eq!(line(&["-d", "dev"]), run(detail(1), &["dev"]));
        assert_eq!(line(&["--details", "dev"]), run(detail(1), &["dev"]));
        assert_eq!(line(&["-dd", "dev"]), run(detail(2), &["dev"]));
        let both = Options {
            detail: 1,
            absolute: true,
            json: false,
        };
        assert_eq!(line(&["-ad", "stats"]), run(both, &["stats"]));
        let json = Options {
            json: true,
            ..plain
        };
        assert_eq!(line(&["info", "--json"]), run(json, &["info"]));
        assert_eq!(line(&[]), CommandLine::Help);
        assert_eq!(line(&["-v"]), CommandLine::Version);
    }

    #[test]
    fn unknown_options_are_named() {
        let error = parse(Program::Smcd, &["-x".to_owned()]).expect_err("it is unknown");
        assert!(
            error.contains("-x") && error.contains("smcd help"),
            "{error}"
        );
    }

    #[test]
    fn what_is_misused_is_told_in_one_sentence_that_leads_to_the_usage() {
        for program in [Program::Smcr, Program::Smcd] {
            for object in program.command().get_subcommands() {
                let object = object.get_name();
                let sentence = misused(program, object);
                assert!(
                    sentence.ends_with('.') && !sentence.contains('\n'),
                    "{sentence}"
                );
                let help = format!("{} {object} help", program.name());
                assert!(sentence.contains(&help), "{sentence}");
                let words: Vec<String> = help.split(' ').skip(1).map(str::to_owned).collect();
                assert_eq!(run(program, &words), Ok(()), "{help}");
                let usage = usage_of(program, object);
                let start = format!("Usage: {} {object} ", program.name());
                assert!(
                    usage.starts_with(&start) && usage.ends_with('\n'),
                    "{usage}"
                );
            }
        }
    }

    #[test]
    fn usages_have_all_commands() {
        for program in [Program::Smcr, Program::Smcd] {
            let command = program.command();
            for object in command.get_subcommands() {
                let usage = usage_of(program, object.get_name());
                for leaf in object.get_subcommands() {
                    assert!(
                        usage.contains(leaf.get_name()),
                        "{}: {usage}",
                        leaf.get_name()
                    );
                }
            }
        }
    }

    #[test]
    fn what_the_manual_says_is_understood() {
        for program in [Program::Smcr, Program::Smcd] {
            let command = program.command();
            for option in command.get_opts() {
                let long = option.get_long().map(|long| format!("--{long}"));
                let short = option.get_short().map(|short| format!("-{short}"));
                for word in [long, short].into_iter().flatten() {
                    let line = parse(program, &[word.clone(), "info".to_owned()]);
                    assert!(line.is_ok(), "{word}: {line:?}");
                }
            }
            let usage = usage(program);
            for object in command.get_subcommands() {
                assert!(usage.contains(object.get_name()), "{usage}");
            }
        }
    }
}

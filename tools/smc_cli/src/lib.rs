// SPDX-License-Identifier: GPL-2.0

//! The command lines of all tools, defined once: for the tools themselves, and for `smc_manuals`,
//! which makes manual pages and completions for shells from them.

pub mod eid;
pub mod object;
pub mod size;
pub mod smc;
pub mod smc_pnet;
pub mod smc_run;
pub mod smc_ueid;
pub mod smcss;

use clap::{Command, CommandFactory};

/// The command lines of all tools.
pub fn all() -> Vec<Command> {
    vec![
        smc::Options::command(),
        smc_pnet::Options::command(),
        smc_run::Options::command(),
        smc_ueid::Options::command(),
        object::Program::Smcd.command(),
        object::Program::Smcr.command(),
        smcss::Options::command(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `look` for a command and all below it, with their names.
    fn each(command: &Command, path: &str, look: &mut impl FnMut(&str, &Command)) {
        let path = format!("{path} {}", command.get_name());
        look(&path, command);
        for below in command.get_subcommands() {
            each(below, &path, look);
        }
    }

    #[test]
    fn definitions_are_consistent() {
        for command in all() {
            command.debug_assert();
        }
    }

    #[test]
    fn every_command_and_option_has_help() {
        let mut options = 0;
        for mut command in all() {
            command.build();
            each(&command, "", &mut |path, command| {
                assert!(
                    command.get_about().is_some(),
                    "the command{path} has no help"
                );
                for argument in command.get_arguments() {
                    options += 1;
                    let help = argument.get_help().map(ToString::to_string);
                    assert!(
                        help.is_some_and(|help| !help.is_empty()),
                        "{} of{path} has no help",
                        argument.get_id()
                    );
                }
            });
        }
        assert!(options > 40, "only {options} options were seen");
    }
}

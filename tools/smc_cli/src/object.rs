// SPDX-License-Identifier: GPL-2.0

//! `smcr` and `smcd`: `[OPTIONS] OBJECT [COMMAND [WORDS]]`.
//!
//! They are called as the tools of these names always were: long options may have one hyphen, and
//! every word may be cut. The programs take their arguments apart themselves; what is here describes
//! them.

use clap::{Arg, ArgAction, Command};

/// Which of the two programs runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// SMC-R.
    Smcr,
    /// SMC-D.
    Smcd,
}

impl Program {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smcr => "smcr",
            Self::Smcd => "smcd",
        }
    }

    /// Its command line.
    pub fn command(self) -> Command {
        let smcr = self == Self::Smcr;
        let about = if smcr {
            "Show and set what concerns SMC-R"
        } else {
            "Show and set what concerns SMC-D"
        };
        let flag = |name: &'static str, short: char, help: &'static str| {
            let flag = Arg::new(name).long(name).short(short).help(help);
            flag.action(ArgAction::SetTrue)
        };
        let mut command = Command::new(self.name())
            .version(env!("CARGO_PKG_VERSION"))
            .about(about)
            .after_help("Words may be cut, and long options written with one hyphen.")
            .disable_version_flag(true)
            .subcommand_required(true)
            .arg(flag("details", 'd', "More of each item"))
            .arg(flag(
                "absolute",
                'a',
                "Counters since the module was loaded, whatever was reset",
            ))
            .arg(flag("json", 'j', "JSON instead of text"))
            .arg(flag("version", 'v', "Show the version"));
        if smcr {
            let help = "Still more of each item; -dd for short";
            let arg = Arg::new("ddetails").long("ddetails").help(help);
            command = command.arg(arg.action(ArgAction::SetTrue));
        }
        command = command
            .subcommand(
                object("info", "What the kernel and the hardware can do")
                    .subcommand(leaf("show", "Show it")),
            )
            .subcommand(self.link_groups())
            .subcommand(self.devices())
            .subcommand(
                object("stats", "Counters of calls, buffers and handshakes")
                    .subcommand(leaf("show", "Show them"))
                    .subcommand(leaf("json", "Show them as JSON"))
                    .subcommand(leaf("reset", "Count from zero for this user")),
            )
            .subcommand(ueid());
        if smcr {
            return command;
        }
        command.subcommand(
            object("seid", "The system's own enterprise identifier")
                .subcommand(leaf("show", "Show it"))
                .subcommand(leaf("enable", "Use it"))
                .subcommand(leaf("disable", "Do not use it")),
        )
    }

    fn link_groups(self) -> Command {
        let show = leaf("show", "Show link groups").args(self.filter("link group"));
        let groups = object("linkgroup", "Link groups").subcommand(show);
        if self == Self::Smcd {
            return groups;
        }
        let links = leaf("link-show", "Show link groups with their links");
        groups.subcommand(links.args(self.filter("link group")))
    }

    fn devices(self) -> Command {
        let show = leaf("show", "Show devices").args(self.filter("device"));
        object("device", "Devices").subcommand(show)
    }

    /// The words that choose items.
    fn filter(self, what: &str) -> Vec<Arg> {
        let item = Arg::new("item").help(format!("All, or the number of one {what}"));
        let mut words = vec![item.value_name("all|ID")];
        if self == Self::Smcr {
            let devices = Arg::new("devices").num_args(0..=4);
            let help = "Only those that use this RDMA device or network device";
            words.push(devices.value_name("ibdev|netdev DEVICE").help(help));
        }
        words
    }
}

fn object(name: &'static str, about: &'static str) -> Command {
    Command::new(name).about(about)
}

fn leaf(name: &'static str, about: &'static str) -> Command {
    Command::new(name).about(about)
}

fn ueid() -> Command {
    let eid = |help: &'static str| Arg::new("eid").value_name("EID").help(help).required(true);
    object("ueid", "Enterprise identifiers that the user sets")
        .subcommand(leaf("show", "Show them"))
        .subcommand(leaf("add", "Add one; up to four can be set").arg(eid(
            "Up to 32 of A-Z, 0-9, dot and hyphen, beginning with a letter or digit",
        )))
        .subcommand(leaf("del", "Remove one").arg(eid("The identifier as it was added")))
        .subcommand(leaf("flush", "Remove all"))
}

// SPDX-License-Identifier: GPL-2.0

//! `smc check connect --ssh` with a program in ssh's place; connections over SMC are tested in the VM.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A run with what stands in for ssh.
struct Run {
    output: Output,
    /// What ssh was asked for, and what it tells of itself.
    log: String,
}

impl Run {
    fn with(behaviour: &str, arguments: &[&str]) -> Self {
        let log = std::env::temp_dir().join(format!("smc_ssh.{}.{behaviour}", std::process::id()));
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_ssh");
        let path = std::env::var("PATH").unwrap_or_default();
        let output = smc(arguments)
            .env("PATH", format!("{}:{path}", folder.display()))
            .env("FAKE_SSH", behaviour)
            .env("FAKE_SSH_LOG", &log)
            .output()
            .expect("smc must start");
        let run = Self {
            output,
            log: fs::read_to_string(&log).unwrap_or_default(),
        };
        let _ = fs::remove_file(log);
        run
    }

    fn printed(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// The check was not made, and this is said in one sentence.
    fn fails_with(&self, words: &str) {
        let errors = String::from_utf8_lossy(&self.output.stderr);
        assert_eq!(self.output.status.code(), Some(3), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert!(
            errors.starts_with("smc: ") && errors.ends_with(".\n"),
            "{errors}"
        );
        assert!(errors.contains(words), "{errors}");
        assert!(self.output.stdout.is_empty(), "{}", self.printed());
    }

    /// Something is missing, and it is told so.
    fn finds(&self, line: &str) {
        assert_eq!(self.output.status.code(), Some(1), "{}", self.printed());
        assert!(self.printed().contains(line), "{}", self.printed());
    }
}

fn smc(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smc"));
    command.args(["check", "connect"]).args(arguments);
    command
}

const THERE: [&str; 2] = ["--ssh", "root@there"];

#[test]
fn a_host_that_is_not_reached_is_told_with_the_words_of_ssh() {
    let run = Run::with("denied", &THERE);
    run.fails_with(
        "(root@there: Permission denied (publickey)): see that \"ssh root@there\" works",
    );
    assert_eq!(
        run.log,
        "-T -o BatchMode=yes -o ConnectTimeout=10 -- root@there \
         smc --json check listen --attached --count 1 --address 0.0.0.0 --port 4300\n"
    );
}

#[test]
fn the_peer_may_have_another_address_and_port() {
    let run = Run::with(
        "old",
        &["--ssh", "there", "[2001:db8::1]:99", "--timeout", "2.5"],
    );
    run.fails_with("install the same version");
    let log = &run.log;
    assert!(log.contains("ConnectTimeout=2 -- there smc"), "{log}");
    assert!(log.ends_with("--address :: --port 99\n"), "{log}");
}

#[test]
fn a_host_without_the_tools_is_told() {
    Run::with("no-program", &THERE).fails_with("no program \"smc\" on root@there: install");
}

#[test]
fn a_host_without_the_module_is_a_finding() {
    let run = Run::with("no-module", &THERE);
    run.finds("MISSING  root@there listens at port 4300\n         It says: this host has no SMC");
}

#[test]
fn a_host_that_does_nothing_is_given_up() {
    let run = Run::with("stuck", &["--ssh", "there", "--timeout", "0.5"]);
    run.fails_with("has not started on there after 0.5 s");
    let process = run
        .log
        .lines()
        .find_map(|line| line.strip_prefix("process "));
    let process = PathBuf::from("/proc").join(process.expect("it was started"));
    assert!(!process.exists(), "ssh still runs");
}

#[test]
fn the_listener_ends_when_no_connection_comes() {
    let run = Run::with("listens", &THERE);
    run.finds("good     root@there listens at port 4300\nMISSING  ");
    assert!(run.log.ends_with("input ended\n"), "{}", run.log);
}

#[test]
fn a_system_without_ssh_is_told() {
    let output = smc(&["--ssh", "127.0.0.1"]).env("PATH", "").output();
    let run = Run {
        output: output.expect("smc must start"),
        log: String::new(),
    };
    run.fails_with("the program \"ssh\" is not there: install OpenSSH's client, or run");
}

#[test]
fn a_peer_is_named_in_one_way_at_least() {
    let output = smc(&[]).output().expect("smc must start");
    assert_eq!(output.status.code(), Some(2));
}

// SPDX-License-Identifier: GPL-2.0

//! Runs a program whose TCP sockets put an option of their own into opening segments, which are
//! then full.
//!
//! A BPF program on a control group does it, in the way that operators add options: TCP itself
//! writes them, so they are there before any packet filter sees the segment. Another one puts the
//! connections of listeners into a map, where they have an owner before anybody accepts them.

mod bpf;

use clap::Parser;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

#[derive(Parser)]
#[command(
    about = "Runs a program whose opening TCP segments are full, or whose connections are in a map"
)]
struct Cli {
    /// Where control groups of version 2 are
    #[arg(long, default_value = "/sys/fs/cgroup")]
    cgroups: PathBuf,
    /// Bytes of the option; what TCP uses leaves 20
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u8).range(4..=20))]
    bytes: u8,
    /// Put accepted connections into a map of sockets instead
    #[arg(long)]
    into_map: bool,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Moves this process into a control group of its own on which the BPF program runs.
fn enter(cli: &Cli) -> io::Result<()> {
    let group = cli
        .cgroups
        .join(format!("tcp_crowd.{}", std::process::id()));
    fs::create_dir(&group)?;
    // A loaded program holds its map.
    let program = if cli.into_map {
        bpf::load(&bpf::map_filler(bpf::socket_map()?.as_fd()))?
    } else {
        bpf::load(&bpf::option_writer(cli.bytes))?
    };
    bpf::attach(File::open(&group)?.as_fd(), program.as_fd())?;
    fs::write(group.join("cgroup.procs"), "0")
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Err(e) = enter(&cli) {
        eprintln!("tcp_crowd: the BPF program cannot be used: {e}; this needs root and control groups of version 2");
        return ExitCode::from(2);
    }
    let error = Command::new(&cli.command[0]).args(&cli.command[1..]).exec();
    eprintln!("tcp_crowd: {} cannot be started: {error}", cli.command[0]);
    ExitCode::from(127)
}

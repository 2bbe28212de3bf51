// SPDX-License-Identifier: GPL-2.0

//! `smc_proof` shows how connections moved their bytes: by RDMA or over TCP.

#![forbid(unsafe_code)]

mod demo;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use serde_json::json;

use smc_proof::{capture, peer_stats, rdma, style};
use testlib::counters;

/// Show how connections moved their bytes: by RDMA or over TCP.
#[derive(Parser)]
#[command(name = "smc_proof", version)]
struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Judge the TCP connections of a capture file; fails when there is payload on one
    Capture {
        /// A pcap file taken on an Ethernet interface
        file: PathBuf,
    },
    /// Write the statistics of this network namespace into a folder
    Snapshot {
        /// The folder, made if needed; gets the files `smc_rs` and `rdma`
        folder: PathBuf,
    },
    /// Print the module's statistics of this network namespace over and over, until killed
    Watch {
        /// Milliseconds between two readings
        #[arg(long, default_value_t = 200)]
        every: u64,
    },
    /// Print the statistics of this network namespace: those of smc_rs, or those of the kernel's
    /// own SMC in the same words
    Counts,
    /// Report on the demo from the files that it left
    Demo {
        /// The folder with the demo's files
        folder: PathBuf,
        /// Also write the report as JSON into this file, or to standard output with "-"
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let result = match Options::parse().action {
        Action::Capture { file } => judge_capture(&file),
        Action::Snapshot { folder } => snapshot(&folder).map(|()| true),
        Action::Watch { every } => watch(Duration::from_millis(every)),
        Action::Counts => counts().map(|()| true),
        Action::Demo { folder, json } => report_demo(&folder, json.as_deref()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("smc_proof: {message}");
            ExitCode::from(2)
        }
    }
}

fn judge_capture(file: &Path) -> Result<bool, String> {
    let bytes = fs::read(file).map_err(|error| cannot("read", file, &error))?;
    let connections = capture::connections(&bytes)?;
    for connection in &connections {
        let counts = connection.counts;
        let line = json!({
            "client": connection.client.to_string(),
            "server": connection.server.to_string(),
            "smc_offered": connection.offered,
            "declined": counts.declined,
            "handshake_bytes": counts.handshake,
            "payload_bytes": counts.payload,
        });
        println!("{line}");
    }
    Ok(capture::summary(&connections).payload == 0)
}

fn snapshot(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| cannot("make", folder, &error))?;
    // Without the module there is nothing to read, and the report says so.
    let statistics = fs::read_to_string(counters::PATH).unwrap_or_default();
    let files = [
        ("smc_rs", statistics),
        ("rdma", rdma::DeviceCounters::read().to_text()),
    ];
    for (name, text) in files {
        let file = folder.join(name);
        fs::write(&file, text).map_err(|error| cannot("write", &file, &error))?;
    }
    Ok(())
}

fn counts() -> Result<(), String> {
    let text = match fs::read_to_string(counters::PATH) {
        Ok(text) => text,
        Err(_) => peer_stats::read()?,
    };
    print!("{text}");
    Ok(())
}

/// Ends only when nobody reads any more.
fn watch(every: Duration) -> Result<bool, String> {
    loop {
        let text = fs::read(counters::PATH).unwrap_or_default();
        if std::io::stdout().write_all(&text).is_err() {
            return Ok(true);
        }
        std::thread::sleep(every);
    }
}

fn report_demo(folder: &Path, json: Option<&Path>) -> Result<bool, String> {
    let report = demo::Report::from_folder(folder)?;
    print!("{}", report.text(&style::Style::of_stdout()));
    if let Some(file) = json {
        let text = format!("{:#}\n", report.json());
        if file == Path::new("-") {
            print!("{text}");
        } else {
            fs::write(file, text).map_err(|error| cannot("write", file, &error))?;
        }
    }
    Ok(report.passed())
}

fn cannot(what: &str, file: &Path, error: &std::io::Error) -> String {
    format!("cannot {what} {}: {error}.", file.display())
}

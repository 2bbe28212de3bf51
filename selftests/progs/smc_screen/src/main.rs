// SPDX-License-Identifier: GPL-2.0

//! Runs a program on a terminal of its own and keeps what its screen shows in a file, line by line,
//! as text without colours.
//!
//! A line that comes through the file of keys is a key: its letter, or a name as in `Tab`, `PageDown`,
//! `Ctrl-C`; `resize ROWS COLUMNS` gives the terminal another size. At the end it is said how the
//! program ended and how it left the terminal. When this program is killed, the terminal hangs up.

mod key;
mod terminal;

use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use clap::Parser;
use terminal::Terminal;

/// The screen is whole when nothing more came for this time.
const QUIET: Duration = Duration::from_millis(20);

#[derive(Parser)]
#[command(about = "Runs a program on a terminal, types keys, and tells what the screen shows")]
struct Cli {
    /// Rows of the terminal
    #[arg(long, default_value_t = 30)]
    rows: u16,
    /// Columns of the terminal
    #[arg(long, default_value_t = 100)]
    columns: u16,
    /// File that always has what the screen shows
    #[arg(long)]
    screen: PathBuf,
    /// File, such as a FIFO, that keys come through
    #[arg(long)]
    keys: PathBuf,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// What there is to do.
enum Came {
    Output(Vec<u8>),
    Key(String),
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("smc_screen: {error}.");
            ExitCode::from(2)
        }
    }
}

/// True when the program succeeded and left the terminal as it was.
fn run(cli: &Cli) -> Result<bool, Box<dyn Error>> {
    let mut terminal = Terminal::open(cli.rows, cli.columns)?;
    let mut child = terminal.start(&cli.command)?;
    let (to, came) = mpsc::channel();
    read_output(terminal.controller()?, to.clone());
    read_keys(File::open(&cli.keys)?, to);
    serve(&came, &mut terminal, &mut child, &cli.screen)?;
    let status = child.wait()?;
    let left = terminal.left_as();
    println!("the program ended ({status}) and {left}");
    Ok(status.success() && left == terminal::AS_IT_WAS)
}

/// Until the program has ended and its output is read.
fn serve(
    came: &Receiver<Came>,
    terminal: &mut Terminal,
    child: &mut Child,
    screen: &Path,
) -> Result<(), Box<dyn Error>> {
    let mut ended = false;
    loop {
        match came.recv_timeout(QUIET) {
            Ok(Came::Output(bytes)) => terminal.show(&bytes),
            Ok(Came::Key(line)) => terminal.press(&line)?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(text) = terminal.changed() {
                    save(&text, screen)?;
                }
                if ended {
                    return Ok(());
                }
                // Its last words may be on their way.
                ended = child.try_wait()?.is_some();
            }
        }
    }
}

/// Readers see one screen or the next.
fn save(text: &str, file: &Path) -> std::io::Result<()> {
    let new = file.with_extension("new");
    fs::write(&new, text)?;
    fs::rename(new, file)
}

fn read_output(mut controller: File, to: Sender<Came>) {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = controller.read(&mut buffer) {
            if to.send(Came::Output(buffer[..length].to_vec())).is_err() {
                break;
            }
        }
    });
}

fn read_keys(keys: File, to: Sender<Came>) {
    thread::spawn(move || {
        for line in BufReader::new(keys).lines().map_while(Result::ok) {
            if to.send(Came::Key(line)).is_err() {
                break;
            }
        }
    });
}

// SPDX-License-Identifier: GPL-2.0

//! Printing results and errors.

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

/// What a program ends with: a sentence for the user when it failed.
pub type Outcome = Result<(), String>;

/// Prints a failure and gives the exit code.
pub fn finish(program: &str, outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{program}: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a text. A reader that has gone away is no failure.
///
/// # Errors
///
/// A sentence when it cannot be written.
pub fn print(output: &str) -> Outcome {
    text(output).map(drop)
}

/// Prints a value as JSON, in one line.
///
/// # Errors
///
/// As [`print`].
pub fn print_json(value: &impl Serialize) -> Outcome {
    line_of_json(value).map(drop)
}

/// Prints a text that others may follow; false when the reader has gone away and wants none.
///
/// # Errors
///
/// As [`print`].
pub fn text(text: &str) -> Result<bool, String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("the output cannot be written: {error}.")),
    }
}

/// Prints a value as JSON, in one line, as [`text`] does.
///
/// # Errors
///
/// As [`print`].
pub fn line_of_json(value: &impl Serialize) -> Result<bool, String> {
    let line = serde_json::to_string(value).map_err(|error| format!("{error}."))?;
    text(&(line + "\n"))
}

/// The name of a network device; empty when there is none of that number.
pub fn interface_name(ifindex: u32) -> String {
    let mut name = [0u8; libc::IF_NAMESIZE];
    // SAFETY: The buffer has room for any name.
    let found = unsafe { libc::if_indextoname(ifindex, name.as_mut_ptr().cast()) };
    if found.is_null() {
        return String::new();
    }
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

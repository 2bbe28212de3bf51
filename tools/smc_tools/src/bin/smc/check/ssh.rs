// SPDX-License-Identifier: GPL-2.0

//! `smc check listen` on another host, by the system's `ssh`.
//!
//! It is told to end with its standard input, which comes through ssh from a pipe of this process: so
//! nothing is left on the other host, however this process ends.

use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::listen::{Answered, READY};
use super::{Finding, NOT_MADE};

/// How often it is looked whether ssh still runs.
const STEP: Duration = Duration::from_millis(50);
/// How long ssh may take to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// A line that was said on the other host, or by ssh.
enum Line {
    /// On standard output.
    Result(String),
    /// On standard error.
    Remark(String),
}

/// What came of waiting for a listener.
enum Waited {
    Ready,
    Ended(ExitStatus),
    TooLong,
}

/// A listener on another host; it ends with this value.
pub(super) struct Listener {
    host: String,
    ssh: Child,
    /// Without it the listener ends.
    input: Option<ChildStdin>,
    lines: Receiver<Line>,
    /// The last one.
    remark: String,
}

/// The name or address that `host` stands for in ssh's configuration; where ssh does not tell, what is
/// behind the name of the user.
pub(super) fn host_name(host: &str) -> String {
    let output = Command::new("ssh").args(["-G", "--", host]).output();
    let settings = output.map_or_else(|_| Vec::new(), |output| output.stdout);
    let settings = String::from_utf8_lossy(&settings);
    let named = settings
        .lines()
        .find_map(|line| line.strip_prefix("hostname "));
    let behind = host.rsplit('@').next();
    named.or(behind).unwrap_or(host).to_owned()
}

impl Listener {
    /// Starts one on `host`, for one connection to this address, and waits until it listens. When it
    /// cannot listen, that is a finding.
    ///
    /// # Errors
    ///
    /// A sentence when it cannot be started.
    pub(super) fn start(
        host: &str,
        address: SocketAddr,
        limit: Duration,
    ) -> Result<Result<Self, Finding>, String> {
        let mut listener = Self::spawn(host, address, limit)?;
        match listener.wait(limit) {
            Waited::Ready => Ok(Ok(listener)),
            Waited::Ended(status) => listener.obstacle(status, address.port()).map(Err),
            Waited::TooLong => Err(format!(
                "\"smc check listen\" has not started on {host} after {} s: see what \"ssh {host}\" does, \
                 or allow more time with --timeout.",
                limit.as_secs_f64()
            )),
        }
    }

    fn spawn(host: &str, address: SocketAddr, limit: Duration) -> Result<Self, String> {
        let any = if address.is_ipv4() { "0.0.0.0" } else { "::" };
        let port = address.port();
        let listen =
            format!("smc --json check listen --attached --count 1 --address {any} --port {port}");
        // No terminal, or what is said on the two outputs could not be told apart.
        let mut command = Command::new("ssh");
        command.args(["-T", "-o", "BatchMode=yes", "-o"]);
        command.arg(format!("ConnectTimeout={}", limit.as_secs().max(1)));
        command.args(["--", host, &listen]);
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut ssh = command.spawn().map_err(|error| {
            let remedy = format!("or run \"smc check listen\" on {host} by hand");
            match error.kind() {
                io::ErrorKind::NotFound => {
                    format!("the program \"ssh\" is not there: install OpenSSH's client, {remedy}.")
                }
                _ => format!("ssh cannot be started ({error}): repair that, {remedy}."),
            }
        })?;
        let (to, lines) = mpsc::channel();
        if let Some(output) = ssh.stdout.take() {
            pass(output, Line::Result, to.clone());
        }
        if let Some(errors) = ssh.stderr.take() {
            pass(errors, Line::Remark, to);
        }
        Ok(Self {
            host: host.to_owned(),
            input: ssh.stdin.take(),
            ssh,
            lines,
            remark: String::new(),
        })
    }

    fn wait(&mut self, limit: Duration) -> Waited {
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(STEP)) {
                Ok(Line::Remark(remark)) if remark.starts_with(READY) => return Waited::Ready,
                Ok(Line::Remark(remark)) => self.remark = remark,
                Ok(Line::Result(_)) => {}
                Err(error) => {
                    // Not by the end of its output, which what ssh leaves in the background, for
                    // further connections, may hold open.
                    if let Ok(Some(status)) = self.ssh.try_wait() {
                        return Waited::Ended(status);
                    }
                    if left.is_zero() {
                        return Waited::TooLong;
                    }
                    if error == RecvTimeoutError::Disconnected {
                        thread::sleep(STEP);
                    }
                }
            }
        }
    }

    /// Why there is no listener.
    fn obstacle(&mut self, status: ExitStatus, port: u16) -> Result<Finding, String> {
        while let Ok(line) = self.lines.recv_timeout(STEP) {
            if let Line::Remark(remark) = line {
                self.remark = remark;
            }
        }
        let host = &self.host;
        let words = match self.remark.trim_end_matches('.') {
            "" => "it does not say why",
            some => some,
        };
        match status.code().and_then(|code| u8::try_from(code).ok()) {
            Some(NOT_MADE) => {
                let words = words.trim_start_matches("smc: ");
                let what = format!("{host} listens at port {port}");
                Ok(Finding::missing(what, format!("It says: {words}.")))
            }
            Some(127) => Err(format!(
                "there is no program \"smc\" on {host}: install the tools there."
            )),
            Some(255) => Err(format!(
                "ssh does not get to {host} ({words}): see that \"ssh {host}\" works without a \
                 password, or run \"smc check listen\" there by hand."
            )),
            _ => Err(format!(
                "\"smc check listen\" does not run on {host} ({words}): install the same version of \
                 the tools there."
            )),
        }
    }

    /// What the other end says of the connection, once it is over.
    pub(super) fn verdict(&mut self, limit: Duration) -> Finding {
        let what = format!("{} saw the exchange to its end", self.host);
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let answer = match self.lines.recv_timeout(left) {
                // Other lines are what a user's profile prints.
                Ok(Line::Result(line)) => serde_json::from_str::<Answered>(&line).ok(),
                Ok(Line::Remark(_)) => None,
                Err(_) => {
                    return Finding::missing(
                        what,
                        "It says nothing: see that it is that host which \
                        the connection leads to.",
                    )
                }
            };
            match answer.map(|answer| answer.error) {
                None => {}
                Some(None) => return Finding::good(what),
                Some(Some(sentence)) => {
                    return Finding::missing(what, format!("It says: {sentence}"))
                }
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        drop(self.input.take());
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if !matches!(self.ssh.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(STEP);
        }
        // It may have ended just now.
        let _ = self.ssh.kill();
        let _ = self.ssh.wait();
    }
}

/// Passes the lines of a pipe on until it ends.
fn pass(pipe: impl Read + Send + 'static, kind: fn(String) -> Line, to: Sender<Line>) {
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            // Without a receiver they are read all the same, so that ssh does not wait for that.
            let _ = to.send(kind(text));
        }
    });
}

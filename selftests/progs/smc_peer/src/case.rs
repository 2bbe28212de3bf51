// SPDX-License-Identifier: GPL-2.0

//! What a case is.

use crate::clc::Identity;
use smc_proto::ids::Version;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use testlib::event::poll_one;
use testlib::sock::Sock;

/// A case in which this peer is the client; the server's application echoes.
pub(crate) struct ClientCase {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Identity) -> Result<(), String>,
    /// Waits for time-outs, or sends a lot.
    pub(crate) slow: bool,
    pub(crate) version: Version,
}

pub(crate) const fn client(
    name: &'static str,
    run: fn(&Identity) -> Result<(), String>,
) -> ClientCase {
    ClientCase {
        name,
        run,
        slow: false,
        version: Version::V2,
    }
}

impl ClientCase {
    /// The case takes long.
    pub(crate) const fn slow(mut self) -> ClientCase {
        self.slow = true;
        self
    }

    /// The case is about version 1.
    pub(crate) const fn v1(mut self) -> ClientCase {
        self.version = Version::V1;
        self
    }
}

/// What the application of the other side must come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Must {
    /// Its data must come back.
    Work,
    /// It must end with an error, since its connection was broken.
    Fail,
    /// It must end.
    End,
}

/// A case in which this peer is the server; it gets the client's TCP connection.
pub(crate) struct ServerCase {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Identity, Sock) -> Result<(), String>,
    pub(crate) app: Must,
    /// Waits for time-outs, or sends a lot.
    pub(crate) slow: bool,
    pub(crate) version: Version,
}

impl ServerCase {
    /// The case takes long.
    pub(crate) const fn slow(mut self) -> ServerCase {
        self.slow = true;
        self
    }

    /// The case is about version 1.
    pub(crate) const fn v1(mut self) -> ServerCase {
        self.version = Version::V1;
        self
    }
}

pub(crate) const fn server(
    name: &'static str,
    app: Must,
    run: fn(&Identity, Sock) -> Result<(), String>,
) -> ServerCase {
    ServerCase {
        name,
        run,
        app,
        slow: false,
        version: Version::V2,
    }
}

/// The application whose connection a server case gets.
struct App(Child);

impl App {
    fn start(command: &[String]) -> Result<App, String> {
        let mut program = Command::new(&command[0]);
        program.args(&command[1..]);
        // What it says about a failed connection would look like a failure of the test.
        program.stderr(std::process::Stdio::null());
        program.stdout(std::process::Stdio::null());
        program
            .spawn()
            .map(App)
            .map_err(|e| format!("the application cannot be started: {e}"))
    }

    /// Waits for its end; gives whether it was content.
    fn wait(mut self, limit: Duration) -> Result<bool, String> {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.0.try_wait().map_err(|e| format!("waitpid: {e}"))? {
                return Ok(status.success());
            }
            if Instant::now() > end {
                let _ = self.0.kill();
                let _ = self.0.wait();
                return Err("the application hangs".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Starts the application, plays the server, and judges both.
pub(crate) fn play_server(
    case: &ServerCase,
    id: &Identity,
    listener: &Sock,
    command: &[String],
) -> Result<(), String> {
    let app = App::start(command)?;
    let ready = poll_one(listener, libc::POLLIN, 15_000).map_err(|e| format!("poll: {e}"))?;
    let played = if ready == 0 {
        Err("the application did not connect within 15 s".to_owned())
    } else {
        listener
            .accept(libc::SOCK_CLOEXEC)
            .map_err(|e| format!("accept: {e}"))
            .and_then(|(sock, _)| {
                crate::clc::set_up(&sock)?;
                (case.run)(id, sock)
            })
    };
    let ended = app.wait(Duration::from_secs(40));
    played?;
    match (case.app, ended?) {
        (Must::Work, false) => Err("the application failed".into()),
        (Must::Fail, true) => Err("the application noticed nothing".into()),
        _ => Ok(()),
    }
}

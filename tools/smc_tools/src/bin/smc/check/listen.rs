// SPDX-License-Identifier: GPL-2.0

//! The other end of `smc check connect`.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;
use std::{io, process, thread};

use serde::{Deserialize, Serialize};
use smc_tools::output;
use socket2::Socket;

use super::peer::{self, View};

/// How long a client may be silent.
const PATIENCE: Duration = Duration::from_secs(10);

/// Begins what is said when checks can come.
pub(super) const READY: &str = "waiting for \"smc check connect\"";

/// One check that was answered, for `--json`.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Answered {
    peer: Option<SocketAddr>,
    view: Option<View>,
    /// A sentence, when the exchange failed.
    pub(super) error: Option<String>,
}

/// Answers checks, one after the other.
///
/// # Errors
///
/// A sentence when it cannot be listened.
pub(super) fn run(
    address: SocketAddr,
    count: Option<u32>,
    attached: bool,
    json: bool,
) -> Result<(), String> {
    let listener = listen(address).map_err(|error| match error.raw_os_error() {
        Some(libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT) => {
            "this host has no SMC sockets: load the module with \"modprobe smc_rs\".".to_owned()
        }
        _ => format!("{address} cannot be listened at: {error}."),
    })?;
    if attached {
        end_with_input();
    }
    eprintln!("{READY} at {address}");
    let mut left = count;
    while left != Some(0) {
        let (socket, peer) = listener
            .accept()
            .map_err(|error| format!("no connection can be accepted: {error}."))?;
        left = left.map(|left| left - 1);
        let mut stream = TcpStream::from(OwnedFd::from(socket));
        let result = answer(&mut stream);
        show(peer.as_socket(), result, json)?;
    }
    Ok(())
}

/// Has this process end when there is nobody any more at the other end of its standard input.
fn end_with_input() {
    thread::spawn(|| {
        // What comes is of no interest, nor is why nothing comes any more.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        process::exit(0);
    });
}

fn listen(address: SocketAddr) -> io::Result<Socket> {
    let socket = peer::socket(address)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(16)?;
    Ok(socket)
}

fn answer(stream: &mut TcpStream) -> Result<View, String> {
    let words = |error: io::Error| format!("the exchange failed: {error}.");
    stream.set_read_timeout(Some(PATIENCE)).map_err(words)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(words)?;
    let view = View::of(stream)?;
    peer::serve(stream, &view).map_err(words)?;
    Ok(view)
}

fn show(peer: Option<SocketAddr>, result: Result<View, String>, json: bool) -> output::Outcome {
    if json {
        let (view, error) = match result {
            Ok(view) => (Some(view), None),
            Err(error) => (None, Some(error)),
        };
        return output::print_json(&Answered { peer, view, error });
    }
    let name = peer.map_or_else(|| "a peer".to_owned(), |peer| peer.to_string());
    output::print(&match result {
        Ok(view) => format!("{name}: {}\n", view.text()),
        Err(error) => format!("{name}: {error}\n"),
    })
}

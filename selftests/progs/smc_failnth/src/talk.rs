// SPDX-License-Identifier: GPL-2.0

//! One connection whose every byte is checked, and the server that answers it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use testlib::counters::Counters;
use testlib::pattern::{fill, stream_key};
use testlib::sock::{Family, Sock};

/// Bytes that go each way: less than a ring holds, so that nobody waits for the other.
const BYTES: usize = 24_000;
/// How long a call may take before it counts as one that hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How something ended while memory was short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// As if nothing had happened.
    Done,
    /// The bytes went over SMC-R.
    Smcr,
    /// The connection fell back.
    Tcp,
    /// A call failed, with this error.
    Refused(i32),
}

/// What a call may say when memory is short here or at the peer.
const FAIR: [i32; 12] = [
    libc::ENOMEM,
    libc::ENOBUFS,
    libc::ECONNRESET,
    libc::ECONNREFUSED,
    libc::ECONNABORTED,
    libc::EPIPE,
    libc::ETIMEDOUT,
    libc::ENETUNREACH,
    libc::EHOSTUNREACH,
    libc::EPROTO,
    libc::ENFILE,
    // TCP says so when it has no memory to note a port.
    libc::EADDRINUSE,
];

/// Takes the error of `call` for an answer, or for a fault.
pub(crate) fn refused(call: &str, error: &io::Error) -> Result<Seen, String> {
    match error.raw_os_error() {
        Some(errno) if FAIR.contains(&errno) => Ok(Seen::Refused(errno)),
        Some(libc::EAGAIN) => Err(format!("{call} did not return within {PATIENCE:?}")),
        // The peer closed without an answer: memory was short there.
        None if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Seen::Refused(libc::EPIPE)),
        _ => Err(format!(
            "{call} failed with an error that says nothing about memory: {error}"
        )),
    }
}

/// A socket whose calls end some day.
pub(crate) fn socket(family: Family) -> io::Result<Sock> {
    let sock = Sock::new(family)?;
    sock.set_timeout(libc::SO_RCVTIMEO, PATIENCE)?;
    sock.set_timeout(libc::SO_SNDTIMEO, PATIENCE)?;
    Ok(sock)
}

/// Connects, has everything sent back, and checks it.
pub(crate) fn whole(to: SocketAddr) -> Result<Seen, String> {
    let sock = match socket(Family::Smc) {
        Ok(sock) => sock,
        Err(e) => return refused("socket()", &e),
    };
    match sock.connect(to) {
        Ok(()) => exchange(&sock),
        Err(e) => refused("connect()", &e),
    }
}

/// Sends the pattern over a connected socket and checks what comes back.
pub(crate) fn exchange(sock: &Sock) -> Result<Seen, String> {
    let name = sock.local().map_err(|e| format!("getsockname(): {e}"))?;
    let mut sent = vec![0; BYTES];
    fill(stream_key(u64::from(name.port()), 0, 0), 0, &mut sent);
    if let Err(e) = sock.send_all(&sent) {
        return refused("send()", &e);
    }
    let mut back = vec![0; BYTES];
    if let Err(e) = sock.recv_exact(&mut back) {
        return refused("recv()", &e);
    }
    if let Some(at) = sent.iter().zip(&back).position(|(a, b)| a != b) {
        return Err(format!(
            "byte {at} is {:#x}, {:#x} was sent",
            back[at], sent[at]
        ));
    }
    let counters = Counters::read().map_err(|e| format!("/proc/net/smc_rs: {e}"))?;
    let here = name.to_string();
    let over_smcr = counters
        .connections
        .iter()
        .any(|c| c.get("local") == Some(&*here) && c.get("mode") == Some("SMCR"));
    Ok(if over_smcr { Seen::Smcr } else { Seen::Tcp })
}

/// Sends everything back, on every connection, until the process is killed.
pub(crate) fn serve(listener: &Sock) -> io::Result<()> {
    loop {
        match listener.accept(libc::SOCK_CLOEXEC) {
            Ok((sock, _)) => {
                std::thread::spawn(move || echo(&sock));
            }
            // Memory may be short for this one; the next one may find some.
            Err(e) if e.raw_os_error().is_some_and(|errno| FAIR.contains(&errno)) => {}
            Err(e) => return Err(e),
        }
    }
}

fn echo(sock: &Sock) {
    let mut data = vec![0; BYTES];
    while let Ok(n) = sock.recv(&mut data, 0) {
        if n == 0 || sock.send_all(&data[..n]).is_err() {
            return;
        }
    }
}

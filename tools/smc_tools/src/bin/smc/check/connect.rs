// SPDX-License-Identifier: GPL-2.0

//! A connection to a peer, from end to end.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use smc_cli::smc::CHECK_PORT;

use super::peer::{self, View};
use super::{ssh, Finding};

/// Bytes that are sent there and back: more than a ring holds, so that it goes round.
const BYTES: usize = 256 * 1024;

/// Looks at a connection to `peer`, or, where that is not given, to the host `there`, on which ssh
/// is to run the other end.
///
/// # Errors
///
/// A sentence when that cannot be done.
pub(super) fn look(
    peer: Option<&str>,
    there: Option<&str>,
    limit: Duration,
) -> Result<Vec<Finding>, String> {
    let named = there.map(ssh::host_name).unwrap_or_default();
    let address = resolve(peer.unwrap_or(&named))?;
    let mut findings = Vec::new();
    let mut listener = None;
    if let Some(host) = there {
        match ssh::Listener::start(host, address, limit)? {
            Ok(started) => listener = Some(started),
            Err(finding) => return Ok(vec![finding]),
        }
        let port = address.port();
        findings.push(Finding::good(format!("{host} listens at port {port}")));
    }
    let start = Instant::now();
    let made = format!("a connection to {address} is made");
    let mut stream = match connect(address, limit) {
        Ok(stream) => stream,
        Err(error) => {
            findings.push(not_made(made, &error, there));
            return Ok(findings);
        }
    };
    findings.push(Finding::good(format!("{made} in {}", milliseconds(start))));
    let own = View::of(&stream)?;
    findings.push(mode("this end", &own));
    findings.extend(data(&mut stream));
    drop(stream);
    findings.extend(listener.map(|mut listener| listener.verdict(limit)));
    Ok(findings)
}

fn not_made(made: String, error: &io::Error, there: Option<&str>) -> Finding {
    if no_family(error) {
        return Finding::missing(
            "this host has SMC sockets",
            "Load the module with \"modprobe smc_rs\"; \"smc check\" tells more.",
        );
    }
    let remedy = match there {
        Some(host) => {
            format!("see that it leads to {host}, and let the firewalls pass its TCP port.")
        }
        None => "run \"smc check listen\" on the peer, and let the firewalls pass its TCP port."
            .to_owned(),
    };
    Finding::missing(made, format!("It failed ({error}): {remedy}"))
}

fn no_family(error: &io::Error) -> bool {
    let errors = [libc::EAFNOSUPPORT, libc::EPROTONOSUPPORT];
    error
        .raw_os_error()
        .is_some_and(|error| errors.contains(&error))
}

fn resolve(text: &str) -> Result<SocketAddr, String> {
    let found = text
        .to_socket_addrs()
        .or_else(|_| (text.trim_matches(['[', ']']), CHECK_PORT).to_socket_addrs());
    found
        .ok()
        .and_then(|mut found| found.next())
        .ok_or_else(|| format!("there is no host of the name {text}: check its spelling."))
}

fn connect(address: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let socket = peer::socket(address)?;
    socket.set_read_timeout(Some(limit))?;
    socket.set_write_timeout(Some(limit))?;
    socket.connect_timeout(&address.into(), limit)?;
    Ok(TcpStream::from(OwnedFd::from(socket)))
}

/// Sends data there and back; also gives how the peer sees the connection.
fn data(stream: &mut TcpStream) -> Vec<Finding> {
    // CAST: Only the last byte of a number counts.
    let data: Vec<u8> = (0..BYTES).map(|at| (at * 7 + at / 251) as u8).collect();
    let start = Instant::now();
    let what = format!("{} KiB come back unchanged", BYTES / 1024);
    match peer::exchange(stream, &data) {
        Ok((same, view)) => vec![
            Finding::new(
                format!("{what}, in {}", milliseconds(start)),
                same,
                "Report this as a fault of the SMC of one of the two hosts.",
            ),
            mode("the peer", &view),
        ],
        Err(error) => vec![Finding::missing(
            what,
            format!(
                "The exchange failed ({error}): see that the peer runs \"smc check listen\", and that \
                 firewalls pass UDP port 4791."
            ),
        )],
    }
}

fn mode(whose: &str, view: &View) -> Finding {
    let what = format!("{whose} uses SMC");
    if view.mode == "TCP" {
        let reason = view.telling();
        let words = reason.describe();
        return Finding::missing(
            what,
            format!("It is on TCP because {words}. {}", reason.hint()),
        );
    }
    Finding::good(format!("{what}: it is {}", view.text()))
}

fn milliseconds(start: Instant) -> String {
    format!("{} ms", start.elapsed().as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    #[test]
    fn a_port_may_be_left_out() {
        for (text, wanted) in [
            ("192.0.2.1:80", "192.0.2.1:80"),
            ("192.0.2.1", "192.0.2.1:4300"),
            ("2001:db8::1", "[2001:db8::1]:4300"),
            ("[2001:db8::1]", "[2001:db8::1]:4300"),
            ("[2001:db8::1]:80", "[2001:db8::1]:80"),
        ] {
            assert_eq!(
                resolve(text).map(|address| address.to_string()),
                Ok(wanted.to_owned())
            );
        }
    }

    #[test]
    fn fallbacks_and_broken_exchanges_have_remedies() {
        let view = View {
            mode: "TCP".to_owned(),
            reason: 0x0500_0000,
            peer_reason: 0x0303_0008,
            ..View::default()
        };
        let finding = mode("this end", &view);
        let remedy = finding.remedy.expect("it is missing");
        assert!(remedy.contains("share no enterprise ID"), "{remedy}");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = thread::spawn(move || drop(listener.accept()));
        let mut stream = TcpStream::connect(address).expect("a connection");
        let findings = data(&mut stream);
        server.join().expect("no panic");
        assert_eq!(findings.len(), 1);
        assert!(findings[0].remedy.is_some());
    }
}

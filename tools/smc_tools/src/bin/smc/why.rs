// SPDX-License-Identifier: GPL-2.0

//! Why connections stay on TCP.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use smc_netlink::diag::{self, Details, Mode, Socket, State};
use smc_netlink::{Fallback, FallbackSide, Fallbacks, Reason, Smc};
use smc_tools::output::{self, Outcome};

/// What is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    All,
    Host(IpAddr),
    Endpoint(SocketAddr),
}

impl Subject {
    fn parse(text: Option<&str>) -> Result<Self, String> {
        let Some(text) = text else {
            return Ok(Self::All);
        };
        if let Ok(host) = text.parse() {
            return Ok(Self::Host(host));
        }
        text.parse().map(Self::Endpoint).map_err(|_| {
            format!("{text} is no address: write 192.0.2.1, 192.0.2.1:80 or [2001:db8::1]:80.")
        })
    }

    fn includes(self, socket: &Socket) -> bool {
        let ends = [socket.local, socket.peer];
        match self {
            Self::All => true,
            Self::Host(host) => ends.iter().any(|end| end.ip().to_canonical() == host),
            Self::Endpoint(wanted) => ends
                .iter()
                .any(|end| end.ip().to_canonical() == wanted.ip() && end.port() == wanted.port()),
        }
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    connections: Vec<&'a Socket>,
    fallbacks: &'a Fallbacks,
}

pub(crate) fn run(address: Option<&str>, json: bool) -> Outcome {
    let subject = Subject::parse(address)?;
    let words = |error: smc_netlink::Error| error.to_string();
    let sockets = diag::sockets(Details::default()).map_err(words)?;
    let fallbacks = Smc::open()
        .and_then(|mut smc| smc.fallbacks())
        .map_err(words)?;
    let connections: Vec<&Socket> = sockets
        .iter()
        .filter(|socket| !matches!(socket.state, State::INIT | State::LISTEN))
        .filter(|socket| subject.includes(socket))
        .collect();
    if json {
        return output::print_json(&Answer {
            connections,
            fallbacks: &fallbacks,
        });
    }
    output::print(&text(subject, &connections, &fallbacks))
}

fn text(subject: Subject, connections: &[&Socket], fallbacks: &Fallbacks) -> String {
    let mut out = String::new();
    for socket in connections {
        // Writing to a string does not fail.
        let _ = write!(out, "{} to {}: ", socket.local, socket.peer);
        match socket.mode {
            Mode::Rdma => out.push_str("over SMC-R.\n"),
            Mode::SharedMemory => out.push_str("over SMC-D.\n"),
            Mode::Tcp => explain(&mut out, socket.fallback, socket.peer_diagnosis),
        }
    }
    if connections.is_empty() {
        out.push_str("No connection of SMC sockets is open");
        out.push_str(match subject {
            Subject::All => ".\n",
            _ => " with that address.\n",
        });
    }
    if subject == Subject::All {
        counts(&mut out, fallbacks);
    }
    out
}

/// The reason, and the peer's where that is the one that tells more.
fn explain(out: &mut String, reason: Reason, peer: Reason) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "on TCP because {}.", reason.describe());
    let telling = if peer.is_some() {
        let _ = writeln!(
            out,
            "  The peer says: {} ({:#010x}).",
            peer.describe(),
            peer.0
        );
        peer
    } else {
        reason
    };
    let _ = writeln!(out, "  {}", telling.hint());
}

fn counts(out: &mut String, fallbacks: &Fallbacks) {
    let mut reasons: Vec<&Fallback> = fallbacks.reasons.iter().collect();
    reasons.sort_by_key(|entry| std::cmp::Reverse(entry.count));
    if !reasons.is_empty() {
        out.push_str("\nSince the module was loaded:\n");
    }
    for entry in reasons {
        let side = match entry.side {
            FallbackSide::Client => "connect",
            FallbackSide::Server => "accept",
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{:>8} by {side}(): {} ({:#010x}).\n         {}",
            entry.count,
            entry.reason.describe(),
            entry.reason.0,
            entry.reason.hint()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(reason: u32, peer: u32) -> Socket {
        Socket {
            state: State(1),
            mode: Mode::Tcp,
            local: "192.0.2.7:9000".parse().expect("an address"),
            peer: "192.0.2.9:51404".parse().expect("an address"),
            interface: 0,
            cookie: 1,
            uid: 0,
            inode: 1,
            shutdown: 0,
            fallback: Reason(reason),
            peer_diagnosis: Reason(peer),
            connection: None,
            link: None,
            shared_memory: None,
        }
    }

    #[test]
    fn addresses_choose_connections() {
        let socket = socket(0x0301_0000, 0);
        for (text, includes) in [
            (None, true),
            (Some("192.0.2.9"), true),
            (Some("192.0.2.9:51404"), true),
            (Some("192.0.2.9:80"), false),
            (Some("192.0.2.1"), false),
        ] {
            let subject = Subject::parse(text).expect("it is an address");
            assert_eq!(subject.includes(&socket), includes, "{text:?}");
        }
        let sentence = Subject::parse(Some("nowhere")).expect_err("it is none");
        assert!(sentence.ends_with('.'), "{sentence}");
    }

    #[test]
    fn the_reason_comes_in_words_with_a_hint() {
        let fallbacks = Fallbacks {
            server: 0,
            client: 3,
            reasons: vec![Fallback {
                side: FallbackSide::Client,
                reason: Reason(0x0301_0000),
                count: 3,
            }],
        };
        let ours = socket(0x0301_0000, 0);
        let theirs = socket(0x0500_0000, 0x0303_0008);
        let text = text(Subject::All, &[&ours, &theirs], &fallbacks);
        assert!(
            text.contains("on TCP because the peer does not offer SMC."),
            "{text}"
        );
        assert!(
            text.contains("The peer says: the two hosts share no enterprise ID"),
            "{text}"
        );
        assert!(
            text.contains("Set the same enterprise ID on both hosts."),
            "{text}"
        );
        assert!(
            text.contains("3 by connect(): the peer does not offer SMC"),
            "{text}"
        );
    }
}

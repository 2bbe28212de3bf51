// SPDX-License-Identifier: GPL-2.0

//! What becomes of the SMC option on the way to a TCP server and back.
//!
//! SYNs are sent from a raw socket, so that no SMC module is needed here. The kernel, which knows
//! nothing of these connections, resets what the server accepts.

use std::io::{self, Read};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use smc_proto::wire::tcp_opt;
use socket2::{Domain, Protocol, Socket, Type};

use super::segment::{self, Answer, Ends};
use super::Finding;

/// Maximum segment size, without which some firewalls discard a SYN.
const MSS: [u8; 4] = [2, 4, 0x05, 0xb4];
/// An experimental option (kind 254) that nobody uses: what sends it back reflects all options.
const STRANGE: [u8; 8] = [1, 1, 254, 6, 0x73, 0x79, 0x6e, 0x3f];
/// A SYN may be lost.
const TRIES: u32 = 3;

/// What came back of the three SYNs.
#[derive(Debug)]
struct Seen {
    plain: Option<Answer>,
    smc: Option<Answer>,
    strange: Option<Answer>,
}

/// Looks at the path to `url`.
///
/// # Errors
///
/// A sentence when that cannot be done.
pub(super) fn look(url: &str, limit: Duration) -> Result<Vec<Finding>, String> {
    let server = resolve(url)?;
    let seen = probe(server, limit).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "only root may send such packets: run it again as root.".to_owned()
        }
        _ => format!("{server} cannot be asked: {error}."),
    })?;
    Ok(judge(server, &seen))
}

/// The address in HOST:PORT or a URL.
fn resolve(url: &str) -> Result<SocketAddr, String> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = rest.split('/').next().unwrap_or_default();
    let port = match scheme {
        "https" => Some(443),
        "http" => Some(80),
        _ => None,
    };
    let has_port = host.rsplit_once(':').is_some_and(|(before, port)| {
        (!before.contains(':') || before.ends_with(']')) && port.parse::<u16>().is_ok()
    });
    let with_port = match port {
        _ if has_port => host.to_owned(),
        Some(port) => format!("{host}:{port}"),
        None => return Err(format!("{url} has no port: write HOST:PORT or a URL.")),
    };
    let found = with_port.to_socket_addrs();
    found
        .ok()
        .and_then(|mut found| found.next())
        .ok_or_else(|| format!("there is no host of the name in {url}: check its spelling."))
}

fn probe(server: SocketAddr, limit: Duration) -> io::Result<Seen> {
    Ok(Seen {
        plain: ask(server, &[], limit)?,
        smc: ask(server, &tcp_opt::OPTION, limit)?,
        strange: ask(server, &STRANGE, limit)?,
    })
}

/// Sends a SYN with these options and gives the answer, if there is one in time.
fn ask(server: SocketAddr, options: &[u8], limit: Duration) -> io::Result<Option<Answer>> {
    let domain = Domain::for_address(server);
    let finder = UdpSocket::bind(match server {
        SocketAddr::V4(_) => "0.0.0.0:0",
        SocketAddr::V6(_) => "[::]:0",
    })?;
    finder.connect(server)?;
    let own = finder.local_addr()?.ip();
    // Holds the port, so that nobody else gets the answer.
    let holder = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    holder.bind(&SocketAddr::new(own, 0).into())?;
    let port = holder.local_addr()?.as_socket().map_or(0, |own| own.port());
    let ends = Ends {
        own: (own, port),
        peer: (server.ip(), server.port()),
    };
    let raw = Socket::new(domain, Type::RAW, Some(Protocol::TCP))?;
    raw.connect(&SocketAddr::new(server.ip(), 0).into())?;
    let mut all = MSS.to_vec();
    all.extend(options);
    // Any number does; it only has to be known again.
    let sequence = 0x534d_4352 ^ u32::from(port);
    let packet = segment::syn(&ends, sequence, &all);
    for _ in 0..TRIES {
        raw.send(&packet)?;
        let until = Instant::now() + limit / TRIES;
        if let Some(answer) = wait(&raw, &ends, sequence, until)? {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

fn wait(
    mut raw: &Socket,
    ends: &Ends,
    sequence: u32,
    until: Instant,
) -> io::Result<Option<Answer>> {
    let mut buffer = [0; 2048];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        raw.set_read_timeout(Some(left))?;
        let length = match raw.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let segment = segment::payload(ends.own.0, &buffer[..length]);
        if let Some(answer) = segment.and_then(|bytes| segment::answer(ends, sequence, bytes)) {
            return Ok(Some(answer));
        }
    }
}

/// What the answers mean.
fn judge(server: SocketAddr, seen: &Seen) -> Vec<Finding> {
    let reach = format!("{server} accepts connections");
    match &seen.plain {
        None => {
            return vec![Finding::missing(
                reach,
                "It does not answer at all: check address, route and firewalls.",
            )]
        }
        Some(Answer::Refused) => {
            return vec![Finding::missing(
                reach,
                "It refuses: start the server, or check the port.",
            )]
        }
        Some(Answer::Accepted(_)) => {}
    }
    let mut findings = vec![Finding::good(reach)];
    let passes = "SYNs with the SMC option get through";
    let Some(Answer::Accepted(options)) = &seen.smc else {
        findings.push(Finding::missing(
            passes,
            "Something on the path discards them: have it let TCP option 254 through. Until then \
             connections take seconds longer.",
        ));
        return findings;
    };
    findings.push(Finding::good(passes));
    let reflected = match &seen.strange {
        Some(Answer::Accepted(options)) => contains(options, &STRANGE[2..]),
        _ => false,
    };
    findings.push(match (tcp_opt::find(options), reflected) {
        (_, true) => Finding::missing(
            "the server answers for itself",
            "Something on the path sends every option back, so clients take the server for one with \
             SMC: have it leave options alone.",
        ),
        (true, false) => Finding::good("the server speaks SMC, and the path keeps the option"),
        (false, false) => Finding::unsure(
            "the server speaks SMC, and the path keeps the option",
            "There is no option in the answer. Run \"smc check listen\" on the server and ask that port: \
             if the option is missing there too, something on the path removes it.",
        ),
    });
    findings
}

fn contains(options: &[u8], wanted: &[u8]) -> bool {
    options.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn servers_are_found_in_urls() {
        for (url, wanted) in [
            ("192.0.2.1:8080", "192.0.2.1:8080"),
            ("http://192.0.2.1/path:1", "192.0.2.1:80"),
            ("https://192.0.2.1", "192.0.2.1:443"),
            ("https://192.0.2.1:444/", "192.0.2.1:444"),
            ("[2001:db8::1]:80", "[2001:db8::1]:80"),
            ("http://[2001:db8::1]/", "[2001:db8::1]:80"),
        ] {
            assert_eq!(
                resolve(url).map(|server| server.to_string()),
                Ok(wanted.to_owned())
            );
        }
        for bad in ["192.0.2.1", "ftp://192.0.2.1", "http://", ""] {
            let sentence = resolve(bad).expect_err("it names no server");
            assert!(sentence.ends_with('.'), "{sentence}");
        }
    }

    #[test]
    fn answers_are_judged() {
        let server: SocketAddr = "192.0.2.1:80".parse().expect("an address");
        let none = || Some(Answer::Accepted(MSS.to_vec()));
        let with = |option: &[u8]| Some(Answer::Accepted([&MSS, option].concat()));
        let smc = || with(&tcp_opt::OPTION);
        use Verdict::{Good, Missing, Unsure};
        for (plain, smc, strange, wanted) in [
            (None, None, None, &[Missing][..]),
            (Some(Answer::Refused), None, None, &[Missing]),
            (none(), None, None, &[Good, Missing]),
            (none(), none(), none(), &[Good, Good, Unsure]),
            (none(), smc(), none(), &[Good, Good, Good]),
            (none(), smc(), None, &[Good, Good, Good]),
            (none(), smc(), with(&STRANGE), &[Good, Good, Missing]),
        ] {
            let seen = Seen {
                plain,
                smc,
                strange,
            };
            let found = judge(server, &seen);
            let verdicts: Vec<Verdict> = found.iter().map(|finding| finding.verdict).collect();
            assert_eq!(verdicts, wanted, "{seen:?}");
        }
    }
}

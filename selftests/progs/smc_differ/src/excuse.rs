// SPDX-License-Identifier: GPL-2.0

//! The differences from TCP that are meant to be, each with its reason.

use crate::scenario::Scenario;
use crate::world::{Mode, Over};

/// One kind of difference.
#[derive(Debug)]
pub(crate) struct Excuse {
    /// In which modes: over SMC-R, or in all with SMC sockets.
    over: Option<Over>,
    /// The scenario's name contains this, or ends with it, which a dollar sign says.
    scenario: &'static str,
    /// The step's name contains this.
    step: &'static str,
    /// The outcomes on TCP and here contain these.
    tcp: &'static str,
    here: &'static str,
    /// Later differences of the same run are its consequences.
    pub(crate) and_rest: bool,
    pub(crate) reason: &'static str,
}

const RDMA: Option<Over> = Some(Over::Rdma);

const fn one(
    over: Option<Over>,
    scenario: &'static str,
    step: &'static str,
    tcp: &'static str,
    here: &'static str,
    reason: &'static str,
) -> Excuse {
    Excuse {
        over,
        scenario,
        step,
        tcp,
        here,
        and_rest: false,
        reason,
    }
}

const fn and_rest(excuse: Excuse) -> Excuse {
    Excuse {
        and_rest: true,
        ..excuse
    }
}

const BUFFERS: &str = "sizes of buffers are those of net.smc, not of net.ipv4";
const URGENT: &str = "the protocol has one urgent byte at a time: nothing is sent after it \
    before it was read or passed over";
const DEAF: &str =
    "data for a socket that has shut its reading side wait there; TCP resets the connection";
const QUICK: &str = "whether an acknowledgement waits depends on what went over the TCP connection";
const TWICE: &str =
    "epoll may tell a state again: the handshake and the peer's close wake pollers, too";
const BACKLOG: &str =
    "the TCP listener below has a queue of the same length, which takes clients without SMC";
const ZERO_COPY: &str =
    "the kernel has zero copy for protocols that it knows only; data is copied into the ring";
const TIME: &str = "bytes that an adapter has written have no time of arrival";

/// The list.
pub(crate) const EXCUSES: &[Excuse] = &[
    and_rest(one(
        RDMA,
        "urgent: a second one",
        "peer: send",
        "2",
        "EAGAIN",
        URGENT,
    )),
    one(
        RDMA,
        "inherit: SO_TIMESTAMP",
        "recvmsg",
        "(1, 29, 32)",
        "[]",
        TIME,
    ),
    one(
        Some(Over::Fallback),
        "accept: more peers than the backlog",
        "peer: mask",
        "0",
        "OUT",
        BACKLOG,
    ),
    one(None, "edge: ", "edge", "0", "", TWICE),
    one(None, "TCP_QUICKACK", "getsockopt", "", "", QUICK),
    one(None, "option TCP 12$", "getsockopt", "", "", QUICK),
    one(
        None,
        "option SOCKET 18$",
        "getsockopt",
        // By the machine's memory.
        "",
        "ffffff7f",
        "TCP cuts a low mark to what its buffers can hold; here poll() does that",
    ),
    one(
        None,
        "option SOCKET 60$",
        "setsockopt",
        "",
        "EOPNOTSUPP",
        ZERO_COPY,
    ),
    one(
        None,
        "option SOCKET 60$",
        "getsockopt",
        "4 01000000",
        "4 00000000",
        ZERO_COPY,
    ),
    one(
        None,
        "option SOCKET 74$",
        "getsockopt",
        "",
        "EOPNOTSUPP",
        "it is set on the TCP socket; the kernel lets only sockets of the TCP protocol read it",
    ),
    one(
        None,
        "option SOCKET 80$",
        "setsockopt",
        "",
        "EBADF",
        "device memory is bound to TCP sockets only",
    ),
    and_rest(one(
        RDMA,
        "shutdown: data sent before arrives",
        "mask",
        "ERR",
        "",
        DEAF,
    )),
    and_rest(one(
        RDMA,
        "ends: data and RDWR, then the peer's data and ",
        "peer: shutdown",
        "ENOTCONN",
        "0",
        DEAF,
    )),
    one(
        RDMA,
        "ends: data and RDWR, then the peer's data and close",
        "drain",
        "0 '' end",
        "6 'abcdef' end",
        DEAF,
    ),
    and_rest(one(
        RDMA,
        "ends: the peer's data and RDWR, then data and ",
        "shutdown",
        "ENOTCONN",
        "0",
        DEAF,
    )),
    one(
        RDMA,
        "ends: the peer's data and RDWR, then data and close",
        "peer: drain",
        "0 '' end",
        "5 'abcde' end",
        DEAF,
    ),
    and_rest(one(
        RDMA,
        "ends: RDWR with much on its way, from the peer more data",
        "peer: mask",
        "ERR",
        "",
        DEAF,
    )),
    and_rest(one(
        RDMA,
        "ends: close with much on its way, from the peer more data",
        "peer: mask",
        "ERR",
        "",
        "what a closed socket has written still arrives, and what comes meanwhile is dropped; TCP \
            resets the connection",
    )),
    one(
        RDMA,
        "splice: less than the low mark",
        "what was begun",
        "4 4 'abcd'",
        "blocks",
        "the kernel copies from the socket to the pipe as a reader does, who waits for the low mark",
    ),
    // 128 KiB, what the default of net.smc.wmem comes to.
    one(
        None,
        "option SOCKET 7$",
        "getsockopt 1 7 room 4",
        "4 ",
        "4 00000200",
        BUFFERS,
    ),
    one(
        None,
        "option SOCKET 38$",
        "getsockopt",
        " 06",
        "",
        "the protocol is SMC's, and says so",
    ),
    one(
        None,
        "option SOCKET 39$",
        "getsockopt",
        " 02",
        " 2b",
        "the family is SMC's, and says so; IPPROTO_SMC is for programs that cannot bear it",
    ),
    one(
        None,
        "option TCP 31$",
        "setsockopt",
        "",
        "EOPNOTSUPP",
        "an upper protocol would take over the TCP socket that the handshake needs",
    ),
];

/// Finds the entry that a difference falls under.
pub(crate) fn find(
    mode: &Mode,
    scenario: &Scenario,
    step: &str,
    tcp: &str,
    here: &str,
) -> Option<usize> {
    EXCUSES.iter().position(|excuse| {
        excuse.over.is_none_or(|over| over == mode.over)
            && is_about(excuse.scenario, &scenario.name)
            && step.contains(excuse.step)
            && tcp.contains(excuse.tcp)
            && here.contains(excuse.here)
    })
}

fn is_about(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('$') {
        Some(end) => name.ends_with(end),
        None => name.contains(pattern),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_tell_numbers_apart() {
        assert!(is_about("option SOCKET 7$", "Fresh: option SOCKET 7"));
        assert!(!is_about("option SOCKET 7$", "Fresh: option SOCKET 70"));
        assert!(is_about("PeerClosed", "PeerClosedData: send 5 0"));
        assert!(is_about("", "anything"));
    }
}

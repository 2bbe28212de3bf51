// SPDX-License-Identifier: GPL-2.0

//! Every socket option, by level and number.

use crate::call::Call;
use crate::scenario::{Scenario, Step};
use crate::state::State;
use crate::world::Addresses;
use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPPROTO_UDP, SOL_SOCKET};
use std::ops::RangeInclusive;

const SOL_RAW: i32 = 255;
const SOL_NETLINK: i32 = 270;
const SOL_TLS: i32 = 282;
const SOL_MPTCP: i32 = 284;

/// Levels and the numbers that they have, and a few beyond.
const LEVELS: &[(&str, i32, RangeInclusive<i32>)] = &[
    ("SOCKET", SOL_SOCKET, 0..=86),
    ("IP", IPPROTO_IP, 0..=53),
    ("TCP", IPPROTO_TCP, 0..=47),
    ("UDP", IPPROTO_UDP, 1..=2),
    ("IPV6", IPPROTO_IPV6, 1..=3),
    ("RAW", SOL_RAW, 1..=1),
    ("NETLINK", SOL_NETLINK, 1..=1),
    ("TLS", SOL_TLS, 1..=1),
    ("MPTCP", SOL_MPTCP, 1..=1),
    ("none", 9999, 1..=1),
];

const LEVELS_V6: &[(&str, i32, RangeInclusive<i32>)] = &[("IPV6", IPPROTO_IPV6, 0..=82)];

/// Those that programs are known to use after the socket has left its first state.
const USED: &[(&str, i32, &[i32])] = &[
    (
        "SOCKET",
        SOL_SOCKET,
        &[
            libc::SO_REUSEADDR,
            libc::SO_REUSEPORT,
            libc::SO_KEEPALIVE,
            libc::SO_LINGER,
            libc::SO_OOBINLINE,
            libc::SO_SNDBUF,
            libc::SO_RCVBUF,
            libc::SO_RCVLOWAT,
            libc::SO_RCVTIMEO,
            libc::SO_SNDTIMEO,
            libc::SO_ERROR,
            libc::SO_TYPE,
            libc::SO_ACCEPTCONN,
            libc::SO_PRIORITY,
            libc::SO_MARK,
            libc::SO_BUSY_POLL,
        ],
    ),
    (
        "IP",
        IPPROTO_IP,
        &[libc::IP_TOS, libc::IP_TTL, libc::IP_FREEBIND],
    ),
    (
        "TCP",
        IPPROTO_TCP,
        &[
            libc::TCP_NODELAY,
            libc::TCP_CORK,
            libc::TCP_MAXSEG,
            libc::TCP_KEEPIDLE,
            libc::TCP_KEEPINTVL,
            libc::TCP_KEEPCNT,
            libc::TCP_SYNCNT,
            libc::TCP_LINGER2,
            libc::TCP_DEFER_ACCEPT,
            libc::TCP_INFO,
            libc::TCP_QUICKACK,
            libc::TCP_USER_TIMEOUT,
            libc::TCP_FASTOPEN,
            libc::TCP_NOTSENT_LOWAT,
            libc::TCP_SAVE_SYN,
        ],
    ),
];

/// Where those are tried.
const STATES: &[State] = &[
    State::Bound,
    State::Listening,
    State::Connecting,
    State::Refused,
    State::Server,
    State::PeerShut,
    State::ShutBoth,
    State::PeerClosed,
    State::Reset,
];

/// Options whose values are never twice the same, or say how much went over the TCP connection.
const FLEETING: &[(i32, i32)] = &[
    (SOL_SOCKET, libc::SO_COOKIE),
    (SOL_SOCKET, libc::SO_PEERNAME),
    (IPPROTO_IP, IP_PROTOCOL),
    (SOL_SOCKET, libc::SO_INCOMING_CPU),
    (SOL_SOCKET, libc::SO_INCOMING_NAPI_ID),
    (SOL_SOCKET, SO_NETNS_COOKIE),
    (SOL_SOCKET, libc::SO_MEMINFO),
    (IPPROTO_TCP, libc::TCP_INFO),
    (IPPROTO_TCP, TCP_CC_INFO),
    (IPPROTO_TCP, libc::TCP_TIMESTAMP),
    (IPPROTO_TCP, libc::TCP_SAVED_SYN),
];

/// For a stream socket that is its port.
const IP_PROTOCOL: i32 = 52;
const SO_NETNS_COOKIE: i32 = 71;
const TCP_CC_INFO: i32 = 26;

/// Reads and writes one option in all the ways.
fn steps(level: i32, name: i32) -> Vec<Step> {
    let fleeting = FLEETING.contains(&(level, name));
    let get = |room| {
        Step::Do(if fleeting {
            Call::GetLen(level, name, room)
        } else {
            Call::Get(level, name, room)
        })
    };
    let set = |value| Step::Do(Call::Set(level, name, value));
    let set_len = |len| Step::Do(Call::SetLen(level, name, len));
    let mut steps = vec![get(4), get(0), get(1)];
    steps.push(Step::Do(Call::GetLen(level, name, 256)));
    for change in [
        set(1),
        set(0),
        set(70_000),
        set(-1),
        set_len(1),
        set_len(0),
        set_len(3),
        set_len(16),
    ] {
        steps.push(change);
        steps.push(get(16));
    }
    steps.push(Step::Do(Call::Error));
    steps.push(Step::Do(Call::Poll));
    steps
}

/// A name that is unknown makes the kernel look for a module, which takes seconds.
fn slow(level: i32, name: i32) -> bool {
    level == IPPROTO_TCP && name == libc::TCP_CONGESTION
}

fn scenario(state: State, level: (&str, i32), name: i32, addresses: Addresses) -> Scenario {
    Scenario::new(
        format!("{state:?}: option {} {name}", level.0),
        state,
        steps(level.1, name),
    )
    .with(addresses)
}

/// The scenarios.
pub(crate) fn scenarios() -> Vec<Scenario> {
    let mut all = Vec::new();
    for (levels, addresses) in [(LEVELS, Addresses::V4), (LEVELS_V6, Addresses::V6)] {
        for (label, level, names) in levels {
            for name in names.clone().filter(|name| !slow(*level, *name)) {
                for state in [State::Fresh, State::Client] {
                    all.push(scenario(state, (label, *level), name, addresses));
                }
            }
        }
    }
    for state in STATES {
        for (label, level, names) in USED {
            for name in *names {
                all.push(scenario(*state, (label, *level), *name, Addresses::V4));
            }
        }
    }
    all
}

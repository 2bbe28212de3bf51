// SPDX-License-Identifier: GPL-2.0

//! What an accepted socket has of its listener.

use crate::call::Call;
use crate::scenario::{Prepare, Scenario, Step};
use crate::state::State;
use libc::{IPPROTO_TCP, MSG_NOSIGNAL, SOL_SOCKET};
use Step::{Child, ChildLook, Do, Peer, Sleep};

/// Options that a listener passes on, with a value each.
const INHERITED: &[(&str, i32, i32, i32)] = &[
    ("SO_KEEPALIVE", SOL_SOCKET, libc::SO_KEEPALIVE, 1),
    ("SO_OOBINLINE", SOL_SOCKET, libc::SO_OOBINLINE, 1),
    ("SO_PRIORITY", SOL_SOCKET, libc::SO_PRIORITY, 4),
    ("SO_MARK", SOL_SOCKET, libc::SO_MARK, 0),
    ("SO_RCVLOWAT", SOL_SOCKET, libc::SO_RCVLOWAT, 7),
    ("SO_REUSEADDR", SOL_SOCKET, libc::SO_REUSEADDR, 1),
    ("SO_REUSEPORT", SOL_SOCKET, libc::SO_REUSEPORT, 1),
    ("SO_DONTROUTE", SOL_SOCKET, libc::SO_DONTROUTE, 1),
    ("SO_BUSY_POLL", SOL_SOCKET, libc::SO_BUSY_POLL, 3),
    ("SO_RCVBUF", SOL_SOCKET, libc::SO_RCVBUF, 50_000),
    ("SO_SNDBUF", SOL_SOCKET, libc::SO_SNDBUF, 50_000),
    ("SO_PEEK_OFF", SOL_SOCKET, libc::SO_PEEK_OFF, 2),
    ("SO_TIMESTAMP", SOL_SOCKET, libc::SO_TIMESTAMP, 1),
    ("IP_TOS", libc::IPPROTO_IP, libc::IP_TOS, 16),
    ("IP_TTL", libc::IPPROTO_IP, libc::IP_TTL, 33),
    ("IP_RECVTTL", libc::IPPROTO_IP, libc::IP_RECVTTL, 1),
    ("TCP_NODELAY", IPPROTO_TCP, libc::TCP_NODELAY, 1),
    ("TCP_CORK", IPPROTO_TCP, libc::TCP_CORK, 1),
    ("TCP_KEEPIDLE", IPPROTO_TCP, libc::TCP_KEEPIDLE, 55),
    (
        "TCP_USER_TIMEOUT",
        IPPROTO_TCP,
        libc::TCP_USER_TIMEOUT,
        5555,
    ),
    (
        "TCP_NOTSENT_LOWAT",
        IPPROTO_TCP,
        libc::TCP_NOTSENT_LOWAT,
        4444,
    ),
    ("TCP_QUICKACK", IPPROTO_TCP, libc::TCP_QUICKACK, 0),
    ("TCP_LINGER2", IPPROTO_TCP, libc::TCP_LINGER2, 9),
    ("TCP_INQ", IPPROTO_TCP, libc::TCP_INQ, 1),
];

/// The scenarios.
pub(super) fn scenarios() -> Vec<Scenario> {
    INHERITED
        .iter()
        .map(|(label, level, name, value)| Scenario {
            prepare: Prepare::Do(Call::Set(*level, *name, *value)),
            ..Scenario::new(
                format!("inherit: {label}"),
                State::Pending,
                vec![
                    Do(Call::Get(*level, *name, 8)),
                    Do(Call::Accept(libc::SOCK_NONBLOCK)),
                    Child(Call::Get(*level, *name, 8)),
                    Peer(Call::Send(8, 0)),
                    Sleep(20),
                    ChildLook,
                    Child(Call::RecvMsg(100, 0)),
                    Child(Call::Send(6, MSG_NOSIGNAL)),
                    Child(Call::Get(*level, *name, 8)),
                ],
            )
        })
        .collect()
}

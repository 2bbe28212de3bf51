// SPDX-License-Identifier: GPL-2.0

//! Ends of connections.

use super::{Script, END, SEND};
use crate::call::Call;
use crate::scenario::Step;
use crate::state::State;
use libc::{MSG_NOSIGNAL, POLLHUP, POLLIN, POLLRDHUP, SHUT_RD, SHUT_RDWR, SHUT_WR};
use Step::{Close, Do, Look, Peer, PeerClose, PeerLook, PeerWait, Sleep};

/// The scripts.
pub(super) const SCRIPTS: &[Script] = &[
    (
        "close: nothing unread",
        State::Client,
        &[
            SEND,
            PeerWait(POLLIN),
            Close,
            PeerWait(POLLRDHUP),
            PeerLook,
            Peer(Call::Drain),
            Peer(Call::Send(3, MSG_NOSIGNAL)),
            PeerLook,
        ],
    ),
    (
        "close: with unread data",
        State::Data,
        &[
            Close,
            PeerWait(POLLHUP),
            PeerLook,
            Peer(Call::Error),
            Peer(Call::Drain),
            Peer(Call::Send(3, MSG_NOSIGNAL)),
        ],
    ),
    (
        "close: with unread data, after sending",
        State::Data,
        &[
            SEND,
            PeerWait(POLLIN),
            Close,
            PeerWait(POLLHUP),
            PeerLook,
            Peer(Call::Error),
            Peer(Call::Drain),
        ],
    ),
    (
        "close: zero linger",
        State::Client,
        &[
            Do(Call::Linger(0)),
            Close,
            PeerWait(POLLHUP),
            PeerLook,
            Peer(Call::Drain),
            Peer(Call::Error),
        ],
    ),
    (
        "close: zero linger, data on the way",
        State::Client,
        &[
            SEND,
            PeerWait(POLLIN),
            Do(Call::Linger(0)),
            Close,
            PeerWait(POLLHUP),
            PeerLook,
            Peer(Call::Recv(10, 0)),
            Peer(Call::Recv(10, 0)),
        ],
    ),
    (
        "close: zero linger, right behind the data",
        State::Client,
        &[
            Do(Call::Linger(0)),
            SEND,
            Close,
            PeerWait(POLLHUP),
            Peer(Call::Recv(10, 0)),
            Peer(Call::Recv(10, 0)),
            Peer(Call::Recv(10, 0)),
        ],
    ),
    (
        "close: after shutdown",
        State::Client,
        &[
            Do(Call::Shutdown(SHUT_WR)),
            SEND,
            Close,
            PeerWait(POLLRDHUP),
            PeerLook,
            Peer(Call::Send(3, MSG_NOSIGNAL)),
            PeerLook,
            Peer(Call::Drain),
        ],
    ),
    (
        "close: the peer goes on sending",
        State::Client,
        &[
            Close,
            PeerWait(POLLRDHUP),
            Peer(Call::Send(3, MSG_NOSIGNAL)),
            Sleep(40),
            PeerLook,
            Peer(Call::Send(3, MSG_NOSIGNAL)),
            PeerLook,
            Peer(Call::Error),
        ],
    ),
    (
        "close: both have shut, then both close",
        State::BothShut,
        &[Look, PeerLook, PeerClose, Sleep(20), Look, SEND, END],
    ),
    (
        "shutdown: one direction after the other",
        State::Client,
        &[
            Do(Call::Shutdown(SHUT_RD)),
            Look,
            Do(Call::Shutdown(SHUT_WR)),
            Look,
            PeerLook,
            Do(Call::Shutdown(SHUT_RDWR)),
            Peer(Call::Shutdown(SHUT_RD)),
            PeerLook,
            Peer(Call::Shutdown(SHUT_WR)),
            PeerLook,
            Sleep(300),
            Look,
            Do(Call::Shutdown(SHUT_WR)),
            Peer(Call::Shutdown(SHUT_RDWR)),
            END,
        ],
    ),
    (
        "shutdown: data sent before arrives",
        State::Client,
        &[
            SEND,
            Do(Call::Shutdown(SHUT_RDWR)),
            PeerWait(POLLRDHUP),
            PeerLook,
            Peer(Call::Drain),
            Peer(Call::Send(3, MSG_NOSIGNAL)),
            Sleep(20),
            Look,
            Do(Call::Drain),
        ],
    ),
];

// SPDX-License-Identifier: GPL-2.0

//! Accepting connections.

use super::{Script, END};
use crate::call::{Call, To};
use crate::scenario::Step;
use crate::state::State;
use libc::{POLLHUP, POLLIN, POLLOUT, SHUT_RDWR};
use Step::{
    Child, ChildLook, Close, Do, Look, NewPeer, Peer, PeerClose, PeerLook, PeerWait, Sleep, Wait,
};

/// The scripts.
pub(super) const SCRIPTS: &[Script] = &[
    (
        "accept: listening again after shutdown",
        State::ListenShut,
        &[
            Do(Call::Listen(4)),
            NewPeer,
            Wait(POLLIN),
            Do(Call::Accept(0)),
            Look,
            END,
        ],
    ),
    (
        "accept: the peer has sent and closed",
        State::Pending,
        &[
            Peer(Call::Send(9, 0)),
            PeerClose,
            Sleep(30),
            Look,
            Do(Call::Accept(0)),
            Child(Call::Nonblock(true)),
            ChildLook,
            Child(Call::Drain),
            Child(Call::Error),
            Look,
        ],
    ),
    (
        "accept: shut down while a connection waits",
        State::Pending,
        &[
            Do(Call::Shutdown(SHUT_RDWR)),
            Do(Call::Accept(0)),
            Look,
            PeerWait(POLLHUP),
            PeerLook,
            Peer(Call::Error),
        ],
    ),
    (
        "accept: closed while a connection waits",
        State::Pending,
        &[Close, PeerWait(POLLHUP), PeerLook, Peer(Call::Error)],
    ),
    (
        "accept: two connections, in order",
        State::Pending,
        &[
            NewPeer,
            PeerWait(POLLOUT),
            Peer(Call::Send(3, 0)),
            Do(Call::Accept(0)),
            Child(Call::Nonblock(true)),
            Child(Call::Recv(10, 0)),
            Wait(POLLIN),
            Do(Call::Accept(0)),
            Child(Call::Recv(10, 0)),
            Look,
            END,
        ],
    ),
    (
        "accept: more peers than the backlog",
        State::Listening,
        &[
            Do(Call::Listen(1)),
            NewPeer,
            PeerWait(POLLOUT),
            NewPeer,
            PeerWait(POLLOUT),
            NewPeer,
            Sleep(100),
            PeerLook,
            Do(Call::Accept(0)),
            Do(Call::Accept(0)),
            PeerWait(POLLOUT),
            Wait(POLLIN),
            Do(Call::Accept(0)),
            Look,
        ],
    ),
    (
        "accept: an accepted socket listens, connects, accepts",
        State::Pending,
        &[
            Do(Call::Accept(libc::SOCK_NONBLOCK)),
            Child(Call::Listen(1)),
            Child(Call::Accept(0)),
            Child(Call::Connect(To::Closed)),
            Child(Call::Bind(To::Own)),
            Child(Call::Name),
            Child(Call::Peer),
            ChildLook,
        ],
    ),
];

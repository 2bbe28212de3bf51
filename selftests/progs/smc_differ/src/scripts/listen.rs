// SPDX-License-Identifier: GPL-2.0

//! Accepting connections.

use super::{Script, END};
use crate::call::{Call, To};
use crate::scenario::Step;
use crate::state::State;
use libc::{
    IPPROTO_TCP, POLLHUP, POLLIN, POLLOUT, SHUT_RDWR, SOCK_NONBLOCK, SOL_SOCKET, SO_PEERNAME,
    TCP_DEFER_ACCEPT,
};
use Step::{
    Child, ChildLook, Close, Do, Look, NewPeer, Peer, PeerClose, PeerLook, PeerReset, PeerWait,
    Sleep, Wait,
};

/// Connections are accepted once data have come, or after so many seconds.
const fn defer(seconds: i32) -> Step {
    Do(Call::Set(IPPROTO_TCP, TCP_DEFER_ACCEPT, seconds))
}

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
        "accept: the peer has reset the connection",
        State::Pending,
        &[
            PeerReset,
            Sleep(300),
            Look,
            Do(Call::Accept(libc::SOCK_NONBLOCK)),
            ChildLook,
            Child(Call::GetLen(SOL_SOCKET, SO_PEERNAME, 128)),
            Child(Call::Peer),
            Child(Call::Drain),
            Child(Call::Error),
            Look,
        ],
    ),
    (
        "accept: the peer has sent and reset the connection",
        State::Pending,
        &[
            Peer(Call::Send(9, 0)),
            PeerReset,
            Sleep(300),
            Do(Call::Accept(libc::SOCK_NONBLOCK)),
            Child(Call::Name),
            Child(Call::Drain),
            Child(Call::GetLen(SOL_SOCKET, SO_PEERNAME, 128)),
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
        "accept: deferred until data come",
        State::Listening,
        &[
            defer(5),
            Do(Call::Get(IPPROTO_TCP, TCP_DEFER_ACCEPT, 4)),
            NewPeer,
            PeerWait(POLLOUT),
            Sleep(200),
            Look,
            Do(Call::Accept(0)),
            Peer(Call::Send(5, 0)),
            Wait(POLLIN),
            Do(Call::Accept(SOCK_NONBLOCK)),
            Child(Call::Recv(10, 0)),
            Look,
        ],
    ),
    (
        "accept: deferred, another one sends first",
        State::Listening,
        &[
            defer(5),
            NewPeer,
            PeerWait(POLLOUT),
            NewPeer,
            PeerWait(POLLOUT),
            Peer(Call::Send(3, 0)),
            Wait(POLLIN),
            Do(Call::Accept(SOCK_NONBLOCK)),
            Child(Call::Recv(10, 0)),
            Sleep(60),
            Look,
            Do(Call::Accept(0)),
        ],
    ),
    (
        "accept: deferred until the peer closes",
        State::Listening,
        &[
            defer(5),
            NewPeer,
            PeerWait(POLLOUT),
            Sleep(60),
            PeerClose,
            Wait(POLLIN),
            Do(Call::Accept(SOCK_NONBLOCK)),
            Child(Call::Recv(10, 0)),
        ],
    ),
    (
        "accept: not deferred for longer than said",
        State::Listening,
        &[
            defer(1),
            NewPeer,
            PeerWait(POLLOUT),
            Sleep(200),
            Look,
            Wait(POLLIN),
            Do(Call::Accept(SOCK_NONBLOCK)),
            Child(Call::Recv(10, 0)),
            Peer(Call::Send(3, 0)),
            Sleep(20),
            Child(Call::Recv(10, 0)),
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

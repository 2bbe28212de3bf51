// SPDX-License-Identifier: GPL-2.0

//! What was asked for before it was known what the connection would use.

use super::{Script, BLOCK, END, NOW};
use crate::call::{Call, To};
use crate::ring::Op;
use crate::scenario::Step;
use crate::state::State;
use libc::{
    F_SETFL, IPPROTO_TCP, MSG_FASTOPEN, MSG_NOSIGNAL, O_ASYNC, O_NONBLOCK, POLLIN, POLLOUT, SIGIO,
    SOCK_NONBLOCK, TCP_FASTOPEN,
};
use testlib::opts::TCP_FASTOPEN_CONNECT;
use Step::{
    Child, ChildClose, ChildLook, Do, Forget, Look, NewPeer, Own, Peer, PeerAccept, PeerReset,
    PeerWait, Sleep, Start, Wait,
};

const BY_OPTION: Step = Do(Call::Set(IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1));
const BY_FLAG: Step = Do(Call::SendTo(To::Server, 5, MSG_FASTOPEN | MSG_NOSIGNAL));
const CONNECT: Step = Do(Call::Connect(To::Server));
const ACCEPT: Step = Do(Call::Accept(SOCK_NONBLOCK));

/// The scripts.
pub(super) const SCRIPTS: &[Script] = &[
    (
        "signal: O_ASYNC before connecting, then off",
        State::Fresh,
        &[
            Own,
            Do(Call::Fcntl(F_SETFL, O_ASYNC | O_NONBLOCK)),
            CONNECT,
            Wait(POLLOUT),
            PeerAccept,
            Sleep(20),
            Forget(SIGIO),
            Peer(Call::Send(4, 0)),
            Wait(POLLIN),
            Sleep(20),
            Do(Call::Signalled(SIGIO)),
            Do(Call::Recv(4, 0)),
            Do(Call::Fcntl(F_SETFL, O_NONBLOCK)),
            Sleep(20),
            Forget(SIGIO),
            Peer(Call::Send(4, 0)),
            Wait(POLLIN),
            Sleep(20),
            Do(Call::Signalled(SIGIO)),
        ],
    ),
    (
        "FASTOPEN: by the option, then by the flag",
        State::Fresh,
        &[
            BY_OPTION,
            CONNECT,
            Wait(POLLOUT),
            BY_FLAG,
            BY_OPTION,
            PeerAccept,
            Peer(Call::Nonblock(true)),
            Sleep(20),
            Peer(Call::Recv(10, 0)),
            Peer(Call::Send(4, 0)),
            Wait(POLLIN),
            Look,
            PeerReset,
            Sleep(20),
            Look,
            END,
        ],
    ),
    (
        "FASTOPEN: by the flag, then by the option",
        State::Fresh,
        &[
            BY_FLAG,
            Wait(POLLOUT),
            BY_OPTION,
            CONNECT,
            BY_FLAG,
            PeerAccept,
            PeerReset,
            Sleep(20),
            Look,
            Do(Call::Drain),
            Do(Call::Connect(To::Unspec)),
            BY_FLAG,
            Wait(POLLOUT),
            PeerAccept,
            Peer(Call::Send(4, 0)),
            Wait(POLLIN),
            Do(Call::Drain),
        ],
    ),
    (
        "FASTOPEN: children of a listener, data and resets",
        State::Listening,
        &[
            Do(Call::Set(IPPROTO_TCP, TCP_FASTOPEN, 5)),
            NewPeer,
            PeerWait(POLLOUT),
            Peer(Call::Send(5, 0)),
            Wait(POLLIN),
            ACCEPT,
            Sleep(20),
            Child(Call::Recv(10, 0)),
            PeerReset,
            Sleep(20),
            ChildLook,
            Child(Call::Error),
            ChildClose,
            NewPeer,
            PeerWait(POLLOUT),
            Wait(POLLIN),
            ACCEPT,
            Peer(Call::Send(5, 0)),
            PeerReset,
            Sleep(20),
            Child(Call::Drain),
            ChildLook,
        ],
    ),
    (
        "io_uring: receiving, queued while connecting",
        State::Fresh,
        &[
            CONNECT,
            BLOCK,
            Start(Call::RingWait(Op::Recv(100, 0))),
            PeerAccept,
            Sleep(20),
            Peer(Call::Send(4, 0)),
            NOW,
            Look,
        ],
    ),
    (
        "io_uring: sending, queued while connecting",
        State::Fresh,
        &[
            CONNECT,
            BLOCK,
            Start(Call::RingWait(Op::Send(5, MSG_NOSIGNAL))),
            PeerAccept,
            NOW,
            PeerWait(POLLIN),
            Peer(Call::Recv(10, 0)),
        ],
    ),
    (
        "io_uring: polling, queued while connecting",
        State::Fresh,
        &[
            CONNECT,
            BLOCK,
            Start(Call::RingWait(Op::Poll(POLLIN))),
            PeerAccept,
            Sleep(20),
            Peer(Call::Send(4, 0)),
            NOW,
            Look,
        ],
    ),
];

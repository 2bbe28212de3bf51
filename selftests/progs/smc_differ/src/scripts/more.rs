// SPDX-License-Identifier: GPL-2.0

//! Low marks, time limits, signals, queues.

use super::{Script, BLOCK, END, NOW, RECV, SEND};
use crate::call::{Call, To};
use crate::scenario::Step;
use crate::state::State;
use libc::{
    IPPROTO_TCP, MSG_PEEK, MSG_WAITALL, POLLIN, POLLRDHUP, SHUT_WR, SOL_SOCKET, SO_RCVLOWAT,
};
use testlib::opts::{SIOCINQ, SIOCOUTQ};
use Step::{
    Arrived, Child, ChildLook, Do, Look, NewPeer, Own, Peer, PeerClose, PeerLook, PeerWait, Sleep,
    Start, Wait,
};

/// The scripts.
pub(super) const SCRIPTS: &[Script] = &[
    (
        "low mark: less, then enough",
        State::Client,
        &[
            Do(Call::Set(SOL_SOCKET, SO_RCVLOWAT, 8)),
            Peer(Call::Send(4, 0)),
            Arrived(4),
            Look,
            Do(Call::Recv(100, MSG_PEEK)),
            Peer(Call::Send(4, 0)),
            Wait(POLLIN),
            Do(Call::Recv(100, 0)),
            Peer(Call::Send(9, 0)),
            Wait(POLLIN),
            Look,
        ],
    ),
    (
        "low mark: the peer closes with less",
        State::Client,
        &[
            Do(Call::Set(SOL_SOCKET, SO_RCVLOWAT, 8)),
            Peer(Call::Send(4, 0)),
            PeerClose,
            Wait(POLLIN | POLLRDHUP),
            Look,
            BLOCK,
            Do(Call::Recv(100, 0)),
            Do(Call::Recv(100, 0)),
        ],
    ),
    (
        "time limit: receiving",
        State::Client,
        &[
            BLOCK,
            Do(Call::Timeout(libc::SO_RCVTIMEO, 30)),
            Start(RECV),
            NOW,
            Look,
            END,
        ],
    ),
    (
        "time limit: receiving all",
        State::Data,
        &[
            BLOCK,
            Do(Call::Timeout(libc::SO_RCVTIMEO, 30)),
            Start(Call::Recv(20, MSG_WAITALL)),
            NOW,
            Look,
            END,
        ],
    ),
    (
        "time limit: sending",
        State::Full,
        &[
            BLOCK,
            Do(Call::Timeout(libc::SO_SNDTIMEO, 30)),
            Start(Call::Send(5, 0)),
            NOW,
            Look,
            END,
        ],
    ),
    (
        "time limit: accepting",
        State::Listening,
        &[
            BLOCK,
            Do(Call::Timeout(libc::SO_RCVTIMEO, 30)),
            Start(Call::Accept(0)),
            NOW,
            Look,
            END,
        ],
    ),
    (
        "time limit: connecting",
        State::Fresh,
        &[
            BLOCK,
            Do(Call::Timeout(libc::SO_SNDTIMEO, 30)),
            Start(Call::Connect(To::Silent)),
            NOW,
            Start(Call::Connect(To::Silent)),
            NOW,
            Look,
            END,
        ],
    ),
    (
        "cork: holds, then lets go",
        State::Client,
        &[
            Do(Call::Set(IPPROTO_TCP, libc::TCP_CORK, 1)),
            SEND,
            PeerLook,
            SEND,
            Do(Call::Set(IPPROTO_TCP, libc::TCP_CORK, 0)),
            PeerWait(POLLIN),
            Sleep(20),
            Peer(Call::Drain),
        ],
    ),
    (
        "queues: what waits and what is on the way",
        State::Data,
        &[
            Do(Call::Ioctl(SIOCINQ)),
            Do(Call::Recv(4, MSG_PEEK)),
            Do(Call::Ioctl(SIOCINQ)),
            Do(Call::Recv(4, 0)),
            Do(Call::Ioctl(SIOCINQ)),
            SEND,
            PeerWait(POLLIN),
            Peer(Call::Ioctl(SIOCINQ)),
            Peer(Call::Drain),
            Sleep(60),
            Do(Call::Ioctl(SIOCOUTQ)),
        ],
    ),
    (
        "dup: both work",
        State::Data,
        &[
            Do(Call::Dup),
            Child(Call::Recv(4, 0)),
            Do(Call::Recv(4, 0)),
            Child(Call::Shutdown(SHUT_WR)),
            SEND,
            ChildLook,
            Step::ChildClose,
            Look,
        ],
    ),
    (
        "repair: no error comes of it",
        State::Client,
        &[
            Do(Call::Set(IPPROTO_TCP, libc::TCP_REPAIR, 1)),
            Look,
            Do(Call::Recv(10, 0)),
            END,
            Do(Call::Set(IPPROTO_TCP, libc::TCP_REPAIR, -1)),
            Look,
            END,
        ],
    ),
    (
        "signal: SIGIO at data",
        State::Client,
        &[
            Own,
            Do(Call::Fcntl(libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK)),
            Peer(Call::Send(5, 0)),
            Wait(POLLIN),
            Sleep(20),
            Do(Call::Signalled(libc::SIGIO)),
        ],
    ),
    (
        "signal: SIGIO at a connection",
        State::Listening,
        &[
            Own,
            Do(Call::Fcntl(libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK)),
            NewPeer,
            Wait(POLLIN),
            Sleep(20),
            Do(Call::Signalled(libc::SIGIO)),
        ],
    ),
    (
        "listener: closed after the connection was made",
        State::Server,
        &[
            Step::ListenerClose,
            SEND,
            PeerWait(POLLIN),
            Peer(Call::Drain),
            Look,
            END,
        ],
    ),
];

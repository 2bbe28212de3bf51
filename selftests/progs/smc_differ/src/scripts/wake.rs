// SPDX-License-Identifier: GPL-2.0

//! Receiving in several steps, and room for sending.

use super::{Script, BLOCK, BLOCKS, END, NOW, SEND};
use crate::call::Call;
use crate::scenario::Step;
use crate::state::State;
use libc::{
    IPPROTO_TCP, MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL, POLLOUT, POLLRDHUP, SHUT_WR, SOL_SOCKET,
    SO_PEEK_OFF, TCP_INQ,
};
use Step::{Arrived, Do, Look, Peer, PeerReset, Sleep, Start, Wait};

/// The scripts.
pub(super) const SCRIPTS: &[Script] = &[
    (
        "recv: data that came after the shutdown for reading",
        State::ShutRd,
        &[
            Peer(Call::Send(6, 0)),
            Arrived(6),
            Look,
            Do(Call::Recv(10, 0)),
            Do(Call::Recv(10, 0)),
            Look,
        ],
    ),
    (
        "recv: MSG_WAITALL over two messages",
        State::Client,
        &[
            BLOCK,
            Start(Call::Recv(10, MSG_WAITALL)),
            Peer(Call::Send(4, 0)),
            BLOCKS,
            Peer(Call::Send(6, 0)),
            NOW,
            END,
        ],
    ),
    (
        "recv: MSG_WAITALL cut short by the end",
        State::Client,
        &[
            BLOCK,
            Start(Call::Recv(10, MSG_WAITALL)),
            Peer(Call::Send(4, 0)),
            BLOCKS,
            Peer(Call::Shutdown(SHUT_WR)),
            NOW,
            END,
        ],
    ),
    (
        "recv: MSG_WAITALL cut short by a reset",
        State::Client,
        &[
            BLOCK,
            Start(Call::Recv(10, MSG_WAITALL)),
            Peer(Call::Send(4, 0)),
            BLOCKS,
            PeerReset,
            NOW,
            Do(Call::Recv(10, 0)),
            END,
        ],
    ),
    (
        "recv: MSG_PEEK with MSG_WAITALL",
        State::Data,
        &[
            BLOCK,
            Start(Call::Recv(15, MSG_WAITALL | MSG_PEEK)),
            BLOCKS,
            Peer(Call::Send(5, 0)),
            NOW,
            Do(Call::Recv(20, MSG_DONTWAIT)),
        ],
    ),
    (
        "recv: peek offset",
        State::Data,
        &[
            Do(Call::Set(SOL_SOCKET, SO_PEEK_OFF, 3)),
            Do(Call::Recv(4, MSG_PEEK)),
            Do(Call::Get(SOL_SOCKET, SO_PEEK_OFF, 4)),
            Do(Call::Recv(100, MSG_PEEK)),
            Do(Call::Recv(100, MSG_PEEK)),
            Do(Call::Recv(2, 0)),
            Do(Call::Get(SOL_SOCKET, SO_PEEK_OFF, 4)),
            Peer(Call::Send(3, 0)),
            Arrived(11),
            Do(Call::Recv(100, MSG_PEEK)),
            Do(Call::Set(SOL_SOCKET, SO_PEEK_OFF, -1)),
            Do(Call::Recv(100, MSG_PEEK)),
            Do(Call::Drain),
        ],
    ),
    (
        "recv: peeking behind the offset sleeps until data come",
        State::Data,
        &[
            BLOCK,
            Do(Call::Set(SOL_SOCKET, SO_PEEK_OFF, 12)),
            Start(Call::Recv(5, MSG_PEEK)),
            BLOCKS,
            Peer(Call::Send(6, 0)),
            NOW,
            Do(Call::Get(SOL_SOCKET, SO_PEEK_OFF, 4)),
            Do(Call::Recv(9, 0)),
            Do(Call::Get(SOL_SOCKET, SO_PEEK_OFF, 4)),
        ],
    ),
    (
        "recv: inq tells what is left",
        State::Data,
        &[
            Do(Call::Set(IPPROTO_TCP, TCP_INQ, 1)),
            Do(Call::RecvMsg(4, 0)),
            Do(Call::RecvMsg(2, MSG_PEEK)),
            Do(Call::RecvMsg(100, 0)),
            Do(Call::RecvMsg(100, 0)),
            Peer(Call::Shutdown(SHUT_WR)),
            Wait(POLLRDHUP),
            Do(Call::RecvMsg(100, 0)),
            Do(Call::Set(IPPROTO_TCP, TCP_INQ, 0)),
            Do(Call::RecvMsg(100, 0)),
        ],
    ),
    (
        "send: not writable for a few bytes that the peer has read",
        State::Full,
        &[
            Peer(Call::Recv(100, 0)),
            Sleep(30),
            Look,
            Peer(Call::Recv(100, 0)),
            Sleep(30),
            Look,
            Peer(Call::Drain),
            Wait(POLLOUT),
            Look,
        ],
    ),
    (
        "send: writable again once the peer has read",
        State::Full,
        &[Look, Peer(Call::Drain), Wait(POLLOUT), SEND, Look],
    ),
];

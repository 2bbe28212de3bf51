// SPDX-License-Identifier: GPL-2.0

//! Calls that sleep, and what wakes them.

use super::{Script, BLOCK, BLOCKS, END, NOW, RECV, SEND};
use crate::call::Call;
use crate::scenario::Step;
use crate::state::State;
use libc::{MSG_DONTWAIT, MSG_NOSIGNAL, MSG_PEEK, MSG_WAITALL, POLLOUT, SHUT_RD, SHUT_WR};
use Step::{Do, Look, Peer, PeerClose, PeerReset, Sleep, Start, Wait};

/// The scripts.
pub(super) const SCRIPTS: &[Script] = &[
    (
        "recv: woken by data",
        State::Client,
        &[BLOCK, Start(RECV), BLOCKS, Peer(Call::Send(4, 0)), NOW, END],
    ),
    (
        "recv: woken by the peer's shutdown",
        State::Client,
        &[
            BLOCK,
            Start(RECV),
            BLOCKS,
            Peer(Call::Shutdown(SHUT_WR)),
            NOW,
            Look,
            END,
        ],
    ),
    (
        "recv: woken by the peer's close",
        State::Server,
        &[BLOCK, Start(RECV), BLOCKS, PeerClose, NOW, Look, END],
    ),
    (
        "recv: woken by a reset",
        State::Client,
        &[BLOCK, Start(RECV), BLOCKS, PeerReset, NOW, Look, END],
    ),
    (
        "recv: woken by the own shutdown for reading",
        State::Client,
        &[
            BLOCK,
            Start(RECV),
            BLOCKS,
            Do(Call::Shutdown(SHUT_RD)),
            NOW,
            Look,
            END,
        ],
    ),
    (
        "recv: not woken by the own shutdown for writing",
        State::Client,
        &[
            BLOCK,
            Start(RECV),
            BLOCKS,
            Do(Call::Shutdown(SHUT_WR)),
            BLOCKS,
            PeerClose,
            NOW,
            Look,
            END,
        ],
    ),
    (
        "recv: data that came after the shutdown for reading",
        State::ShutRd,
        &[
            Peer(Call::Send(6, 0)),
            Sleep(30),
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
        "send: woken by the reader",
        State::Full,
        &[
            BLOCK,
            Start(Call::Send(5, MSG_NOSIGNAL)),
            BLOCKS,
            Peer(Call::Drain),
            NOW,
            Look,
        ],
    ),
    (
        "send: woken by the own shutdown",
        State::Full,
        &[
            BLOCK,
            Start(Call::Send(5, MSG_NOSIGNAL)),
            BLOCKS,
            Do(Call::Shutdown(SHUT_WR)),
            NOW,
            Do(Call::Send(5, MSG_NOSIGNAL)),
            END,
        ],
    ),
    (
        "send: woken by a reset",
        State::Full,
        &[
            BLOCK,
            Start(Call::Send(5, MSG_NOSIGNAL)),
            BLOCKS,
            PeerReset,
            NOW,
            Look,
            END,
        ],
    ),
    (
        "send: woken by the peer's close with unread data",
        State::Full,
        &[
            BLOCK,
            Start(Call::Send(5, MSG_NOSIGNAL)),
            BLOCKS,
            PeerClose,
            NOW,
            Look,
            END,
        ],
    ),
    (
        "send: writable again once the peer has read",
        State::Full,
        &[Look, Peer(Call::Drain), Wait(POLLOUT), SEND, Look],
    ),
];

// SPDX-License-Identifier: GPL-2.0

//! Making connections.

use super::{Script, BLOCK, END, SEND};
use crate::call::{Call, To};
use crate::ring::Op;
use crate::scenario::Step;
use crate::state::State;
use libc::{MSG_NOSIGNAL, POLLHUP, POLLOUT, SHUT_WR, SOL_SOCKET, SO_BROADCAST};
use Step::{Do, Look, Wait};

/// The scripts.
pub(super) const SCRIPTS: &[Script] = &[
    (
        "connect: step by step",
        State::Fresh,
        &[
            Do(Call::Nonblock(true)),
            Do(Call::Connect(To::Server)),
            Wait(POLLOUT),
            Do(Call::Error),
            Do(Call::Connect(To::Server)),
            Do(Call::Connect(To::Server)),
            Look,
            END,
        ],
    ),
    (
        "connect: blocking, then again",
        State::Fresh,
        &[
            BLOCK,
            Do(Call::Connect(To::Server)),
            Do(Call::Connect(To::Server)),
            Look,
            END,
        ],
    ),
    (
        "connect: while connecting",
        State::Connecting,
        &[
            Do(Call::Connect(To::Silent)),
            Do(Call::Connect(To::Server)),
            Do(Call::Name),
            Do(Call::Peer),
            Do(Call::Shutdown(SHUT_WR)),
            Look,
            Do(Call::Connect(To::Server)),
            END,
        ],
    ),
    (
        "connect: given up by connecting to nowhere, then to the server",
        State::Connecting,
        &[
            Do(Call::Connect(To::Unspec)),
            Look,
            Do(Call::Connect(To::Server)),
            Wait(POLLOUT),
            Do(Call::Connect(To::Server)),
            END,
        ],
    ),
    (
        "connect: refused, then refused again",
        State::Refused,
        &[
            Do(Call::Connect(To::Closed)),
            Look,
            Do(Call::Connect(To::Closed)),
            Wait(POLLHUP),
            END,
            Do(Call::Connect(To::Server)),
            END,
        ],
    ),
    (
        "connect: refused, asked, then to the server",
        State::RefusedRead,
        &[
            Do(Call::Connect(To::Server)),
            Do(Call::Connect(To::Server)),
            Wait(POLLOUT),
            Do(Call::Connect(To::Server)),
            SEND,
            END,
        ],
    ),
    (
        "connect: refused while blocking",
        State::Fresh,
        &[
            BLOCK,
            Do(Call::Connect(To::Closed)),
            Look,
            END,
            Do(Call::Connect(To::Server)),
            SEND,
            END,
        ],
    ),
    (
        "connect: sending to no connection, then connecting",
        State::Fresh,
        &[
            SEND,
            Do(Call::Recv(5, 0)),
            BLOCK,
            Do(Call::Connect(To::Server)),
            SEND,
            Look,
            END,
        ],
    ),
    (
        "connect: by io_uring",
        State::Fresh,
        &[
            BLOCK,
            Do(Call::RingWait(Op::Connect(To::Server))),
            Do(Call::RingWait(Op::Send(5, MSG_NOSIGNAL))),
            Look,
            Do(Call::RingWait(Op::Connect(To::Server))),
            END,
        ],
    ),
    (
        "connect: by io_uring, refused",
        State::Fresh,
        &[
            BLOCK,
            Do(Call::RingWait(Op::Connect(To::Closed))),
            Look,
            END,
            Do(Call::RingWait(Op::Connect(To::Server))),
            SEND,
            END,
        ],
    ),
    (
        "connect: bound before",
        State::Bound,
        &[
            BLOCK,
            Do(Call::Connect(To::Server)),
            Do(Call::Name),
            Do(Call::Peer),
            SEND,
            END,
        ],
    ),
    (
        "connect: the broadcast address",
        State::Fresh,
        &[
            Do(Call::Connect(To::Broadcast)),
            Look,
            END,
            Do(Call::Set(SOL_SOCKET, SO_BROADCAST, 1)),
            Do(Call::Connect(To::Broadcast)),
            BLOCK,
            Do(Call::Connect(To::Broadcast)),
            Do(Call::Connect(To::Server)),
            END,
        ],
    ),
    (
        "connect: a forbidden address",
        State::Fresh,
        &[
            Do(Call::Connect(To::Forbidden)),
            Look,
            END,
            BLOCK,
            Do(Call::Connect(To::Forbidden)),
            Do(Call::RingWait(Op::Connect(To::Forbidden))),
            Do(Call::Connect(To::Server)),
            SEND,
            END,
        ],
    ),
    (
        "connect: listening after a refusal",
        State::RefusedRead,
        &[Do(Call::Listen(3)), Look, Do(Call::Accept(0)), END],
    ),
    (
        "connect: away, then to the server again",
        State::Disconnected,
        &[
            BLOCK,
            Do(Call::Connect(To::Server)),
            Do(Call::Peer),
            SEND,
            Look,
            END,
        ],
    ),
];

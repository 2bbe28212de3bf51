// SPDX-License-Identifier: GPL-2.0

//! Receiving into a pipe. What the flags say is about the pipe, TCP says: whether the call waits for
//! data is the socket's affair.

use super::{Script, BLOCK, BLOCKS, END, NOW};
use crate::call::Call;
use crate::scenario::Step;
use crate::state::State;
use libc::{POLLIN, POLLRDHUP, SHUT_WR, SOL_SOCKET, SO_RCVLOWAT, SPLICE_F_NONBLOCK};
use Step::{Arrived, Do, Look, Peer, PeerReset, Start, Wait};

const SPLICE: Call = Call::SpliceWith(100, 0);

/// The scripts.
pub(super) const SCRIPTS: &[Script] = &[
    (
        "splice: the socket does not block",
        State::Client,
        &[
            Do(SPLICE),
            Do(Call::SpliceWith(100, SPLICE_F_NONBLOCK)),
            Peer(Call::Send(4, 0)),
            Wait(POLLIN),
            Do(SPLICE),
            Do(SPLICE),
            Peer(Call::Shutdown(SHUT_WR)),
            Wait(POLLRDHUP),
            Do(SPLICE),
            Look,
        ],
    ),
    (
        "splice: only the pipe does not block",
        State::Client,
        &[
            BLOCK,
            Start(Call::SpliceWith(100, SPLICE_F_NONBLOCK)),
            BLOCKS,
            Peer(Call::Send(4, 0)),
            NOW,
            END,
        ],
    ),
    (
        "splice: no data, no length, a part",
        State::Data,
        &[
            Do(Call::SpliceWith(0, 0)),
            Do(Call::SpliceWith(4, 0)),
            Do(SPLICE),
            Do(SPLICE),
            Do(Call::SpliceWith(0, 0)),
        ],
    ),
    (
        "splice: less than the low mark",
        State::Client,
        &[
            Do(Call::Set(SOL_SOCKET, SO_RCVLOWAT, 8)),
            Peer(Call::Send(4, 0)),
            Arrived(4),
            Do(SPLICE),
            BLOCK,
            Peer(Call::Send(4, 0)),
            Arrived(4),
            Start(SPLICE),
            NOW,
        ],
    ),
    (
        "splice: what came before a reset",
        State::Data,
        &[
            Do(Call::SpliceWith(4, 0)),
            PeerReset,
            Wait(POLLRDHUP),
            Do(SPLICE),
            Do(SPLICE),
            Do(SPLICE),
        ],
    ),
    (
        "time limit: splice",
        State::Client,
        &[
            BLOCK,
            Do(Call::Timeout(libc::SO_RCVTIMEO, 30)),
            Start(SPLICE),
            NOW,
            Look,
            END,
        ],
    ),
];

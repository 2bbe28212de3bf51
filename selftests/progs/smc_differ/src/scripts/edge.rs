// SPDX-License-Identifier: GPL-2.0

//! Edge-triggered epoll: what is told, and that nothing is told twice.

use super::{Script, SEND};
use crate::call::{Call, To};
use crate::scenario::Step;
use crate::state::State;
use libc::{MSG_OOB, SHUT_RD, SHUT_WR, SOL_SOCKET, SO_RCVLOWAT};
use Step::{Do, Edge, NewPeer, Peer, PeerClose, PeerReset, Watch};

/// The scripts.
pub(super) const SCRIPTS: &[Script] = &[
    (
        "edge: data, in parts",
        State::Client,
        &[
            Watch,
            Edge,
            Edge,
            Peer(Call::Send(4, 0)),
            Edge,
            Edge,
            Do(Call::Recv(2, 0)),
            Edge,
            Peer(Call::Send(3, 0)),
            Edge,
            Do(Call::Drain),
            Edge,
            Peer(Call::Send(1, 0)),
            Edge,
        ],
    ),
    (
        "edge: room, once the peer has read",
        State::Full,
        &[Watch, Edge, Peer(Call::Drain), Edge, Edge, SEND, Edge],
    ),
    (
        "edge: data while there is no room",
        State::Full,
        &[
            Watch,
            Edge,
            Peer(Call::Send(4, 0)),
            Edge,
            Peer(Call::Drain),
            Edge,
        ],
    ),
    (
        "edge: the peer shuts, then closes",
        State::Client,
        &[
            Watch,
            Edge,
            Peer(Call::Shutdown(SHUT_WR)),
            Edge,
            Edge,
            PeerClose,
            Edge,
        ],
    ),
    (
        "edge: the peer sends and closes",
        State::Client,
        &[
            Watch,
            Edge,
            Peer(Call::Send(4, 0)),
            PeerClose,
            Edge,
            Do(Call::Drain),
            Edge,
        ],
    ),
    (
        "edge: a reset",
        State::Client,
        &[Watch, Edge, PeerReset, Edge, Edge, Do(Call::Error), Edge],
    ),
    (
        "edge: the own shutdown",
        State::Client,
        &[
            Watch,
            Edge,
            Do(Call::Shutdown(SHUT_WR)),
            Edge,
            Do(Call::Shutdown(SHUT_RD)),
            Edge,
            Edge,
        ],
    ),
    (
        "edge: connections",
        State::Listening,
        &[
            Watch,
            Edge,
            NewPeer,
            Edge,
            Edge,
            NewPeer,
            Edge,
            Do(Call::Accept(0)),
            Edge,
            Do(Call::Accept(0)),
            Do(Call::Accept(0)),
            NewPeer,
            Edge,
        ],
    ),
    (
        "edge: connecting",
        State::Fresh,
        &[
            Watch,
            Edge,
            Do(Call::Connect(To::Server)),
            Edge,
            Edge,
            SEND,
            Edge,
        ],
    ),
    (
        "edge: connecting in vain",
        State::Fresh,
        &[
            Watch,
            Edge,
            Do(Call::Connect(To::Closed)),
            Edge,
            Do(Call::Error),
            Edge,
        ],
    ),
    (
        "edge: urgent bytes",
        State::Client,
        &[
            Watch,
            Edge,
            Peer(Call::Send(1, MSG_OOB)),
            Edge,
            Do(Call::Recv(1, MSG_OOB)),
            Edge,
            Peer(Call::Send(1, MSG_OOB)),
            Edge,
        ],
    ),
    (
        "edge: below the low mark, then above",
        State::Client,
        &[
            Do(Call::Set(SOL_SOCKET, SO_RCVLOWAT, 8)),
            Watch,
            Edge,
            Peer(Call::Send(4, 0)),
            Edge,
            Peer(Call::Send(4, 0)),
            Edge,
        ],
    ),
];

// SPDX-License-Identifier: GPL-2.0

//! Calls that sleep until something happens.

use super::{BLOCK, BLOCKS, END, NOW, RECV};
use crate::call::{Call, To};
use crate::ring::Op;
use crate::scenario::{Scenario, Step};
use crate::state::State;
use libc::{MSG_NOSIGNAL, MSG_WAITALL, POLLIN, POLLOUT, SHUT_RD, SHUT_RDWR, SHUT_WR};
use Step::{CloseUnder, Do, NewPeer, Peer, PeerClose, PeerReset};

const SEND: Call = Call::Send(5, MSG_NOSIGNAL);

/// Name, state, the call, and what happens while it sleeps.
type Sleeper = (&'static str, State, Call, &'static [Step]);

const SLEEPERS: &[Sleeper] = &[
    (
        "accept: woken by shutdown of both",
        State::Listening,
        Call::Accept(0),
        &[Do(Call::Shutdown(SHUT_RDWR))],
    ),
    (
        "accept: woken by shutdown for reading",
        State::Listening,
        Call::Accept(0),
        &[Do(Call::Shutdown(SHUT_RD))],
    ),
    (
        "accept: not woken by shutdown for writing",
        State::Listening,
        Call::Accept(0),
        &[Do(Call::Shutdown(SHUT_WR)), BLOCKS, NewPeer],
    ),
    (
        "accept: woken by a connection",
        State::Listening,
        Call::Accept(0),
        &[NewPeer],
    ),
    (
        "accept: the listener is closed under it",
        State::Listening,
        Call::Accept(0),
        &[CloseUnder, BLOCKS, NewPeer],
    ),
    (
        "connect: receiving sleeps until there is an answer",
        State::Connecting,
        RECV,
        &[Do(Call::Shutdown(SHUT_RDWR))],
    ),
    (
        "connect: sending sleeps until there is an answer",
        State::Connecting,
        SEND,
        &[Do(Call::Shutdown(SHUT_RDWR))],
    ),
    (
        "connect: connecting sleeps until it is shut down",
        State::Connecting,
        Call::Connect(To::Silent),
        &[Do(Call::Shutdown(SHUT_RDWR))],
    ),
    (
        "recv: woken by data",
        State::Client,
        RECV,
        &[Peer(Call::Send(4, 0))],
    ),
    (
        "recv: woken by the peer's shutdown",
        State::Client,
        RECV,
        &[Peer(Call::Shutdown(SHUT_WR))],
    ),
    (
        "recv: woken by the peer's close",
        State::Server,
        RECV,
        &[PeerClose],
    ),
    ("recv: woken by a reset", State::Client, RECV, &[PeerReset]),
    (
        "recv: woken by the own shutdown for reading",
        State::Client,
        RECV,
        &[Do(Call::Shutdown(SHUT_RD))],
    ),
    (
        "recv: not woken by the own shutdown for writing",
        State::Client,
        RECV,
        &[Do(Call::Shutdown(SHUT_WR)), BLOCKS, PeerClose],
    ),
    (
        "recv: the socket is closed under it, then data come",
        State::Client,
        RECV,
        &[CloseUnder, BLOCKS, Peer(Call::Send(4, 0))],
    ),
    (
        "recv: the socket is closed under it, then a reset comes",
        State::Server,
        RECV,
        &[CloseUnder, BLOCKS, PeerReset],
    ),
    (
        "send: the socket is closed under it",
        State::Full,
        SEND,
        &[CloseUnder, BLOCKS, Peer(Call::Drain)],
    ),
    (
        "splice: woken by data",
        State::Client,
        Call::SpliceWith(100, 0),
        &[Peer(Call::Send(4, 0))],
    ),
    (
        "splice: woken by the peer's shutdown",
        State::Server,
        Call::SpliceWith(100, 0),
        &[Peer(Call::Shutdown(SHUT_WR))],
    ),
    (
        "splice: woken by the own shutdown for reading",
        State::Client,
        Call::SpliceWith(100, 0),
        &[Do(Call::Shutdown(SHUT_RD))],
    ),
    (
        "splice: woken by a reset",
        State::Client,
        Call::SpliceWith(100, 0),
        &[PeerReset],
    ),
    (
        "splice: sleeps until there is an answer",
        State::Connecting,
        Call::SpliceWith(100, 0),
        &[Do(Call::Shutdown(SHUT_RDWR))],
    ),
    (
        "send: woken by the reader",
        State::Full,
        SEND,
        &[Peer(Call::Drain)],
    ),
    (
        "send: woken by the own shutdown",
        State::Full,
        SEND,
        &[Do(Call::Shutdown(SHUT_WR))],
    ),
    (
        "io_uring: receiving, woken by data",
        State::Client,
        Call::RingWait(Op::Recv(100, 0)),
        &[Peer(Call::Send(4, 0))],
    ),
    (
        "io_uring: receiving all, woken by the end",
        State::Client,
        Call::RingWait(Op::Recv(9, MSG_WAITALL)),
        &[
            Peer(Call::Send(4, 0)),
            BLOCKS,
            Peer(Call::Shutdown(SHUT_WR)),
        ],
    ),
    (
        "io_uring: receiving, woken by a reset",
        State::Client,
        Call::RingWait(Op::Recv(100, 0)),
        &[PeerReset],
    ),
    (
        "io_uring: sending, woken by the reader",
        State::Full,
        Call::RingWait(Op::Send(5, MSG_NOSIGNAL)),
        &[Peer(Call::Drain)],
    ),
    (
        "io_uring: sending, woken by a reset",
        State::Full,
        Call::RingWait(Op::Send(5, MSG_NOSIGNAL)),
        &[PeerReset],
    ),
    (
        "io_uring: accepting, woken by a connection",
        State::Listening,
        Call::RingWait(Op::Accept),
        &[NewPeer],
    ),
    (
        "io_uring: accepting, woken by shutdown",
        State::Listening,
        Call::RingWait(Op::Accept),
        &[Do(Call::Shutdown(SHUT_RDWR))],
    ),
    (
        "io_uring: polling, woken by data",
        State::Client,
        Call::RingWait(Op::Poll(POLLIN)),
        &[Peer(Call::Send(4, 0))],
    ),
    (
        "io_uring: polling, woken by the peer's close",
        State::Client,
        Call::RingWait(Op::Poll(POLLIN)),
        &[PeerClose],
    ),
    (
        "io_uring: polling, woken by the reader",
        State::Full,
        Call::RingWait(Op::Poll(POLLOUT)),
        &[Peer(Call::Drain)],
    ),
    (
        "io_uring: polling, woken by a connection",
        State::Listening,
        Call::RingWait(Op::Poll(POLLIN)),
        &[NewPeer],
    ),
    ("send: woken by a reset", State::Full, SEND, &[PeerReset]),
    (
        "send: woken by the peer's close with unread data",
        State::Full,
        SEND,
        &[PeerClose],
    ),
];

/// The scenarios: what came of the call, then the mask and the error.
pub(super) fn scenarios() -> Vec<Scenario> {
    SLEEPERS
        .iter()
        .map(|(name, state, call, wake)| {
            let mut steps = vec![BLOCK, Step::Start(*call), BLOCKS];
            steps.extend_from_slice(wake);
            steps.extend([NOW, Step::Look, END]);
            if matches!(wake.first(), Some(CloseUnder)) {
                // It is closed now that the call has ended.
                let more = [Step::Sleep(60), Step::PeerLook, NewPeer, Step::Sleep(60)];
                steps.extend(more);
                steps.push(Step::PeerLook);
            }
            Scenario::new((*name).to_owned(), *state, steps)
        })
        .collect()
}

// SPDX-License-Identifier: GPL-2.0

//! Urgent data.

use super::{Script, END};
use crate::call::Call;
use crate::scenario::{Prepare, Scenario, Step};
use crate::state::State;
use libc::{
    MSG_DONTWAIT, MSG_OOB, MSG_PEEK, POLLIN, POLLPRI, POLLRDHUP, SIGURG, SOL_SOCKET, SO_OOBINLINE,
};
use testlib::opts::{SIOCATMARK, SIOCINQ};
use Step::{Child, ChildLook, Do, Look, Own, Peer, PeerClose, Sleep, Wait};

/// The scripts.
pub(super) const SCRIPTS: &[Script] = &[
    (
        "urgent: read at the mark",
        State::Urgent,
        &[
            Look,
            Do(Call::Ioctl(SIOCATMARK)),
            Do(Call::Recv(100, 0)),
            Do(Call::Ioctl(SIOCATMARK)),
            Look,
            Do(Call::Recv(1, MSG_OOB)),
            Do(Call::Recv(1, MSG_OOB)),
            Look,
            Do(Call::Recv(100, 0)),
            END,
        ],
    ),
    (
        "urgent: not read, bytes behind it",
        State::Urgent,
        &[
            Peer(Call::Send(3, 0)),
            Sleep(300),
            Do(Call::Ioctl(SIOCINQ)),
            Do(Call::Recv(100, 0)),
            Wait(POLLIN),
            Do(Call::Recv(100, 0)),
            Do(Call::Recv(1, MSG_OOB)),
            Look,
        ],
    ),
    (
        "urgent: peeked",
        State::Urgent,
        &[
            Do(Call::Recv(100, MSG_OOB | MSG_PEEK)),
            Do(Call::Recv(100, MSG_PEEK)),
            Do(Call::Recv(100, MSG_OOB)),
            Do(Call::Recv(100, MSG_OOB)),
            Look,
        ],
    ),
    (
        "urgent: a second one before the first was read",
        State::Urgent,
        &[
            Peer(Call::Send(2, MSG_OOB | MSG_DONTWAIT)),
            Sleep(30),
            Do(Call::Recv(1, MSG_OOB)),
            Do(Call::Recv(100, 0)),
            Do(Call::Recv(100, 0)),
            Look,
        ],
    ),
    (
        "urgent: inline",
        State::UrgentInline,
        &[
            Look,
            Do(Call::Recv(1, MSG_OOB)),
            Do(Call::Recv(100, 0)),
            Do(Call::Ioctl(SIOCATMARK)),
            Look,
            Do(Call::Recv(100, 0)),
            Do(Call::Ioctl(SIOCATMARK)),
            Look,
        ],
    ),
    (
        "urgent: inline is set afterwards",
        State::Urgent,
        &[
            Do(Call::Set(SOL_SOCKET, SO_OOBINLINE, 1)),
            Look,
            Do(Call::Recv(1, MSG_OOB)),
            Do(Call::Recv(100, 0)),
            Do(Call::Recv(100, 0)),
            Look,
        ],
    ),
    (
        "urgent: the signal",
        State::Client,
        &[
            Own,
            Peer(Call::Send(1, MSG_OOB)),
            Wait(POLLPRI),
            Sleep(20),
            Do(Call::Signals(SIGURG)),
            Do(Call::Recv(1, MSG_OOB)),
            Peer(Call::Send(1, MSG_OOB)),
            Wait(POLLPRI),
            Sleep(20),
            Do(Call::Signals(SIGURG)),
        ],
    ),
    (
        "urgent: the peer closes",
        State::Urgent,
        &[
            PeerClose,
            Wait(POLLRDHUP),
            Look,
            Do(Call::Recv(1, MSG_OOB)),
            Do(Call::Drain),
            Look,
        ],
    ),
];

/// `SO_OOBINLINE` before there is a connection.
const EARLY: &[Script] = &[
    (
        "urgent: inline is set before connecting",
        State::Urgent,
        &[
            Look,
            Do(Call::Recv(1, MSG_OOB)),
            Do(Call::Recv(100, 0)),
            Do(Call::Ioctl(SIOCATMARK)),
            Do(Call::Recv(100, 0)),
            Peer(Call::Send(3, 0)),
            Wait(POLLIN),
            Do(Call::Recv(100, 0)),
        ],
    ),
    (
        "urgent: inline is inherited of the listener",
        State::Pending,
        &[
            // Before and after `accept()`.
            Peer(Call::Send(3, 0)),
            Peer(Call::Send(1, MSG_OOB)),
            Sleep(30),
            Do(Call::Accept(libc::SOCK_NONBLOCK)),
            ChildLook,
            Child(Call::Recv(1, MSG_OOB)),
            Child(Call::Recv(100, 0)),
            Child(Call::Recv(100, 0)),
            Peer(Call::Send(2, MSG_OOB)),
            Sleep(30),
            ChildLook,
            Child(Call::Recv(1, MSG_OOB)),
            Child(Call::Recv(100, 0)),
            Child(Call::Recv(100, 0)),
        ],
    ),
];

/// The scenarios that begin with an option.
pub(super) fn scenarios() -> Vec<Scenario> {
    EARLY
        .iter()
        .map(|(name, state, steps)| Scenario {
            prepare: Prepare::Do(Call::Set(SOL_SOCKET, SO_OOBINLINE, 1)),
            ..Scenario::new((*name).to_owned(), *state, steps.to_vec())
        })
        .collect()
}

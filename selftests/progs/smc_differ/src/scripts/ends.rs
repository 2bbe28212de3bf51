// SPDX-License-Identifier: GPL-2.0

//! How a connection ends while data are unread or on their way: each end in each way.

use super::SEND;
use crate::call::Call;
use crate::scenario::{Scenario, Step};
use crate::state::State;
use libc::{POLLIN, SHUT_RD, SHUT_RDWR, SHUT_WR};
use Step::{Arrived, Close, Do, Look, Peer, PeerClose, PeerLook, PeerWait, Sleep};

/// What the socket under test does, and its peer.
const WAYS: &[(&str, Step, Step)] = &[
    (
        "WR",
        Do(Call::Shutdown(SHUT_WR)),
        Peer(Call::Shutdown(SHUT_WR)),
    ),
    (
        "RD",
        Do(Call::Shutdown(SHUT_RD)),
        Peer(Call::Shutdown(SHUT_RD)),
    ),
    (
        "RDWR",
        Do(Call::Shutdown(SHUT_RDWR)),
        Peer(Call::Shutdown(SHUT_RDWR)),
    ),
    ("close", Close, PeerClose),
];

const PEER_SENDS: Step = Peer(Call::Send(6, libc::MSG_NOSIGNAL));

/// What is looked at once both have ended.
const AFTER: &[Step] = &[
    Sleep(60),
    Look,
    PeerLook,
    Do(Call::Error),
    Peer(Call::Error),
    Do(Call::Drain),
    Peer(Call::Drain),
    Look,
    PeerLook,
];

/// What comes for a socket that takes nothing more is answered, and so is a close while there is
/// something to read: that must not be chance.
const ANSWERED: Step = Sleep(60);

/// The scenarios.
pub(super) fn scenarios() -> Vec<Scenario> {
    let mut all = Vec::new();
    for (one, near, _) in WAYS {
        for (two, _, far) in WAYS {
            let mut unread = vec![SEND, PEER_SENDS, PeerWait(POLLIN), Arrived(6), *near];
            if *one == "close" {
                unread.push(ANSWERED);
            }
            unread.push(*far);
            let orders = [
                (
                    format!("ends: {one}, then the peer {two}, data unread"),
                    unread,
                ),
                (
                    format!("ends: data and {one}, then the peer's data and {two}"),
                    on_the_way([one, two], [SEND, *near], [PEER_SENDS, *far]),
                ),
                (
                    format!("ends: the peer's data and {two}, then data and {one}"),
                    on_the_way([two, one], [PEER_SENDS, *far], [SEND, *near]),
                ),
            ];
            for (name, mut steps) in orders {
                steps.extend_from_slice(AFTER);
                all.push(Scenario::new(name, State::Client, steps));
            }
        }
        // Much is on its way, and there is no room for more.
        for (then, step) in [("nothing", None), ("more data", Some(PEER_SENDS))] {
            let mut steps = vec![*near];
            steps.extend(step);
            steps.extend([Sleep(60), PeerLook, Peer(Call::Drain), PeerLook]);
            all.push(Scenario::new(
                format!("ends: {one} with much on its way, from the peer {then}"),
                State::Full,
                steps,
            ));
        }
    }
    all
}

/// Each end sends, and ends at once unless that would show whether the other's data are there; the
/// ways have these names.
fn on_the_way(ways: [&str; 2], first: [Step; 2], second: [Step; 2]) -> Vec<Step> {
    let [send, end] = second;
    let mut steps = first.to_vec();
    steps.push(send);
    if matches!(ways, ["RDWR" | "close", _] | [_, "close"]) {
        steps.push(ANSWERED);
    }
    steps.push(end);
    steps
}

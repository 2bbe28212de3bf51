// SPDX-License-Identifier: GPL-2.0

//! How TCP avoids congestion: an option whose value is a name.

use crate::call::Call;
use crate::scenario::{Prepare, Scenario, Step};
use crate::state::State;
use libc::{IPPROTO_TCP, TCP_CONGESTION};
use Step::{Child, Do};

const fn set(name: &'static str) -> Step {
    Do(Call::SetText(IPPROTO_TCP, TCP_CONGESTION, name))
}

const fn get(room: usize) -> Step {
    Do(Call::GetText(IPPROTO_TCP, TCP_CONGESTION, room))
}

/// Names of four, three and five letters, then none.
const STEPS: &[Step] = &[
    get(16),
    set("reno"),
    get(16),
    set("bbr"),
    get(16),
    get(2),
    get(0),
    set(""),
    set("cubic"),
    get(16),
    Do(Call::Error),
];

const STATES: &[State] = &[
    State::Fresh,
    State::Bound,
    State::Listening,
    State::Client,
    State::Server,
    State::PeerShut,
    State::ShutBoth,
    State::PeerClosed,
    State::Reset,
];

/// The scenarios.
pub(super) fn scenarios() -> Vec<Scenario> {
    let mut all: Vec<Scenario> = STATES
        .iter()
        .map(|state| {
            let name = format!("{state:?}: option TCP {TCP_CONGESTION}");
            Scenario::new(name, *state, STEPS.to_vec())
        })
        .collect();
    // The kernel looks for a module of that name, which takes a while.
    all.push(Scenario::new(
        "congestion: an unknown name".into(),
        State::Fresh,
        vec![set("no"), get(16), set("a name that is too long"), get(16)],
    ));
    all.push(Scenario {
        prepare: Prepare::Do(Call::SetText(IPPROTO_TCP, TCP_CONGESTION, "bbr")),
        ..Scenario::new(
            "inherit: TCP_CONGESTION".into(),
            State::Pending,
            vec![
                get(16),
                Do(Call::Accept(libc::SOCK_NONBLOCK)),
                Child(Call::GetText(IPPROTO_TCP, TCP_CONGESTION, 16)),
            ],
        )
    });
    all
}

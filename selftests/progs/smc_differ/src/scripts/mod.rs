// SPDX-License-Identifier: GPL-2.0

//! Scenarios of several steps.

mod bind;
mod close;
mod connect;
mod edge;
mod ends;
mod fallback;
mod inherit;
mod listen;
mod more;
mod sleepers;
mod splice;
mod text;
mod urgent;
mod wake;

use crate::call::Call;
use crate::scenario::{Scenario, Step};
use crate::state::State;
use crate::world::Addresses;
use libc::MSG_NOSIGNAL;

/// Name, state and steps of a scenario.
type Script = (&'static str, State, &'static [Step]);

/// Long enough for what does not block, on a slow machine.
const NOW: Step = Step::Join(3000);
/// Long enough to see that a call blocks.
const BLOCKS: Step = Step::Join(60);
const BLOCK: Step = Step::Do(Call::Nonblock(false));
const SEND: Step = Step::Do(Call::Send(5, MSG_NOSIGNAL));
const RECV: Call = Call::Recv(100, 0);
const END: Step = Step::Do(Call::Error);

/// The scenarios.
pub(crate) fn scenarios() -> Vec<Scenario> {
    let mut all: Vec<Scenario> = [
        connect::SCRIPTS,
        listen::SCRIPTS,
        bind::SCRIPTS,
        wake::SCRIPTS,
        splice::SCRIPTS,
        close::SCRIPTS,
        edge::SCRIPTS,
        urgent::SCRIPTS,
        more::SCRIPTS,
        fallback::SCRIPTS,
    ]
    .into_iter()
    .flatten()
    .map(scenario)
    .collect();
    let mapped = bind::MAPPED.iter().map(scenario);
    all.extend(mapped.map(|one| one.with(Addresses::Mapped)));
    all.extend(sleepers::scenarios());
    all.extend(inherit::scenarios());
    all.extend(ends::scenarios());
    all.extend(text::scenarios());
    all.extend(urgent::scenarios());
    all
}

fn scenario((name, state, steps): &Script) -> Scenario {
    Scenario::new((*name).to_owned(), *state, steps.to_vec())
}

// SPDX-License-Identifier: GPL-2.0

//! Scenarios of several steps.

mod close;
mod connect;
mod edge;
mod inherit;
mod listen;
mod more;
mod sleepers;
mod urgent;
mod wake;

use crate::call::Call;
use crate::scenario::{Scenario, Step};
use crate::state::State;
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
        wake::SCRIPTS,
        close::SCRIPTS,
        edge::SCRIPTS,
        urgent::SCRIPTS,
        more::SCRIPTS,
    ]
    .into_iter()
    .flatten()
    .map(|(name, state, steps)| Scenario::new((*name).to_owned(), *state, steps.to_vec()))
    .collect();
    all.extend(sleepers::scenarios());
    all.extend(inherit::scenarios());
    all
}

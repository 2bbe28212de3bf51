// SPDX-License-Identifier: GPL-2.0

//! What this peer does by itself on a link, well or badly.

use std::time::Duration;

/// How this peer answers CONFIRM RKEY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RkeyHabit {
    Good,
    Negative,
    Retry,
    Never,
    WrongKey,
    Twice,
    Short,
    /// With the answer to another message.
    OtherType,
    Late(Duration),
}

/// What this peer does by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    pub(crate) answers_tests: bool,
    pub(crate) rkeys: RkeyHabit,
    /// Buffers that were filled are posted again.
    pub(crate) receives: bool,
    /// A second link is refused.
    pub(crate) refuses_links: bool,
}

impl Habits {
    pub(crate) const GOOD: Habits = Habits {
        answers_tests: true,
        rkeys: RkeyHabit::Good,
        receives: true,
        refuses_links: true,
    };
}

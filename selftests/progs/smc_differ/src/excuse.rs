// SPDX-License-Identifier: GPL-2.0

//! The differences from TCP that are meant to be, each with its reason.

use crate::scenario::Scenario;
use crate::world::{Mode, Over};

/// One kind of difference.
#[derive(Debug)]
pub(crate) struct Excuse {
    /// In which modes: over SMC-R, or in all with SMC sockets.
    over: Option<Over>,
    /// The scenario's name contains this.
    scenario: &'static str,
    /// The step's name contains this.
    step: &'static str,
    /// The outcome on TCP and here contain these.
    tcp: &'static str,
    here: &'static str,
    pub(crate) reason: &'static str,
}

/// The list.
pub(crate) const EXCUSES: &[Excuse] = &[];

/// Finds the entry that a difference falls under.
pub(crate) fn find(
    mode: &Mode,
    scenario: &Scenario,
    step: &str,
    tcp: &str,
    here: &str,
) -> Option<usize> {
    EXCUSES.iter().position(|excuse| {
        excuse.over.is_none_or(|over| over == mode.over)
            && scenario.name.contains(excuse.scenario)
            && step.contains(excuse.step)
            && tcp.contains(excuse.tcp)
            && here.contains(excuse.here)
    })
}

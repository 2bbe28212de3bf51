// SPDX-License-Identifier: GPL-2.0

//! Waiting in turns, so that a machine that is slow at the moment is given more time.

use std::time::{Duration, Instant};

/// A turn; on a machine that has time it takes little more than that.
const TURN: Duration = Duration::from_millis(2);

/// Waits for something that may not come.
pub(crate) struct Patience {
    end: Instant,
    turns: u128,
}

impl Patience {
    /// Lasts for `time`, and for as many turns as that should have.
    pub(crate) fn new(time: Duration) -> Patience {
        Patience {
            end: Instant::now() + time,
            turns: time.as_millis() / TURN.as_millis(),
        }
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.turns == 0 && Instant::now() > self.end
    }

    /// Lets others work for one turn.
    pub(crate) fn turn(&mut self) {
        std::thread::sleep(TURN);
        self.count_turn();
    }

    /// A turn was waited for by another one's patience.
    pub(crate) fn count_turn(&mut self) {
        self.turns = self.turns.saturating_sub(1);
    }
}

/// Gives others so much time to work.
pub(crate) fn pause(time: Duration) {
    let mut patience = Patience::new(time);
    while !patience.is_over() {
        patience.turn();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_lasts_as_long_and_as_many_turns() {
        let begin = Instant::now();
        pause(Duration::from_millis(21));
        assert!(begin.elapsed() >= Duration::from_millis(21));
        let mut patience = Patience::new(Duration::from_millis(4));
        std::thread::sleep(Duration::from_millis(6));
        assert!(!patience.is_over());
        patience.turn();
        patience.turn();
        assert!(patience.is_over());
    }
}

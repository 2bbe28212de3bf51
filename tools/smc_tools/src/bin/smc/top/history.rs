// SPDX-License-Identifier: GPL-2.0

//! What happened lately, interval by interval.

use std::collections::VecDeque;

use super::rates::Rates;

/// Intervals that are kept: more than any terminal is wide.
const KEPT: usize = 1024;

/// One interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    /// Bytes a second.
    pub(super) sent: u64,
    /// Bytes a second.
    pub(super) received: u64,
    /// Connections that stayed on TCP; `None` where the kernel does not count them.
    pub(super) fallbacks: Option<u64>,
}

/// The last intervals, the newest first.
#[derive(Default)]
pub(super) struct History(VecDeque<Interval>);

impl History {
    /// Adds the newest interval, and forgets the oldest when there are too many.
    pub(super) fn push(&mut self, rates: &Rates) {
        self.0.truncate(KEPT - 1);
        self.0.push_front(Interval {
            sent: rates.sent,
            received: rates.received,
            fallbacks: rates.fallbacks.as_ref().map(|all| all.server + all.client),
        });
    }

    /// The newest `count` values of something, newest first.
    pub(super) fn newest<T>(&self, count: usize, of: impl Fn(&Interval) -> T) -> Vec<T> {
        self.0.iter().take(count).map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_comes_first_and_the_oldest_is_forgotten() {
        let mut history = History::default();
        assert!(history.newest(5, |interval| interval.sent).is_empty());
        for sent in 0..2000 {
            history.push(&Rates {
                sent,
                ..Rates::default()
            });
        }
        assert_eq!(
            history.newest(3, |interval| interval.sent),
            [1999, 1998, 1997]
        );
        let all = history.newest(usize::MAX, |interval| interval.sent);
        assert_eq!((all.len(), all.last()), (KEPT, Some(&976)));
    }

    #[test]
    fn fallbacks_of_both_sides_are_added_up() {
        let mut history = History::default();
        let fallbacks = Some(smc_netlink::Fallbacks {
            server: 2,
            client: 3,
            reasons: Vec::new(),
        });
        history.push(&Rates::default());
        history.push(&Rates {
            fallbacks,
            ..Rates::default()
        });
        assert_eq!(
            history.newest(9, |interval| interval.fallbacks),
            [Some(5), None]
        );
    }
}

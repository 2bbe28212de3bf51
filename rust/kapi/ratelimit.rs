// SPDX-License-Identifier: GPL-2.0

//! Messages at a limited rate.
//!
//! The kernel's `struct ratelimit_state` needs a lock that cannot be initialised in a `static` by
//! Rust code, so this counts by itself, with the same meaning of interval and burst.

use kernel::bindings;
use kernel::sync::atomic::{Atomic, Relaxed};
use kernel::time::msecs_to_jiffies;

/// Lets `burst` events through in every `interval_ms` milliseconds and counts the others.
///
/// Meant for a `static` beside what it limits. Any context. Under contention a few events more
/// may pass than asked for; none is lost from the count.
pub struct RateLimit {
    /// Jiffies at the start of the current interval; 0 before the first event.
    begin: Atomic<usize>,
    passed: Atomic<u32>,
    missed: Atomic<u32>,
    interval_ms: u32,
    burst: u32,
}

impl RateLimit {
    /// A limit of `burst` events in `interval_ms` milliseconds.
    pub const fn new(interval_ms: u32, burst: u32) -> Self {
        Self {
            begin: Atomic::new(0),
            passed: Atomic::new(0),
            missed: Atomic::new(0),
            interval_ms,
            burst,
        }
    }

    /// Counts one event. `Some(missed)` when it may pass, with the number of events held back
    /// since the last one that passed in an earlier interval; `None` when it is held back.
    pub fn allow(&self) -> Option<u32> {
        // SAFETY: `jiffies` is always there; it is a word that the timer interrupt writes.
        let now = unsafe { core::ptr::read_volatile(&raw const bindings::jiffies) } as usize;
        // 0 says "never"; an interval that starts one tick late does not matter.
        let now = now.max(1);
        let begin = self.begin.load(Relaxed);
        let over =
            begin == 0 || now.wrapping_sub(begin) >= msecs_to_jiffies(self.interval_ms) as usize;
        let mut missed = 0;
        if over && self.begin.cmpxchg(begin, now, Relaxed).is_ok() {
            missed = self.missed.xchg(0, Relaxed);
            self.passed.store(0, Relaxed);
        }
        if self.passed.load(Relaxed) < self.burst {
            self.passed.add(1u32, Relaxed);
            return Some(missed);
        }
        self.missed.add(1u32, Relaxed);
        None
    }
}

/// Prints a line with the given printing macro at a limited rate: 10 lines in 5 seconds for each
/// place in the source that uses it.
#[doc(hidden)]
#[macro_export]
macro_rules! __print_ratelimited {
    ($print:ident, $($arg:tt)+) => {{
        static LIMIT: $crate::ratelimit::RateLimit = $crate::ratelimit::RateLimit::new(5000, 10);
        if let Some(missed) = LIMIT.allow() {
            if missed > 0 {
                ::kernel::$print!("{missed} messages like the following were left out\n");
            }
            ::kernel::$print!($($arg)+);
        }
    }};
}

/// `pr_warn!` at a limited rate: 10 lines in 5 seconds for each place that uses it.
#[macro_export]
macro_rules! pr_warn_ratelimited {
    ($($arg:tt)+) => { $crate::__print_ratelimited!(pr_warn, $($arg)+) };
}

/// `pr_info!` at a limited rate: 10 lines in 5 seconds for each place that uses it.
#[macro_export]
macro_rules! pr_info_ratelimited {
    ($($arg:tt)+) => { $crate::__print_ratelimited!(pr_info, $($arg)+) };
}

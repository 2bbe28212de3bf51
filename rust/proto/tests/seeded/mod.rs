// SPDX-License-Identifier: GPL-2.0

//! Random numbers for tests that can be repeated: the seed is printed, and `SMC_TEST_SEED` sets it.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::time::{SystemTime, UNIX_EPOCH};

/// The seed of this run.
pub(crate) fn seed() -> u64 {
    let seed = match std::env::var("SMC_TEST_SEED") {
        Ok(text) => text.parse().expect("SMC_TEST_SEED is not a number"),
        Err(_) => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(1, |age| age.as_nanos() as u64),
    };
    println!("SMC_TEST_SEED={seed}");
    seed
}

/// A splitmix64 generator.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator for case number `case` of a run.
    pub(crate) fn for_case(seed: u64, case: u64) -> Self {
        let mut random = Self(seed ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `end - 1`.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        (self.next() % u64::from(end)) as u32
    }

    /// True in one of `n` cases.
    pub(crate) fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u32) as usize]
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

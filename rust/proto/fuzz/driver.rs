// SPDX-License-Identifier: GPL-2.0

//! Drives fuzz targets for a bounded time with mutations of good inputs. The run
//! is decided by one number, which is printed and can be given again.

use crate::targets::Target;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::time::{Duration, Instant, SystemTime};

const MAX_INPUT: usize = 2200;

/// Runs `target` on mutations of `corpus`. Adds inputs that were accepted to the
/// corpus, up to a limit.
///
/// `SMC_FUZZ_SEED` repeats a run, `SMC_FUZZ_SECONDS` sets its time (default 5).
pub(crate) fn run(name: &str, target: Target, corpus: &[Vec<u8>]) {
    let seed = number("SMC_FUZZ_SEED").unwrap_or_else(random_seed);
    let seconds = number("SMC_FUZZ_SECONDS").unwrap_or(5);
    println!("{name}: SMC_FUZZ_SEED={seed} SMC_FUZZ_SECONDS={seconds}");
    for input in corpus {
        assert!(check(target, input, seed, 0), "a good input is refused");
    }
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut rng = Rng(seed);
    let mut corpus = corpus.to_vec();
    let (mut runs, mut accepted) = (0_u64, 0_u64);
    while Instant::now() < end || runs < 1000 {
        for _ in 0..64 {
            let input = mutate(&corpus, &mut rng);
            runs += 1;
            if check(target, &input, seed, runs) {
                accepted += 1;
                remember(&mut corpus, input, &mut rng);
            }
        }
    }
    println!("{name}: {runs} inputs, {accepted} accepted");
    assert!(accepted > 0, "no input got past the first checks");
    assert!(accepted < runs, "no input was refused");
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number")),
    )
}

fn random_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(1, |time| time.as_nanos() as u64)
}

/// Runs the target once; a panic is completed with all that is needed to see it
/// again.
fn check(target: Target, input: &[u8], seed: u64, run: u64) -> bool {
    catch_unwind(AssertUnwindSafe(|| target(input))).unwrap_or_else(|panic| {
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        eprintln!("SMC_FUZZ_SEED={seed}, input {run}: {hex}");
        resume_unwind(panic)
    })
}

fn remember(corpus: &mut Vec<Vec<u8>>, input: Vec<u8>, rng: &mut Rng) {
    const LIMIT: usize = 512;
    if corpus.len() < LIMIT {
        corpus.push(input);
    } else if rng.below(16) == 0 {
        // Good inputs that the run began with are kept.
        let at = LIMIT / 2 + rng.below(LIMIT / 2);
        corpus[at] = input;
    }
}

/// A good input with a few changes, now and then plain noise.
fn mutate(corpus: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    if rng.below(32) == 0 {
        return (0..rng.below(160)).map(|_| rng.byte()).collect();
    }
    let mut input = corpus[rng.below(corpus.len())].clone();
    for _ in 0..rng.below(4) {
        change(&mut input, corpus, rng);
    }
    if rng.below(2) == 0 {
        mend_clc(&mut input);
    }
    input.truncate(MAX_INPUT);
    input
}

fn change(input: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut Rng) {
    const EDGES: [u16; 14] = [0, 1, 2, 7, 8, 9, 27, 28, 44, 127, 128, 255, 0x7fff, 0xffff];
    if input.is_empty() {
        input.push(rng.byte());
        return;
    }
    let at = rng.below(input.len());
    let edge = EDGES[rng.below(EDGES.len())];
    let len = input.len() as u16;
    match rng.below(8) {
        0 => input[at] ^= 1 << rng.below(8),
        1 => input[at] = rng.byte(),
        2 => input[at] = edge as u8,
        3 => write_pair(input, at, edge.to_be_bytes()),
        4 => write_pair(input, at, len.to_ne_bytes()),
        5 => input.truncate(at),
        6 => {
            let filler = rng.byte();
            let count = rng.below(64);
            input.splice(at..at, std::iter::repeat_n(filler, count));
        }
        _ => {
            let other = &corpus[rng.below(corpus.len())];
            let from = at.min(other.len());
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
    }
}

fn write_pair(input: &mut [u8], at: usize, pair: [u8; 2]) {
    for (to, from) in input[at..].iter_mut().zip(pair) {
        *to = from;
    }
}

/// Makes length and trailer of what looks like a CLC message fit again, so that
/// the body is reached.
fn mend_clc(input: &mut [u8]) {
    if input.len() < 12 || !input.starts_with(&[0xe2, 0xd4, 0xc3]) {
        return;
    }
    write_pair(input, 5, (input.len() as u16).to_be_bytes());
    let (head, tail) = input.split_at_mut(input.len() - 4);
    tail.copy_from_slice(&head[..4]);
}

/// A small generator of pseudo-random numbers (SplitMix64).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn byte(&mut self) -> u8 {
        self.next() as u8
    }

    /// A number below `limit`, or 0 if that is 0.
    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Seeded random numbers and data streams whose every byte is known.
//!
//! The byte at each offset of a stream follows from its key alone, so a
//! receiver can name the first wrong byte and can check peeked data and
//! skipped data as well.

use sha2::{Digest, Sha256};
use std::fmt::Write;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A small seeded generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Starts a generator.
    pub fn new(seed: u64) -> Rng {
        Rng(mix(seed ^ 0x5e1f_7e57))
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number in `low..=high`, uniform.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        if high <= low {
            return low;
        }
        let span = (high - low).wrapping_add(1);
        low + if span == 0 {
            self.next_u64()
        } else {
            self.next_u64() % span
        }
    }

    /// A number in `low..=high` whose order of magnitude is uniform.
    ///
    /// Sizes drawn so meet single bytes as often as megabytes.
    pub fn log_range(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (low.max(1), high.max(1));
        if high <= low {
            return low;
        }
        let bits = self.range(u64::from(low.ilog2()), u64::from(high.ilog2())) as u32;
        let from = 1u64 << bits;
        let to = from.checked_mul(2).map_or(u64::MAX, |v| v - 1);
        self.range(from.max(low), to.min(high).max(from.max(low)))
    }

    /// A number below `n`, uniform; 0 for an `n` of 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.range(0, (n as u64).saturating_sub(1)) as usize
    }

    /// True once in `n` calls on average.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.next_u64() % n == 0
    }
}

/// Key of one direction of one connection.
pub fn stream_key(seed: u64, connection: u64, direction: u64) -> u64 {
    mix(seed
        ^ mix(connection
            .wrapping_mul(2)
            .wrapping_add(direction)
            .wrapping_add(1)))
}

/// Writes the bytes of stream `key` from `offset` on into `out`.
pub fn fill(key: u64, offset: u64, out: &mut [u8]) {
    let mut word = offset / 8;
    let mut skip = (offset % 8) as usize;
    let mut rest = out;
    while !rest.is_empty() {
        let bytes = mix(key.wrapping_add(word.wrapping_mul(0x9e37_79b9_7f4a_7c15))).to_le_bytes();
        let n = (8 - skip).min(rest.len());
        let (head, tail) = rest.split_at_mut(n);
        head.copy_from_slice(&bytes[skip..skip + n]);
        rest = tail;
        skip = 0;
        word += 1;
    }
}

/// Offset within `data` of the first byte that differs from stream `key`.
pub fn first_difference(key: u64, offset: u64, data: &[u8]) -> Option<usize> {
    let mut want = [0u8; 4096];
    let mut at = 0;
    for part in data.chunks(want.len()) {
        let want = &mut want[..part.len()];
        fill(key, offset + at as u64, want);
        if want != part {
            let d = want.iter().zip(part).position(|(a, b)| a != b).unwrap_or(0);
            return Some(at + d);
        }
        at += part.len();
    }
    None
}

/// Count and hash of a stream, kept by its sender and by its receiver.
#[derive(Clone, Debug)]
pub struct Tally {
    key: u64,
    count: u64,
    sha: Sha256,
}

impl Tally {
    /// Starts at the beginning of stream `key`.
    pub fn new(key: u64) -> Tally {
        Tally {
            key,
            count: 0,
            sha: Sha256::new(),
        }
    }

    /// How many bytes went by.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The key of the stream.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Accounts for bytes as they were sent or received.
    pub fn take(&mut self, data: &[u8]) {
        self.sha.update(data);
        self.count += data.len() as u64;
    }

    /// Accounts for bytes after comparing them with the stream.
    ///
    /// # Errors
    ///
    /// A sentence naming the first wrong byte.
    pub fn verify(&mut self, data: &[u8]) -> Result<(), String> {
        let wrong = first_difference(self.key, self.count, data);
        if let Some(at) = wrong {
            let mut want = [0u8; 1];
            fill(self.key, self.count + at as u64, &mut want);
            return Err(format!(
                "byte {} is {:#04x} but {:#04x} was sent",
                self.count + at as u64,
                data[at],
                want[0]
            ));
        }
        self.take(data);
        Ok(())
    }

    /// SHA-256 of everything accounted for, in hexadecimal.
    pub fn digest(&self) -> String {
        let mut text = String::with_capacity(64);
        for b in self.sha.clone().finalize() {
            // Writing to a String cannot fail.
            let _ = write!(text, "{b:02x}");
        }
        text
    }
}

/// Parses sizes such as `4096`, `16K`, `64M` and `1G`.
///
/// # Errors
///
/// A sentence when the text is no size.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.chars().last() {
        Some('k' | 'K') => (&text[..text.len() - 1], 1u64 << 10),
        Some('m' | 'M') => (&text[..text.len() - 1], 1u64 << 20),
        Some('g' | 'G') => (&text[..text.len() - 1], 1u64 << 30),
        _ => (text, 1),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|v| v.checked_mul(factor))
        .ok_or_else(|| format!("'{text}' is no size: use digits and an optional K, M or G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_window_of_a_stream_is_the_same_bytes() {
        let mut whole = [0u8; 300];
        fill(7, 0, &mut whole);
        for (from, len) in [(0, 300), (1, 1), (7, 9), (8, 16), (123, 100)] {
            let mut part = vec![0u8; len];
            fill(7, from as u64, &mut part);
            assert_eq!(part, whole[from..from + len]);
        }
    }

    #[test]
    fn a_wrong_byte_is_named() {
        let mut data = vec![0u8; 10_000];
        fill(9, 5, &mut data);
        assert_eq!(first_difference(9, 5, &data), None);
        data[7_777] ^= 1;
        assert_eq!(first_difference(9, 5, &data), Some(7_777));
        let mut tally = Tally::new(9);
        let mut head = [0u8; 5];
        fill(9, 0, &mut head);
        tally.verify(&head).unwrap();
        assert!(tally.verify(&data).unwrap_err().contains("byte 7782 "));
    }

    #[test]
    fn sizes_stay_in_their_range_and_reach_both_ends() {
        let mut rng = Rng::new(1);
        let (mut small, mut large) = (false, false);
        for _ in 0..10_000 {
            let v = rng.log_range(1, 64 << 20);
            assert!((1..=64 << 20).contains(&v));
            small |= v < 4;
            large |= v > 32 << 20;
        }
        assert!(small && large);
    }

    #[test]
    fn size_suffixes() {
        assert_eq!(parse_size("16K"), Ok(16384));
        assert_eq!(parse_size("64m"), Ok(64 << 20));
        assert_eq!(parse_size("5"), Ok(5));
        assert!(parse_size("").is_err() && parse_size("1T").is_err());
    }
}

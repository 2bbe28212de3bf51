// SPDX-License-Identifier: GPL-2.0

//! RMBs cut into elements of one size (RFC 7609 section 2.1).

use crate::ids::{BufSize, RmbeIndex, VirtAddr};

/// The most elements an RMB can have: the index is one byte, and 0 is not used.
pub const MAX_ELEMENTS: u8 = 255;

/// The most memory one RMB takes, unless a single element is larger, in bytes.
const MAX_SLAB_BYTES: u32 = 2 << 20;

/// Which elements of an RMB are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementMap {
    words: [u64; 4],
    count: u8,
    used: u8,
}

impl ElementMap {
    /// An RMB of `count` free elements.
    pub const fn new(count: u8) -> Self {
        Self {
            words: [0; 4],
            count,
            used: 0,
        }
    }

    /// The number of elements.
    pub const fn count(&self) -> u8 {
        self.count
    }

    /// The number of elements in use.
    pub const fn used(&self) -> u8 {
        self.used
    }

    /// Whether no element is in use, so that the RMB can be given back.
    pub const fn is_unused(&self) -> bool {
        self.used == 0
    }

    /// Takes the first free element; `None` when all are in use.
    pub fn allocate(&mut self) -> Option<RmbeIndex> {
        if self.used >= self.count {
            return None;
        }
        // The lowest free bit belongs to an element: fewer than `count` are set, all below `count`.
        for (number, word) in (0u8..).zip(self.words.iter_mut()) {
            let bit = word.trailing_ones();
            if bit < u64::BITS {
                let index = number
                    .saturating_mul(64)
                    .saturating_add(u8::try_from(bit).ok()?);
                *word |= 1u64.wrapping_shl(bit);
                self.used = self.used.saturating_add(1);
                return RmbeIndex::new(index.saturating_add(1));
            }
        }
        None
    }

    /// Frees an element; returns false when it was not in use.
    pub fn release(&mut self, index: RmbeIndex) -> bool {
        let index = index.zero_based();
        let mask = 1u64.wrapping_shl(u32::from(index & 63));
        match self.words.get_mut(usize::from(index >> 6)) {
            Some(word) if *word & mask != 0 => {
                *word &= !mask;
                self.used = self.used.saturating_sub(1);
                true
            }
            _ => false,
        }
    }
}

/// Address of element `index` of an RMB at `base`; `None` when the address space ends before it.
pub fn element_address(base: VirtAddr, index: RmbeIndex, size: BufSize) -> Option<VirtAddr> {
    let len = u64::from(size.bytes());
    let offset = u64::from(index.zero_based()).checked_mul(len)?;
    let start = base.0.checked_add(offset)?;
    start.checked_add(len)?;
    Some(VirtAddr(start))
}

/// How many elements the next RMB of a link group should have, when `in_use` are occupied.
///
/// A quarter of what is in use, rounded down to a power of two: the first connections do not pay for
/// others that never come, many connections share few registrations, and at most a fifth of the
/// memory is idle while the group grows.
pub fn next_slab(size: BufSize, in_use: u16) -> u8 {
    let by_memory = MAX_SLAB_BYTES.checked_div(size.bytes()).unwrap_or(1);
    let mut count = 1u8;
    while u32::from(count) < by_memory && u16::from(count) <= in_use / 8 && count < 64 {
        count = count.saturating_mul(2);
    }
    count
}

/// Elements of an RMB of which `wanted` are asked for and the device can register the memory of `limit`,
/// when memory comes in powers of two. At least one.
pub const fn elements_within(wanted: usize, limit: usize) -> usize {
    match wanted.checked_next_power_of_two() {
        Some(rounded) if rounded <= limit => wanted,
        _ => match limit.checked_ilog2() {
            Some(log) => 1_usize.wrapping_shl(log),
            None => 1,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_once() {
        for count in [1, 63, 64, 65, 255] {
            let mut map = ElementMap::new(count);
            for expected in 1..=count {
                assert_eq!(map.allocate(), RmbeIndex::new(expected));
            }
            assert_eq!(map.allocate(), None);
            let middle = RmbeIndex::new(count / 2 + 1).unwrap();
            assert!(map.release(middle));
            assert!(!map.release(middle));
            assert_eq!(map.allocate(), Some(middle));
            assert_eq!(map.used(), count);
        }
    }

    #[test]
    fn addresses_do_not_wrap() {
        let size = BufSize::MIN;
        let third = RmbeIndex::new(3).unwrap();
        let base = VirtAddr(0x1000);
        let expected = Some(VirtAddr(0x1000 + 2 * 16384));
        assert_eq!(element_address(base, third, size), expected);
        assert_eq!(
            element_address(VirtAddr(u64::MAX - 40_000), third, size),
            None
        );
    }

    #[test]
    fn slabs_grow_with_the_group() {
        let size = BufSize::from_bytes_ceil(65_536);
        assert_eq!(next_slab(size, 0), 1);
        assert_eq!(next_slab(size, 7), 1);
        assert_eq!(next_slab(size, 8), 2);
        assert_eq!(next_slab(size, 16), 4);
        assert_eq!(next_slab(size, 254), 32);
        assert_eq!(next_slab(BufSize::MAX, 254), 1);
        for in_use in 8..=255u16 {
            assert!(u16::from(next_slab(BufSize::MIN, in_use)) <= in_use / 4);
        }
    }

    #[test]
    fn a_device_registers_what_the_elements_are_rounded_up_to() {
        // 511 pages of 4 KiB: 31 elements of 64 KiB would take the memory of 32.
        assert_eq!(elements_within(32, 511 * 4096 / 65536), 16);
        assert_eq!(elements_within(31, 512 * 4096 / 65536), 31);
        assert_eq!(elements_within(255, 1 << 20), 255);
        assert_eq!(elements_within(5, 4), 4);
        assert_eq!(elements_within(4, 1), 1);
        assert_eq!(elements_within(4, 0), 1);
    }
}

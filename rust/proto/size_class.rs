// SPDX-License-Identifier: GPL-2.0

//! Classes of sizes by which statistics count calls and buffers.

/// Number of classes: up to 8 KiB, 16 KiB, and so on to 1 MiB, and what is larger.
pub const SIZE_CLASSES: u8 = 9;

/// Bits of the largest size of the first class.
const FIRST_BITS: u32 = 13;

/// The class of a size in bytes: 0 for at most 8 KiB, 1 for at most 16 KiB, and so on to 7 for at
/// most 1 MiB; 8 for what is larger. No bytes have no class.
pub const fn size_class(bytes: u64) -> Option<u8> {
    let Some(highest) = bytes.checked_sub(1) else {
        return None;
    };
    let class = u64::BITS.saturating_sub((highest >> FIRST_BITS).leading_zeros());
    // CAST: At most 51.
    let class = class as u8;
    if class < SIZE_CLASSES {
        Some(class)
    } else {
        Some(SIZE_CLASSES.saturating_sub(1))
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(smc_size_class))]
mod tests {
    use super::*;

    #[test]
    fn classes_end_at_powers_of_two() {
        assert_eq!(size_class(0), None);
        assert_eq!(size_class(1), Some(0));
        for class in 0..SIZE_CLASSES - 1 {
            let largest = 8192_u64 << class;
            assert_eq!(size_class(largest - 1), Some(class));
            assert_eq!(size_class(largest), Some(class));
            assert_eq!(size_class(largest + 1), Some(class + 1));
        }
        assert_eq!(size_class(1 << 21), Some(8));
        assert_eq!(size_class(u64::MAX), Some(8));
    }
}

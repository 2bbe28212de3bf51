// SPDX-License-Identifier: GPL-2.0

//! The settings that `smc_run` hands over in the environment.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Set in [`PACKED`] once the environment was read.
const READ: u64 = 1 << 63;
/// Set in [`PACKED`] when messages are wanted.
const DEBUG: u64 = 1 << 62;
/// Buffer sizes fit into 31 bits: the kernel's option is an `int`.
const SIZE_BITS: u32 = 31;
const SIZE_MASK: u64 = (1 << SIZE_BITS) - 1;

/// All other settings in one word, so that a thread sees either none or all of them.
static PACKED: AtomicU64 = AtomicU64::new(0);

/// Whether sockets keep their family; written before [`PACKED`] says that all was read.
static INET: AtomicBool = AtomicBool::new(false);

/// What the user asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Config {
    /// Send buffer size in bytes; 0 leaves the kernel's default.
    pub(crate) sndbuf: i32,
    /// Receive buffer size in bytes; 0 leaves the kernel's default.
    pub(crate) rcvbuf: i32,
    /// Open sockets of the family asked for, with SMC's protocol number, and not of SMC's family.
    pub(crate) inet: bool,
    /// Report each decision on standard error.
    pub(crate) debug: bool,
}

/// Returns the settings, reading the environment on the first call.
///
/// Threads that race here compute the same word.
pub(crate) fn get() -> Config {
    let mut packed = PACKED.load(Ordering::Acquire);
    if packed & READ == 0 {
        let family = crate::environment(c"SMC_FAMILY").map(core::ffi::CStr::to_bytes);
        INET.store(family == Some(b"inet"), Ordering::Relaxed);
        let config = Config {
            sndbuf: size(crate::environment(c"SMC_SNDBUF").map(core::ffi::CStr::to_bytes)),
            rcvbuf: size(crate::environment(c"SMC_RCVBUF").map(core::ffi::CStr::to_bytes)),
            debug: flag(crate::environment(c"SMC_DEBUG").map(core::ffi::CStr::to_bytes)),
            inet: false,
        };
        packed = pack(config);
        PACKED.store(packed, Ordering::Release);
    }
    Config {
        inet: INET.load(Ordering::Relaxed),
        ..unpack(packed)
    }
}

fn pack(config: Config) -> u64 {
    let debug = if config.debug { DEBUG } else { 0 };
    READ | debug
        | (config.sndbuf as u64 & SIZE_MASK) << SIZE_BITS
        | config.rcvbuf as u64 & SIZE_MASK
}

fn unpack(packed: u64) -> Config {
    Config {
        sndbuf: (packed >> SIZE_BITS & SIZE_MASK) as i32,
        rcvbuf: (packed & SIZE_MASK) as i32,
        debug: packed & DEBUG != 0,
        inet: false,
    }
}

/// A decimal number of bytes; anything else counts as "not set".
fn size(text: Option<&[u8]>) -> i32 {
    text.and_then(|bytes| core::str::from_utf8(bytes).ok())
        .and_then(|text| text.parse::<i32>().ok())
        .filter(|&value| value > 0)
        .unwrap_or(0)
}

fn flag(text: Option<&[u8]>) -> bool {
    !matches!(text, None | Some(b"" | b"0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal_bytes() {
        assert_eq!(size(Some(b"131072")), 131_072);
        assert_eq!(size(Some(b"2147483647")), i32::MAX);
        for bad in [&b""[..], b"0", b"-5", b"64k", b"2147483648", b"\xff"] {
            assert_eq!(size(Some(bad)), 0, "{bad:?}");
        }
        assert_eq!(size(None), 0);
    }

    #[test]
    fn debug_is_off_only_when_unset_empty_or_zero() {
        assert!(!flag(None));
        assert!(!flag(Some(b"")));
        assert!(!flag(Some(b"0")));
        assert!(flag(Some(b"1")));
        assert!(flag(Some(b"yes")));
    }

    #[test]
    fn packing_keeps_every_setting() {
        for config in [
            Config::default(),
            Config {
                sndbuf: i32::MAX,
                rcvbuf: 0,
                ..Config::default()
            },
            Config {
                sndbuf: 0,
                rcvbuf: i32::MAX,
                debug: true,
                ..Config::default()
            },
            Config {
                sndbuf: 16_384,
                rcvbuf: 524_288,
                debug: true,
                ..Config::default()
            },
        ] {
            assert_eq!(unpack(pack(config)), config);
            assert_ne!(pack(config) & READ, 0);
        }
    }
}

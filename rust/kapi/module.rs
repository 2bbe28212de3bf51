// SPDX-License-Identifier: GPL-2.0

//! Small services of the kernel that belong to no other module here.

use crate::sys;
use core::ffi::CStr as CoreCStr;

/// The longest host name, NUL included, in bytes.
pub const HOST_NAME_LEN: usize = 65;

/// The host name, filled up with NULs. Cut off if it is longer than the array. May sleep.
pub fn host_name<const N: usize>() -> [u8; N] {
    let mut name = [0; HOST_NAME_LEN];
    // SAFETY: The buffer is valid for its length.
    unsafe { sys::smc_rs_helper_host_name(name.as_mut_ptr().cast(), name.len()) };
    let used = CoreCStr::from_bytes_until_nul(&name).map_or(0, |name| name.count_bytes());
    let mut out = [0; N];
    let used = used.min(N);
    out[..used].copy_from_slice(&name[..used]);
    out
}

/// Fills `buf` with random bytes fit for keys.
pub fn random_bytes(buf: &mut [u8]) {
    // SAFETY: The buffer is valid for its length.
    unsafe { sys::smc_rs_helper_random_bytes(buf.as_mut_ptr().cast(), buf.len()) };
}

/// A random number.
pub fn random_u32() -> u32 {
    let mut bytes = [0; 4];
    random_bytes(&mut bytes);
    u32::from_ne_bytes(bytes)
}

/// Milliseconds since boot, without the time the machine was asleep. Never goes back.
pub fn now_ms() -> u64 {
    // SAFETY: No requirements.
    unsafe { sys::smc_rs_helper_now_ms() }
}

/// Number of CPUs that are running.
pub fn online_cpus() -> u32 {
    // SAFETY: No requirements.
    unsafe { sys::smc_rs_helper_num_online_cpus() }
}

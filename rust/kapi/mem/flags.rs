// SPDX-License-Identifier: GPL-2.0

//! Allocation flags as C wants them.

use kernel::alloc::flags::{
    __GFP_HIGHMEM, __GFP_NOWARN, __GFP_ZERO, GFP_ATOMIC, GFP_KERNEL, GFP_KERNEL_ACCOUNT, GFP_NOWAIT,
};
use kernel::alloc::Flags;
use kernel::bindings;

/// The C value of `flags`, put together from all that the `kernel` crate can express, without
/// `__GFP_HIGHMEM`.
pub(crate) fn as_raw(flags: Flags) -> bindings::gfp_t {
    let known = [
        (GFP_KERNEL, bindings::GFP_KERNEL),
        (GFP_KERNEL_ACCOUNT, bindings::GFP_KERNEL_ACCOUNT),
        (GFP_ATOMIC, bindings::GFP_ATOMIC),
        (GFP_NOWAIT, bindings::GFP_NOWAIT),
        (__GFP_ZERO, bindings::__GFP_ZERO),
        (__GFP_NOWARN, bindings::__GFP_NOWARN),
    ];
    let flags = flags & !__GFP_HIGHMEM;
    known
        .iter()
        .filter(|(flag, _)| flags.contains(*flag))
        .fold(0, |raw, (_, value)| raw | value)
}

// SPDX-License-Identifier: GPL-2.0

//! Bottom halves kept off the current CPU.
//!
//! C header: [`include/linux/bottom_half.h`](srctree/include/linux/bottom_half.h)

use crate::sys;
use kernel::types::NotThreadSafe;

/// A section in which bottom halves do not run on this CPU, so that process context may call what
/// expects bottom half context. Nothing may sleep while it lives.
#[must_use = "bottom halves run again when the value is dropped"]
pub struct BhDisabled(NotThreadSafe);

impl BhDisabled {
    /// Begins the section. Sections nest.
    #[inline]
    pub fn new() -> Self {
        // SAFETY: May be called in any context but hard interrupts, where it is harmless; `drop`
        // on the same thread undoes it because the value cannot leave the thread.
        unsafe { sys::smc_rs_helper_local_bh_disable() };
        Self(NotThreadSafe)
    }
}

impl Default for BhDisabled {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for BhDisabled {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: Undoes the call made in `new` by this very thread.
        unsafe { sys::smc_rs_helper_local_bh_enable() };
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Who pays for memory.
//!
//! C header: [`include/linux/memcontrol.h`](srctree/include/linux/memcontrol.h)

use crate::sys;
use core::ptr::{self, NonNull};

/// The memory control group that is charged for an allocation, or nobody: the memory is the
/// system's then, as it is without control groups.
///
/// Memory stays charged as long as it is allocated, whoever uses it and even if the group is removed
/// meanwhile. Two payers are equal if they are the same group. May be cloned and dropped in any
/// context.
///
/// # Invariants
///
/// The value owns a reference to the group.
pub struct Payer(Option<NonNull<sys::mem_cgroup>>);

// SAFETY: References to control groups are counted atomically, by whomever they are held.
unsafe impl Send for Payer {}
// SAFETY: As above; the group is only passed on to allocations.
unsafe impl Sync for Payer {}

impl Payer {
    /// Nobody pays.
    pub const NOBODY: Self = Self(None);

    /// Takes over a reference to a group, `NULL` being nobody.
    ///
    /// # Safety
    ///
    /// `group` is `NULL`, or a group to which the caller owns a reference and gives it up.
    pub(crate) unsafe fn from_raw(group: *mut sys::mem_cgroup) -> Self {
        // INVARIANT: The caller's reference is ours now.
        Self(NonNull::new(group))
    }

    /// The group as C wants it, `NULL` for nobody. Valid while `self` is.
    pub(super) fn as_ptr(&self) -> *mut sys::mem_cgroup {
        self.0.map_or(ptr::null_mut(), NonNull::as_ptr)
    }
}

impl Clone for Payer {
    fn clone(&self) -> Self {
        if let Some(group) = self.0 {
            // SAFETY: By the type invariant the group has a reference.
            unsafe { sys::smc_rs_helper_payer_get(group.as_ptr()) };
        }
        // INVARIANT: The reference was just taken.
        Self(self.0)
    }
}

impl Drop for Payer {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // SAFETY: By the type invariant the reference is ours.
            unsafe { sys::smc_rs_helper_payer_put(group.as_ptr()) };
        }
    }
}

impl PartialEq for Payer {
    fn eq(&self, other: &Self) -> bool {
        // References keep groups from being freed, so equal addresses are one group.
        self.0 == other.0
    }
}

impl Eq for Payer {}

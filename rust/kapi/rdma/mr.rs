// SPDX-License-Identifier: GPL-2.0

//! Memory regions for a peer's direct access.

use super::pd::Pd;
use super::wr::Sge;
use crate::mem::{DmaMapping, Place};
use crate::sys;
use core::ptr::NonNull;
use kernel::error::{from_err_ptr, to_result};
use kernel::ffi::c_int;
use kernel::page::PAGE_SIZE;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::task::might_sleep;

/// What may be done through a memory region or a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Access(c_int);

impl Access {
    /// The local device may read, which it always may.
    pub const LOCAL_READ: Self = Self(0);
    /// The local device may write.
    pub const LOCAL_WRITE: Self = Self(sys::ib_access_flags_IB_ACCESS_LOCAL_WRITE as c_int);
    /// The peer may write; needs [`LOCAL_WRITE`](Self::LOCAL_WRITE) too.
    pub const REMOTE_WRITE: Self = Self(sys::ib_access_flags_IB_ACCESS_REMOTE_WRITE as c_int);
    /// The peer may read.
    pub const REMOTE_READ: Self = Self(sys::ib_access_flags_IB_ACCESS_REMOTE_READ as c_int);

    pub(super) fn as_raw(self) -> c_int {
        self.0
    }
}

impl core::ops::BitOr for Access {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A fast-registration memory region over the whole of a mapping.
///
/// It has its keys from the start, but they open the memory only after a queue pair of the same
/// protection domain has carried out [`Qp::register`](super::Qp::register). Dropping the region
/// closes the memory for the peer. Process context.
///
/// # Invariants
///
/// `raw` is a memory region that lives until the value is dropped, over `memory`.
pub struct Mr {
    raw: NonNull<sys::ib_mr>,
    memory: Arc<DmaMapping>,
    pd: Arc<Pd>,
}

// SAFETY: Memory regions may be used and freed from any thread.
unsafe impl Send for Mr {}
// SAFETY: A shared reference only reads constant fields.
unsafe impl Sync for Mr {}

impl Mr {
    /// Allocates a region over `memory`. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the mapping belongs to another device, `E2BIG` when it has more pages than
    /// [`Device::max_fast_reg_pages`](super::Device::max_fast_reg_pages), or what the device
    /// answers.
    pub fn new(pd: &Arc<Pd>, memory: &Arc<DmaMapping>) -> Result<Arc<Self>> {
        might_sleep();
        if !Arc::ptr_eq(memory.device(), pd.device()) {
            return Err(EINVAL);
        }
        let len = u32::try_from(memory.pages().len()).map_err(|_| E2BIG)?;
        let pages = len / PAGE_SIZE as u32;
        if pages > pd.device().max_fast_reg_pages() {
            return Err(E2BIG);
        }
        // SAFETY: The protection domain is live.
        let raw = from_err_ptr(unsafe {
            sys::ib_alloc_mr(pd.as_raw(), sys::ib_mr_type_IB_MR_TYPE_MEM_REG, pages)
        })?;
        // INVARIANT: Just allocated, and only `drop` frees it.
        let mr = Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            memory: memory.clone(),
            pd: pd.clone(),
        };
        let ret = match memory.place() {
            // SAFETY: The region is live, nobody else knows it yet, and the range is mapped for its
            // device.
            Place::Range(addr) => unsafe { sys::smc_rs_helper_rdma_map_mr(raw, addr, len) },
            // SAFETY: As above; the list lives as long as `memory`.
            Place::List(table) => unsafe {
                sys::smc_rs_helper_rdma_map_mr_scattered(raw, table, len)
            },
        };
        to_result(ret)?;
        Ok(Arc::new(mr, GFP_KERNEL)?)
    }

    /// The key for the peer.
    #[inline]
    pub fn rkey(&self) -> u32 {
        // SAFETY: The region is live; the field is constant after `new`.
        unsafe { (*self.raw.as_ptr()).rkey }
    }

    /// The key for local work requests.
    #[inline]
    pub fn lkey(&self) -> u32 {
        // SAFETY: As in `rkey`.
        unsafe { (*self.raw.as_ptr()).lkey }
    }

    /// The address by which the peer names the first byte.
    #[inline]
    pub fn iova(&self) -> u64 {
        // SAFETY: As in `rkey`.
        unsafe { (*self.raw.as_ptr()).iova }
    }

    /// `len` bytes at `off` of the region, for a work request of a queue pair of its domain.
    ///
    /// The region must have been registered, and must live until that work request has completed
    /// or its queue pair is gone.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the range is not within the region.
    pub fn sge(&self, off: usize, len: usize) -> Result<Sge> {
        let end = off.checked_add(len).ok_or(EINVAL)?;
        if end > self.memory.pages().len() {
            return Err(EINVAL);
        }
        let addr = self.iova().checked_add(off as u64).ok_or(EINVAL)?;
        let len = u32::try_from(len).map_err(|_| EINVAL)?;
        Ok(Sge::new(addr, len, self.lkey()))
    }

    /// The memory of the region.
    #[inline]
    pub fn memory(&self) -> &Arc<DmaMapping> {
        &self.memory
    }

    /// The protection domain of the region.
    #[inline]
    pub fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    pub(super) fn as_raw(&self) -> *mut sys::ib_mr {
        self.raw.as_ptr()
    }
}

impl Drop for Mr {
    fn drop(&mut self) {
        might_sleep();
        // SAFETY: Live by the type invariant; queue pairs that still register it keep a reference
        // to this value.
        let ret = unsafe { sys::ib_dereg_mr_user(self.raw.as_ptr(), core::ptr::null_mut()) };
        kernel::warn_on!(ret != 0);
    }
}

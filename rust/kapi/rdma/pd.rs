// SPDX-License-Identifier: GPL-2.0

//! Protection domains.

use super::device::{Device, DeviceUse};
use super::wr::Sge;
use crate::mem::DmaMapping;
use crate::sys;
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::task::might_sleep;

/// A protection domain: what queue pairs and memory regions must have in common.
///
/// # Invariants
///
/// `raw` is a protection domain that lives until the value is dropped.
pub struct Pd {
    raw: NonNull<sys::ib_pd>,
    device: DeviceUse,
}

// SAFETY: Protection domains may be used and freed from any thread.
unsafe impl Send for Pd {}
// SAFETY: All operations through a shared reference are thread-safe.
unsafe impl Sync for Pd {}

impl Pd {
    /// Allocates a protection domain. Process context.
    ///
    /// # Errors
    ///
    /// `ENODEV` when the device is being removed, `ENOMEM`, or what the device answers.
    pub fn new(device: &Arc<Device>) -> Result<Arc<Self>> {
        might_sleep();
        let device = DeviceUse::new(device)?;
        // SAFETY: The device is registered for as long as `device` lives.
        let raw = from_err_ptr(unsafe { sys::smc_rs_helper_rdma_alloc_pd(device.as_raw()) })?;
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;
        // INVARIANT: Just allocated, and only `drop` frees it.
        Ok(Arc::new(Self { raw, device }, GFP_KERNEL)?)
    }

    /// The key by which the device may access all memory that is mapped for it.
    pub fn local_dma_lkey(&self) -> u32 {
        // SAFETY: Valid by the type invariant; the field is constant.
        unsafe { (*self.raw.as_ptr()).local_dma_lkey }
    }

    /// `len` bytes at `off` of mapped memory, for a work request of a queue pair of this domain.
    ///
    /// The mapping must live until that work request has completed or its queue pair is gone.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the range is not within the mapping, the mapping belongs to another device, or
    /// its pages have an address each: see [`Mr::sge`](super::Mr::sge).
    #[inline]
    pub fn sge(&self, memory: &DmaMapping, off: usize, len: usize) -> Result<Sge> {
        if !Arc::ptr_eq(memory.device(), self.device()) {
            return Err(EINVAL);
        }
        let addr = memory.range(off, len).ok_or(EINVAL)?;
        let len = u32::try_from(len).map_err(|_| EINVAL)?;
        Ok(Sge::new(addr, len, self.local_dma_lkey()))
    }

    /// The device of the domain.
    #[inline]
    pub fn device(&self) -> &Arc<Device> {
        self.device.device()
    }

    pub(super) fn as_raw(&self) -> *mut sys::ib_pd {
        self.raw.as_ptr()
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        might_sleep();
        // SAFETY: Valid by the type invariant; everything made in the domain keeps a reference to
        // this value, so nothing is left.
        let ret = unsafe { sys::ib_dealloc_pd_user(self.raw.as_ptr(), core::ptr::null_mut()) };
        kernel::warn_on!(ret != 0);
    }
}

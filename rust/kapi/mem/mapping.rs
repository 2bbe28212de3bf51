// SPDX-License-Identifier: GPL-2.0

//! Pages mapped for an RDMA device.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::PageRun;
use crate::rdma::{Device, DeviceUse};
use crate::sys;
use kernel::ffi::c_int;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::task::might_sleep;

/// Who writes mapped memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Direction {
    /// Both sides.
    Bidirectional = 0,
    /// The CPU writes, the device reads.
    ToDevice = 1,
    /// The device writes, the CPU reads.
    FromDevice = 2,
}

impl Direction {
    fn as_raw(self) -> c_int {
        self as c_int
    }
}

/// A [`PageRun`] mapped for an RDMA device, as one contiguous range of device addresses.
///
/// Works for hardware and for software devices, which take kernel addresses. Dropping it unmaps
/// the memory and may sleep, so drop it in process context, after the work requests that name it
/// have completed or their queue pair is gone.
///
/// # Invariants
///
/// `addr` maps the whole of `pages` for the device of `device` until the value is dropped.
pub struct DmaMapping {
    addr: u64,
    direction: Direction,
    /// The CPU and the device see each other's writes only after a synchronisation.
    needs_sync: bool,
    pages: Arc<PageRun>,
    device: DeviceUse,
}

impl DmaMapping {
    /// Maps `pages` for `device`. Process context.
    ///
    /// # Errors
    ///
    /// `ENODEV` when the device is being removed, `ENOMEM` when it cannot be mapped.
    pub fn new(device: &Arc<Device>, pages: Arc<PageRun>, direction: Direction) -> Result<Self> {
        let device = DeviceUse::new(device)?;
        let dev = device.as_raw();
        // SAFETY: The device is registered for as long as `device` lives, and the memory is valid
        // for its whole length.
        let addr = unsafe {
            sys::smc_rs_helper_rdma_dma_map(
                dev,
                pages.as_ptr().cast(),
                pages.len(),
                direction.as_raw(),
            )
        };
        // SAFETY: The device is registered; `addr` is what the mapping returned.
        if unsafe { sys::smc_rs_helper_rdma_dma_error(dev, addr) } != 0 {
            return Err(ENOMEM);
        }
        // SAFETY: The device is registered and `addr` is a mapping of it.
        let needs_sync = unsafe { sys::smc_rs_helper_rdma_needs_sync(dev, addr) };
        // INVARIANT: The mapping succeeded, and only `drop` undoes it.
        Ok(Self {
            addr,
            direction,
            needs_sync,
            pages,
            device,
        })
    }

    /// The device's address of the first byte.
    #[inline]
    pub fn addr(&self) -> u64 {
        self.addr
    }

    /// The memory that is mapped.
    #[inline]
    pub fn pages(&self) -> &Arc<PageRun> {
        &self.pages
    }

    /// The device it is mapped for.
    #[inline]
    pub fn device(&self) -> &Arc<Device> {
        self.device.device()
    }

    /// The device's address of `len` bytes at `off` if they all lie within the mapping.
    pub(crate) fn range(&self, off: usize, len: usize) -> Option<u64> {
        let end = off.checked_add(len)?;
        if end > self.pages.len() {
            return None;
        }
        self.addr.checked_add(off as u64)
    }

    /// Makes what the device wrote to `len` bytes at `off` visible to the CPU. Any context; does
    /// nothing where the hardware is coherent or the range is not within the mapping.
    #[inline]
    pub fn sync_for_cpu(&self, off: usize, len: usize) {
        if !self.needs_sync {
            return;
        }
        if let Some(addr) = self.range(off, len) {
            let dev = self.device.as_raw();
            // SAFETY: The range lies within a live mapping of the device.
            unsafe {
                sys::smc_rs_helper_rdma_sync_for_cpu(dev, addr, len, self.direction.as_raw())
            };
        }
    }

    /// Makes what the CPU wrote to `len` bytes at `off` visible to the device. Any context; does
    /// nothing where the hardware is coherent or the range is not within the mapping.
    #[inline]
    pub fn sync_for_device(&self, off: usize, len: usize) {
        if !self.needs_sync {
            return;
        }
        if let Some(addr) = self.range(off, len) {
            let dev = self.device.as_raw();
            // SAFETY: The range lies within a live mapping of the device.
            unsafe {
                sys::smc_rs_helper_rdma_sync_for_device(dev, addr, len, self.direction.as_raw())
            };
        }
    }
}

impl Drop for DmaMapping {
    fn drop(&mut self) {
        might_sleep();
        let (dev, len) = (self.device.as_raw(), self.pages.len());
        // SAFETY: The mapping is live by the type invariant and ends here.
        unsafe { sys::smc_rs_helper_rdma_dma_unmap(dev, self.addr, len, self.direction.as_raw()) };
    }
}

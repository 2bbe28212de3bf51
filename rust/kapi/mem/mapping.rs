// SPDX-License-Identifier: GPL-2.0

//! Pages mapped for an RDMA device.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::scatter::Scatter;
use super::PageRun;
use crate::rdma::{Device, DeviceUse};
use crate::sys;
use kernel::bindings;
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
    pub(super) fn as_raw(self) -> c_int {
        self as c_int
    }
}

/// Where a device finds memory that is mapped for it.
pub(crate) enum Place {
    /// All of it behind this address.
    Range(u64),
    /// At the addresses of this list, which lives as long as the mapping.
    List(*const bindings::sg_table),
}

/// A [`PageRun`] mapped for an RDMA device.
///
/// A physically contiguous run is one range of device addresses, which work requests can name. The
/// pages of any other run have an address each: they can only be reached through a memory region.
///
/// Works for hardware and for software devices, which take kernel addresses. Dropping it unmaps
/// the memory and may sleep, so drop it in process context, after the work requests that name it
/// have completed or their queue pair is gone.
///
/// # Invariants
///
/// Until the value is dropped the whole of `pages` is mapped for the device of `device`: at `addr`
/// if `scatter` is `None`, as `scatter` says if not, and then `reach` is 0.
pub struct DmaMapping {
    addr: u64,
    /// Bytes that follow each other from `addr` on.
    reach: usize,
    direction: Direction,
    /// The CPU and the device see each other's writes only after a synchronisation.
    needs_sync: bool,
    // Dropped before the pages.
    scatter: Option<Scatter>,
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
        if !pages.is_contiguous() {
            return Self::new_scattered(device, pages, direction);
        }
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
            reach: pages.len(),
            direction,
            needs_sync,
            scatter: None,
            pages,
            device,
        })
    }

    fn new_scattered(
        device: &Arc<Device>,
        pages: Arc<PageRun>,
        direction: Direction,
    ) -> Result<Self> {
        let scatter = Scatter::new(DeviceUse::new(device)?, &pages, direction)?;
        // INVARIANT: `scatter` maps the whole run for the same device.
        Ok(Self {
            addr: 0,
            reach: 0,
            direction,
            needs_sync: scatter.needs_sync(),
            scatter: Some(scatter),
            pages,
            device: DeviceUse::new(device)?,
        })
    }

    /// Where the device finds the whole of the memory.
    pub(crate) fn place(&self) -> Place {
        match &self.scatter {
            Some(scatter) => Place::List(scatter.as_raw()),
            None => Place::Range(self.addr),
        }
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

    /// Whether the CPU and the device see each other's writes only after a synchronisation.
    #[inline]
    pub fn needs_sync(&self) -> bool {
        self.needs_sync
    }

    /// The device's address of `len` bytes at `off` if they all lie within the mapping, one behind
    /// the other.
    #[inline]
    pub(crate) fn range(&self, off: usize, len: usize) -> Option<u64> {
        let end = off.checked_add(len)?;
        if end > self.reach {
            return None;
        }
        self.addr.checked_add(off as u64)
    }

    /// Makes what the device wrote to `len` bytes at `off` visible to the CPU, and of a
    /// scattered mapping all. Any context; does nothing where the hardware is coherent or the range
    /// is not within the mapping.
    #[inline]
    pub fn sync_for_cpu(&self, off: usize, len: usize) {
        if !self.needs_sync {
            return;
        }
        if let Some(scatter) = &self.scatter {
            scatter.sync_for_cpu();
        } else if let Some(addr) = self.range(off, len) {
            let dev = self.device.as_raw();
            // SAFETY: The range lies within a live mapping of the device.
            unsafe {
                sys::smc_rs_helper_rdma_sync_for_cpu(dev, addr, len, self.direction.as_raw())
            };
        }
    }

    /// Makes what the CPU wrote to `len` bytes at `off` visible to the device, and of a
    /// scattered mapping all. Any context; does nothing where the hardware is coherent or the range
    /// is not within the mapping.
    #[inline]
    pub fn sync_for_device(&self, off: usize, len: usize) {
        if !self.needs_sync {
            return;
        }
        if let Some(scatter) = &self.scatter {
            scatter.sync_for_device();
        } else if let Some(addr) = self.range(off, len) {
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
        if self.scatter.is_some() {
            return;
        }
        let (dev, len) = (self.device.as_raw(), self.pages.len());
        // SAFETY: The mapping is live by the type invariant and ends here.
        unsafe { sys::smc_rs_helper_rdma_dma_unmap(dev, self.addr, len, self.direction.as_raw()) };
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Pages that lie anywhere in memory, mapped for an RDMA device.
//!
//! C header: [`include/linux/scatterlist.h`](srctree/include/linux/scatterlist.h)

use super::{Direction, PageRun};
use crate::rdma::DeviceUse;
use crate::sys;
use kernel::bindings;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::task::might_sleep;
use kernel::types::Opaque;

/// Where a device finds the pages of a run that is not contiguous. Dropping it takes the pages from
/// the device and may sleep; they have to live until then.
///
/// # Invariants
///
/// `table` is a list that is mapped for the device of `device` in this direction until the value is
/// dropped.
pub(super) struct Scatter {
    table: Opaque<bindings::sg_table>,
    direction: Direction,
    device: DeviceUse,
}

// SAFETY: The list belongs to no thread.
unsafe impl Send for Scatter {}
// SAFETY: Through a shared reference the list is only read.
unsafe impl Sync for Scatter {}

impl Scatter {
    /// Maps the whole of `pages` for the device of `device`. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the run is contiguous, `ENOMEM`, also when the device cannot be given the pages.
    pub(super) fn new(device: DeviceUse, pages: &PageRun, direction: Direction) -> Result<Self> {
        if pages.is_contiguous() {
            return Err(EINVAL);
        }
        let table = Opaque::zeroed();
        // SAFETY: The device is registered for as long as `device` lives; the memory consists of
        // single pages that are mapped; `table` is a valid place, and the list does not refer to it.
        let ret = unsafe {
            sys::smc_rs_helper_rdma_scatter_map(
                device.as_raw(),
                pages.as_ptr().cast(),
                pages.len(),
                direction.as_raw(),
                table.get(),
            )
        };
        to_result(ret).map_err(|_| ENOMEM)?;
        // INVARIANT: The mapping succeeded, and only `drop` undoes it.
        Ok(Self {
            table,
            direction,
            device,
        })
    }

    /// Whether the CPU and the device see each other's writes only after a synchronisation.
    pub(super) fn needs_sync(&self) -> bool {
        let dev = self.device.as_raw();
        // SAFETY: The list is mapped for the device.
        unsafe { sys::smc_rs_helper_rdma_scatter_needs_sync(dev, self.table.get()) }
    }

    /// Makes what the device wrote visible to the CPU. Any context.
    pub(super) fn sync_for_cpu(&self) {
        let (dev, direction) = (self.device.as_raw(), self.direction.as_raw());
        // SAFETY: The list is mapped for the device in this direction.
        unsafe { sys::smc_rs_helper_rdma_scatter_sync_for_cpu(dev, self.table.get(), direction) };
    }

    /// Makes what the CPU wrote visible to the device. Any context.
    pub(super) fn sync_for_device(&self) {
        let (dev, direction) = (self.device.as_raw(), self.direction.as_raw());
        // SAFETY: The list is mapped for the device in this direction.
        unsafe {
            sys::smc_rs_helper_rdma_scatter_sync_for_device(dev, self.table.get(), direction)
        };
    }

    /// The list, mapped for the device.
    pub(super) fn as_raw(&self) -> *const bindings::sg_table {
        self.table.get()
    }
}

impl Drop for Scatter {
    fn drop(&mut self) {
        might_sleep();
        let (dev, direction) = (self.device.as_raw(), self.direction.as_raw());
        // SAFETY: The list is mapped by the type invariant, and that ends here.
        unsafe { sys::smc_rs_helper_rdma_scatter_unmap(dev, self.table.get(), direction) };
    }
}

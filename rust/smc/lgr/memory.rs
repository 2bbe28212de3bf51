// SPDX-License-Identifier: GPL-2.0

//! How the buffers of a link group lie in memory.

use kernel::{
    page::page_align,
    prelude::*,
    sync::Arc, //
};
use smc_kapi::{
    mem::{
        Direction,
        DmaMapping,
        PageRun,
        Payer, //
    },
    pr_warn_ratelimited,
    rdma::Device, //
};

/// The kind of memory that a link group's buffers have. The numbers are those of the setting
/// `smcr_buf_type` and of generic netlink.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BufferType {
    /// Physically contiguous.
    Physical = 0,
    /// Pages from anywhere, which only the CPU sees one behind the other.
    Virtual = 1,
    /// Physically contiguous where there is such memory, pages from anywhere where not.
    Mixed = 2,
}

/// Maps memory of a send ring or an RMB. Process context.
///
/// The data in it are written and read where no lock is held that a synchronisation for the device
/// would need, so both sides have to see each other's writes without one.
///
/// # Errors
///
/// `ENODEV` when they do not, or the device is being removed; `ENOMEM`.
pub(super) fn map_payload(
    device: &Arc<Device>,
    pages: &Arc<PageRun>,
    direction: Direction,
) -> Result<Arc<DmaMapping>> {
    let mapping = DmaMapping::new(device, pages.clone(), direction)?;
    if mapping.needs_sync() {
        pr_warn_ratelimited!(
            "The RDMA device {} reaches the memory of this host by copies only (swiotlb): connections stay on TCP.\n",
            device.name()
        );
        return Err(ENODEV);
    }
    Ok(Arc::new(mapping, GFP_KERNEL)?)
}

impl BufferType {
    /// That of a value of the setting.
    pub(crate) const fn from_setting(value: u32) -> Self {
        match value {
            1 => BufferType::Virtual,
            2 => BufferType::Mixed,
            _ => BufferType::Physical,
        }
    }

    /// Its number.
    pub(crate) const fn number(self) -> u8 {
        self as u8
    }

    /// Allocates at least `len` bytes, near the NUMA node `node`. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when there is no such memory that is easy to have, or `payer` may not have so much.
    pub(super) fn alloc(
        self,
        len: usize,
        node: Option<i32>,
        payer: &Payer,
    ) -> Result<Arc<PageRun>> {
        let physical = || PageRun::alloc(len.next_power_of_two(), GFP_KERNEL, node, payer);
        let anywhere = || {
            let len = page_align(len).ok_or(EINVAL)?;
            PageRun::alloc_mapped(len, GFP_KERNEL, node, payer)
        };
        let pages = match self {
            BufferType::Physical => physical(),
            BufferType::Virtual => anywhere(),
            BufferType::Mixed => physical().or_else(|_| anywhere()),
        };
        Ok(Arc::new(pages?, GFP_KERNEL)?)
    }
}

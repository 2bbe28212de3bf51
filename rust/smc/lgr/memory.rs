// SPDX-License-Identifier: GPL-2.0

//! How the buffers of a link group lie in memory.

use kernel::{
    page::page_align,
    prelude::*,
    sync::Arc, //
};
use smc_kapi::mem::PageRun;

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
    /// `ENOMEM` when there is no such memory that is easy to have.
    pub(super) fn alloc(self, len: usize, node: Option<i32>) -> Result<Arc<PageRun>> {
        let physical = || PageRun::alloc(len.next_power_of_two(), GFP_KERNEL, node);
        let anywhere = || {
            let len = page_align(len).ok_or(EINVAL)?;
            PageRun::alloc_mapped(len, GFP_KERNEL, node)
        };
        let pages = match self {
            BufferType::Physical => physical(),
            BufferType::Virtual => anywhere(),
            BufferType::Mixed => physical().or_else(|_| anywhere()),
        };
        Ok(Arc::new(pages?, GFP_KERNEL)?)
    }
}

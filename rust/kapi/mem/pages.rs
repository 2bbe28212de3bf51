// SPDX-License-Identifier: GPL-2.0

//! Memory shared with a device.
//!
//! C headers: [`include/linux/gfp.h`](srctree/include/linux/gfp.h),
//! [`include/linux/vmalloc.h`](srctree/include/linux/vmalloc.h)

use super::{flags, Payer};
use crate::sys;
use core::ptr::NonNull;
use kernel::alloc::Flags;
use kernel::bindings;
use kernel::iov::{IovIterDest, IovIterSource};
use kernel::page::{PAGE_SHIFT, PAGE_SIZE};
use kernel::prelude::*;
use kernel::task::might_sleep;

/// A run of zeroed pages, which the kernel sees as one range of addresses.
///
/// A device, and through it a peer, may write the memory at any time. It is therefore never a
/// slice: all access copies in or out, checks its bounds, and promises nothing about bytes that
/// change meanwhile. Look at a copy, never twice at the run.
///
/// A physically contiguous run is one compound page, so copies to and from user space pass the
/// kernel's hardened checks. Pages of either kind outlive the run if C code took a reference to
/// them.
///
/// It may be dropped wherever bottom halves are off and wherever sleeping is allowed.
///
/// # Invariants
///
/// The value owns `len` bytes at `addr`, which are as `backing` says.
pub struct PageRun {
    addr: NonNull<u8>,
    len: usize,
    backing: Backing,
}

/// What a run consists of.
enum Backing {
    /// A compound page of this order.
    Compound(NonNull<sys::page>, u32),
    /// Single pages that are mapped one behind the other.
    Mapped,
}

// SAFETY: The pages belong to no thread.
unsafe impl Send for PageRun {}
// SAFETY: The contents are only copied, by functions that accept concurrent changes.
unsafe impl Sync for PageRun {}

impl PageRun {
    /// Allocates `len` bytes that are physically contiguous, which must be a power of two and at
    /// least a page.
    ///
    /// `node` is the NUMA node to prefer. The allocation does not try hard: the caller can fall
    /// back to less. It kills nobody where `payer` is at its limit. May sleep if `flags` allow it.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a length that is not possible, `ENOMEM` when there is no such run or `payer` may
    /// not have it.
    pub fn alloc(len: usize, flags: Flags, node: Option<i32>, payer: &Payer) -> Result<Self> {
        if !len.is_power_of_two() || len < PAGE_SIZE {
            return Err(EINVAL);
        }
        let order = len.trailing_zeros().saturating_sub(PAGE_SHIFT as u32);
        if order > bindings::MAX_PAGE_ORDER {
            return Err(EINVAL);
        }
        let gfp = flags::as_raw(flags);
        let node = node.unwrap_or(bindings::NUMA_NO_NODE);
        // SAFETY: The flags are valid and the order is in range; a node of -1 means any; `payer`
        // holds a reference to its group.
        let page = unsafe { sys::smc_rs_helper_alloc_run(payer.as_ptr(), node, gfp, order) };
        let page = NonNull::new(page).ok_or(ENOMEM)?;
        // SAFETY: `page` was just allocated; without `__GFP_HIGHMEM` it has a kernel address.
        let addr = unsafe { sys::smc_rs_helper_page_address(page.as_ptr()) };
        // INVARIANT: The run was allocated with this order and only `drop` frees it.
        Ok(Self {
            addr: NonNull::new(addr.cast()).ok_or(ENOMEM)?,
            len,
            backing: Backing::Compound(page, order),
        })
    }

    /// Allocates `len` bytes, a multiple of the page size, whose pages may lie anywhere in memory.
    ///
    /// `node` is the NUMA node to prefer. Of the pages none is tried hard for, and nobody is killed
    /// where `payer` is at its limit. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a length that is not possible, `ENOMEM` when there are not so many pages or
    /// `payer` may not have them.
    pub fn alloc_mapped(
        len: usize,
        flags: Flags,
        node: Option<i32>,
        payer: &Payer,
    ) -> Result<Self> {
        might_sleep();
        let count = u32::try_from(len / PAGE_SIZE).map_err(|_| EINVAL)?;
        if count == 0 || len % PAGE_SIZE != 0 {
            return Err(EINVAL);
        }
        let gfp = flags::as_raw(flags);
        let node = node.unwrap_or(bindings::NUMA_NO_NODE);
        let payer = payer.as_ptr();
        // SAFETY: The flags are valid, the count is not 0, and sleeping is allowed; a node of -1
        // means any; the caller's payer holds a reference to its group.
        let addr = unsafe { sys::smc_rs_helper_alloc_mapped_run(payer, node, gfp, count) };
        // INVARIANT: The run was just allocated and only `drop` frees it.
        Ok(Self {
            addr: NonNull::new(addr.cast()).ok_or(ENOMEM)?,
            len,
            backing: Backing::Mapped,
        })
    }

    /// Whether the pages follow each other in physical memory by construction.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        matches!(self.backing, Backing::Compound(..))
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never true: a run has at least a page.
    #[inline]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The address of `len` bytes at `off` if they all lie within the run.
    #[inline]
    fn range(&self, off: usize, len: usize) -> Option<NonNull<u8>> {
        if off.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: `off` is within the allocation of `self.len` bytes, as just checked.
        Some(unsafe { self.addr.add(off) })
    }

    /// The kernel address of the run, for handing it to a device.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.addr.as_ptr()
    }

    /// Copies up to `len` bytes from `from` to `off`, and returns how many were copied.
    ///
    /// Fewer than asked for means that the source ended or could not be read; 0 also that the
    /// range is not within the run. Process context: may fault.
    pub fn copy_from_iter(&self, off: usize, len: usize, from: &mut IovIterSource<'_>) -> usize {
        let Some(to) = self.range(off, len) else {
            return 0;
        };
        // SAFETY: `to` is valid for writes of `len` bytes, which nobody holds a reference to; the
        // iterator is valid by its type.
        unsafe { bindings::_copy_from_iter(to.as_ptr().cast(), len, from.as_raw()) }
    }

    /// Copies up to `len` bytes at `off` into `to`, and returns how many were copied.
    ///
    /// Fewer than asked for means that the destination ended or could not be written; 0 also that
    /// the range is not within the run. Process context: may fault.
    pub fn copy_to_iter(&self, off: usize, len: usize, to: &mut IovIterDest<'_>) -> usize {
        let Some(from) = self.range(off, len) else {
            return 0;
        };
        // SAFETY: `from` is valid for reads of `len` initialised bytes; the iterator is valid by
        // its type.
        unsafe { bindings::_copy_to_iter(from.as_ptr().cast(), len, to.as_raw()) }
    }

    /// Copies `from` to `off`. Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the range is not within the run.
    pub fn write(&self, off: usize, from: &[u8]) -> Result {
        let to = self.range(off, from.len()).ok_or(EINVAL)?;
        // SAFETY: `to` is valid for writes of `from.len()` bytes, and `from` lies elsewhere since
        // no reference into the run exists.
        unsafe { sys::smc_rs_helper_copy(to.as_ptr().cast(), from.as_ptr().cast(), from.len()) };
        Ok(())
    }

    /// Copies the bytes at `off` to `to`. Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the range is not within the run.
    pub fn read(&self, off: usize, to: &mut [u8]) -> Result {
        let from = self.range(off, to.len()).ok_or(EINVAL)?;
        // SAFETY: `from` is valid for reads of `to.len()` initialised bytes, and `to` lies
        // elsewhere since no reference into the run exists.
        unsafe { sys::smc_rs_helper_copy(to.as_mut_ptr().cast(), from.as_ptr().cast(), to.len()) };
        Ok(())
    }

    /// Clears `len` bytes at `off`. Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the range is not within the run.
    pub fn zero(&self, off: usize, len: usize) -> Result {
        let to = self.range(off, len).ok_or(EINVAL)?;
        // SAFETY: `to` is valid for writes of `len` bytes.
        unsafe { sys::smc_rs_helper_clear(to.as_ptr().cast(), len) };
        Ok(())
    }
}

impl Drop for PageRun {
    fn drop(&mut self) {
        match self.backing {
            // SAFETY: The pages are owned by `self` and were allocated with this order.
            Backing::Compound(page, order) => unsafe {
                sys::smc_rs_helper_free_pages(page.as_ptr(), order)
            },
            // SAFETY: The address is that of a mapped run, which is owned by `self`.
            Backing::Mapped => unsafe {
                sys::smc_rs_helper_free_mapped_run(self.addr.as_ptr().cast())
            },
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Work requests.
//!
//! Lists of work requests are built on the stack and posted in one call, without an allocation.

use crate::sys;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use kernel::ffi::c_int;
use kernel::prelude::*;

/// The highest bit of a work request number is the module's own, see
/// [`Qp::register`](super::Qp::register).
pub(super) const RESERVED_WR_ID: u64 = 1 << 63;

/// A stretch of memory that is mapped for a device, with the key to access it.
///
/// Comes from [`Pd::sge`](super::Pd::sge) or [`Mr::sge`](super::Mr::sge). Keep the mapping or the
/// memory region until the work requests that name it have completed or their queue pair is gone.
#[derive(Clone, Copy, Debug)]
pub struct Sge {
    addr: u64,
    len: u32,
    lkey: u32,
}

impl Sge {
    pub(super) fn new(addr: u64, len: u32, lkey: u32) -> Self {
        Self { addr, len, lkey }
    }

    /// The length in bytes.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are no bytes at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device's address of the first byte.
    #[inline]
    pub fn addr(&self) -> u64 {
        self.addr
    }

    /// `len` bytes at `off` of this stretch.
    ///
    /// # Errors
    ///
    /// `EINVAL` when they do not lie within it.
    #[inline]
    pub fn slice(&self, off: u32, len: u32) -> Result<Self> {
        if off.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(EINVAL);
        }
        Ok(Self {
            // Within the mapping, whose addresses do not wrap.
            addr: self.addr.wrapping_add(u64::from(off)),
            len,
            lkey: self.lkey,
        })
    }

    fn as_raw(&self) -> sys::ib_sge {
        sys::ib_sge {
            addr: self.addr,
            length: self.len,
            lkey: self.lkey,
        }
    }
}

/// How a send work request is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendFlags(c_int);

impl SendFlags {
    /// Nothing special: no completion unless the request fails.
    pub const NONE: Self = Self(0);
    /// A completion is wanted.
    pub const SIGNALED: Self = Self(sys::ib_send_flags_IB_SEND_SIGNALED as c_int);
    /// Wait for earlier reads and atomics.
    pub const FENCE: Self = Self(sys::ib_send_flags_IB_SEND_FENCE as c_int);
    /// Ask the receiver for a solicited event.
    pub const SOLICITED: Self = Self(sys::ib_send_flags_IB_SEND_SOLICITED as c_int);
}

impl core::ops::BitOr for SendFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Part of a list was not posted.
#[derive(Clone, Copy, Debug)]
pub struct PostError {
    /// How many requests of the list were posted; they will complete.
    pub posted: usize,
    /// Why the next one was not.
    pub error: Error,
}

impl From<PostError> for Error {
    fn from(e: PostError) -> Self {
        e.error
    }
}

struct SendSlot {
    wr: sys::ib_rdma_wr,
    sge: sys::ib_sge,
}

/// Up to `N` send work requests, to be posted together by
/// [`Qp::post_send`](super::Qp::post_send). `'a` is the lifetime of inline data.
///
/// # Invariants
///
/// The first `len` slots are initialised.
pub struct SendList<'a, const N: usize> {
    len: usize,
    slots: [MaybeUninit<SendSlot>; N],
    _inline: PhantomData<&'a [u8]>,
}

impl<'a, const N: usize> SendList<'a, N> {
    /// An empty list.
    #[inline]
    pub const fn new() -> Self {
        Self {
            len: 0,
            slots: [const { MaybeUninit::uninit() }; N],
            _inline: PhantomData,
        }
    }

    /// How many requests are on the list.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn push(
        &mut self,
        wr_id: u64,
        opcode: u32,
        flags: c_int,
        sge: Option<sys::ib_sge>,
    ) -> Result<&mut SendSlot> {
        if wr_id & RESERVED_WR_ID != 0 {
            return Err(EINVAL);
        }
        let slot = self.slots.get_mut(self.len).ok_or(ENOSPC)?;
        let mut wr = sys::ib_rdma_wr::default();
        wr.wr.__bindgen_anon_1.wr_id = wr_id;
        wr.wr.num_sge = c_int::from(sge.is_some());
        wr.wr.opcode = opcode;
        wr.wr.send_flags = flags;
        // INVARIANT: The slot at `len` is initialised before `len` grows.
        let slot = slot.write(SendSlot {
            wr,
            sge: sge.unwrap_or_default(),
        });
        self.len = self.len.saturating_add(1);
        Ok(slot)
    }

    /// Adds a write of `from` to the peer's memory at `remote_addr`, which `rkey` opens.
    ///
    /// # Errors
    ///
    /// `ENOSPC` when the list is full, `EINVAL` for a number with the highest bit set.
    #[inline]
    pub fn push_write(
        &mut self,
        from: Sge,
        remote_addr: u64,
        rkey: u32,
        wr_id: u64,
        flags: SendFlags,
    ) -> Result {
        let opcode = sys::ib_wr_opcode_IB_WR_RDMA_WRITE;
        let slot = self.push(wr_id, opcode, flags.0, Some(from.as_raw()))?;
        slot.wr.remote_addr = remote_addr;
        slot.wr.rkey = rkey;
        Ok(())
    }

    /// As [`push_write`](Self::push_write), with data that the device copies while posting. It can
    /// be at most [`QpCaps::inline`](super::QpCaps::inline) bytes long.
    ///
    /// # Errors
    ///
    /// As for [`push_write`](Self::push_write).
    #[inline]
    pub fn push_write_inline(
        &mut self,
        from: &'a [u8],
        remote_addr: u64,
        rkey: u32,
        wr_id: u64,
        flags: SendFlags,
    ) -> Result {
        let opcode = sys::ib_wr_opcode_IB_WR_RDMA_WRITE;
        let slot = self.push(wr_id, opcode, inline(flags), Some(inline_sge(from)?))?;
        slot.wr.remote_addr = remote_addr;
        slot.wr.rkey = rkey;
        Ok(())
    }

    /// Adds a message, which takes a receive work request of the peer.
    ///
    /// # Errors
    ///
    /// `ENOSPC` when the list is full, `EINVAL` for a number with the highest bit set.
    #[inline]
    pub fn push_send(&mut self, from: Sge, wr_id: u64, flags: SendFlags) -> Result {
        let opcode = sys::ib_wr_opcode_IB_WR_SEND;
        self.push(wr_id, opcode, flags.0, Some(from.as_raw()))?;
        Ok(())
    }

    /// As [`push_send`](Self::push_send), with data that the device copies while posting. It can
    /// be at most [`QpCaps::inline`](super::QpCaps::inline) bytes long.
    ///
    /// # Errors
    ///
    /// As for [`push_send`](Self::push_send).
    #[inline]
    pub fn push_send_inline(&mut self, from: &'a [u8], wr_id: u64, flags: SendFlags) -> Result {
        let opcode = sys::ib_wr_opcode_IB_WR_SEND;
        self.push(wr_id, opcode, inline(flags), Some(inline_sge(from)?))?;
        Ok(())
    }

    /// Adds the invalidation of a memory region's key.
    ///
    /// # Errors
    ///
    /// `ENOSPC` when the list is full, `EINVAL` for a number with the highest bit set.
    #[inline]
    pub fn push_local_inv(&mut self, rkey: u32, wr_id: u64, flags: SendFlags) -> Result {
        let slot = self.push(wr_id, sys::ib_wr_opcode_IB_WR_LOCAL_INV, flags.0, None)?;
        slot.wr.wr.ex.invalidate_rkey = rkey;
        Ok(())
    }

    /// Chains the requests and posts them to `qp`.
    ///
    /// # Safety
    ///
    /// `qp` must be a live queue pair.
    pub(super) unsafe fn post(&mut self, qp: *mut sys::ib_qp) -> Result<(), PostError> {
        let mut next: *mut sys::ib_send_wr = core::ptr::null_mut();
        for slot in self.slots.iter_mut().take(self.len).rev() {
            // SAFETY: One of the first `len` slots, so it is initialised.
            let slot = unsafe { slot.assume_init_mut() };
            slot.wr.wr.sg_list = &raw mut slot.sge;
            slot.wr.wr.next = next;
            next = &raw mut slot.wr.wr;
        }
        if next.is_null() {
            return Ok(());
        }
        let first = next;
        let mut bad: *const sys::ib_send_wr = core::ptr::null();
        // SAFETY: The queue pair is live; the chain is valid for the duration of the call, and the
        // device copies what it needs.
        let ret = unsafe { sys::smc_rs_helper_rdma_post_send(qp, first, &mut bad) };
        kernel::error::to_result(ret).map_err(|error| PostError {
            posted: self.index_of(bad),
            error,
        })
    }

    /// The place of a request on the list.
    fn index_of(&self, bad: *const sys::ib_send_wr) -> usize {
        let step = core::mem::size_of::<SendSlot>();
        let off = (bad as usize).wrapping_sub(self.slots.as_ptr() as usize);
        if off / step < self.len {
            off / step
        } else {
            0
        }
    }
}

impl<const N: usize> Default for SendList<'_, N> {
    fn default() -> Self {
        Self::new()
    }
}

fn inline(flags: SendFlags) -> c_int {
    flags.0 | sys::ib_send_flags_IB_SEND_INLINE as c_int
}

fn inline_sge(data: &[u8]) -> Result<sys::ib_sge> {
    Ok(sys::ib_sge {
        addr: data.as_ptr() as u64,
        length: u32::try_from(data.len()).map_err(|_| EINVAL)?,
        lkey: 0,
    })
}

struct RecvSlot {
    wr: sys::ib_recv_wr,
    sge: sys::ib_sge,
}

/// Up to `N` receive work requests, to be posted together by
/// [`Qp::post_recv_list`](super::Qp::post_recv_list).
///
/// # Invariants
///
/// The first `len` slots are initialised.
pub struct RecvList<const N: usize> {
    len: usize,
    slots: [MaybeUninit<RecvSlot>; N],
}

impl<const N: usize> RecvList<N> {
    /// An empty list.
    #[inline]
    pub const fn new() -> Self {
        Self {
            len: 0,
            slots: [const { MaybeUninit::uninit() }; N],
        }
    }

    /// How many requests are on the list.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a place for one message of the peer.
    ///
    /// # Errors
    ///
    /// `ENOSPC` when the list is full, `EINVAL` for a number with the highest bit set.
    #[inline]
    pub fn push(&mut self, to: Sge, wr_id: u64) -> Result {
        if wr_id & RESERVED_WR_ID != 0 {
            return Err(EINVAL);
        }
        let slot = self.slots.get_mut(self.len).ok_or(ENOSPC)?;
        let mut wr = sys::ib_recv_wr::default();
        wr.__bindgen_anon_1.wr_id = wr_id;
        wr.num_sge = 1;
        // INVARIANT: The slot at `len` is initialised before `len` grows.
        slot.write(RecvSlot {
            wr,
            sge: to.as_raw(),
        });
        self.len = self.len.saturating_add(1);
        Ok(())
    }

    /// Chains the requests and posts them to `qp`.
    ///
    /// # Safety
    ///
    /// `qp` must be a live queue pair.
    pub(super) unsafe fn post(&mut self, qp: *mut sys::ib_qp) -> Result<(), PostError> {
        let mut next: *mut sys::ib_recv_wr = core::ptr::null_mut();
        for slot in self.slots.iter_mut().take(self.len).rev() {
            // SAFETY: One of the first `len` slots, so it is initialised.
            let slot = unsafe { slot.assume_init_mut() };
            slot.wr.sg_list = &raw mut slot.sge;
            slot.wr.next = next;
            next = &raw mut slot.wr;
        }
        if next.is_null() {
            return Ok(());
        }
        let first = next;
        let mut bad: *const sys::ib_recv_wr = core::ptr::null();
        // SAFETY: The queue pair is live; the chain is valid for the duration of the call, and the
        // device copies what it needs.
        let ret = unsafe { sys::smc_rs_helper_rdma_post_recv(qp, first, &mut bad) };
        kernel::error::to_result(ret).map_err(|error| {
            let step = core::mem::size_of::<RecvSlot>();
            let off = (bad as usize).wrapping_sub(self.slots.as_ptr() as usize);
            let posted = if off / step < self.len { off / step } else { 0 };
            PostError { posted, error }
        })
    }
}

impl<const N: usize> Default for RecvList<N> {
    fn default() -> Self {
        Self::new()
    }
}

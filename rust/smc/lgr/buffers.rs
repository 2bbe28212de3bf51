// SPDX-License-Identifier: GPL-2.0

//! The buffers of a link group: RMBs cut into elements, and send rings.
//!
//! One registration with the device and one exchange of its key with the peer serve all elements of
//! an RMB. Buffers go back to the pool when a connection is done with them and to the page
//! allocator when they have not been used for a while.
//!
//! Taking and trimming happen in process context under the pool's mutex. Giving back may happen
//! anywhere, so it only changes marks.

use kernel::{
    iov::{
        IovIterDest,
        IovIterSource, //
    },
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    },
};
use smc_kapi::{
    mem::{
        Direction,
        DmaMapping,
        PageRun, //
    },
    module::now_ms,
    new_spinlock_bh,
    rdma::{
        Mr,
        Sge, //
    },
    sync::SpinLockBh, //
};
use smc_proto::{
    ids::{
        BufSize,
        Rkey,
        RmbeIndex,
        VirtAddr, //
    },
    lgr::{
        next_slab,
        ElementMap, //
    },
};

use crate::smc::{
    link::Link,
    netns::{
        Charge,
        NetState, //
    },
};

/// How long an unused buffer waits for its next connection.
const IDLE_MS: u64 = 10_000;
/// RMBs of a link group, the protocol's limit.
const MAX_RMBS: usize = 255;

/// A remote memory buffer, cut into elements of one size.
#[pin_data]
pub(crate) struct Rmb {
    size: BufSize,
    pages: Arc<PageRun>,
    rkey: Rkey,
    address: VirtAddr,
    #[pin]
    state: SpinLockBh<RmbState>,
    _charge: Charge,
}

struct RmbState {
    elements: ElementMap,
    /// Bytes of each element that may differ from zero, by zero-based index.
    used: KVec<u32>,
    idle_since: u64,
}

impl Rmb {
    fn new(
        net: &Arc<NetState>,
        pages: Arc<PageRun>,
        mr: &Mr,
        size: BufSize,
        count: u8,
    ) -> Result<Arc<Self>> {
        let mut used = KVec::with_capacity(usize::from(count), GFP_KERNEL)?;
        for _ in 0..count {
            used.push(0, GFP_KERNEL)?;
        }
        let charge = net.charge(pages.len());
        Arc::pin_init(
            try_pin_init!(Self {
                size,
                pages,
                rkey: Rkey(mr.rkey()),
                address: VirtAddr(mr.iova()),
                state <- new_spinlock_bh!(RmbState {
                    elements: ElementMap::new(count),
                    used,
                    idle_since: now_ms(),
                }, "smc_rmb"),
                _charge: charge,
            }? Error),
            GFP_KERNEL,
        )
    }

    pub(crate) fn rkey(&self) -> Rkey {
        self.rkey
    }

    pub(crate) fn address(&self) -> VirtAddr {
        self.address
    }

    /// Takes a free element and clears what its last user may have left. May sleep.
    fn take(self: &Arc<Self>) -> Option<RmbElement> {
        let (index, used) = {
            let mut state = self.state.lock();
            let index = state.elements.allocate()?;
            let used = state
                .used
                .get_mut(usize::from(index.zero_based()))
                .map_or(0, core::mem::take);
            (index, used)
        };
        let element = RmbElement {
            rmb: self.clone(),
            index,
        };
        if used != 0 {
            // The element lies within the pages, so this cannot fail.
            let _ = self.pages.zero(element.base(), used as usize);
        }
        Some(element)
    }

    fn is_idle(&self, now: u64) -> bool {
        let state = self.state.lock();
        state.elements.is_unused() && now.saturating_sub(state.idle_since) >= IDLE_MS
    }
}

/// One element of an RMB, leased to a connection until this value is dropped.
pub(crate) struct RmbElement {
    rmb: Arc<Rmb>,
    index: RmbeIndex,
}

impl RmbElement {
    fn base(&self) -> usize {
        usize::from(self.index.zero_based()) * self.rmb.size.bytes() as usize
    }

    pub(crate) fn rmb(&self) -> &Arc<Rmb> {
        &self.rmb
    }

    pub(crate) fn index(&self) -> RmbeIndex {
        self.index
    }

    pub(crate) fn size(&self) -> BufSize {
        self.rmb.size
    }

    /// Payload bytes of the element.
    pub(crate) fn len(&self) -> u32 {
        self.rmb.size.bytes()
    }

    /// Copies `len` bytes at `offset` to the user; returns how many went.
    pub(crate) fn copy_to_iter(&self, offset: u32, len: usize, to: &mut IovIterDest<'_>) -> usize {
        self.rmb
            .pages
            .copy_to_iter(self.base() + offset as usize, len, to)
    }

    /// The byte at `offset`.
    pub(crate) fn byte_at(&self, offset: u32) -> u8 {
        let mut byte = [0];
        // An offset outside of the element, which the protocol rules out, reads as zero.
        let _ = self
            .rmb
            .pages
            .read(self.base() + offset as usize, &mut byte);
        byte[0]
    }

    /// Notes that the first `touched` bytes may not be zero: they are cleared before the next use.
    pub(crate) fn mark_used(&self, touched: u32) {
        let used = core::cmp::min(touched, self.len());
        let mut state = self.rmb.state.lock();
        if let Some(slot) = state.used.get_mut(usize::from(self.index.zero_based())) {
            *slot = core::cmp::max(*slot, used);
        }
    }
}

impl Drop for RmbElement {
    fn drop(&mut self) {
        let mut state = self.rmb.state.lock();
        state.elements.release(self.index);
        state.idle_since = now_ms();
    }
}

/// Memory of a send ring and its place in the pool.
pub(crate) struct SendBuffer {
    size: BufSize,
    pages: Arc<PageRun>,
    sge: Sge,
    in_use: Atomic<bool>,
    idle_since: Atomic<u64>,
    _charge: Charge,
}

/// A send ring, leased to a connection until this value is dropped.
pub(crate) struct SendRing(Arc<SendBuffer>);

impl SendRing {
    /// Bytes of the ring.
    pub(crate) fn len(&self) -> u32 {
        self.0.size.bytes()
    }

    /// The ring as work requests name it.
    pub(crate) fn sge(&self) -> Sge {
        self.0.sge
    }

    /// Copies `len` bytes from the user to `offset`; returns how many came.
    pub(crate) fn copy_from_iter(
        &self,
        offset: u32,
        len: usize,
        from: &mut IovIterSource<'_>,
    ) -> usize {
        self.0.pages.copy_from_iter(offset as usize, len, from)
    }
}

impl Drop for SendRing {
    fn drop(&mut self) {
        self.0.idle_since.store(now_ms(), Relaxed);
        // ORDERING: pairs with the Acquire of the next taker, who then owns the memory.
        self.0.in_use.store(false, Release);
    }
}

/// Pool of a link group. Dropping the registrations and mappings may sleep.
pub(crate) struct BufferPool {
    rmbs: KVec<(Arc<Rmb>, Arc<Mr>)>,
    rings: KVec<(Arc<SendBuffer>, DmaMapping)>,
}

/// An element, and the RMB it came from if that is new: its key is unknown to device and peer.
pub(crate) struct TakenElement {
    pub(crate) element: RmbElement,
    pub(crate) is_new_rmb: bool,
}

impl BufferPool {
    pub(crate) const fn new() -> Self {
        Self {
            rmbs: KVec::new(),
            rings: KVec::new(),
        }
    }

    /// Takes an element of `size`, or of a smaller size if memory is short.
    pub(crate) fn take_element(
        &mut self,
        net: &Arc<NetState>,
        link: &Link,
        size: BufSize,
    ) -> Result<TakenElement> {
        with_smaller_sizes(size, |size| self.take_element_of(net, link, size))
    }

    fn take_element_of(
        &mut self,
        net: &Arc<NetState>,
        link: &Link,
        size: BufSize,
    ) -> Result<TakenElement> {
        let mut in_use: u16 = 0;
        for (rmb, _) in self.rmbs.iter().filter(|(rmb, _)| rmb.size == size) {
            if let Some(element) = rmb.take() {
                return Ok(TakenElement {
                    element,
                    is_new_rmb: false,
                });
            }
            in_use = in_use.saturating_add(u16::from(rmb.state.lock().elements.used()));
        }
        if self.rmbs.len() >= MAX_RMBS {
            return Err(ENOSPC);
        }
        let (rmb, mr) = new_rmb(net, link, size, next_slab(size, in_use))?;
        let element = rmb.take().ok_or(ENOMEM)?;
        self.rmbs.push((rmb, mr), GFP_KERNEL)?;
        Ok(TakenElement {
            element,
            is_new_rmb: true,
        })
    }

    /// Takes a send ring of `size`, or of a smaller size if memory is short; says whether it is new.
    pub(crate) fn take_ring(
        &mut self,
        net: &Arc<NetState>,
        link: &Link,
        size: BufSize,
    ) -> Result<(SendRing, bool)> {
        with_smaller_sizes(size, |size| self.take_ring_of(net, link, size))
    }

    fn take_ring_of(
        &mut self,
        net: &Arc<NetState>,
        link: &Link,
        size: BufSize,
    ) -> Result<(SendRing, bool)> {
        for (buffer, _) in self.rings.iter().filter(|(buffer, _)| buffer.size == size) {
            // ORDERING: pairs with the Release of the last user.
            if !buffer.in_use.load(Acquire) {
                buffer.in_use.store(true, Relaxed);
                return Ok((SendRing(buffer.clone()), false));
            }
        }
        let device = link.device();
        let pages = PageRun::alloc(size.bytes() as usize, GFP_KERNEL, device.node())?;
        let pages = Arc::new(pages, GFP_KERNEL)?;
        let mapping = DmaMapping::new(device, pages.clone(), Direction::ToDevice)?;
        let sge = link.pd.sge(&mapping, 0, pages.len())?;
        let buffer = Arc::new(
            SendBuffer {
                size,
                _charge: net.charge(pages.len()),
                pages,
                sge,
                in_use: Atomic::new(true),
                idle_since: Atomic::new(now_ms()),
            },
            GFP_KERNEL,
        )?;
        self.rings.push((buffer.clone(), mapping), GFP_KERNEL)?;
        Ok((SendRing(buffer), true))
    }

    /// Bytes of all send rings and of all RMBs.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let rings = self.rings.iter().map(|(ring, _)| ring.pages.len()).sum();
        let rmbs = self.rmbs.iter().map(|(rmb, _)| rmb.pages.len()).sum();
        (rings, rmbs)
    }

    /// The registration of an RMB of this pool.
    pub(crate) fn registration(&self, rmb: &Arc<Rmb>) -> Option<Arc<Mr>> {
        self.rmbs
            .iter()
            .find(|(entry, _)| Arc::ptr_eq(entry, rmb))
            .map(|(_, mr)| mr.clone())
    }

    /// Takes an RMB out of the pool, for instance because its key could not be exchanged.
    pub(crate) fn discard(&mut self, rmb: &Arc<Rmb>) {
        self.rmbs.retain(|(entry, _)| !Arc::ptr_eq(entry, rmb));
    }

    /// Takes out the RMBs that were idle for long, as far as there is memory for their list; the
    /// peer is to be told before they are dropped.
    pub(crate) fn take_idle_rmbs(&mut self, now: u64) -> KVec<(Arc<Rmb>, Arc<Mr>)> {
        let mut idle = KVec::new();
        let mut index = 0;
        while let Some((rmb, _)) = self.rmbs.get(index) {
            if rmb.is_idle(now) {
                if idle.reserve(1, GFP_KERNEL).is_err() {
                    break;
                }
                if let Ok(entry) = self.rmbs.remove(index) {
                    let _ = idle.push_within_capacity(entry);
                }
            } else {
                index += 1;
            }
        }
        idle
    }

    /// Frees the send rings that were idle for long.
    pub(crate) fn trim_rings(&mut self, now: u64) {
        self.rings.retain(|(buffer, _)| {
            // ORDERING: pairs with the Release of the last user.
            buffer.in_use.load(Acquire)
                || now.saturating_sub(buffer.idle_since.load(Relaxed)) < IDLE_MS
        });
    }
}

/// Allocates, maps and describes an RMB of `count` elements, or of fewer if memory is short.
fn new_rmb(
    net: &Arc<NetState>,
    link: &Link,
    size: BufSize,
    count: u8,
) -> Result<(Arc<Rmb>, Arc<Mr>)> {
    let element = size.bytes() as usize;
    let device = link.device();
    let limit = device.max_fast_reg_pages() as usize * kernel::page::PAGE_SIZE / element;
    let mut count = core::cmp::max(core::cmp::min(usize::from(count), limit), 1);
    loop {
        let bytes = (element * count).next_power_of_two();
        match PageRun::alloc(bytes, GFP_KERNEL, device.node()) {
            Ok(pages) => {
                let pages = Arc::new(pages, GFP_KERNEL)?;
                let mapping = DmaMapping::new(device, pages.clone(), Direction::FromDevice)?;
                let mapping = Arc::new(mapping, GFP_KERNEL)?;
                let mr = Mr::new(&link.pd, &mapping)?;
                let count = u8::try_from(count).map_err(|_| EINVAL)?;
                return Ok((Rmb::new(net, pages, &mr, size, count)?, mr));
            }
            Err(error) if count == 1 => return Err(error),
            Err(_) => count /= 2,
        }
    }
}

/// Tries `take` with `size`, then with each smaller size while memory is short.
fn with_smaller_sizes<T>(size: BufSize, mut take: impl FnMut(BufSize) -> Result<T>) -> Result<T> {
    let mut code = size.code();
    loop {
        let Some(size) = BufSize::from_code(code) else {
            return Err(EINVAL);
        };
        match take(size) {
            Err(error) if error == ENOMEM && code > 0 => code -= 1,
            result => return result,
        }
    }
}

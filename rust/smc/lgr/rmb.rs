// SPDX-License-Identifier: GPL-2.0

//! RMBs of a link group and their elements.
//!
//! One registration with the device and one exchange of its key with the peer serve all elements of
//! an RMB. Taking an element happens in process context; giving it back may happen anywhere, so it
//! only changes marks.

use kernel::{
    iov::IovIterDest,
    prelude::*,
    sync::Arc, //
};
use smc_kapi::{
    mem::{
        Direction,
        PageRun,
        Payer, //
    },
    module::now_ms,
    new_spinlock_bh,
    rdma::Mr,
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
        elements_within,
        ElementMap, //
    },
};

use super::memory::{
    map_payload,
    BufferType, //
};
use crate::smc::{
    link::Link,
    netns::{
        Charge,
        NetState, //
    },
};

/// A remote memory buffer, cut into elements of one size.
#[pin_data]
pub(crate) struct Rmb {
    size: BufSize,
    pages: Arc<PageRun>,
    /// The memory is charged to it, so only its sockets get elements.
    payer: Payer,
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
        payer: &Payer,
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
                payer: payer.clone(),
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

    /// Whether its elements are of this size and paid for by `payer`.
    pub(super) fn suits(&self, size: BufSize, payer: &Payer) -> bool {
        self.size == size && self.payer == *payer
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.pages.len()
    }

    /// Elements that are taken.
    pub(super) fn in_use(&self) -> u8 {
        self.state.lock().elements.used()
    }

    pub(crate) fn rkey(&self) -> Rkey {
        self.rkey
    }

    pub(crate) fn address(&self) -> VirtAddr {
        self.address
    }

    /// Takes a free element and clears what its last user may have left. May sleep.
    pub(super) fn take(self: &Arc<Self>) -> Option<RmbElement> {
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

    /// Whether nobody has used any element for `idle_ms` milliseconds.
    pub(super) fn is_idle(&self, now: u64, idle_ms: u64) -> bool {
        let state = self.state.lock();
        state.elements.is_unused() && now.saturating_sub(state.idle_since) >= idle_ms
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

/// Allocates, maps and describes an RMB of `count` elements, or of fewer if memory is short.
pub(super) fn new_rmb(
    net: &Arc<NetState>,
    link: &Link,
    kind: BufferType,
    size: BufSize,
    payer: &Payer,
    count: u8,
) -> Result<(Arc<Rmb>, Arc<Mr>)> {
    let element = size.bytes() as usize;
    let device = link.device();
    let limit = device.max_fast_reg_pages() as usize * kernel::page::PAGE_SIZE / element;
    let mut count = elements_within(usize::from(count), limit);
    loop {
        match kind.alloc(element * count, device.node(), payer) {
            Ok(pages) => {
                let mapping = map_payload(device, &pages, Direction::FromDevice)?;
                let mr = Mr::new(&link.pd, &mapping)?;
                let count = u8::try_from(count).map_err(|_| EINVAL)?;
                return Ok((Rmb::new(net, pages, payer, &mr, size, count)?, mr));
            }
            Err(error) if count == 1 => return Err(error),
            Err(_) => count /= 2,
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! The buffers of a link group: its RMBs, and send rings.
//!
//! Buffers go back to the pool when a connection is done with them and to the page
//! allocator when they have not been used for a while.
//!
//! Their memory is charged to the socket that they were made for, until it is freed. They are
//! therefore given only to sockets of the same payer: nobody pays for what others use.
//!
//! Taking and trimming happen in process context under the pool's mutex. Giving back may happen
//! anywhere, so it only changes marks.

use kernel::{
    iov::IovIterSource,
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
        PageRun,
        Payer, //
    },
    module::now_ms,
    rdma::{
        Mr,
        Sge, //
    }, //
};
use smc_proto::{
    ids::BufSize,
    lgr::next_slab, //
};

use super::{
    memory::{
        map_payload,
        BufferType, //
    },
    rmb::{
        new_rmb,
        Rmb,
        RmbElement, //
    }, //
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

/// The buffers that a connection is to have, and who pays for them.
pub(crate) struct Wish {
    /// Size of the send ring.
    pub(crate) send: BufSize,
    /// Size of the RMB element.
    pub(crate) receive: BufSize,
    pub(crate) payer: Payer,
}

/// Memory of a send ring and its place in the pool.
pub(crate) struct SendBuffer {
    size: BufSize,
    payer: Payer,
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

/// What keeps the memory of a send ring within the device's reach.
struct RingMapping {
    _mapping: Arc<DmaMapping>,
    /// The region that work requests name where the device does not see the ring as one range.
    _region: Option<Arc<Mr>>,
}

/// Pool of a link group. Dropping the registrations and mappings may sleep.
pub(crate) struct BufferPool {
    kind: BufferType,
    rmbs: KVec<(Arc<Rmb>, Arc<Mr>)>,
    rings: KVec<(Arc<SendBuffer>, RingMapping)>,
}

/// An element, and the RMB it came from if that is new: its key is unknown to device and peer.
pub(crate) struct TakenElement {
    pub(crate) element: RmbElement,
    pub(crate) is_new_rmb: bool,
}

impl BufferPool {
    pub(crate) const fn new(kind: BufferType) -> Self {
        Self {
            kind,
            rmbs: KVec::new(),
            rings: KVec::new(),
        }
    }

    /// Takes an element of the size wished for, or of a smaller size if memory is short.
    pub(crate) fn take_element(
        &mut self,
        net: &Arc<NetState>,
        link: &Link,
        wish: &Wish,
    ) -> Result<TakenElement> {
        with_smaller_sizes(wish.receive, |size| {
            self.take_element_of(net, link, size, &wish.payer)
        })
    }

    fn take_element_of(
        &mut self,
        net: &Arc<NetState>,
        link: &Link,
        size: BufSize,
        payer: &Payer,
    ) -> Result<TakenElement> {
        let mut in_use: u16 = 0;
        for (rmb, _) in self.rmbs.iter().filter(|(rmb, _)| rmb.suits(size, payer)) {
            if let Some(element) = rmb.take() {
                return Ok(TakenElement {
                    element,
                    is_new_rmb: false,
                });
            }
            in_use = in_use.saturating_add(u16::from(rmb.in_use()));
        }
        if self.rmbs.len() >= MAX_RMBS {
            return Err(ENOSPC);
        }
        let (rmb, mr) = new_rmb(net, link, self.kind, size, payer, next_slab(size, in_use))?;
        let element = rmb.take().ok_or(ENOMEM)?;
        self.rmbs.push((rmb, mr), GFP_KERNEL)?;
        Ok(TakenElement {
            element,
            is_new_rmb: true,
        })
    }

    /// Takes a send ring of the size wished for, or of a smaller size if memory is short; says whether
    /// it is new.
    pub(crate) fn take_ring(
        &mut self,
        net: &Arc<NetState>,
        link: &Link,
        wish: &Wish,
    ) -> Result<(SendRing, bool)> {
        with_smaller_sizes(wish.send, |size| {
            self.take_ring_of(net, link, size, &wish.payer)
        })
    }

    fn take_ring_of(
        &mut self,
        net: &Arc<NetState>,
        link: &Link,
        size: BufSize,
        payer: &Payer,
    ) -> Result<(SendRing, bool)> {
        let suits = |buffer: &SendBuffer| buffer.size == size && buffer.payer == *payer;
        for (buffer, _) in self.rings.iter().filter(|(buffer, _)| suits(buffer)) {
            // ORDERING: pairs with the Release of the last user.
            if !buffer.in_use.load(Acquire) {
                buffer.in_use.store(true, Relaxed);
                return Ok((SendRing(buffer.clone()), false));
            }
        }
        let (buffer, mapping) = new_ring(net, link, self.kind, size, payer)?;
        self.rings.push((buffer.clone(), mapping), GFP_KERNEL)?;
        Ok((SendRing(buffer), true))
    }

    /// Bytes of all send rings and of all RMBs.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let rings = self.rings.iter().map(|(ring, _)| ring.pages.len()).sum();
        let rmbs = self.rmbs.iter().map(|(rmb, _)| rmb.bytes()).sum();
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
            if rmb.is_idle(now, IDLE_MS) {
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

    /// Puts back an RMB that the peer could not be told about.
    pub(crate) fn put_back(&mut self, entry: (Arc<Rmb>, Arc<Mr>)) {
        // Without memory it goes all the same; the peer keeps a key that leads nowhere.
        let _ = self.rmbs.push(entry, GFP_KERNEL);
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

/// Allocates a send ring and makes it accessible to the link. May sleep.
fn new_ring(
    net: &Arc<NetState>,
    link: &Link,
    kind: BufferType,
    size: BufSize,
    payer: &Payer,
) -> Result<(Arc<SendBuffer>, RingMapping)> {
    let device = link.device();
    let pages = kind.alloc(size.bytes() as usize, device.node(), payer)?;
    let mapping = map_payload(device, &pages, Direction::ToDevice)?;
    let (sge, region) = if pages.is_contiguous() {
        (link.pd.sge(&mapping, 0, pages.len())?, None)
    } else {
        let region = Mr::new(&link.pd, &mapping)?;
        link.register_ring(&region)?;
        (region.sge(0, pages.len())?, Some(region))
    };
    let buffer = Arc::new(
        SendBuffer {
            size,
            payer: payer.clone(),
            _charge: net.charge(pages.len()),
            pages,
            sge,
            in_use: Atomic::new(true),
            idle_since: Atomic::new(now_ms()),
        },
        GFP_KERNEL,
    )?;
    let mapping = RingMapping {
        _mapping: mapping,
        _region: region,
    };
    Ok((buffer, mapping))
}

/// Tries `take` with `size`, then with each smaller size while memory is short or the device cannot
/// register so much.
fn with_smaller_sizes<T>(size: BufSize, mut take: impl FnMut(BufSize) -> Result<T>) -> Result<T> {
    let mut code = size.code();
    loop {
        let Some(size) = BufSize::from_code(code) else {
            return Err(EINVAL);
        };
        match take(size) {
            Err(error) if (error == ENOMEM || error == E2BIG) && code > 0 => code -= 1,
            result => return result,
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! What calls, buffers and messages are counted by: the counters of `SMC_NETLINK_GET_STATS`, and
//! those that a busy connection adds to for each message.
//!
//! Each CPU has counters of its own, on cache lines of its own; their sums are what is shown. A
//! thread that moves to another CPU between the choice of a counter and the addition does no harm:
//! the additions are atomic.

use kernel::{
    cpu::{
        nr_cpu_ids,
        CpuId, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};
use smc_proto::{
    ids::Version,
    lgr::Role,
    size_class::{
        size_class,
        SIZE_CLASSES, //
    },
};

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dir {
    /// Sent; buffers are send rings.
    Tx,
    /// Received; buffers are RMB elements.
    Rx,
}

/// What is counted for both directions.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Item {
    /// A call wanted more than the peer's buffer holds.
    SmallPeer,
    /// A call wanted more than the own buffer holds; reading, less than was there.
    Small,
    /// The peer's buffer was full.
    FullPeer,
    /// The own buffer was full.
    Full,
    /// A connection got a buffer that was there.
    Reuse,
    /// A connection got a new buffer.
    Alloc,
    /// A connection got a smaller buffer than it asked for.
    Downgrade,
    /// Payload bytes.
    Bytes,
    /// Calls.
    Calls,
    /// Bytes of the buffers that connections hold now.
    InUse,
}

/// Number of [`Item`]s.
const ITEMS: usize = 10;
/// Buffers and payloads by size class, then the items.
const PER_DIR: usize = 2 * SIZE_CLASSES as usize + ITEMS;
const COUNTERS: usize = 2 * PER_DIR + 16;

/// One counter.
#[derive(Clone, Copy)]
pub(crate) struct Count(usize);

impl Count {
    /// Handshakes won.
    pub(crate) const fn success(role: Role, version: Version) -> Self {
        let role = match role {
            Role::Client => 0,
            Role::Server => 2,
        };
        let version = match version {
            Version::V1 => 0,
            Version::V2 => 1,
        };
        Self(2 * PER_DIR + role + version)
    }

    /// Calls of `splice()` from a socket.
    pub(crate) const SPLICE: Self = Self(2 * PER_DIR + 4);
    /// Times that `TCP_CORK` was taken away.
    pub(crate) const CORK: Self = Self(2 * PER_DIR + 5);
    /// Times that `TCP_NODELAY` was set.
    pub(crate) const NODELAY: Self = Self(2 * PER_DIR + 6);
    /// Calls for urgent data.
    pub(crate) const URGENT: Self = Self(2 * PER_DIR + 7);
    /// Handshakes of clients that broke the connection.
    pub(crate) const CLIENT_ERRORS: Self = Self(2 * PER_DIR + 8);
    /// Handshakes of servers that broke the connection.
    pub(crate) const SERVER_ERRORS: Self = Self(2 * PER_DIR + 9);
    /// CDC messages posted.
    pub(crate) const CDC_SENT: Self = Self(2 * PER_DIR + 10);
    /// CDC messages that named a live connection.
    pub(crate) const CDC_RECEIVED: Self = Self(2 * PER_DIR + 11);
    /// CDC messages that only moved the consumer cursor.
    pub(crate) const WINDOW_UPDATES: Self = Self(2 * PER_DIR + 12);
    /// RDMA writes posted.
    pub(crate) const RDMA_WRITES: Self = Self(2 * PER_DIR + 13);
    /// Payload bytes in these writes.
    pub(crate) const RDMA_WRITE_BYTES: Self = Self(2 * PER_DIR + 14);
    /// Times a connection found no free send slot on its link.
    pub(crate) const SLOT_WAITS: Self = Self(2 * PER_DIR + 15);

    const fn base(dir: Dir) -> usize {
        match dir {
            Dir::Tx => 0,
            Dir::Rx => PER_DIR,
        }
    }

    /// An item of one direction.
    pub(crate) const fn item(dir: Dir, item: Item) -> Self {
        Self(Self::base(dir) + 2 * SIZE_CLASSES as usize + item as usize)
    }

    /// Buffers of a size class.
    pub(crate) const fn buffers(dir: Dir, class: u8) -> Self {
        Self(Self::base(dir) + class as usize)
    }

    /// Calls of a size class.
    pub(crate) const fn payloads(dir: Dir, class: u8) -> Self {
        Self(Self::base(dir) + SIZE_CLASSES as usize + class as usize)
    }
}

/// The counters of one CPU.
#[repr(align(64))]
struct PerCpu([Atomic<u64>; COUNTERS]);

/// The counters of a network namespace. Hosts may have thousands of CPUs, and no long stretch of
/// memory left.
pub(crate) struct Traffic(KVVec<PerCpu>);

impl Traffic {
    pub(super) fn new() -> Result<Self> {
        let mut cpus = KVVec::with_capacity(nr_cpu_ids() as usize, GFP_KERNEL)?;
        for _ in 0..nr_cpu_ids() {
            cpus.push(PerCpu([const { Atomic::new(0) }; COUNTERS]), GFP_KERNEL)?;
        }
        Ok(Self(cpus))
    }

    /// Adds to a counter; a level falls by adding the two's complement. Any context.
    pub(crate) fn add(&self, count: Count, n: u64) {
        let cpu = CpuId::current().as_u32() as usize;
        if let Some(counter) = self.0.get(cpu).and_then(|own| own.0.get(count.0)) {
            let _ = counter.fetch_add(n, Relaxed);
        }
    }

    /// Adds one to a counter. Any context.
    pub(crate) fn inc(&self, count: Count) {
        self.add(count, 1);
    }

    /// The value over all CPUs.
    pub(crate) fn total(&self, count: Count) -> u64 {
        self.0
            .iter()
            .filter_map(|cpu| cpu.0.get(count.0))
            .fold(0, |sum, counter| sum.wrapping_add(counter.load(Relaxed)))
    }

    /// Counts a call: `size` is what it is classed by, `done` the bytes that went, 0 for none or an
    /// error.
    pub(crate) fn call(&self, dir: Dir, size: usize, done: usize) {
        self.inc(Count::item(dir, Item::Calls));
        if done == 0 {
            return;
        }
        if let Some(class) = size_class(size as u64) {
            self.inc(Count::payloads(dir, class));
        }
        self.add(Count::item(dir, Item::Bytes), done as u64);
    }

    /// Counts a buffer of `bytes` that a connection gets; `wanted` bytes were asked for.
    pub(crate) fn buffer(&self, dir: Dir, bytes: u32, wanted: u32, is_new: bool) {
        let how = if is_new { Item::Alloc } else { Item::Reuse };
        self.inc(Count::item(dir, how));
        if bytes < wanted {
            self.inc(Count::item(dir, Item::Downgrade));
        }
        if let Some(class) = size_class(u64::from(bytes)) {
            self.inc(Count::buffers(dir, class));
        }
    }

    /// A connection has a buffer of `bytes` from now on.
    pub(crate) fn buffer_used(&self, dir: Dir, bytes: u32) {
        self.add(Count::item(dir, Item::InUse), u64::from(bytes));
    }

    /// A connection gives a buffer of `bytes` back.
    pub(crate) fn buffer_returned(&self, dir: Dir, bytes: u32) {
        let bytes = u64::from(bytes).wrapping_neg();
        self.add(Count::item(dir, Item::InUse), bytes);
    }
}

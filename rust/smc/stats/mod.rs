// SPDX-License-Identifier: GPL-2.0

//! Counters of one network namespace, and the tables of fallback reasons.
//!
//! Counters are relaxed atomics: they order nothing and may be read at any time, from any context.

mod traffic;

use kernel::{
    prelude::*,
    seq_file::SeqFile,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};
use smc_kapi::{
    new_spinlock_bh,
    sync::SpinLockBh, //
};
use smc_proto::reason::DeclineReason;

pub(crate) use traffic::{
    Count,
    Dir,
    Item,
    Traffic, //
};

/// A count that only grows.
pub(crate) struct Counter(Atomic<u64>);

impl Counter {
    const fn new() -> Self {
        Self(Atomic::new(0))
    }

    pub(crate) fn add(&self, n: u64) {
        let _ = self.0.fetch_add(n, Relaxed);
    }

    pub(crate) fn inc(&self) {
        self.add(1);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A level that rises and falls.
pub(crate) struct Gauge(Atomic<i64>);

impl Gauge {
    const fn new() -> Self {
        Self(Atomic::new(0))
    }

    pub(crate) fn add(&self, n: i64) {
        let _ = self.0.fetch_add(n, Relaxed);
    }

    pub(crate) fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// Which side of the connection fell back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The side that called `connect()`.
    Client,
    /// The side that called `accept()`.
    Server,
}

impl Side {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Server => "server",
        }
    }
}

/// How often one side stayed on TCP for one reason.
#[derive(Clone, Copy)]
pub(crate) struct FallbackCount {
    pub(crate) side: Side,
    pub(crate) reason: DeclineReason,
    pub(crate) count: u64,
}

/// Reasons of a side that are told apart; later ones count in the total only.
const FALLBACK_REASONS: usize = 36;

/// The reasons of both sides, in the order in which they came up.
struct Fallbacks {
    table: KVec<FallbackCount>,
    clients: u64,
    servers: u64,
}

/// Counters of one network namespace.
#[pin_data]
pub(crate) struct Stats {
    /// Connections that run over SMC-R now.
    pub(crate) active: Gauge,
    /// Connections that ever came to run over SMC-R.
    pub(crate) smcr: Counter,
    /// Connections that stayed on TCP.
    pub(crate) fallback: Counter,
    /// Handshakes that ended with neither SMC-R nor TCP.
    pub(crate) handshake_errors: Counter,
    /// CDC messages that broke the protocol; each one ended its connection.
    pub(crate) cdc_violations: Counter,
    /// LLC messages posted.
    pub(crate) llc_sent: Counter,
    /// LLC messages received.
    pub(crate) llc_received: Counter,
    /// Link groups set up.
    pub(crate) first_contacts: Counter,
    /// Buffer memory held: send rings, RMBs and link buffers, bytes.
    pub(crate) memory: Gauge,
    /// Calls, buffers and messages.
    pub(crate) traffic: Traffic,
    #[pin]
    fallbacks: SpinLockBh<Fallbacks>,
}

impl Stats {
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            active: Gauge::new(),
            smcr: Counter::new(),
            fallback: Counter::new(),
            handshake_errors: Counter::new(),
            cdc_violations: Counter::new(),
            llc_sent: Counter::new(),
            llc_received: Counter::new(),
            first_contacts: Counter::new(),
            memory: Gauge::new(),
            traffic: Traffic::new()?,
            fallbacks <- new_spinlock_bh!(
                Fallbacks {
                    table: KVec::with_capacity(2 * FALLBACK_REASONS, GFP_KERNEL)?,
                    clients: 0,
                    servers: 0,
                },
                "smc_fallback_reasons"
            ),
        }? Error)
    }

    /// Counts one connection that stays on TCP.
    pub(crate) fn count_fallback(&self, side: Side, reason: DeclineReason) {
        self.fallback.inc();
        let mut fallbacks = self.fallbacks.lock();
        match side {
            Side::Client => fallbacks.clients += 1,
            Side::Server => fallbacks.servers += 1,
        }
        let mut same_side = 0;
        for entry in fallbacks.table.iter_mut().filter(|e| e.side == side) {
            if entry.reason == reason {
                entry.count = entry.count.saturating_add(1);
                return;
            }
            same_side += 1;
        }
        if same_side < FALLBACK_REASONS {
            // The capacity was taken at creation.
            let _ = fallbacks.table.push_within_capacity(FallbackCount {
                side,
                reason,
                count: 1,
            });
        }
    }

    /// Counts a handshake that ended with neither SMC-R nor TCP.
    pub(crate) fn count_handshake_error(&self, side: Side) {
        self.handshake_errors.inc();
        self.traffic.inc(match side {
            Side::Client => Count::CLIENT_ERRORS,
            Side::Server => Count::SERVER_ERRORS,
        });
    }

    /// The `index`-th reason of a side.
    pub(crate) fn fallback_of(&self, side: Side, index: usize) -> Option<FallbackCount> {
        let fallbacks = self.fallbacks.lock();
        let mut entries = fallbacks.table.iter().filter(|entry| entry.side == side);
        entries.nth(index).copied()
    }

    /// All fallbacks of a side.
    pub(crate) fn fallbacks_of(&self, side: Side) -> u64 {
        let fallbacks = self.fallbacks.lock();
        match side {
            Side::Client => fallbacks.clients,
            Side::Server => fallbacks.servers,
        }
    }

    /// Writes all counters, one `key value` a line.
    pub(crate) fn show(&self, m: &SeqFile) {
        kernel::seq_print!(m, "connections_active {}\n", self.active.get());
        let counters = [
            ("connections_smcr", self.smcr.get()),
            ("handshake_errors", self.handshake_errors.get()),
            ("cdc_sent", self.traffic.total(Count::CDC_SENT)),
            ("cdc_received", self.traffic.total(Count::CDC_RECEIVED)),
            ("cdc_violations", self.cdc_violations.get()),
            ("window_updates", self.traffic.total(Count::WINDOW_UPDATES)),
            ("rdma_writes", self.traffic.total(Count::RDMA_WRITES)),
            (
                "rdma_write_bytes",
                self.traffic.total(Count::RDMA_WRITE_BYTES),
            ),
            ("llc_sent", self.llc_sent.get()),
            ("llc_received", self.llc_received.get()),
            ("first_contacts", self.first_contacts.get()),
            ("slot_waits", self.traffic.total(Count::SLOT_WAITS)),
        ];
        for (name, count) in counters {
            kernel::seq_print!(m, "{} {}\n", name, count);
        }
        kernel::seq_print!(m, "memory_bytes {}\n", self.memory.get());
        kernel::seq_print!(m, "fallback_total {}\n", self.fallback.get());
        let mut index = 0;
        // The entry is copied out so that no lock is held while the page is written.
        while let Some(entry) = self.fallback_entry(index) {
            kernel::seq_print!(
                m,
                "fallback {:#010x} {} {} # {}\n",
                entry.reason.0,
                entry.side.name(),
                entry.count,
                entry.reason.describe(),
            );
            index += 1;
        }
    }

    fn fallback_entry(&self, index: usize) -> Option<FallbackCount> {
        self.fallbacks.lock().table.get(index).copied()
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Sending on a link: the memory of the message slots, and who is told when one returns.
//!
//! Which slots are free and who waits for one is counted by [`SendSlots`]; nobody sleeps for a slot.

use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    },
};
use smc_kapi::{
    mem::{
        Direction,
        DmaMapping,
        PageRun,
        Payer, //
    },
    rdma::{
        Completion,
        Pd,
        SendFlags,
        SendList,
        Sge, //
    },
};
use smc_proto::{
    ids::Rkey,
    send_slots::{
        SendSlots,
        Slot,
        CDC_SLOTS,
        LLC_SLOTS,
        SLOTS, //
    },
    tx_ring::WritePlan, //
};

use super::{
    rx::RECEIVE_BYTES,
    Link,
    WrId, //
};
use crate::smc::{
    conn::Connection,
    netns::{
        Charge,
        NetState, //
    },
};

/// Bytes of a CDC slot: a message has 44, a cache line keeps neighbours apart.
const CDC_SLOT_BYTES: u32 = 64;
/// Bytes of an LLC slot: an answer may repeat what was received.
const LLC_SLOT_BYTES: u32 = RECEIVE_BYTES as u32;
/// RDMA writes that may go ahead of one message: either ring may wrap.
const WRITES_PER_MESSAGE: u32 = 3;
/// Registrations of memory regions that may be queued.
pub(crate) const REGISTRATIONS: u32 = 2;
/// Work requests of the send queue.
pub(crate) const SEND_QUEUE_DEPTH: u32 =
    CDC_SLOTS as u32 * (1 + WRITES_PER_MESSAGE) + LLC_SLOTS as u32;
/// Work requests of one post: the writes and the message.
const BATCH: usize = WRITES_PER_MESSAGE as usize + 1;

/// DMA memory of the send slots.
pub(crate) struct SendMemory {
    mapping: DmaMapping,
    _charge: Charge,
}

impl SendMemory {
    pub(super) fn new(pd: &Pd, net: &Arc<NetState>) -> Result<Self> {
        let device = pd.device();
        let (offset, len) = slot_range(u32::from(SLOTS) - 1);
        let bytes = (offset + len).next_power_of_two() as usize;
        let pages = PageRun::alloc(bytes, GFP_KERNEL, device.node(), &Payer::NOBODY)?;
        let pages = Arc::new(pages, GFP_KERNEL)?;
        Ok(Self {
            _charge: net.charge(pages.len()),
            mapping: DmaMapping::new(device, pages, Direction::ToDevice)?,
        })
    }
}

/// Offset and length of a slot.
const fn slot_range(slot: u32) -> (u32, u32) {
    const CDC: u32 = CDC_SLOTS as u32;
    if slot < CDC {
        (slot * CDC_SLOT_BYTES, CDC_SLOT_BYTES)
    } else {
        let offset = CDC * CDC_SLOT_BYTES + (slot - CDC) * LLC_SLOT_BYTES;
        (offset, LLC_SLOT_BYTES)
    }
}

/// Who is told when the message in a slot has been acknowledged.
pub(crate) enum SlotOwner {
    /// A CDC message, behind RDMA writes of so many bytes.
    Connection(Arc<Connection>, u32),
    /// An LLC message.
    Llc,
}

/// The send slots of a link, with who is told about each.
pub(crate) struct OwnedSlots {
    table: SendSlots,
    owners: [Option<SlotOwner>; SLOTS as usize],
    closed: bool,
}

impl OwnedSlots {
    /// Slots for `limit` messages in all, as far as there are so many.
    pub(super) fn new(limit: u32) -> Self {
        Self {
            table: SendSlots::with_limit(limit),
            owners: [const { None }; SLOTS as usize],
            closed: false,
        }
    }

    /// Takes a free slot of the owner's kind; a connection waits if there is none.
    fn take(&mut self, owner: SlotOwner) -> Option<Slot> {
        let slot = match &owner {
            SlotOwner::Connection(conn, _) => self.table.take_cdc(conn.index()),
            SlotOwner::Llc => self.table.take_llc(),
        }?;
        *self.owners.get_mut(slot.index())? = Some(owner);
        Some(slot)
    }

    fn release(&mut self, slot: Slot) -> Option<SlotOwner> {
        self.table.release(slot);
        self.owners.get_mut(slot.index())?.take()
    }

    /// Refuses new messages and gives back all owners, to be dropped outside the lock.
    pub(super) fn close(&mut self) -> [Option<SlotOwner>; SLOTS as usize] {
        self.closed = true;
        self.table = SendSlots::new();
        core::mem::replace(&mut self.owners, [const { None }; SLOTS as usize])
    }
}

/// Where the RDMA writes of a connection go from and to.
pub(crate) struct WriteTarget {
    /// The send ring.
    pub(crate) local: Sge,
    /// Address of the peer's RMB element.
    pub(crate) remote: u64,
    /// Remote key of the peer's RMB.
    pub(crate) rkey: Rkey,
}

/// Why there is no slot for a message.
pub(crate) enum NoSlot {
    /// The connection is marked and pushed when a slot returns.
    AllInUse,
    /// The link is being closed.
    LinkClosed,
}

impl Link {
    /// Takes a slot for a CDC message of `conn` behind RDMA writes of `bytes` bytes. Any context
    /// that may take BH spinlocks.
    pub(crate) fn take_slot(&self, conn: &Arc<Connection>, bytes: u32) -> Result<Slot, NoSlot> {
        let mut slots = self.tx.lock();
        if slots.closed {
            return Err(NoSlot::LinkClosed);
        }
        slots
            .take(SlotOwner::Connection(conn.clone(), bytes))
            .ok_or(NoSlot::AllInUse)
    }

    /// Posts a CDC message behind the RDMA writes of `plan`, in one go; returns how many there are. The
    /// caller holds the connection's lock, which keeps its posts in order.
    ///
    /// # Errors
    ///
    /// Any error means that the link is broken.
    pub(crate) fn post_cdc(
        &self,
        slot: Slot,
        message: &[u8],
        plan: Option<&WritePlan>,
        target: &WriteTarget,
    ) -> Result<u64> {
        let mut list = SendList::<BATCH>::new();
        let mut writes = 0;
        if let Some(plan) = plan {
            for chunk in plan.chunks().iter().filter(|chunk| chunk.len != 0) {
                list.push_write(
                    target.local.slice(chunk.src_offset, chunk.len)?,
                    target.remote.wrapping_add(u64::from(chunk.dst_offset)),
                    target.rkey.0,
                    WrId::Write.encode(),
                    SendFlags::NONE,
                )?;
                writes += 1;
            }
        }
        self.post_message(list, slot, message).map(|()| writes)
    }

    /// Posts an LLC message.
    ///
    /// # Errors
    ///
    /// `ENOBUFS` when no slot is free, `ENOLINK` when the link is closed or broken.
    pub(crate) fn post_llc(&self, message: &[u8]) -> Result {
        let slot = {
            let mut slots = self.tx.lock();
            if slots.closed {
                return Err(ENOLINK);
            }
            slots.take(SlotOwner::Llc).ok_or(ENOBUFS)?
        };
        self.post_message(SendList::<BATCH>::new(), slot, message)
    }

    fn post_message(&self, mut list: SendList<'_, BATCH>, slot: Slot, message: &[u8]) -> Result {
        let posted = self.fill_and_post(&mut list, slot, message);
        if posted.is_err() {
            let owner = self.tx.lock().release(slot);
            drop(owner);
        }
        posted
    }

    fn fill_and_post(&self, list: &mut SendList<'_, BATCH>, slot: Slot, message: &[u8]) -> Result {
        // CAST: there are 16.
        let slot = slot.index() as u32;
        let (offset, _) = slot_range(slot);
        let offset = offset as usize;
        let memory = &self.tx_memory.mapping;
        memory.pages().write(offset, message)?;
        memory.sync_for_device(offset, message.len());
        list.push_send(
            self.pd.sge(memory, offset, message.len())?,
            WrId::Send(slot).encode(),
            SendFlags::SIGNALED,
        )?;
        self.qp().post_send(list)?;
        Ok(())
    }

    /// Messages of ours that are not acknowledged.
    pub(crate) fn unacknowledged(&self) -> u32 {
        self.tx.lock().table.in_use()
    }

    /// Waits a moment until no message is on its way. May sleep.
    pub(crate) fn wait_sent(&self) {
        for _ in 0..100 {
            if self.tx.lock().table.is_idle() {
                return;
            }
            fsleep(Delta::from_millis(1));
        }
    }

    /// A message was acknowledged, or failed: its slot is free. BH context.
    pub(super) fn sent(&self, index: u32, completion: &Completion) {
        let Some(slot) = Slot::from_index(index) else {
            return;
        };
        let owner = self.tx.lock().release(slot);
        if !completion.ok() {
            self.failed(completion);
            return;
        }
        // Who waits comes first: a connection that always has more to send would keep the slot.
        self.serve_waiting();
        if let Some(SlotOwner::Connection(conn, bytes)) = owner {
            conn.completed(bytes);
        }
    }

    /// Pushes the connections that wait for a slot, as long as there is one.
    fn serve_waiting(&self) {
        let Some(group) = self.group() else {
            return;
        };
        loop {
            let Some(index) = self.tx.lock().table.next_waiting() else {
                return;
            };
            if let Some(conn) = group.connection(index) {
                conn.push();
            }
        }
    }
}

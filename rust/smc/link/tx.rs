// SPDX-License-Identifier: GPL-2.0

//! Sending on a link: message slots, and the list of connections that wait for one.
//!
//! A CDC message carries absolute cursors, so a connection never needs more than one that waits:
//! where no slot is free, the connection is marked and sends its newest cursors when a slot
//! returns. Nobody sleeps for a slot.

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
        PageRun, //
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
    tx_ring::WritePlan, //
};

use super::{
    rx::RECEIVE_BYTES,
    Link,
    WrId, //
};
use crate::smc::{
    conn::Connection,
    lgr::LinkGroup,
    netns::{
        Charge,
        NetState, //
    },
};

/// CDC messages that may be unacknowledged on a link.
const CDC_SLOTS: u32 = 14;
/// LLC messages that may be unacknowledged, so that connections cannot keep them from going out.
/// The peer posts at least as many receives as both together.
const LLC_SLOTS: u32 = 2;
const SLOTS: u32 = CDC_SLOTS + LLC_SLOTS;
/// Bytes of a CDC slot: a message has 44, a cache line keeps neighbours apart.
const CDC_SLOT_BYTES: u32 = 64;
/// Bytes of an LLC slot: an answer may repeat what was received.
const LLC_SLOT_BYTES: u32 = RECEIVE_BYTES as u32;
/// RDMA writes that may go ahead of one message: either ring may wrap.
const WRITES_PER_MESSAGE: u32 = 3;
/// Registrations of memory regions that may be queued.
pub(crate) const REGISTRATIONS: u32 = 2;
/// Work requests of the send queue.
pub(crate) const SEND_QUEUE_DEPTH: u32 = CDC_SLOTS * (1 + WRITES_PER_MESSAGE) + LLC_SLOTS;
/// Work requests of one post: the writes and the message.
const BATCH: usize = WRITES_PER_MESSAGE as usize + 1;
/// Connections that a link group can have, as many as there are marks.
const MARKS: usize = 256;

/// DMA memory of the send slots.
pub(crate) struct SendMemory {
    mapping: DmaMapping,
    _charge: Charge,
}

impl SendMemory {
    pub(super) fn new(pd: &Pd, net: &Arc<NetState>) -> Result<Self> {
        let device = pd.device();
        let (offset, len) = slot_range(SLOTS - 1);
        let bytes = (offset + len).next_power_of_two() as usize;
        let pages = PageRun::alloc(bytes, GFP_KERNEL, device.node())?;
        let pages = Arc::new(pages, GFP_KERNEL)?;
        Ok(Self {
            _charge: net.charge(pages.len()),
            mapping: DmaMapping::new(device, pages, Direction::ToDevice)?,
        })
    }
}

/// Offset and length of a slot.
const fn slot_range(slot: u32) -> (u32, u32) {
    if slot < CDC_SLOTS {
        (slot * CDC_SLOT_BYTES, CDC_SLOT_BYTES)
    } else {
        let offset = CDC_SLOTS * CDC_SLOT_BYTES + (slot - CDC_SLOTS) * LLC_SLOT_BYTES;
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

/// The send slots of a link and the connections that wait for one.
pub(crate) struct SendSlots {
    owners: [Option<SlotOwner>; SLOTS as usize],
    in_use: u32,
    /// One bit for each connection index of the group.
    waiting: [u64; MARKS / 64],
    /// Where the search for a waiting connection goes on, so that each has its turn.
    next_waiting: usize,
    closed: bool,
}

impl SendSlots {
    pub(super) fn new() -> Self {
        Self {
            owners: [const { None }; SLOTS as usize],
            in_use: 0,
            waiting: [0; MARKS / 64],
            next_waiting: 0,
            closed: false,
        }
    }

    /// Takes a free slot of the owner's kind.
    fn take(&mut self, owner: SlotOwner) -> Option<u32> {
        let range = match owner {
            SlotOwner::Connection(..) => 0..CDC_SLOTS,
            SlotOwner::Llc => CDC_SLOTS..SLOTS,
        };
        for index in range {
            let slot = self.owners.get_mut(index as usize)?;
            if slot.is_none() {
                *slot = Some(owner);
                self.in_use += 1;
                return Some(index);
            }
        }
        None
    }

    fn release(&mut self, index: u32) -> Option<SlotOwner> {
        let owner = self.owners.get_mut(index as usize)?.take()?;
        self.in_use -= 1;
        Some(owner)
    }

    fn mark_waiting(&mut self, connection: u8) {
        if let Some(word) = self.waiting.get_mut(usize::from(connection) / 64) {
            *word |= 1 << (connection % 64);
        }
    }

    /// Takes the next waiting connection in turn.
    fn take_waiting(&mut self) -> Option<u8> {
        for step in 0..MARKS {
            let index = (self.next_waiting + step) % MARKS;
            let word = self.waiting.get_mut(index / 64)?;
            // A word without marks is passed over as a whole.
            if *word == 0 && index % 64 == 0 && step + 64 <= MARKS {
                continue;
            }
            let bit = 1 << (index % 64);
            if *word & bit != 0 {
                *word &= !bit;
                self.next_waiting = (index + 1) % MARKS;
                return u8::try_from(index).ok();
            }
        }
        None
    }

    /// Refuses new messages and gives back all owners, to be dropped outside the lock.
    pub(super) fn close(&mut self) -> [Option<SlotOwner>; SLOTS as usize] {
        self.closed = true;
        self.in_use = 0;
        self.waiting = [0; MARKS / 64];
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

/// A slot taken for one message, to be posted at once.
pub(crate) struct Slot(u32);

impl Link {
    /// Takes a slot for a CDC message of `conn` behind RDMA writes of `bytes` bytes. Any context
    /// that may take BH spinlocks.
    pub(crate) fn take_slot(&self, conn: &Arc<Connection>, bytes: u32) -> Result<Slot, NoSlot> {
        let mut slots = self.tx.lock();
        if slots.closed {
            return Err(NoSlot::LinkClosed);
        }
        match slots.take(SlotOwner::Connection(conn.clone(), bytes)) {
            Some(index) => Ok(Slot(index)),
            None => {
                slots.mark_waiting(conn.index());
                Err(NoSlot::AllInUse)
            }
        }
    }

    /// Posts a CDC message behind the RDMA writes of `plan`, in one go. The caller holds the
    /// connection's lock, which keeps its posts in order.
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
    ) -> Result {
        let mut list = SendList::<BATCH>::new();
        if let Some(plan) = plan {
            for chunk in plan.chunks().iter().filter(|chunk| chunk.len != 0) {
                list.push_write(
                    target.local.slice(chunk.src_offset, chunk.len)?,
                    target.remote.wrapping_add(u64::from(chunk.dst_offset)),
                    target.rkey.0,
                    WrId::Write.encode(),
                    SendFlags::NONE,
                )?;
            }
        }
        self.post_message(list, slot, message)
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
            slots.take(SlotOwner::Llc).map(Slot).ok_or(ENOBUFS)?
        };
        self.post_message(SendList::<BATCH>::new(), slot, message)
    }

    fn post_message(&self, mut list: SendList<'_, BATCH>, slot: Slot, message: &[u8]) -> Result {
        let posted = self.fill_and_post(&mut list, slot.0, message);
        if posted.is_err() {
            let owner = self.tx.lock().release(slot.0);
            drop(owner);
        }
        posted
    }

    fn fill_and_post(&self, list: &mut SendList<'_, BATCH>, slot: u32, message: &[u8]) -> Result {
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

    /// Waits a moment until no message is on its way. May sleep.
    pub(crate) fn wait_sent(&self) {
        for _ in 0..100 {
            if self.tx.lock().in_use == 0 {
                return;
            }
            fsleep(Delta::from_millis(1));
        }
    }

    /// A message was acknowledged, or failed: its slot is free. BH context.
    pub(super) fn sent(&self, slot: u32, completion: &Completion) {
        let (owner, waiting) = {
            let mut slots = self.tx.lock();
            let owner = slots.release(slot);
            (owner, slots.take_waiting())
        };
        if !completion.ok() {
            self.failed(completion);
            return;
        }
        if let Some(SlotOwner::Connection(conn, bytes)) = owner {
            conn.completed(bytes);
        }
        if let (Some(index), Some(group)) = (waiting, self.group()) {
            match group.connection(index) {
                Some(conn) => conn.push(),
                None => self.serve_next_waiting(&group),
            }
        }
    }

    /// The connection whose turn it was is gone: the slot goes to another.
    fn serve_next_waiting(&self, group: &LinkGroup) {
        loop {
            let Some(index) = self.tx.lock().take_waiting() else {
                return;
            };
            if let Some(conn) = group.connection(index) {
                conn.push();
                return;
            }
        }
    }
}

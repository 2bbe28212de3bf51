// SPDX-License-Identifier: GPL-2.0

//! Receiving on a link: a ring of posted buffers, and where messages go.

use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
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
    rdma::{
        Completion,
        Pd,
        Qp, //
    },
};
use smc_proto::wire::cdc::{
    self,
    CdcMessage, //
};

use super::{
    Link,
    WrId, //
};
use crate::smc::netns::{
    Charge,
    NetState, //
};

/// Bytes of one receive buffer: a version 2 DELETE RKEY with 255 keys has 1,028.
pub(crate) const RECEIVE_BYTES: usize = 1088;

/// DMA memory of the receive ring.
pub(crate) struct ReceiveMemory {
    mapping: DmaMapping,
    /// Receives that are posted at any time.
    depth: u32,
    _charge: Charge,
}

impl ReceiveMemory {
    pub(super) fn new(pd: &Pd, net: &Arc<NetState>, depth: u32) -> Result<Self> {
        let device = pd.device();
        let bytes = (depth as usize * RECEIVE_BYTES).next_power_of_two();
        let pages = PageRun::alloc(bytes, GFP_KERNEL, device.node(), &Payer::NOBODY)?;
        let pages = Arc::new(pages, GFP_KERNEL)?;
        Ok(Self {
            _charge: net.charge(pages.len()),
            mapping: DmaMapping::new(device, pages, Direction::FromDevice)?,
            depth,
        })
    }

    pub(super) fn post_all(&self, qp: &Qp) -> Result {
        for index in 0..self.depth {
            self.post(qp, index)?;
        }
        Ok(())
    }

    fn post(&self, qp: &Qp, index: u32) -> Result {
        let offset = index as usize * RECEIVE_BYTES;
        let to = qp.pd().sge(&self.mapping, offset, RECEIVE_BYTES)?;
        qp.post_recv(to, WrId::Receive(index).encode())
    }
}

impl Link {
    /// A message arrived, or its receive failed. BH context.
    pub(super) fn received(&self, index: u32, completion: &Completion) {
        if !completion.ok() {
            self.failed(completion);
            return;
        }
        if index >= self.rx_memory.depth {
            return;
        }
        self.heard_at.store(smc_kapi::module::now_ms(), Relaxed);
        self.dispatch(index, completion.byte_len as usize);
        if self.rx_memory.post(self.qp(), index).is_err() {
            self.failed(completion);
        }
    }

    /// Copies the message out of device memory, then looks at it.
    fn dispatch(&self, index: u32, len: usize) {
        let Some(group) = self.group() else {
            return;
        };
        let offset = index as usize * RECEIVE_BYTES;
        let len = core::cmp::min(len, RECEIVE_BYTES);
        self.rx_memory.mapping.sync_for_cpu(offset, len);
        let pages = self.rx_memory.mapping.pages();
        let mut head = [0u8; cdc::LEN];
        if len < head.len() || pages.read(offset, &mut head).is_err() {
            group.message_violation("a message shorter than 44 bytes arrived");
            return;
        }
        if head[0] != cdc::TYPE {
            group.queue_llc(len, |frame| {
                // The range was checked by the read above.
                let _ = pages.read(offset, frame);
            });
            return;
        }
        match CdcMessage::parse(&head) {
            Ok(message) if len == cdc::LEN => group.cdc(&message),
            _ => group.message_violation("a CDC message with a wrong length arrived"),
        }
    }
}

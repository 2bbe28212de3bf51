// SPDX-License-Identifier: GPL-2.0

//! What a connection adds to the statistics of its namespace.

use kernel::sync::Arc;
use smc_kapi::net::msg::flags;
use smc_proto::ids::BufSize;

use super::Connection;
use crate::smc::{
    netns::NetState,
    stats::{
        Count,
        Dir,
        Item, //
    },
};

/// The buffers of a connection are counted as used while this lives.
pub(super) struct BufferUsage {
    net: Arc<NetState>,
    send: u32,
    receive: u32,
}

impl BufferUsage {
    pub(super) fn new(net: Arc<NetState>, send: u32, receive: u32) -> Self {
        let traffic = &net.stats.traffic;
        traffic.buffer_used(Dir::Tx, send);
        traffic.buffer_used(Dir::Rx, receive);
        Self { net, send, receive }
    }
}

impl Drop for BufferUsage {
    fn drop(&mut self) {
        let traffic = &self.net.stats.traffic;
        traffic.buffer_returned(Dir::Tx, self.send);
        traffic.buffer_returned(Dir::Rx, self.receive);
    }
}

impl Connection {
    fn count(&self, count: Count) {
        self.group.net().stats.traffic.inc(count);
    }

    /// A program is about to write `len` bytes.
    pub(crate) fn count_write(&self, len: usize, how: u32) {
        if len > self.send.len() as usize {
            self.count(Count::item(Dir::Tx, Item::Small));
        }
        // No buffer is smaller, and to look takes the lock.
        if len > BufSize::MIN.bytes() as usize {
            let peer = self.with(|conn| conn.tx().peer_len()).unwrap_or(u32::MAX);
            if len > peer as usize {
                self.count(Count::item(Dir::Tx, Item::SmallPeer));
            }
        }
        if how & flags::OOB != 0 {
            self.count(Count::URGENT);
        }
    }

    /// A writer found the send ring full.
    pub(super) fn count_full_ring(&self) {
        self.count(Count::item(Dir::Tx, Item::Full));
    }

    /// A reader of `len` bytes found `readable` ones.
    pub(super) fn count_read(&self, readable: u32, len: usize) {
        if readable >= self.rmb.len() {
            self.count(Count::item(Dir::Rx, Item::Full));
        }
        if len < readable as usize {
            self.count(Count::item(Dir::Rx, Item::Small));
        }
    }

    /// A program asks for the urgent byte.
    pub(super) fn count_urgent(&self) {
        self.count(Count::URGENT);
    }
}

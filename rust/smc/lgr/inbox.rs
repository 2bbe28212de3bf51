// SPDX-License-Identifier: GPL-2.0

//! LLC messages between their arrival, in BH context, and the work item that looks at them.

use kernel::prelude::*;

use crate::smc::link::rx::RECEIVE_BYTES;

/// Messages that may wait for the work item. A peer has one exchange under way at a time.
const INBOX_FRAMES: usize = 8;

/// Messages that have arrived and were not looked at.
pub(super) struct Inbox {
    frames: KVec<Frame>,
    first: usize,
    len: usize,
}

struct Frame {
    len: usize,
    bytes: KVec<u8>,
}

impl Inbox {
    pub(super) fn new() -> Result<Self> {
        let mut frames = KVec::with_capacity(INBOX_FRAMES, GFP_KERNEL)?;
        for _ in 0..INBOX_FRAMES {
            let bytes = KVec::from_elem(0u8, RECEIVE_BYTES, GFP_KERNEL)?;
            frames.push(Frame { len: 0, bytes }, GFP_KERNEL)?;
        }
        Ok(Self {
            frames,
            first: 0,
            len: 0,
        })
    }

    /// Adds a message that `fill` writes; false when the inbox is full.
    pub(super) fn put(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> bool {
        if self.len >= INBOX_FRAMES {
            return false;
        }
        let index = (self.first + self.len) % INBOX_FRAMES;
        let Some(frame) = self.frames.get_mut(index) else {
            return false;
        };
        let Some(bytes) = frame.bytes.get_mut(..len) else {
            return false;
        };
        fill(bytes);
        frame.len = len;
        self.len += 1;
        true
    }

    /// Moves the oldest message to `to` and gives its length.
    pub(super) fn take(&mut self, to: &mut KVec<u8>) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let frame = self.frames.get_mut(self.first)?;
        core::mem::swap(&mut frame.bytes, to);
        self.first = (self.first + 1) % INBOX_FRAMES;
        self.len -= 1;
        Some(frame.len)
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Holding small writes back: `MSG_MORE` and `TCP_CORK`.
//!
//! As on TCP, what is held back goes out when the ring is full, when the program says so, and at
//! last after a fifth of a second.

use kernel::{
    sync::Arc,
    workqueue::WorkItem, //
};
use smc_kapi::work;

use super::Connection;

/// How long writes are held back at most, in milliseconds.
const CORK_MS: u32 = 200;

impl Connection {
    /// Holds small writes back, or lets go of them.
    pub(crate) fn set_corked(self: &Arc<Self>, corked: bool) {
        let was = core::mem::replace(&mut self.inner.lock().corked, corked);
        if was && !corked {
            self.push();
        }
    }

    /// Limits the time that what was just written is held back.
    pub(super) fn limit_cork(self: &Arc<Self>) {
        work::schedule::<_, 0>(self.group.queue(), self, CORK_MS);
    }

    /// The connection is over: nothing is held back any more.
    pub(super) fn cancel_uncork(self: &Arc<Self>) {
        drop(work::try_cancel_delayed::<_, 0>(self));
    }
}

impl WorkItem for Connection {
    type Pointer = Arc<Connection>;

    fn run(this: Arc<Connection>) {
        // The next write is held back again, if it is to be.
        this.set_corked(false);
    }
}

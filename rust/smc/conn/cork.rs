// SPDX-License-Identifier: GPL-2.0

//! Holding small writes back.
//!
//! With `MSG_MORE` and `TCP_CORK`, as on TCP, what is held back goes out when the ring is full, when
//! the program says so, and at last after a fifth of a second. The few last bytes of what had filled
//! the ring are held back until the peer says something next, and where it has nothing to say, until
//! the writer has had the time for its next call.

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
        work::schedule::<_, 0>(self.group.writer_queue(), self, CORK_MS);
    }

    /// Lets go of the end of a stream of data unless the writer, whose turn it is, comes with more.
    pub(super) fn wait_for_writer(self: &Arc<Self>) {
        work::reschedule::<_, 0>(self.group.writer_queue(), self, 0);
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
        this.inner.lock().corked = false;
        this.change(|conn| conn.set_more_coming(false));
    }
}

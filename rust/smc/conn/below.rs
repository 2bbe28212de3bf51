// SPDX-License-Identifier: GPL-2.0

//! The TCP connection below, which is reset together with this one.
//!
//! Its peer may know of the reset in no other way: a link that was lost carries no message, and a
//! program that never looks at its socket does not close it.

use kernel::{
    sync::Arc,
    workqueue::{
        impl_has_work,
        WorkItem, //
    },
};
use smc_kapi::{
    net::{
        TcpSocket,
        TcpState, //
    },
    work, //
};

use super::Connection;

/// The TCP connection of a connection.
pub(super) struct Below {
    /// Whoever gave it holds it as well, from before [`Connection::set_tcp`] until after
    /// [`Connection::leave_tcp`], so that the last reference is never dropped here.
    tcp: Option<Arc<TcpSocket>>,
    /// It is to be reset.
    reset: bool,
}

impl Below {
    pub(super) const NONE: Self = Self {
        tcp: None,
        reset: false,
    };
}

impl_has_work! {
    impl HasWork<Self, 2> for Connection { self.reset_below }
}

impl Connection {
    /// From now on `tcp` is reset when the connection is; if it was before, at once. Any context.
    pub(crate) fn set_tcp(self: &Arc<Self>, tcp: &Arc<TcpSocket>) {
        let reset = {
            let mut below = self.below.lock();
            below.tcp = Some(tcp.clone());
            below.reset
        };
        if reset {
            self.queue_reset();
        }
    }

    /// The TCP connection is reset, or closed, by its owner from now on, and no more from here. May
    /// sleep.
    pub(crate) fn leave_tcp(self: &Arc<Self>) {
        let tcp = self.below.lock().tcp.take();
        drop(tcp);
        // It may be about to be reset; its owner may be about to connect it anew.
        drop(work::cancel_sync::<_, 2>(self));
    }

    /// Resets the TCP connection soon: TCP calls this side with its socket locked. Any context.
    pub(super) fn reset_tcp(self: &Arc<Self>) {
        let known = {
            let mut below = self.below.lock();
            below.reset = true;
            below.tcp.is_some()
        };
        if known {
            self.queue_reset();
        }
    }

    fn queue_reset(self: &Arc<Self>) {
        work::queue::<_, 2>(self.group.writer_queue(), self);
    }
}

impl WorkItem<2> for Connection {
    type Pointer = Arc<Connection>;

    fn run(this: Arc<Connection>) {
        let tcp = this.below.lock().tcp.clone();
        if let Some(tcp) = tcp.filter(|tcp| tcp.state() != TcpState::Close) {
            tcp.reset();
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! The sockets of a network namespace, for listing.
//!
//! Sockets get rising numbers, so that a list can go on behind the last one shown whatever came and
//! went meanwhile.

use kernel::{
    new_mutex,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        Arc,
        Mutex, //
    },
};
use smc_kapi::net::{
    Sock,
    SockRef, //
};

use super::SmcSocket;

/// A socket that a program has open.
#[derive(Clone)]
pub(crate) struct Listed {
    pub(crate) socket: Arc<SmcSocket>,
    pub(crate) sock: SockRef,
}

struct Inner {
    last: u64,
    sockets: RBTree<u64, Listed>,
}

/// The table. Process context.
#[pin_data]
pub(crate) struct SocketTable {
    #[pin]
    inner: Mutex<Inner>,
}

impl SocketTable {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            inner <- new_mutex!(Inner { last: 0, sockets: RBTree::new() }, "smc_sockets"),
        })
    }

    /// Enters a socket; gives its number, which [`SocketTable::remove`] takes.
    pub(super) fn add(&self, socket: &Arc<SmcSocket>, sock: &Sock) -> Result<u64> {
        let listed = Listed {
            socket: socket.clone(),
            sock: sock.hold(),
        };
        let room = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let mut inner = self.inner.lock();
        inner.last += 1;
        let number = inner.last;
        inner.sockets.insert(room.into_node(number, listed));
        Ok(number)
    }

    /// Takes a socket out.
    pub(super) fn remove(&self, number: u64) {
        let node = self.inner.lock().sockets.remove_node(&number);
        drop(node);
    }

    /// The socket with the next number above `number`.
    pub(crate) fn after(&self, number: u64) -> Option<(u64, Listed)> {
        let inner = self.inner.lock();
        let cursor = inner
            .sockets
            .cursor_lower_bound(&number.saturating_add(1))?;
        let (number, listed) = cursor.current();
        Some((*number, listed.clone()))
    }
}

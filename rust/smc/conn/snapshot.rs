// SPDX-License-Identifier: GPL-2.0

//! What a connection shows to its operator.

use smc_kapi::net::InetAddr;
use smc_proto::state::ConnState;

use super::{
    Connection,
    Stage, //
};

/// Addresses of the TCP connection, to know a connection by.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    pub(crate) local: InetAddr,
    pub(crate) peer: InetAddr,
}

/// A snapshot for monitoring.
pub(crate) struct Snapshot {
    pub(crate) state: ConnState,
    pub(crate) send_len: u32,
    pub(crate) readable: u32,
    pub(crate) unsent: u32,
    /// Bytes the peer has room for.
    pub(crate) peer_room: u32,
    /// Bytes read whose room the peer was not told of.
    pub(crate) unannounced: u32,
    /// Messages that are not acknowledged.
    pub(crate) in_flight: u8,
    /// Bytes posted to the peer so far.
    pub(crate) sent: u64,
    /// Bytes received so far.
    pub(crate) received: u64,
}

impl Connection {
    /// How the connection stands now; `None` before its handshake is over.
    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        let inner = self.inner.lock();
        let Stage::Live { conn, .. } = &inner.stage else {
            return None;
        };
        Some(Snapshot {
            state: conn.state(),
            send_len: conn.tx().buf_len(),
            readable: conn.readable(),
            unsent: conn.tx().pending(),
            peer_room: conn.tx().peer_room(),
            unannounced: conn.rx().unannounced(),
            in_flight: inner.in_flight,
            sent: inner.sent,
            received: inner.received,
        })
    }
}

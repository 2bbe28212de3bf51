// SPDX-License-Identifier: GPL-2.0

//! What a connection shows to its operator.

use smc_kapi::{
    diag::SOCKID_LEN,
    net::InetAddr, //
};
use smc_proto::{
    diag::{
        ring_cursor,
        ConnInfo, //
    },
    ids::LinkId,
    info::{
        DeviceName,
        SocketInfo, //
    },
    lgr::Role,
    state::ConnState, //
};

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

impl Names {
    /// The addresses as `struct inet_diag_sockid` has them, without interface and cookie.
    pub(crate) fn socket_id(&self) -> [u8; SOCKID_LEN] {
        let mut id = [0; SOCKID_LEN];
        let (ports, addresses) = id.split_at_mut(4);
        for (to, name) in ports.chunks_mut(2).zip([&self.local, &self.peer]) {
            to.copy_from_slice(&name.port().to_be_bytes());
        }
        for (to, name) in addresses.chunks_mut(16).zip([&self.local, &self.peer]) {
            match name.to_v4().filter(|_| !name.is_v4_mapped()) {
                Some(v4) => {
                    for (to, from) in to.iter_mut().zip(v4) {
                        *to = from;
                    }
                }
                None => to.copy_from_slice(&name.to_v6()),
            }
        }
        id
    }
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
            received: conn.rx().received(),
        })
    }

    /// The state; `None` before the handshake is over.
    pub(crate) fn state(&self) -> Option<ConnState> {
        self.with(|conn| conn.state())
    }

    /// Whether a socket has the connection.
    pub(crate) fn has_owner(&self) -> bool {
        self.owner.lock().is_some()
    }

    /// Number of the link; `None` when it is gone.
    pub(crate) fn link_id(&self) -> Option<LinkId> {
        self.inner.lock().link.as_ref().map(|link| link.id)
    }

    /// Cursors and flags for `sock_diag`; `None` before the handshake is over.
    pub(crate) fn diag_info(&self) -> Option<ConnInfo> {
        let inner = self.inner.lock();
        let Stage::Live { conn, .. } = &inner.stage else {
            return None;
        };
        let (tx, rx) = (conn.tx(), conn.rx());
        let (sent, len) = (inner.sent, tx.buf_len());
        Some(ConnInfo {
            token: self.token.0,
            send_len: len,
            rmbe_len: rx.size(),
            peer_len: tx.peer_len(),
            rx_prod: rx.peer_prod().raw(),
            rx_cons: tx.peer_cons().raw(),
            tx_prod: tx.prod().raw(),
            tx_cons: rx.cons().raw(),
            flags: conn.flags(),
            tx_prep: ring_cursor(sent + u64::from(tx.pending()), len),
            tx_sent: ring_cursor(sent, len),
            tx_fin: ring_cursor(sent.saturating_sub(u64::from(tx.in_flight())), len),
        })
    }

    /// Adds what a program may know about its connection.
    pub(crate) fn fill_info(&self, info: &mut SocketInfo) {
        info.role = u8::from(self.group.role == Role::Server);
        info.group = self.group.id;
        info.token = self.token.0;
        info.device = DeviceName::new(self.group.port.device.name().as_str().as_bytes());
        info.port = self.group.port.port;
        let inner = self.inner.lock();
        info.link = inner.link.as_ref().map_or(0, |link| link.id.0);
        let Stage::Live { conn, .. } = &inner.stage else {
            return;
        };
        let (tx, rx) = (conn.tx(), conn.rx());
        info.send_len = tx.buf_len();
        info.rmbe_len = rx.size();
        info.peer_len = tx.peer_len();
        info.readable = conn.readable();
        info.unsent = tx.pending();
        info.peer_room = tx.peer_room();
        info.sent = inner.sent;
        info.received = rx.received();
    }
}

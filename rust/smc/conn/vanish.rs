// SPDX-License-Identifier: GPL-2.0

//! A peer that is gone without having said so.
//!
//! The message that says how a connection ends can be missing: on Linux, the process that is killed
//! while all send slots of its link are in use sends none. The TCP connection then tells of the end.

use kernel::sync::Arc;
use smc_kapi::{
    module::now_ms,
    net::{
        TcpSocket,
        TcpState, //
    }, //
};
use smc_proto::conn::Conn;

use super::Connection;

/// How long a peer that has ended the TCP connection may be silent. Its last data and the message
/// about the end may be behind those of other connections, or have to be sent again.
const VANISH_MS: u64 = 10_000;

impl Connection {
    /// Looks whether the peer has ended the TCP connection below. Any context.
    pub(crate) fn watch_tcp(&self, tcp: &TcpSocket) {
        if matches!(tcp.state(), TcpState::CloseWait | TcpState::Close) {
            self.inner.lock().silent_since.get_or_insert(now_ms());
        }
    }

    /// Resets the connection when its peer has gone without a word.
    pub(crate) fn check_vanished(self: &Arc<Self>, now: u64) {
        let since = self.inner.lock().silent_since;
        if since.is_some_and(|at| now.saturating_sub(at) >= VANISH_MS) {
            self.end(Conn::peer_vanished);
        }
    }
}

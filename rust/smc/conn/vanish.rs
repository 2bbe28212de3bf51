// SPDX-License-Identifier: GPL-2.0

//! A peer that is gone and has not said so, or not yet.
//!
//! The message that says how a connection ends can be missing: on Linux, the process that is killed
//! while all send slots of its link are in use sends none. The TCP connection then tells of the end.
//! It may also be faster: data and the word that the peer aborted go over the link, the reset beside
//! them.

use kernel::{
    ffi::c_long,
    prelude::*,
    sync::Arc,
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};
use smc_kapi::{
    module::now_ms,
    net::{
        Sock,
        TcpSocket,
        TcpState, //
    },
    work, //
};
use smc_proto::conn::{
    CloseError,
    Conn, //
};

use super::{
    Connection,
    Stage, //
};
use crate::smc::sock::wait::wait_until;

/// How long a peer that has ended the TCP connection may be silent. Its last data and the message
/// about the end may be behind those of other connections, or have to be sent again.
const VANISH_MS: u64 = 10_000;
/// How long a reset of the TCP connection waits for what the peer sent before it, in milliseconds.
const RESET_MS: u32 = 100;

impl Connection {
    /// Looks whether the peer has ended the TCP connection below. Any context.
    pub(crate) fn watch_tcp(&self, tcp: &TcpSocket) {
        if matches!(tcp.state(), TcpState::CloseWait | TcpState::Close) {
            self.inner.lock().silent_since.get_or_insert(now_ms());
        }
    }

    /// Resets the connection when its peer has gone without a word.
    pub(crate) fn check_vanished(self: &Arc<Self>, now: u64) {
        {
            let mut inner = self.inner.lock();
            match inner.silent_since {
                Some(at) if now.saturating_sub(at) >= VANISH_MS => {}
                _ => return,
            }
            // One that waits for the reader here has its time to answer when that has read.
            inner.silent_since = Some(now);
        }
        self.update(Conn::peer_vanished);
    }

    /// The TCP connection below was reset. Data that the peer sent before may still be read, as on
    /// TCP, so it gets a moment to arrive. Any context.
    pub(crate) fn tcp_reset(self: &Arc<Self>, tcp: &TcpSocket) {
        let after_end = tcp.sock().err() == -EPIPE.to_errno();
        self.inner.lock().tcp_reset = Some(after_end);
        if self.awaits_last_words() {
            work::schedule::<_, 1>(self.group.writer_queue(), self, RESET_MS);
            // The connection's end cancels the timer, but maybe did so just before it was there.
            if !self.awaits_last_words() {
                self.cancel_reset();
            }
        } else {
            self.update(|conn| conn.tcp_reset(after_end));
        }
    }

    /// Whether the TCP connection was reset and the peer's last words may still come over the link.
    pub(super) fn awaits_last_words(&self) -> bool {
        let inner = self.inner.lock();
        let may_come = match &inner.stage {
            Stage::Live { conn, .. } => conn.error().is_none() && !conn.close_state().peer_left(),
            _ => false,
        };
        may_come && inner.tcp_reset.is_some() && inner.link.is_some()
    }

    /// Waits for the peer's last words, if the TCP connection was reset: what is said of the
    /// connection afterwards holds. May sleep.
    pub(crate) fn await_last_words(&self, sock: &Sock) {
        if self.awaits_last_words() {
            // A signal ends the wait; then the answer is the one of the moment.
            let _ = wait_until(sock, &mut reset_jiffies(), || !self.awaits_last_words());
        }
    }

    /// Waits for the end of the TCP connection, if the peer has said over the link that it aborted: the
    /// two come side by side, and some calls go by the state of TCP. May sleep.
    pub(crate) fn await_tcp_end(&self, sock: &Sock, tcp: &TcpSocket) {
        let aborted = self.with(|conn| conn.error() == Some(CloseError::PeerAborted));
        if aborted == Some(true) {
            let _ = wait_until(sock, &mut reset_jiffies(), || {
                use TcpState::{Established, FinWait1, FinWait2};
                !matches!(tcp.state(), Established | FinWait1 | FinWait2)
            });
        }
    }

    /// The connection is over, however its TCP connection ended.
    pub(super) fn cancel_reset(self: &Arc<Self>) {
        drop(work::try_cancel_delayed::<_, 1>(self));
    }
}

/// The longest wait for a peer's last words.
pub(super) fn reset_jiffies() -> c_long {
    msecs_to_jiffies(RESET_MS) as c_long
}

impl WorkItem<1> for Connection {
    type Pointer = Arc<Connection>;

    fn run(this: Arc<Connection>) {
        let reset = this.inner.lock().tcp_reset.take();
        if let Some(after_end) = reset {
            this.update(|conn| conn.tcp_reset(after_end));
        }
    }
}

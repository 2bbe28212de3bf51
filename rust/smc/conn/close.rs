// SPDX-License-Identifier: GPL-2.0

//! The end of a connection: by the application, the peer, the link or the clock.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use smc_kapi::module::now_ms;
use smc_proto::conn::{
    CloseError,
    Conn, //
};

use super::{
    Connection,
    Inner,
    Stage, //
};
use crate::smc::{
    events,
    link::Link, //
};

/// How long the connection of a closed socket waits for a sign of its peer.
const LINGER_MS: u64 = 60_000;

impl Connection {
    /// The application shut down writing.
    pub(crate) fn shutdown_write(self: &Arc<Self>) {
        self.update(Conn::shutdown_write);
    }

    /// The socket is gone; data that was written still goes out.
    pub(crate) fn close(self: &Arc<Self>) {
        let old = self.owner.lock().take();
        drop(old);
        self.inner.lock().waiting_since = Some(now_ms());
        self.begin_close();
    }

    /// The socket is being closed, and is still to be woken. [`Connection::close`] follows.
    pub(crate) fn begin_close(self: &Arc<Self>) {
        self.cancel_uncork();
        self.set_corked(false);
        self.update(Conn::close);
    }

    /// Whether all that a socket which was closed had to say has reached the peer's host, or never
    /// will. On TCP that, and not that somebody has read it, ends a lingering close.
    pub(crate) fn is_through(&self) -> bool {
        self.inner.lock().is_through()
    }

    /// Resets the connection.
    pub(crate) fn abort(self: &Arc<Self>) {
        self.update(Conn::abort);
    }

    /// The error that ended the connection as an errno.
    pub(crate) fn error(&self) -> Option<Error> {
        self.with(|conn| conn.error()).flatten().map(errno)
    }

    /// Tells the socket layer about the error, once, for `SO_ERROR` and pollers.
    ///
    /// The protocol's state has the error first, and whoever found it there tells after it has let go
    /// of the lock. A call that looks at the state in between tells as well before it asks the socket:
    /// when this returns, the socket has the error, whoever told.
    pub(crate) fn report_error(&self) {
        let Some(error) = self.error() else {
            return;
        };
        let owner = self.owner.lock();
        let Some(sock) = owner.as_ref() else {
            return;
        };
        if !core::mem::replace(&mut self.inner.lock().error_reported, true) {
            sock.set_err(-error.to_errno());
            sock.wake_error();
        }
    }

    /// The link is lost. Returns it for the caller to drop in process context.
    pub(crate) fn link_down(self: &Arc<Self>) -> Option<Arc<Link>> {
        let link = {
            let mut inner = self.inner.lock();
            inner.in_flight = 0;
            inner.link.take()
        };
        self.update(Conn::link_down);
        self.retire();
        link
    }

    /// Nobody has the connection any more. As long as the peer may write to its buffers, nobody else
    /// gets them.
    pub(crate) fn abandon(self: &Arc<Self>) {
        let (peer_left, counted) = {
            let mut inner = self.inner.lock();
            let peer_left = inner.stage.peer_left();
            inner.stage = Stage::Abandoned;
            (peer_left, core::mem::take(&mut inner.counted))
        };
        if counted {
            self.count_end();
        }
        if peer_left {
            self.retire();
        } else {
            self.group.note_abandoned(self);
        }
    }

    /// Gives up on a peer that takes no data, or does not answer the end, of a closed socket.
    pub(crate) fn check_linger(self: &Arc<Self>, now: u64) {
        let overdue = self
            .inner
            .lock()
            .waiting_since
            .is_some_and(|at| now.saturating_sub(at) >= LINGER_MS);
        if !overdue {
            return;
        }
        self.inner.lock().waiting_since = Some(now);
        self.update(|conn| {
            if conn.is_closing() {
                conn.abort()
            } else {
                conn.wait_timeout()
            }
        });
    }

    /// Leaves the group's table: the peer does not write any more.
    pub(super) fn retire(self: &Arc<Self>) {
        let (touched, counted) = {
            let mut inner = self.inner.lock();
            let touched = match &inner.stage {
                Stage::Live { conn, .. } => conn.touched(),
                // The peer may have written although no handshake was over, or nobody looked.
                _ => self.rmb.len(),
            };
            // No open socket keeps the device from going. The group gives its reference up after it
            // has locked the connections of its table, one after the other: as this one goes under
            // the same lock, it is not the last, whose end may sleep.
            inner.link = None;
            (touched, core::mem::take(&mut inner.counted))
        };
        self.cancel_uncork();
        self.cancel_reset();
        if self.group.forget(self) {
            self.rmb.mark_used(touched);
        }
        // Of several that retire the connection at once, whoever took the mark counts, which need
        // not be the one that takes it out of the table.
        if counted {
            self.count_end();
        }
    }

    /// The connection was counted as established and is over.
    fn count_end(&self) {
        self.group.net().stats.active.add(-1);
        events::connection(self, false);
    }
}

impl Stage {
    /// Whether the peer has said that it is gone.
    fn peer_left(&self) -> bool {
        match self {
            Stage::Reserved { early } => early
                .message()
                .is_some_and(|message| message.conn_flags.sender_is_gone()),
            Stage::Live { conn, .. } => conn.close_state().peer_left(),
            Stage::Abandoned => false,
        }
    }
}

impl Inner {
    /// See [`Connection::is_through`].
    pub(super) fn is_through(&self) -> bool {
        match &self.stage {
            Stage::Live { conn, .. } => {
                let said = self.in_flight == 0 && conn.has_said_all();
                said || conn.error().is_some() || self.link.is_none()
            }
            _ => true,
        }
    }
}

/// What the socket calls return for the way a connection ended. TCP programs know no other.
fn errno(error: CloseError) -> Error {
    match error {
        CloseError::PeerAborted | CloseError::Aborted | CloseError::LinkLost => ECONNRESET,
        CloseError::NobodyReads => EPIPE,
        CloseError::TimedOut => ETIMEDOUT,
    }
}

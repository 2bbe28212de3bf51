// SPDX-License-Identifier: GPL-2.0

//! Connections of a listener that wait for `accept()`.

use kernel::sync::Arc;
use smc_kapi::{
    module::now_ms,
    net::{
        TcpSocket,
        TcpState, //
    },
};

use crate::smc::{
    conn::Connection,
    handshake::Fallback, //
};

/// The longest time for which TCP defers, in seconds.
const MAX_DEFER_SECONDS: u64 = 120;

/// A connection that `accept()` may return, now or later.
pub(super) struct Ready {
    pub(super) tcp: Arc<TcpSocket>,
    pub(super) outcome: Outcome,
    /// Until then, in ms, `accept()` leaves it unless a program would find something on it; 0 if
    /// that does not matter, or no more.
    deferred_until: u64,
}

/// How a connection is to be used.
pub(super) enum Outcome {
    Smc(Arc<Connection>),
    Tcp(Fallback),
}

impl Ready {
    pub(super) fn now(tcp: Arc<TcpSocket>, outcome: Outcome) -> Self {
        Self {
            tcp,
            outcome,
            deferred_until: 0,
        }
    }

    /// With `TCP_DEFER_ACCEPT` set to more than 0 seconds, one that is left until there are data.
    pub(super) fn deferred(tcp: Arc<TcpSocket>, outcome: Outcome, seconds: i32) -> Self {
        let deferred_until = match u64::try_from(seconds) {
            Ok(seconds @ 1..) => now_ms() + 1000 * seconds.min(MAX_DEFER_SECONDS),
            _ => 0,
        };
        Self {
            deferred_until,
            ..Self::now(tcp, outcome)
        }
    }

    /// Whether `accept()` may return it. Any context.
    pub(super) fn is_due(&self) -> bool {
        !self.is_deferred() || now_ms() >= self.deferred_until || self.has_news()
    }

    /// Whether it has to be looked at from time to time.
    pub(super) fn is_deferred(&self) -> bool {
        self.deferred_until != 0
    }

    /// From now on, `accept()` may return it.
    pub(super) fn defer_no_more(&mut self) {
        self.deferred_until = 0;
    }

    /// Whether a program would find data, an end or an error.
    fn has_news(&self) -> bool {
        match &self.outcome {
            Outcome::Smc(conn) => conn.has_news_for_reader(0),
            Outcome::Tcp(_) => {
                self.tcp.readable_len() > 0 || self.tcp.state() != TcpState::Established
            }
        }
    }

    /// Resets a connection that nobody will accept.
    pub(super) fn discard(self) {
        self.tcp.abort_on_close();
        if let Outcome::Smc(conn) = self.outcome {
            conn.leave_tcp();
            conn.abort();
            conn.close();
        }
    }
}

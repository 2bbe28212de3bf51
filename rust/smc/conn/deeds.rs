// SPDX-License-Identifier: GPL-2.0

//! What follows from what happens to a connection: decided under its lock, done without it.

use kernel::sync::Arc;
use smc_kapi::net::Sock;
use smc_proto::conn::{
    Conn,
    Events, //
};

use super::{
    recv::has_enough,
    Connection,
    Inner,
    Stage, //
};

/// What is to be done when the lock of a connection is dropped.
pub(super) struct Deeds {
    pub(super) events: Events,
    /// The socket layer does not know the error.
    pub(super) report_error: bool,
    /// Writers were promised room, and there is some.
    pub(super) has_room: bool,
    /// Both sides have closed and the last message is through.
    pub(super) finished: bool,
}

impl Deeds {
    pub(super) const NONE: Self = Self {
        events: Events::NONE,
        report_error: false,
        has_room: false,
        finished: false,
    };
}

impl Inner {
    /// What follows from `events` and the state.
    pub(super) fn deeds(&mut self, events: Events) -> Deeds {
        if events.contains(Events::QUARANTINE) {
            // Under the same lock: nobody may find the connection finished.
            self.stage = Stage::Abandoned;
        }
        let Stage::Live { conn, .. } = &self.stage else {
            return Deeds {
                events,
                ..Deeds::NONE
            };
        };
        Deeds {
            events,
            report_error: conn.error().is_some() && !self.error_reported,
            has_room: events.contains(Events::WRITABLE) && conn.is_writable(),
            finished: conn.is_finished() && self.in_flight == 0,
        }
    }
}

impl Connection {
    /// Like [`Connection::with`] for calls after which there may be something to send.
    pub(crate) fn change(self: &Arc<Self>, f: impl FnOnce(&mut Conn)) {
        self.update(|conn| {
            f(conn);
            Events::NONE
        });
    }

    /// Like [`Connection::change`] for calls that have an outcome to act on.
    pub(super) fn update(self: &Arc<Self>, f: impl FnOnce(&mut Conn) -> Events) {
        self.locked(|inner| {
            let Stage::Live { conn, .. } = &mut inner.stage else {
                return Events::NONE;
            };
            let events = f(conn);
            events.with(self.push_locked(inner))
        });
    }

    /// Calls `f` with the lock held, and acts on the outcome without it.
    pub(super) fn locked(self: &Arc<Self>, f: impl FnOnce(&mut Inner) -> Events) {
        let deeds = {
            let mut inner = self.inner.lock();
            let events = f(&mut inner);
            inner.deeds(events)
        };
        self.act(deeds);
    }

    /// Carries out, without locks, what the protocol asked for.
    pub(super) fn act(self: &Arc<Self>, deeds: Deeds) {
        const STATE: Events = Events::PEER_DONE
            .with(Events::PEER_CLOSED)
            .with(Events::PEER_ABORT);
        let events = deeds.events;
        if deeds.report_error {
            self.report_error();
        }
        if events.intersects(STATE) {
            self.wake(Sock::wake_state);
        }
        if events.contains(Events::READABLE) {
            self.wake(|sock| {
                if self.is_worth_waking(sock) {
                    sock.wake_readable();
                }
            });
        }
        if deeds.has_room {
            self.wake(Sock::wake_writable);
        }
        if events.contains(Events::URGENT) {
            self.wake(Sock::send_sigurg);
        }
        if events.contains(Events::RESET_TCP) {
            self.reset_tcp();
        }
        if events.contains(Events::QUARANTINE) {
            self.abandon();
        }
        if deeds.finished {
            self.retire();
        }
    }

    /// Readers are left alone, as on TCP, while there is less than their low mark.
    fn is_worth_waking(&self, sock: &Sock) -> bool {
        match sock.rcvlowat(false, usize::MAX) {
            0..=1 => true,
            mark => self.with(|conn| has_enough(conn, mark)).unwrap_or(true),
        }
    }

    fn wake(&self, how: impl FnOnce(&Sock)) {
        if let Some(sock) = self.owner.lock().as_ref() {
            how(sock);
        }
    }
}

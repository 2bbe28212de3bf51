// SPDX-License-Identifier: GPL-2.0

//! How long the steps of a handshake take, for its trace points.
//!
//! The clock is read only for handshakes at whose beginning somebody looked; others are left out.

use kernel::{
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::{
        Instant,
        Monotonic, //
    },
};
use smc_kapi::{
    net::TcpSocket,
    trace::{
        self,
        Outcome,
        Place, //
    },
};

use super::{
    End,
    Handshake, //
};
use crate::smc::{
    netns::NetState,
    stats::Side, //
};

/// A step that is over. Numbers and order are those of `include/smc_rs_trace.h`, which has the words
/// for them.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum Step {
    /// The Proposal was sent, or received.
    Proposal = 1,
    /// A link group, its link and the connection's buffers were made.
    FirstContact = 2,
    /// A link group was found and has a place and buffers for the connection.
    Join = 3,
    /// The Accept was sent, or received.
    Accept = 4,
    /// The Confirm was sent, or received.
    Confirm = 5,
    /// The new link was confirmed by messages over itself.
    ConfirmLink = 6,
}

/// What became of the connection. Numbers as above.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Became {
    Smcr = 1,
    Tcp = 2,
    Reset = 3,
}

/// The clock of one handshake.
pub(crate) struct Clock {
    /// `None` when nobody looked.
    begun: Option<Instant<Monotonic>>,
    /// Microseconds from there to the end of the last step.
    lap: Atomic<u64>,
}

impl Clock {
    /// The handshake begins.
    pub(crate) fn begin() -> Self {
        let watched = trace::watches_handshake_step() || trace::watches_handshake_end();
        Self {
            begun: watched.then(Instant::now),
            lap: Atomic::new(0),
        }
    }

    /// Microseconds since the beginning.
    fn now(&self) -> Option<u64> {
        let elapsed = self.begun?.elapsed().as_micros_ceil();
        Some(u64::try_from(elapsed).unwrap_or(0))
    }

    /// The handshake is over.
    pub(crate) fn end(&self, tcp: &TcpSocket, net: &NetState, side: Side, end: &End) {
        let Some(us) = self.now() else {
            return;
        };
        let became = |became: Became| Outcome {
            result: became as u8,
            reason: 0,
            peer_reason: 0,
            error: 0,
        };
        let outcome = match end {
            End::Smc(_) => became(Became::Smcr),
            End::Tcp(fallback) => Outcome {
                reason: fallback.reason.0,
                peer_reason: fallback.peer_reason.0,
                ..became(Became::Tcp)
            },
            End::Broken(error) => Outcome {
                error: error.to_errno(),
                ..became(Became::Reset)
            },
        };
        trace::handshake_end(place(tcp, net, side), outcome, us);
    }
}

impl Handshake<'_> {
    /// A step is over.
    pub(super) fn done(&self, step: Step) {
        let Some(now) = self.clock.now() else {
            return;
        };
        let before = self.clock.lap.xchg(now, Relaxed);
        let us = now.saturating_sub(before);
        trace::handshake_step(place(self.tcp, self.net, self.side), step as u8, us);
    }
}

fn place<'a>(tcp: &'a TcpSocket, net: &NetState, side: Side) -> Place<'a> {
    Place {
        tcp,
        net: net.id(),
        server: side == Side::Server,
    }
}

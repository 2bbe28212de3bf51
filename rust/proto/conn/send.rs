// SPDX-License-Identifier: GPL-2.0

//! The sending direction of a connection.

use super::{CloseError, Coming, Conn, Events, Violation};
use crate::cursor::Span;
use crate::tx_ring::WritePlan;
use crate::window;
use crate::wire::cdc::CdcMessage;

/// Why the application may not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// Writing was shut down here; corresponds to `EPIPE`.
    Shutdown,
    /// The peer closed, and nothing can reach it; see [`Conn::sent_in_vain`].
    PeerClosed,
    /// The connection ended with an error.
    Ended(CloseError),
}

impl Conn {
    /// Whether the application may hand over more data.
    ///
    /// # Errors
    ///
    /// [`SendError`] says why not.
    pub fn may_send(&self) -> Result<(), SendError> {
        match self.error {
            Some(error) => Err(SendError::Ended(error)),
            None if self.closing.is_none() && self.close.has_lost_reader() => {
                Err(SendError::PeerClosed)
            }
            None if self.closing.is_some() || !self.close.may_send() => Err(SendError::Shutdown),
            None => Ok(()),
        }
    }

    /// Free bytes in the send ring.
    pub const fn send_room(&self) -> u32 {
        self.tx.room()
    }

    /// Whether pollers and sleeping writers are to be told that there is room.
    ///
    /// A third of the ring, so that a writer is not woken for crumbs.
    pub const fn is_writable(&self) -> bool {
        let third = self.tx.buf_len() / 3;
        self.tx.room() > third
    }

    /// Where the next `max` bytes, or as many as there is room for, are to be copied to.
    pub fn reserve(&self, max: u32) -> [Span; 2] {
        self.tx.reserve(max)
    }

    /// Takes the first `n` bytes copied into the reserved room; returns how many were taken.
    pub fn commit(&mut self, n: u32) -> u32 {
        self.tx.commit(n)
    }

    /// Like [`Conn::commit`], for a writer whose call may have more; `last` says that it has not.
    ///
    /// The end of a stream of data is held back: a writer that had filled the ring and hands over a
    /// few more bytes is likely to come back with more at once, and a message for the few would keep
    /// it from doing so. What the peer says next ends that.
    ///
    /// Returns whether the peer has nothing to say before it gets the few bytes. Then the caller sees
    /// to it that [`Conn::set_more_coming`] ends it when the writer has had its turn.
    pub fn written(&mut self, n: u32, last: bool) -> bool {
        let few = n < self.piece_to_send() / 4;
        self.coming = match last {
            false => Coming::Rest,
            true if few && self.found_full => Coming::NextCall,
            true => Coming::Nothing,
        };
        if last {
            self.found_full = false;
        }
        self.commit(n);
        self.coming == Coming::NextCall && self.tx.in_flight() == 0 && self.tx.peer_room() > 0
    }

    /// Notes that the writer goes to sleep; what matters is whether it found no room.
    pub fn writer_sleeps(&mut self) {
        if self.tx.room() > 0 {
            return;
        }
        self.found_full = true;
        if self.coming == Coming::NextCall {
            self.coming = Coming::Rest;
        }
    }

    /// The writer had the time of a round trip to come back.
    fn end_turn(&mut self) {
        if self.coming == Coming::NextCall {
            self.coming = Coming::Nothing;
        }
    }

    /// Marks the byte committed last as urgent (`MSG_OOB`).
    ///
    /// Returns false while an earlier urgent byte is under way; check [`Conn::urgent_busy`] before
    /// the byte is committed.
    pub fn mark_urgent(&mut self) -> bool {
        self.tx_urgent.queue(self.tx.pending())
    }

    /// Whether an urgent byte is under way, so that no other can be sent.
    pub const fn urgent_busy(&self) -> bool {
        self.tx_urgent.is_busy()
    }

    /// Plans the next write of at most `max` bytes; `None` when nothing can be written.
    pub fn next_write(&self, max: u32) -> Option<WritePlan> {
        if self.close.left() || self.close.peer_left() {
            return None;
        }
        self.tx.next_write(self.tx_urgent.write_limit(max))
    }

    /// Plans the next write while `unacked` messages of this connection are on their way; `None`
    /// when nothing can be written, or when it is better to wait and write more at once, which is
    /// never so when more than `cork` bytes wait.
    ///
    /// Whoever waits is called again: by a completion, by the peer's consumer cursor, or by the
    /// writer.
    pub fn next_write_behind(&self, unacked: u8, cork: u32) -> Option<WritePlan> {
        let piece = self.piece_to_send();
        let plan = self.next_write(piece)?;
        if self.tx.pending() > cork {
            return Some(plan);
        }
        let writer_comes =
            self.coming != Coming::Nothing && (self.tx.in_flight() > 0 || self.is_writable());
        if writer_comes && !self.is_closing() && self.tx.pending() < piece / 2 {
            return None;
        }
        window::may_follow(plan.len >= piece, unacked).then_some(plan)
    }

    /// Says whether a writer is in the middle of its data: what it handed over so far need not go
    /// before the rest, unless it is enough for a write of its own.
    pub fn set_more_coming(&mut self, more: bool) {
        self.coming = if more { Coming::Rest } else { Coming::Nothing };
    }

    /// Notes that `plan` was handed to the device.
    ///
    /// The message that announces it is due at once and belongs behind it on the same queue pair.
    pub fn posted(&mut self, plan: &WritePlan) -> Events {
        if !self.tx.posted(plan) {
            return Events::NONE;
        }
        self.tx_urgent.on_posted(plan.len);
        self.end_if_drained()
    }

    /// Gives back the oldest `n` posted bytes of the send ring.
    pub fn completed(&mut self, n: u32) -> Events {
        self.end_turn();
        let freed = self.tx.completed(n);
        Events::NONE.with_if(freed > 0 && self.is_writable(), Events::WRITABLE)
    }

    /// The most bytes a writer collects before they are written to the peer.
    pub const fn piece_to_send(&self) -> u32 {
        let (buf, peer) = (self.tx.buf_len(), self.tx.peer_len());
        window::piece(if buf < peer { buf } else { peer }, self.mover)
    }

    /// Whether the writer has data and the peer has no room for it (B).
    pub(super) const fn is_blocked(&self) -> bool {
        self.tx.pending() > 0 && self.tx.peer_room() == 0 && !self.close.peer_left()
    }

    /// Takes the consumer half of a CDC message.
    pub(super) fn on_consumer(&mut self, message: &CdcMessage) -> Result<Events, Violation> {
        let step = self
            .tx
            .on_peer_cons(message.cons)
            .map_err(Violation::Consumer)?;
        if step > 0 {
            self.end_turn();
        }
        let resumed = step > 0 && self.tx_urgent.on_acked(self.tx.all_acked());
        Ok(Events::NONE.with_if(resumed, Events::WRITABLE))
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Send side accounting of one connection (RFC 7609 sections 4.2, 4.4 and 4.7).
//!
//! Bytes travel through three stages: the writer copies them into the local send ring, an RDMA
//! write moves them into the peer's RMB element, and the peer's consumer cursor says that its
//! application took them. This type counts; it owns no memory. The two rings may have different
//! lengths and wrap at different points.

use crate::cursor::{Cursor, CursorError, Span};
use crate::wire::cdc::RawCursor;

/// Accounting of the local send ring and of the peer's RMB element.
#[derive(Clone, Debug)]
pub struct TxRing {
    buf_len: u32,
    peer_len: u32,
    /// Offset in the send ring where the writer continues.
    write_offset: u32,
    /// Offset in the send ring of the first byte not yet posted.
    post_offset: u32,
    /// Copied in, not yet posted.
    pending: u32,
    /// Posted, the send ring bytes are still in use by the device.
    in_flight: u32,
    /// Where the next byte goes in the peer's element.
    prod: Cursor,
    /// What the peer said it has consumed.
    cons: Cursor,
    /// Distance from `cons` to `prod`.
    unacked: u32,
}

/// One contiguous copy from the send ring into the peer's element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Offset in the send ring.
    pub src_offset: u32,
    /// Offset in the peer's RMB element.
    pub dst_offset: u32,
    /// Number of bytes; 0 for an unused chunk.
    pub len: u32,
}

/// What to write next, cut where either ring wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WritePlan {
    /// Pieces of the send ring, in order.
    pub src: [Span; 2],
    /// Pieces of the peer's element, in order.
    pub dst: [Span; 2],
    /// Total number of bytes, never 0.
    pub len: u32,
}

impl WritePlan {
    /// The copies that carry out the plan, in order; unused ones have length 0.
    pub fn chunks(&self) -> [Chunk; 3] {
        let [src, _] = self.src;
        let [dst, _] = self.dst;
        let first = src.len.min(dst.len);
        let second = src.len.max(dst.len);
        [
            self.chunk(0, first),
            self.chunk(first, second),
            self.chunk(second, self.len),
        ]
    }

    /// The bytes `from..to` of the plan, known not to contain a wrap of either ring.
    fn chunk(&self, from: u32, to: u32) -> Chunk {
        Chunk {
            src_offset: offset_in(&self.src, from),
            dst_offset: offset_in(&self.dst, from),
            len: to.saturating_sub(from),
        }
    }
}

/// Ring offset of byte `n` of the piece that `spans` describes.
fn offset_in(spans: &[Span; 2], n: u32) -> u32 {
    let [first, second] = spans;
    match n.checked_sub(first.len) {
        None => first.offset.saturating_add(n),
        Some(rest) => second.offset.saturating_add(rest),
    }
}

impl TxRing {
    /// Starts with an empty send ring of `buf_len` bytes and an empty peer element of `peer_len`.
    pub const fn new(buf_len: u32, peer_len: u32) -> Self {
        Self {
            buf_len,
            peer_len,
            write_offset: 0,
            post_offset: 0,
            pending: 0,
            in_flight: 0,
            prod: Cursor::START,
            cons: Cursor::START,
            unacked: 0,
        }
    }

    /// Length of the local send ring in bytes.
    pub const fn buf_len(&self) -> u32 {
        self.buf_len
    }

    /// Length of the peer's RMB element in bytes.
    pub const fn peer_len(&self) -> u32 {
        self.peer_len
    }

    /// Free bytes in the send ring.
    pub const fn room(&self) -> u32 {
        self.buf_len
            .saturating_sub(self.pending)
            .saturating_sub(self.in_flight)
    }

    /// Where the next `max` bytes, or as many as there is room for, are to be copied to.
    ///
    /// Nothing is taken until [`TxRing::commit`]: a copy that fails half way commits what it copied.
    pub fn reserve(&self, max: u32) -> [Span; 2] {
        Span::cut(self.write_offset, max.min(self.room()), self.buf_len)
    }

    /// Takes the first `n` bytes of the reserved room; returns how many were taken.
    ///
    /// That is `n` unless it is more than [`TxRing::room`].
    pub fn commit(&mut self, n: u32) -> u32 {
        let n = n.min(self.room());
        self.write_offset = Span::forward(self.write_offset, n, self.buf_len);
        self.pending = self.pending.saturating_add(n);
        n
    }

    /// Bytes copied in but not yet posted.
    pub const fn pending(&self) -> u32 {
        self.pending
    }

    /// Bytes posted whose completion is outstanding.
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Bytes the peer's element can still take, as far as the peer has said.
    pub const fn peer_room(&self) -> u32 {
        self.peer_len.saturating_sub(self.unacked)
    }

    /// Bytes written to the peer that it has not yet reported as consumed.
    pub const fn unacked(&self) -> u32 {
        self.unacked
    }

    /// Plans the next write of at most `max` bytes; `None` when there is nothing to write or no room.
    pub fn next_write(&self, max: u32) -> Option<WritePlan> {
        let len = max.min(self.pending).min(self.peer_room());
        if len == 0 {
            return None;
        }
        Some(WritePlan {
            src: Span::cut(self.post_offset, len, self.buf_len),
            dst: Span::cut(self.prod.count(), len, self.peer_len),
            len,
        })
    }

    /// Notes that `plan`, the latest one made, was handed to the device.
    ///
    /// Returns false, and changes nothing, when the plan does not describe the next bytes.
    pub fn posted(&mut self, plan: &WritePlan) -> bool {
        if self.next_write(plan.len) != Some(*plan) {
            return false;
        }
        self.post_offset = Span::forward(self.post_offset, plan.len, self.buf_len);
        self.pending = self.pending.saturating_sub(plan.len);
        self.in_flight = self.in_flight.saturating_add(plan.len);
        self.prod = self.prod.advance(plan.len, self.peer_len);
        self.unacked = self.unacked.saturating_add(plan.len);
        true
    }

    /// Gives back the oldest `n` posted bytes of the send ring; returns how many became free.
    ///
    /// Completions of one queue pair arrive in order, so a count is enough.
    pub fn completed(&mut self, n: u32) -> u32 {
        let n = n.min(self.in_flight);
        self.in_flight = self.in_flight.saturating_sub(n);
        n
    }

    /// The producer cursor to announce: one past the last byte posted.
    pub const fn prod(&self) -> Cursor {
        self.prod
    }

    /// The consumer cursor the peer announced last.
    pub const fn peer_cons(&self) -> Cursor {
        self.cons
    }

    /// Takes the peer's consumer cursor from a CDC message; returns the newly free bytes.
    ///
    /// # Errors
    ///
    /// [`CursorError`] when the cursor is outside of the element, moved backwards, or acknowledges
    /// bytes that were never written. Nothing is changed then.
    pub fn on_peer_cons(&mut self, raw: RawCursor) -> Result<u32, CursorError> {
        let (cons, step) = self.cons.step_to(raw, self.peer_len, self.unacked)?;
        self.cons = cons;
        self.unacked = self.unacked.saturating_sub(step);
        Ok(step)
    }

    /// Whether the peer consumed all that was written to it.
    pub const fn all_acked(&self) -> bool {
        self.unacked == 0
    }

    /// Whether everything the writer handed over was posted and completed.
    pub const fn all_sent(&self) -> bool {
        self.pending == 0 && self.in_flight == 0
    }

    /// Forgets everything that was not posted; returns the number of bytes lost.
    pub fn discard_pending(&mut self) -> u32 {
        let lost = self.pending;
        self.pending = 0;
        self.write_offset = self.post_offset;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(wrap: u16, count: u32) -> RawCursor {
        RawCursor { wrap, count }
    }

    fn send(ring: &mut TxRing, n: u32) -> WritePlan {
        assert_eq!(ring.commit(n), n);
        let plan = ring.next_write(n).unwrap();
        assert!(ring.posted(&plan));
        plan
    }

    #[test]
    fn room_returns_on_completion_and_peer_room_on_consumption() {
        let mut ring = TxRing::new(32, 16);
        assert_eq!(ring.commit(40), 32);
        assert_eq!(ring.room(), 0);
        let plan = ring.next_write(u32::MAX).unwrap();
        assert_eq!(plan.len, 16);
        assert!(ring.posted(&plan));
        assert!(!ring.posted(&plan));
        assert_eq!(ring.next_write(u32::MAX), None);
        assert_eq!(ring.completed(16), 16);
        assert_eq!(ring.completed(1), 0);
        assert_eq!((ring.room(), ring.peer_room()), (16, 0));
        assert_eq!(ring.on_peer_cons(raw(1, 0)), Ok(16));
        assert_eq!(ring.peer_room(), 16);
        assert!(ring.all_acked() && !ring.all_sent());
    }

    #[test]
    fn both_wraps_give_three_chunks() {
        let mut ring = TxRing::new(10, 14);
        send(&mut ring, 8);
        ring.completed(8);
        assert_eq!(ring.on_peer_cons(raw(0, 8)), Ok(8));
        let plan = send(&mut ring, 10);
        let chunk = |src_offset, dst_offset, len| Chunk {
            src_offset,
            dst_offset,
            len,
        };
        let expected = [chunk(8, 8, 2), chunk(0, 10, 4), chunk(4, 0, 4)];
        assert_eq!(plan.chunks(), expected);
        assert_eq!(ring.prod(), Cursor::START.advance(8, 14).advance(10, 14));
    }

    #[test]
    fn acknowledging_more_than_was_sent_is_refused() {
        let mut ring = TxRing::new(64, 64);
        send(&mut ring, 10);
        assert_eq!(
            ring.on_peer_cons(raw(0, 11)),
            Err(CursorError::Beyond { limit: 10 })
        );
        assert_eq!(ring.on_peer_cons(raw(0, 5)), Ok(5));
        assert_eq!(ring.on_peer_cons(raw(0, 5)), Ok(0));
        assert_eq!(ring.on_peer_cons(raw(0, 4)), Err(CursorError::Backwards));
        assert_eq!(
            ring.on_peer_cons(raw(1, 4)),
            Err(CursorError::Beyond { limit: 5 })
        );
        let outside = CursorError::Outside { count: 64, len: 64 };
        assert_eq!(ring.on_peer_cons(raw(0, 64)), Err(outside));
        assert_eq!(ring.peer_room(), 59);
    }

    #[test]
    fn discarding_reuses_the_room() {
        let mut ring = TxRing::new(16, 64);
        send(&mut ring, 4);
        ring.commit(12);
        assert_eq!(ring.discard_pending(), 12);
        assert_eq!(ring.room(), 12);
        assert_eq!(
            ring.reserve(1),
            [Span { offset: 4, len: 1 }, Span::default()]
        );
    }
}

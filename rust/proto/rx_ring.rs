// SPDX-License-Identifier: GPL-2.0

//! Receive side accounting of one connection: the RMB element the peer writes into
//! (RFC 7609 sections 4.2, 4.4 and 4.5.1).
//!
//! The peer announces what it wrote with its producer cursor. That cursor is not trusted: what may
//! be read is the sum of all accepted steps, and the sum never exceeds the ring.

use crate::cursor::{Cursor, CursorError, Span};
use crate::window::{SenderWants, Window};
use crate::wire::cdc::RawCursor;

/// Accounting of a local RMB element of fixed length.
#[derive(Clone, Debug)]
pub struct RxRing {
    len: u32,
    /// What the peer said it has written.
    prod: Cursor,
    /// What the application has consumed.
    cons: Cursor,
    /// Distance from `cons` to `prod`.
    readable: u32,
    /// Distance from the consumer cursor announced last to `cons`.
    unannounced: u32,
    /// Bytes the peer announced in all, consumed or not.
    received: u64,
}

impl RxRing {
    /// Starts with an empty element of `len` bytes.
    pub const fn new(len: u32) -> Self {
        Self {
            len,
            prod: Cursor::START,
            cons: Cursor::START,
            readable: 0,
            unannounced: 0,
            received: 0,
        }
    }

    /// Length of the element in bytes.
    pub const fn size(&self) -> u32 {
        self.len
    }

    /// Whether there is nothing to read.
    pub const fn is_empty(&self) -> bool {
        self.readable == 0
    }

    /// Takes the peer's producer cursor from a CDC message; returns the number of new bytes.
    ///
    /// # Errors
    ///
    /// [`CursorError`] when the cursor is outside of the element, moved backwards, or claims more
    /// bytes than were free. Nothing is changed then.
    pub fn on_peer_prod(&mut self, raw: RawCursor) -> Result<u32, CursorError> {
        let free = self.len.saturating_sub(self.readable);
        let (prod, step) = self.prod.step_to(raw, self.len, free)?;
        self.prod = prod;
        self.readable = self.readable.saturating_add(step);
        self.received = self.received.saturating_add(u64::from(step));
        Ok(step)
    }

    /// Bytes the peer announced since the start.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Bytes that can be read.
    pub const fn readable(&self) -> u32 {
        self.readable
    }

    /// Where the readable bytes are, after skipping the first `skip` of them, at most `max`.
    pub fn spans(&self, skip: u32, max: u32) -> [Span; 2] {
        let left = self.readable.saturating_sub(skip);
        let offset = Span::forward(self.cons.count(), skip.min(self.readable), self.len);
        Span::cut(offset, max.min(left), self.len)
    }

    /// Marks the first `n` readable bytes as consumed; returns how many were.
    ///
    /// That is `n` unless it is more than [`RxRing::readable`].
    pub fn consume(&mut self, n: u32) -> u32 {
        let n = n.min(self.readable);
        self.cons = self.cons.advance(n, self.len);
        self.readable = self.readable.saturating_sub(n);
        self.unannounced = self.unannounced.saturating_add(n);
        n
    }

    /// The consumer cursor to announce.
    pub const fn cons(&self) -> Cursor {
        self.cons
    }

    /// The producer cursor the peer announced last.
    pub const fn peer_prod(&self) -> Cursor {
        self.prod
    }

    /// Notes that [`RxRing::cons`] was put into a message to the peer.
    pub fn confirm(&mut self) {
        self.unannounced = 0;
    }

    /// Bytes consumed since the consumer cursor was last announced.
    pub const fn unannounced(&self) -> u32 {
        self.unannounced
    }

    /// Room that the peer knows of, in bytes.
    pub const fn sender_room(&self) -> u32 {
        self.len
            .saturating_sub(self.readable)
            .saturating_sub(self.unannounced)
    }

    /// Whether the consumer cursor deserves a message of its own now (section 4.5.1).
    pub const fn window_update_due(&self, force: bool, wants: SenderWants) -> bool {
        Window {
            len: self.len,
            sender_room: self.sender_room(),
            unannounced: self.unannounced,
        }
        .update_due(force, wants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(wrap: u16, count: u32) -> RawCursor {
        RawCursor { wrap, count }
    }

    #[test]
    fn readable_follows_both_cursors() {
        let mut ring = RxRing::new(100);
        assert!(ring.is_empty());
        assert_eq!(ring.on_peer_prod(raw(1, 0)), Ok(100));
        assert_eq!(ring.readable(), 100);
        assert_eq!(ring.consume(70), 70);
        assert_eq!(ring.on_peer_prod(raw(1, 70)), Ok(70));
        let span = |offset, len| Span { offset, len };
        assert_eq!(ring.spans(0, 500), [span(70, 30), span(0, 70)]);
        assert_eq!(ring.spans(30, 10), [span(0, 10), span(0, 0)]);
        assert_eq!(ring.spans(100, 10), [span(70, 0), span(0, 0)]);
        assert_eq!(ring.consume(500), 100);
        assert_eq!(ring.cons(), ring.peer_prod());
    }

    #[test]
    fn accumulated_steps_cannot_exceed_the_ring() {
        let mut ring = RxRing::new(100);
        assert_eq!(ring.on_peer_prod(raw(0, 60)), Ok(60));
        assert_eq!(ring.on_peer_prod(raw(1, 0)), Ok(40));
        assert_eq!(
            ring.on_peer_prod(raw(1, 1)),
            Err(CursorError::Beyond { limit: 0 })
        );
        assert_eq!(
            ring.on_peer_prod(raw(2, 0)),
            Err(CursorError::Beyond { limit: 0 })
        );
        assert_eq!(ring.on_peer_prod(raw(0, 99)), Err(CursorError::Backwards));
        assert_eq!(ring.readable(), 100);
        ring.consume(1);
        assert_eq!(
            ring.on_peer_prod(raw(1, 2)),
            Err(CursorError::Beyond { limit: 1 })
        );
        assert_eq!(ring.on_peer_prod(raw(1, 1)), Ok(1));
    }

    #[test]
    fn what_was_refused_counts_as_not_received() {
        let mut ring = RxRing::new(100);
        ring.on_peer_prod(raw(1, 0)).unwrap();
        assert!(ring.on_peer_prod(raw(1, 1)).is_err());
        ring.consume(30);
        ring.on_peer_prod(raw(1, 30)).unwrap();
        assert_eq!(ring.received(), 130);
    }

    #[test]
    fn confirming_resets_the_update() {
        let mut ring = RxRing::new(100);
        let wants = SenderWants::default();
        ring.on_peer_prod(raw(1, 0)).unwrap();
        ring.consume(9);
        assert!(!ring.window_update_due(false, wants));
        ring.consume(1);
        assert!(ring.window_update_due(false, wants));
        ring.confirm();
        assert_eq!(ring.unannounced(), 0);
        assert!(!ring.window_update_due(true, wants));
    }
}

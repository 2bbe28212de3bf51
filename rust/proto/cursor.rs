// SPDX-License-Identifier: GPL-2.0

//! Ring positions: the wrapping producer and consumer cursors of RFC 7609 section 4.2.
//!
//! A cursor is an offset into a receive buffer together with the number of times it wrapped. The
//! wrap number is what tells a full buffer from an empty one, because both have equal offsets.
//! Buffers announced with the "no eyecatcher" flag of CONFIRM LINK start at offset 0.

use crate::wire::cdc::RawCursor;

/// A position inside a ring, known to lie inside it.
///
/// The length of the ring is not stored: it is an argument wherever it matters, and the owner of the
/// cursor passes the same length every time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    wrap: u16,
    count: u32,
}

/// Why a cursor received from the peer was refused.
///
/// Each of these is a protocol violation and ends the connection it was received on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorError {
    /// The offset is not inside the ring.
    Outside {
        /// The offset that was received.
        count: u32,
        /// The length of the ring in bytes.
        len: u32,
    },
    /// The cursor moved to an earlier position than the one announced before.
    Backwards,
    /// The cursor moved further than the data or the room that exists.
    Beyond {
        /// How far it may have moved, in bytes.
        limit: u32,
    },
}

impl CursorError {
    /// Says in one sentence what the peer did wrong.
    pub const fn describe(&self) -> &'static str {
        match self {
            Self::Outside { .. } => "the peer sent a cursor that lies outside of the buffer",
            Self::Backwards => "the peer moved a cursor backwards",
            Self::Beyond { .. } => "the peer moved a cursor past the end of the data or the room",
        }
    }
}

impl Cursor {
    /// The position both sides start from: offset 0, no wrap.
    pub const START: Self = Self { wrap: 0, count: 0 };

    /// Checks a cursor from a CDC message against a ring of `len` bytes.
    ///
    /// # Errors
    ///
    /// [`CursorError::Outside`] when the offset is `len` or more. Whether the wrap number is
    /// consistent can only be judged against an earlier cursor: see [`Cursor::step_to`].
    pub const fn from_wire(raw: RawCursor, len: u32) -> Result<Self, CursorError> {
        if raw.count < len {
            Ok(Self {
                wrap: raw.wrap,
                count: raw.count,
            })
        } else {
            Err(CursorError::Outside {
                count: raw.count,
                len,
            })
        }
    }

    /// The form that goes into a CDC message.
    pub const fn raw(self) -> RawCursor {
        RawCursor {
            wrap: self.wrap,
            count: self.count,
        }
    }

    /// How often the cursor wrapped, modulo 65536.
    pub const fn wrap(self) -> u16 {
        self.wrap
    }

    /// Offset into the ring in bytes.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// The position `n` bytes further on, for `n` not above `len`.
    ///
    /// A larger `n` is cut to `len`: no caller moves a cursor by more than one ring at a time.
    #[must_use]
    pub const fn advance(self, n: u32, len: u32) -> Self {
        let n = if n < len { n } else { len };
        let to_end = len.saturating_sub(self.count);
        if n < to_end {
            Self {
                wrap: self.wrap,
                count: self.count.saturating_add(n),
            }
        } else {
            Self {
                wrap: self.wrap.wrapping_add(1),
                count: n.saturating_sub(to_end),
            }
        }
    }

    /// Bytes from this position forward to `to`, at most one ring.
    ///
    /// # Errors
    ///
    /// [`CursorError::Backwards`] when `to` lies behind this position and [`CursorError::Beyond`]
    /// when it is more than `len` bytes ahead.
    pub const fn distance(self, to: Self, len: u32) -> Result<u32, CursorError> {
        match to.wrap.wrapping_sub(self.wrap) {
            0 => match to.count.checked_sub(self.count) {
                Some(n) => Ok(n),
                None => Err(CursorError::Backwards),
            },
            1 if to.count <= self.count => {
                Ok(len.saturating_sub(self.count).saturating_add(to.count))
            }
            ahead if ahead < 0x8000 => Err(CursorError::Beyond { limit: len }),
            _ => Err(CursorError::Backwards),
        }
    }

    /// Checks that the peer may move this cursor to `raw` and returns the new position and the step.
    ///
    /// `limit` is the number of bytes that exist to be moved over, not above `len`.
    ///
    /// # Errors
    ///
    /// Any [`CursorError`]: the received position is outside, behind, or more than `limit` ahead.
    pub const fn step_to(
        self,
        raw: RawCursor,
        len: u32,
        limit: u32,
    ) -> Result<(Self, u32), CursorError> {
        let to = match Self::from_wire(raw, len) {
            Ok(to) => to,
            Err(error) => return Err(error),
        };
        match self.distance(to, len) {
            Ok(step) if step <= limit => Ok((to, step)),
            Ok(_) | Err(CursorError::Beyond { .. }) => Err(CursorError::Beyond { limit }),
            Err(error) => Err(error),
        }
    }
}

/// A contiguous piece of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte in the ring.
    pub offset: u32,
    /// Number of bytes; 0 for an unused span.
    pub len: u32,
}

impl Span {
    /// Cuts `n` bytes starting at `offset` of a ring of `len` bytes where the ring wraps.
    ///
    /// The second span is empty when the piece does not wrap. `n` is cut to `len`.
    pub const fn cut(offset: u32, n: u32, len: u32) -> [Self; 2] {
        let n = if n < len { n } else { len };
        let to_end = len.saturating_sub(offset);
        let first = if n < to_end { n } else { to_end };
        [
            Self { offset, len: first },
            Self {
                offset: 0,
                len: n.saturating_sub(first),
            },
        ]
    }

    /// The offset `n` bytes after `offset` in a ring of `len` bytes, for `n` not above `len`.
    pub(crate) const fn forward(offset: u32, n: u32, len: u32) -> u32 {
        Cursor {
            wrap: 0,
            count: offset,
        }
        .advance(n, len)
        .count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u32 = 100;

    fn raw(wrap: u16, count: u32) -> RawCursor {
        RawCursor { wrap, count }
    }

    fn at(wrap: u16, count: u32) -> Cursor {
        Cursor { wrap, count }
    }

    #[test]
    fn offset_must_be_inside() {
        assert_eq!(Cursor::from_wire(raw(7, 99), LEN), Ok(at(7, 99)));
        let refused = Cursor::from_wire(raw(0, 100), LEN);
        assert_eq!(
            refused,
            Err(CursorError::Outside {
                count: 100,
                len: LEN
            })
        );
        assert!(Cursor::from_wire(raw(0, 0), 0).is_err());
    }

    #[test]
    fn advance_wraps_once() {
        assert_eq!(at(0, 0).advance(99, LEN), at(0, 99));
        assert_eq!(at(0, 0).advance(100, LEN), at(1, 0));
        assert_eq!(at(0, 60).advance(100, LEN), at(1, 60));
        assert_eq!(at(0xffff, 60).advance(40, LEN), at(0, 0));
        assert_eq!(at(3, 60).advance(0, LEN), at(3, 60));
    }

    #[test]
    fn distance_tells_full_from_empty() {
        assert_eq!(at(4, 30).distance(at(4, 30), LEN), Ok(0));
        assert_eq!(at(4, 30).distance(at(5, 30), LEN), Ok(100));
        assert_eq!(at(4, 30).distance(at(5, 29), LEN), Ok(99));
        assert_eq!(at(0xffff, 99).distance(at(0, 0), LEN), Ok(1));
    }

    #[test]
    fn distance_refuses_backwards_and_beyond() {
        assert_eq!(
            at(4, 30).distance(at(4, 29), LEN),
            Err(CursorError::Backwards)
        );
        assert_eq!(
            at(4, 30).distance(at(3, 99), LEN),
            Err(CursorError::Backwards)
        );
        let beyond = Err(CursorError::Beyond { limit: LEN });
        assert_eq!(at(4, 30).distance(at(5, 31), LEN), beyond);
        assert_eq!(at(4, 30).distance(at(6, 0), LEN), beyond);
    }

    #[test]
    fn step_is_limited_by_what_exists() {
        assert_eq!(at(0, 0).step_to(raw(0, 10), LEN, 10), Ok((at(0, 10), 10)));
        let beyond = Err(CursorError::Beyond { limit: 10 });
        assert_eq!(at(0, 0).step_to(raw(0, 11), LEN, 10), beyond);
        assert_eq!(at(0, 0).step_to(raw(2, 0), LEN, 10), beyond);
    }

    #[test]
    fn spans_cut_at_the_end() {
        let whole = |offset, len| Span { offset, len };
        assert_eq!(Span::cut(90, 10, LEN), [whole(90, 10), whole(0, 0)]);
        assert_eq!(Span::cut(90, 11, LEN), [whole(90, 10), whole(0, 1)]);
        assert_eq!(Span::cut(0, 500, LEN), [whole(0, 100), whole(0, 0)]);
        assert_eq!(Span::forward(90, 10, LEN), 0);
    }
}

// SPDX-License-Identifier: GPL-2.0

//! What a connection tells its owner.

use crate::cursor::CursorError;

/// A set of things that happened or are to be done.
///
/// What can be sent is not among them: after every call the owner asks [`Conn::next_write`] and
/// [`Conn::cdc_due`].
///
/// [`Conn::next_write`]: super::Conn::next_write
/// [`Conn::cdc_due`]: super::Conn::cdc_due
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events(u16);

impl Events {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Readers and pollers are to look again: data, the end of data, or an error.
    pub const READABLE: Self = Self(0x0001);
    /// Writers and pollers are to look again: room, or an error.
    pub const WRITABLE: Self = Self(0x0002);
    /// Urgent data was announced: signal the application.
    pub const URGENT: Self = Self(0x0004);
    /// The urgent byte is in the RMB element: copy it out and hand it in.
    pub const URGENT_DATA: Self = Self(0x0008);
    /// The peer is done sending.
    pub const PEER_DONE: Self = Self(0x0010);
    /// The peer closed.
    pub const PEER_CLOSED: Self = Self(0x0020);
    /// The peer aborted.
    pub const PEER_ABORT: Self = Self(0x0040);
    /// The peer is done with the RMB element, which may be reused after the last message.
    pub const FREE: Self = Self(0x0080);
    /// The TCP connection is to be reset.
    pub const RESET_TCP: Self = Self(0x0100);

    /// With [`Events::FREE`]: the peer may still write to the RMB element, which must not serve another
    /// connection until it says that it is gone, or the link group ends.
    pub const QUARANTINE: Self = Self(0x0200);

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set, and `other` if `condition` holds.
    #[must_use]
    pub const fn with_if(self, condition: bool, other: Self) -> Self {
        if condition {
            self.with(other)
        } else {
            self
        }
    }

    /// Whether all of `other` is in the set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` is in the set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set as bits, for tracing.
    pub const fn bits(self) -> u16 {
        self.0
    }
}

/// How the peer broke the protocol on a connection; the connection is to be aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The producer cursor is impossible.
    Producer(CursorError),
    /// The consumer cursor is impossible.
    Consumer(CursorError),
    /// A failover validation names a message that never arrived (RFC 7609 section 4.6.1).
    DataLost,
}

impl Violation {
    /// Says in one sentence what went wrong.
    pub const fn describe(&self) -> &'static str {
        match self {
            Self::Producer(CursorError::Outside { .. }) => {
                "the peer announced data at an offset outside of our receive buffer"
            }
            Self::Producer(CursorError::Backwards) => {
                "the peer took back data that it had announced"
            }
            Self::Producer(CursorError::Beyond { .. }) => {
                "the peer announced more data than our receive buffer had room for"
            }
            Self::Consumer(CursorError::Outside { .. }) => {
                "the peer reported consumption at an offset outside of its receive buffer"
            }
            Self::Consumer(CursorError::Backwards) => "the peer took back room that it had granted",
            Self::Consumer(CursorError::Beyond { .. }) => {
                "the peer reported that it consumed data which was never sent"
            }
            Self::DataLost => "data was lost when the connection moved to another link",
        }
    }
}

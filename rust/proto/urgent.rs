// SPDX-License-Identifier: GPL-2.0

//! Urgent data: one byte per direction that overtakes the stream in the eyes of the application
//! (RFC 7609 sections 4.7.5 and 4.7.6).
//!
//! The sender raises the "urgent data pending" flag (P) as soon as it has an urgent byte and the
//! "urgent data present" flag (U) in the message whose producer cursor is one past that byte. It then
//! writes nothing more until the receiver's consumer cursor passed the byte. Each flag is shown only
//! while it says something new: some peers take a repeated P for a second urgent byte.

/// Urgent state of the sending direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TxUrgent {
    /// No urgent byte under way.
    #[default]
    Idle,
    /// The urgent byte is in the send ring.
    Queued {
        /// Bytes to be posted up to and including the urgent byte, at least 1.
        ahead: u32,
        /// Whether P was shown to the peer.
        announced: bool,
    },
    /// The urgent byte was posted; the next message carries U.
    Posted,
    /// U was sent; waiting until the peer consumed everything.
    AwaitAck,
}

impl TxUrgent {
    /// Marks the last of `pending` unposted bytes as urgent.
    ///
    /// Returns false, and changes nothing, while an earlier urgent byte is under way or when there
    /// is no byte to mark.
    pub fn queue(&mut self, pending: u32) -> bool {
        if self.is_busy() || pending == 0 {
            return false;
        }
        *self = Self::Queued {
            ahead: pending,
            announced: false,
        };
        true
    }

    /// Whether an urgent byte is under way.
    pub const fn is_busy(self) -> bool {
        !matches!(self, Self::Idle)
    }

    /// The most bytes that may be written now, at most `max`.
    pub const fn write_limit(self, max: u32) -> u32 {
        match self {
            Self::Idle => max,
            Self::Queued { ahead, .. } => {
                if ahead < max {
                    ahead
                } else {
                    max
                }
            }
            Self::Posted | Self::AwaitAck => 0,
        }
    }

    /// Notes that `n` more bytes were posted.
    pub fn on_posted(&mut self, n: u32) {
        if let Self::Queued { ahead, announced } = *self {
            let ahead = ahead.saturating_sub(n);
            *self = if ahead == 0 {
                Self::Posted
            } else {
                Self::Queued { ahead, announced }
            };
        }
    }

    /// Whether the peer is to be told about a change of the flags.
    pub const fn message_due(self) -> bool {
        matches!(
            self,
            Self::Posted
                | Self::Queued {
                    announced: false,
                    ..
                }
        )
    }

    /// The flags P and U for the message that is being built.
    pub const fn flags(self) -> (bool, bool) {
        match self {
            Self::Idle | Self::AwaitAck => (false, false),
            Self::Queued { .. } => (true, false),
            Self::Posted => (true, true),
        }
    }

    /// Notes that a message with the current flags was built.
    pub fn on_announced(&mut self) {
        *self = match *self {
            Self::Queued { ahead, .. } => Self::Queued {
                ahead,
                announced: true,
            },
            Self::Posted => Self::AwaitAck,
            other => other,
        };
    }

    /// Ends the wait once the peer consumed everything; returns whether writing may go on.
    pub fn on_acked(&mut self, all_acked: bool) -> bool {
        let over = all_acked && matches!(self, Self::AwaitAck);
        if over {
            *self = Self::Idle;
        }
        over
    }
}

/// Where the urgent byte of the receiving direction is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Byte {
    /// There is none, or it was read.
    #[default]
    None,
    /// The peer said that one will come.
    Pending,
    /// It is in the RMB element and was not copied out yet.
    InRing,
    /// It was copied out and waits to be read.
    Held(u8),
}

/// Why there is no urgent byte to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrgentError {
    /// One was announced but is not here yet; corresponds to `EAGAIN`.
    NotYet,
    /// None was sent, it was read before, or it is part of the stream; corresponds to `EINVAL`.
    Nothing,
}

/// What the arrival of a message means for urgent data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UrgentNews {
    /// The application is to be signalled (`SIGURG`).
    pub signal: bool,
    /// The byte is in the ring and must be copied out.
    pub arrived: bool,
}

/// Urgent state of the receiving direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxUrgent {
    byte: Byte,
    /// Readable bytes in front of the urgent byte, while that was not passed.
    left: Option<u32>,
    /// The application wants the byte as part of the stream (`SO_OOBINLINE`).
    inline: bool,
    /// The urgent byte was passed over and nothing was consumed since.
    passed: bool,
}

impl RxUrgent {
    /// No urgent data was ever heard of.
    pub const fn new() -> Self {
        Self {
            byte: Byte::None,
            left: None,
            inline: false,
            passed: false,
        }
    }

    /// Chooses whether the urgent byte stays in the stream (`SO_OOBINLINE`).
    pub fn set_inline(&mut self, inline: bool) {
        self.inline = inline;
    }

    /// Takes the flags P and U of a message that brought `new_bytes` and left `readable` in the ring.
    pub fn on_flags(
        &mut self,
        pending: bool,
        present: bool,
        new_bytes: u32,
        readable: u32,
    ) -> UrgentNews {
        let known = self.byte == Byte::Pending;
        if present && new_bytes > 0 {
            self.left = Some(readable.saturating_sub(1));
            self.byte = Byte::InRing;
            self.passed = false;
            return UrgentNews {
                signal: !known,
                arrived: true,
            };
        }
        let news = pending && self.byte == Byte::None;
        if news {
            self.byte = Byte::Pending;
        }
        UrgentNews {
            signal: news,
            arrived: false,
        }
    }

    /// Distance from the consumer cursor to the urgent byte while it has yet to be copied out.
    pub const fn wanted(&self) -> Option<u32> {
        match (self.byte, self.left) {
            (Byte::InRing, Some(left)) => Some(left),
            _ => None,
        }
    }

    /// Hands in the byte found where [`RxUrgent::wanted`] said.
    pub fn hold(&mut self, byte: u8) {
        if self.byte == Byte::InRing {
            self.byte = Byte::Held(byte);
        }
    }

    /// How many of `readable` bytes the application gets to see as part of the stream.
    pub const fn visible(&self, readable: u32) -> u32 {
        if self.left.is_some() && !self.inline {
            readable.saturating_sub(1)
        } else {
            readable
        }
    }

    /// The most bytes one read may take after `skip` bytes, so that it stops in front of the mark.
    pub const fn read_limit(&self, skip: u32) -> u32 {
        match self.left {
            None => u32::MAX,
            Some(0) if self.inline => u32::MAX,
            Some(left) => left.saturating_sub(skip),
        }
    }

    /// Notes that the stream advanced by `n` bytes; returns whether it went past the urgent byte.
    pub fn on_consumed(&mut self, n: u32) -> bool {
        if n > 0 {
            self.passed = false;
        }
        let Some(left) = self.left else {
            return false;
        };
        if n > left {
            self.left = None;
            self.byte = Byte::None;
            return true;
        }
        self.left = Some(left.saturating_sub(n));
        false
    }

    /// Whether the urgent byte is next in the ring and is to be passed over; notes that it was.
    ///
    /// That happens as soon as the byte is safe, not at the next read: the peer writes nothing more
    /// before it, and a reader that waits for more data would wait for ever.
    pub fn pass_over(&mut self) -> bool {
        let due = self.left == Some(0) && !self.inline && self.byte != Byte::InRing;
        if due {
            self.left = None;
            self.passed = true;
        }
        due
    }

    /// Whether the urgent byte was passed over, and the reader still stands there.
    pub const fn is_passed(&self) -> bool {
        self.passed
    }

    /// The reader goes on behind a byte that was passed over: it cannot be read any more.
    pub fn forget(&mut self) {
        if self.passed {
            self.passed = false;
            self.byte = Byte::None;
        }
    }

    /// Whether the next byte of the stream is the one at the mark (`SIOCATMARK`).
    pub const fn at_mark(&self) -> bool {
        self.passed || matches!(self.left, Some(0))
    }

    /// Whether the urgent byte is in the ring and the reader has yet to pass it.
    pub const fn is_ahead(&self) -> bool {
        self.left.is_some()
    }

    /// Whether there is an urgent byte, here or on its way, that was not read.
    pub const fn is_announced(&self) -> bool {
        !matches!(self.byte, Byte::None)
    }

    /// Whether an urgent byte can be read now (`POLLPRI`).
    pub const fn is_available(&self) -> bool {
        matches!(self.byte, Byte::Held(_)) || (self.inline && self.left.is_some())
    }

    /// Reads the urgent byte (`MSG_OOB`); with `peek` it stays.
    ///
    /// # Errors
    ///
    /// [`UrgentError`] when there is nothing to read.
    pub fn read(&mut self, peek: bool) -> Result<u8, UrgentError> {
        if self.inline {
            return Err(UrgentError::Nothing);
        }
        match self.byte {
            Byte::None => Err(UrgentError::Nothing),
            Byte::Pending | Byte::InRing => Err(UrgentError::NotYet),
            Byte::Held(byte) => {
                if !peek {
                    self.byte = Byte::None;
                }
                Ok(byte)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_was_passed_over_is_gone_once_the_reader_goes_on() {
        let mut rx = RxUrgent::new();
        assert!(rx.on_flags(true, true, 5, 5).arrived);
        rx.hold(b'!');
        rx.forget();
        assert_eq!(rx.read(true), Ok(b'!'), "the reader is not there yet");
        assert!(!rx.on_consumed(4));
        assert!(rx.pass_over());
        assert!(rx.is_passed() && rx.at_mark() && rx.is_available());
        rx.forget();
        assert!(!rx.is_passed() && !rx.at_mark() && !rx.is_available());
        assert_eq!(rx.read(false), Err(UrgentError::Nothing));
    }

    #[test]
    fn sender_shows_each_flag_once() {
        let mut tx = TxUrgent::default();
        assert!(!tx.queue(0));
        assert!(tx.queue(10));
        assert!(!tx.queue(3));
        assert!(tx.message_due());
        assert_eq!(tx.flags(), (true, false));
        tx.on_announced();
        assert!(!tx.message_due());
        tx.on_posted(4);
        assert_eq!(tx.write_limit(100), 6);
        tx.on_posted(6);
        assert!(tx.message_due());
        assert_eq!(tx.flags(), (true, true));
        assert_eq!(tx.write_limit(100), 0);
        tx.on_announced();
        assert_eq!(tx.flags(), (false, false));
        assert!(!tx.on_acked(false));
        assert_eq!(tx.write_limit(100), 0);
        assert!(tx.on_acked(true));
        assert_eq!(tx.write_limit(100), 100);
    }

    #[test]
    fn receiver_passes_over_the_byte_once_it_is_safe() {
        let mut rx = RxUrgent::default();
        assert_eq!(rx.read(false), Err(UrgentError::Nothing));
        assert!(rx.on_flags(true, false, 0, 0).signal);
        assert!(!rx.on_flags(true, false, 0, 0).signal);
        assert_eq!(rx.read(false), Err(UrgentError::NotYet));
        let news = rx.on_flags(true, true, 5, 5);
        assert_eq!((news.signal, news.arrived), (false, true));
        assert_eq!((rx.visible(5), rx.read_limit(0)), (4, 4));
        assert_eq!(rx.wanted(), Some(4));
        assert!(!rx.on_consumed(4));
        assert!(rx.at_mark());
        assert!(!rx.pass_over());
        rx.hold(b'!');
        assert!(rx.pass_over());
        assert!(rx.at_mark());
        assert_eq!(rx.read(true), Ok(b'!'));
        assert_eq!(rx.read(false), Ok(b'!'));
        assert_eq!(rx.read(false), Err(UrgentError::Nothing));
        rx.on_consumed(1);
        assert!(!rx.at_mark());
    }

    #[test]
    fn inline_byte_stays_in_the_stream() {
        let mut rx = RxUrgent::default();
        rx.set_inline(true);
        assert!(rx.on_flags(true, true, 3, 3).signal);
        rx.hold(b'x');
        assert_eq!(
            (rx.visible(3), rx.read_limit(0), rx.read_limit(1)),
            (3, 2, 1)
        );
        assert!(rx.is_available());
        assert!(!rx.on_consumed(2));
        assert!(rx.at_mark() && !rx.pass_over());
        assert_eq!(rx.read_limit(0), u32::MAX);
        assert_eq!(rx.read(false), Err(UrgentError::Nothing));
        assert!(rx.on_consumed(1));
        assert!(!rx.is_available());
    }

    #[test]
    fn repeated_present_flag_without_data_means_nothing() {
        let mut rx = RxUrgent::default();
        rx.on_flags(true, true, 1, 1);
        rx.hold(b'a');
        assert!(rx.pass_over());
        assert_eq!(rx.on_flags(true, true, 0, 0), UrgentNews::default());
        assert_eq!(rx.read(false), Ok(b'a'));
    }
}

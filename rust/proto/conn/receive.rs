// SPDX-License-Identifier: GPL-2.0

//! The receiving direction of a connection.

use super::{Conn, Events, Violation};
use crate::cursor::Span;
use crate::urgent::UrgentError;
use crate::window::{self, SenderWants};
use crate::wire::cdc::{CdcMessage, ConnFlags, ProdFlags};

/// The outcome of reading from a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumed {
    /// Bytes that were taken.
    pub len: u32,
    /// The reader reached the urgent mark, where one read ends.
    pub at_mark: bool,
}

impl Conn {
    /// Bytes of the stream that can be read; the urgent byte does not count unless it is inline.
    pub const fn readable(&self) -> u32 {
        self.rx_urgent.visible(self.rx.readable())
    }

    /// Bytes at the start of the RMB element that may differ from what they were when the connection
    /// began; they have to be cleared before the element serves another one.
    ///
    /// After a reset the peer may have written what is not looked at any more, so that nothing is
    /// known then.
    pub fn touched(&self) -> u32 {
        let flags = self.close.sent().with(self.close.received());
        let orderly = self.error.is_none() && !flags.contains(ConnFlags::ABORT);
        let received = u32::try_from(self.rx.received()).unwrap_or(u32::MAX);
        if orderly {
            received.min(self.rx.size())
        } else {
            self.rx.size()
        }
    }

    /// Whether no more data will come after what is readable.
    pub const fn is_end_of_data(&self) -> bool {
        self.close.peer_is_done()
    }

    /// Whether the peer said that its stream ends behind what is readable, which a reset did not cut.
    pub const fn stream_has_ended(&self) -> bool {
        self.close.peer_ended_stream()
    }

    /// Where the readable bytes are in the RMB element, after skipping the first `skip`.
    ///
    /// At most `max` bytes, and not past the urgent mark: one read ends there, as it does on TCP.
    pub fn recv_spans(&self, skip: u32, max: u32) -> [Span; 2] {
        self.rx
            .spans(skip, max.min(self.rx_urgent.read_limit(skip)))
    }

    /// The most bytes one copy should take before [`Conn::consume`] is called.
    pub const fn piece_to_read(&self) -> u32 {
        window::piece(self.rx.size(), self.mover)
    }

    /// Marks the first `n` readable bytes as read.
    pub fn consume(&mut self, n: u32) -> Consumed {
        let len = self.rx.consume(n.min(self.rx_urgent.read_limit(0)));
        if self.rx_urgent.on_consumed(len) {
            self.update_forced = true;
        }
        self.pass_urgent();
        Consumed {
            len,
            at_mark: self.rx_urgent.at_mark(),
        }
    }

    /// Offset in the RMB element of an urgent byte that is to be copied out.
    pub fn urgent_wanted(&self) -> Option<u32> {
        let [span, _] = self.rx.spans(self.rx_urgent.wanted()?, 1);
        Some(span.offset)
    }

    /// Hands in the byte found at [`Conn::urgent_wanted`].
    pub fn urgent_hold(&mut self, byte: u8) {
        self.rx_urgent.hold(byte);
        self.pass_urgent();
    }

    /// Reads the urgent byte (`MSG_OOB`); with `peek` it stays.
    ///
    /// # Errors
    ///
    /// [`UrgentError`] when there is none to be read this way.
    pub fn read_urgent(&mut self, peek: bool) -> Result<u8, UrgentError> {
        self.rx_urgent.read(peek)
    }

    /// Whether an urgent byte was passed over, and the reader still stands there.
    pub const fn passed_urgent(&self) -> bool {
        self.rx_urgent.is_passed()
    }

    /// The reader goes on: an urgent byte that was passed over and not read is forgotten, as TCP does.
    pub fn forget_urgent(&mut self) {
        self.rx_urgent.forget();
    }

    /// Whether the peer has said that there is an urgent byte, which the application has yet to read.
    pub const fn urgent_announced(&self) -> bool {
        self.rx_urgent.is_announced()
    }

    /// Whether urgent data can be read now (`POLLPRI`).
    pub const fn urgent_available(&self) -> bool {
        self.rx_urgent.is_available()
    }

    /// Whether the reader stands at the urgent mark (`SIOCATMARK`).
    pub const fn at_mark(&self) -> bool {
        self.rx_urgent.at_mark()
    }

    /// Chooses whether the urgent byte stays in the stream (`SO_OOBINLINE`).
    pub fn set_oob_inline(&mut self, inline: bool) {
        self.rx_urgent.set_inline(inline);
        self.pass_urgent();
    }

    /// Takes the producer half of a CDC message.
    pub(super) fn on_producer(&mut self, message: &CdcMessage) -> Result<Events, Violation> {
        let flags = message.prod_flags;
        let new_bytes = self
            .rx
            .on_peer_prod(message.prod)
            .map_err(Violation::Producer)?;
        self.wants = SenderWants {
            blocked: flags.contains(ProdFlags::WRITER_BLOCKED),
            update: flags.contains(ProdFlags::CONS_UPDATE_REQUESTED),
        };
        if self.unattended {
            // The peer must not wait for room that no reader makes, as it may have to take data of
            // ours before this side can close.
            self.rx.consume(new_bytes);
            return Ok(Events::NONE);
        }
        let news = self.rx_urgent.on_flags(
            flags.contains(ProdFlags::URGENT_PENDING),
            flags.contains(ProdFlags::URGENT_PRESENT),
            new_bytes,
            self.rx.readable(),
        );
        Ok(Events::NONE
            .with_if(new_bytes > 0, Events::READABLE)
            .with_if(news.signal, Events::URGENT)
            .with_if(news.arrived, Events::URGENT_DATA))
    }

    /// Moves past the urgent byte when it is next and safe.
    ///
    /// The sender waits for that, so it is announced whatever the window says.
    fn pass_urgent(&mut self) {
        if self.rx_urgent.pass_over() {
            self.rx.consume(1);
            self.update_forced = true;
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! When a receiver tells the sender about consumed bytes (RFC 7609 section 4.5.1).
//!
//! Every CDC message carries the consumer cursor. The question answered here is when consumption
//! alone deserves a message of its own.

/// The state of a receive ring that the decision is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Length of the ring in bytes.
    pub len: u32,
    /// Room in bytes that the sender believes it has.
    pub sender_room: u32,
    /// Bytes consumed since the consumer cursor was last announced.
    pub unannounced: u32,
}

/// What the sender asked for in the producer flags of its last CDC message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderWants {
    /// The writer is blocked (B): it has data and no room.
    pub blocked: bool,
    /// A consumer cursor update was requested (R).
    pub update: bool,
}

impl Window {
    /// Whether the consumer cursor is to be announced now.
    ///
    /// `force` is set by the caller when something other than the window needs the announcement,
    /// for example urgent data that was passed over.
    pub const fn update_due(self, force: bool, wants: SenderWants) -> bool {
        if self.unannounced == 0 {
            return false;
        }
        if force || wants.blocked || wants.update {
            return true;
        }
        let half = self.len / 2;
        let tenth = self.len / 10;
        // A reader that took half a ring says so even while the sender has room: the sender then
        // refills the first half while the second is being read.
        (self.sender_room < half && self.unannounced >= tenth) || self.unannounced >= half
    }
}

/// Who moves the bytes of a connection from one host to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    /// The network adapter: it moves one part of a ring while the processors fill and empty another.
    Adapter,
    /// The processor, which makes and takes every packet. A message then costs more than two parts
    /// that overlap would gain.
    Processor,
}

/// The bytes of a ring of `len` bytes that are written, announced and read at a time.
///
/// Half of a ring keeps both ends busy; a whole one of usual size is what a processor is best at.
/// Never more than 128 KiB, so that a reader of a large ring starts early, and never less than 8 KiB
/// as far as the ring has that.
pub const fn piece(len: u32, mover: Mover) -> u32 {
    const LEAST: u32 = 8 * 1024;
    const MOST: u32 = 128 * 1024;
    const WHOLE: u32 = 64 * 1024;
    let part = match mover {
        Mover::Processor if len <= WHOLE => len,
        _ => len / 2,
    };
    let part = if part > MOST { MOST } else { part };
    if part >= LEAST {
        part
    } else if len < LEAST {
        len
    } else {
        LEAST
    }
}

/// Whether another write may go while `unacked` messages of its connection are on their way.
///
/// Two of any size, so that the wire does not fall silent while what is written meanwhile is
/// collected; four when each is a whole [`piece`].
pub const fn may_follow(whole: bool, unacked: u8) -> bool {
    unacked < if whole { MAX_UNACKED } else { 2 }
}

/// The most messages of one connection that are on their way at once.
pub const MAX_UNACKED: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: SenderWants = SenderWants {
        blocked: false,
        update: false,
    };

    fn window(sender_room: u32, unannounced: u32) -> Window {
        Window {
            len: 64_000,
            sender_room,
            unannounced,
        }
    }

    #[test]
    fn examples_of_the_rfc() {
        assert!(!window(50_000, 14_000).update_due(false, NOTHING));
        assert!(!window(30_000, 1_000).update_due(false, NOTHING));
        assert!(window(30_000, 34_000).update_due(false, NOTHING));
        assert!(window(31_999, 6_400).update_due(false, NOTHING));
        assert!(!window(31_999, 6_399).update_due(false, NOTHING));
    }

    #[test]
    fn half_a_ring_is_announced_early() {
        assert!(window(32_000, 32_000).update_due(false, NOTHING));
        assert!(!window(32_000, 31_999).update_due(false, NOTHING));
    }

    #[test]
    fn any_consumption_counts_when_asked_for() {
        let blocked = SenderWants {
            blocked: true,
            update: false,
        };
        let update = SenderWants {
            blocked: false,
            update: true,
        };
        assert!(window(0, 1).update_due(false, blocked));
        assert!(window(63_000, 1).update_due(false, update));
        assert!(window(63_000, 1).update_due(true, NOTHING));
        assert!(!window(0, 0).update_due(true, blocked));
    }

    #[test]
    fn pieces_fit_the_ring() {
        for (len, adapter, processor) in [
            (1, 1, 1),
            (4_096, 4_096, 4_096),
            (16_384, 8_192, 16_384),
            (65_536, 32_768, 65_536),
            (131_072, 65_536, 65_536),
            (524_288, 131_072, 131_072),
        ] {
            assert_eq!(piece(len, Mover::Adapter), adapter);
            assert_eq!(piece(len, Mover::Processor), processor);
        }
    }

    #[test]
    fn only_whole_pieces_follow_two_others() {
        assert!(may_follow(false, 1) && !may_follow(false, 2));
        assert!(may_follow(true, 3) && !may_follow(true, 4));
    }
}

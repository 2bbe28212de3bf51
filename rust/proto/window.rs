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

/// The most bytes one copy out of a ring of `len` bytes should take before the consumer cursor
/// moves.
///
/// A reader that empties the whole ring in one copy makes writer and reader take turns. Half a ring
/// keeps both busy.
pub const fn copy_limit(len: u32) -> u32 {
    let half = len / 2;
    if half == 0 {
        len
    } else {
        half
    }
}

/// The most bytes a writer should collect before the producer cursor moves.
///
/// A quarter of the smaller ring, and not less than 8 KiB as far as the ring has that: small enough
/// that the reader starts early, large enough that the messages do not dominate.
pub const fn publish_limit(send_len: u32, peer_len: u32) -> u32 {
    const LEAST: u32 = 8 * 1024;
    let len = if send_len < peer_len {
        send_len
    } else {
        peer_len
    };
    let quarter = len / 4;
    if quarter > LEAST {
        quarter
    } else if len < LEAST {
        len
    } else {
        LEAST
    }
}

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
    fn limits_fit_the_ring() {
        assert_eq!(copy_limit(65_536), 32_768);
        assert_eq!(copy_limit(1), 1);
        assert_eq!(publish_limit(65_536, 65_536), 16_384);
        assert_eq!(publish_limit(16_384, 65_536), 8_192);
        assert_eq!(publish_limit(4_096, 65_536), 4_096);
    }
}

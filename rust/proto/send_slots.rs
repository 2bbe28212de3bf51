// SPDX-License-Identifier: GPL-2.0

//! Who may send a message on a link: a fixed number of slots, and the connections that wait for one.
//!
//! A CDC message carries absolute cursors, so a connection never needs more than one that waits:
//! where no slot is free, the connection is marked and sends its newest cursors when one returns.
//! Nobody sleeps for a slot. This type only counts; the memory of the slots is the owner's.

/// CDC messages that may be unacknowledged on a link.
pub const CDC_SLOTS: u8 = 14;
/// LLC messages that may be unacknowledged, so that connections cannot keep them from going out.
///
/// The peer posts at least as many receives as both together.
pub const LLC_SLOTS: u8 = 2;
/// All slots of a link.
pub const SLOTS: u8 = CDC_SLOTS + LLC_SLOTS;
/// Connections that a link group can have at most, as many as there are marks.
const MARKS: usize = 256;
const WORDS: usize = MARKS / 64;

/// A slot that was taken. CDC slots come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u8);

impl Slot {
    /// The slot of this index; `None` if there is none.
    pub const fn from_index(index: u32) -> Option<Self> {
        if index < SLOTS as u32 {
            // CAST: checked above.
            Some(Self(index as u8))
        } else {
            None
        }
    }

    /// Its number, below [`SLOTS`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    const fn bit(self) -> u16 {
        // At most 15.
        1 << (self.0 % 16)
    }
}

/// The slots of a link that are taken, and the connections that wait.
#[derive(Clone, Debug)]
pub struct SendSlots {
    /// CDC slots that are used.
    cdc_slots: u8,
    /// One bit for each slot.
    taken: u16,
    /// One bit for each connection index of the group.
    waiting: [u64; WORDS],
    /// Where the search for a waiting connection goes on, so that each has its turn.
    next: u8,
}

impl SendSlots {
    /// All slots are free and nobody waits.
    pub const fn new() -> Self {
        Self::with_limit(SLOTS as u32)
    }

    /// As [`SendSlots::new`], with at most `limit` slots in use, those for LLC messages among them,
    /// and with at least one for CDC messages.
    pub const fn with_limit(limit: u32) -> Self {
        let cdc_slots = match limit.saturating_sub(LLC_SLOTS as u32) {
            0 => 1,
            // CAST: checked here.
            some if some < CDC_SLOTS as u32 => some as u8,
            _ => CDC_SLOTS,
        };
        Self {
            cdc_slots,
            taken: 0,
            waiting: [0; WORDS],
            next: 0,
        }
    }

    /// Takes a slot for a CDC message of the connection with this index. Where none is free, the
    /// connection waits from now on.
    pub fn take_cdc(&mut self, connection: u8) -> Option<Slot> {
        let slot = self.take(0, self.cdc_slots);
        if let Some(word) = self.waiting.get_mut(usize::from(connection / 64)) {
            let bit = 1 << (connection % 64);
            match slot {
                // What it waited to say is said by this message.
                Some(_) => *word &= !bit,
                None => *word |= bit,
            }
        }
        slot
    }

    /// Takes a slot for an LLC message.
    pub fn take_llc(&mut self) -> Option<Slot> {
        self.take(CDC_SLOTS, SLOTS)
    }

    fn take(&mut self, from: u8, to: u8) -> Option<Slot> {
        let slot = (from..to)
            .map(Slot)
            .find(|slot| self.taken & slot.bit() == 0)?;
        self.taken |= slot.bit();
        Some(slot)
    }

    /// Gives a slot back. Then it is the turn of [`SendSlots::next_waiting`].
    pub fn release(&mut self, slot: Slot) {
        self.taken &= !slot.bit();
    }

    /// The next connection that waits, in turn, if there is a slot for it; it no longer waits.
    ///
    /// To be called until it returns `None`, each time pushing the connection: one that has nothing
    /// to send any more leaves the slot to the next.
    pub fn next_waiting(&mut self) -> Option<u8> {
        let cdc = Slot(self.cdc_slots).bit().wrapping_sub(1);
        if self.taken & cdc == cdc {
            return None;
        }
        let index = self.first_from(self.next).or_else(|| self.first_from(0))?;
        if let Some(word) = self.waiting.get_mut(usize::from(index / 64)) {
            *word &= !(1 << (index % 64));
        }
        self.next = index.wrapping_add(1);
        Some(index)
    }

    /// The lowest marked connection that is not below `from`.
    fn first_from(&self, from: u8) -> Option<u8> {
        let start = from / 64;
        (start..WORDS as u8).find_map(|number| {
            let word = *self.waiting.get(usize::from(number))?;
            let low = if number == start { from % 64 } else { 0 };
            let word = word & (u64::MAX << low);
            // CAST: below 64.
            (word != 0).then(|| {
                number
                    .wrapping_mul(64)
                    .wrapping_add(word.trailing_zeros() as u8)
            })
        })
    }

    /// Messages on their way.
    pub const fn in_use(&self) -> u32 {
        self.taken.count_ones()
    }

    /// Whether no message is on its way.
    pub const fn is_idle(&self) -> bool {
        self.taken == 0
    }
}

impl Default for SendSlots {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> SendSlots {
        let mut slots = SendSlots::new();
        for connection in 0..CDC_SLOTS {
            assert_eq!(
                slots.take_cdc(connection).unwrap().index(),
                connection.into()
            );
        }
        slots
    }

    #[test]
    fn messages_of_both_kinds_have_slots_of_their_own() {
        let mut slots = full();
        assert_eq!(slots.take_cdc(20), None);
        assert_eq!(slots.take_llc(), Slot::from_index(14));
        assert_eq!(slots.take_llc(), Slot::from_index(15));
        assert_eq!(slots.take_llc(), None);
        assert_eq!(slots.in_use(), SLOTS.into());
        slots.release(Slot::from_index(14).unwrap());
        assert_eq!(slots.in_use(), 15);
        assert_eq!(slots.next_waiting(), None, "no slot for a CDC message");
        for index in 0..16 {
            slots.release(Slot::from_index(index).unwrap());
        }
        assert!(slots.is_idle());
        assert_eq!(Slot::from_index(16), None);
    }

    #[test]
    fn who_waits_has_its_turn() {
        let mut slots = full();
        for connection in [255, 64, 3] {
            assert_eq!(slots.take_cdc(connection), None);
        }
        let slot = Slot::from_index(5).unwrap();
        slots.release(slot);
        for connection in [3, 64] {
            assert_eq!(slots.next_waiting(), Some(connection));
            assert_eq!(slots.take_cdc(connection), Some(slot));
            assert_eq!(slots.next_waiting(), None);
            assert_eq!(slots.take_cdc(connection), None, "it has more to send");
            slots.release(slot);
        }
        assert_eq!(slots.next_waiting(), Some(255));
    }

    #[test]
    fn a_wasted_turn_goes_to_the_next() {
        let mut slots = full();
        for connection in [30, 31] {
            assert_eq!(slots.take_cdc(connection), None);
        }
        slots.release(Slot::from_index(0).unwrap());
        assert_eq!(slots.next_waiting(), Some(30));
        // It has nothing to send any more.
        assert_eq!(slots.next_waiting(), Some(31));
        assert_eq!(slots.next_waiting(), None);
    }

    #[test]
    fn what_was_sent_does_not_wait() {
        let mut slots = full();
        assert_eq!(slots.take_cdc(30), None);
        slots.release(Slot::from_index(0).unwrap());
        assert!(slots.take_cdc(30).is_some());
        slots.release(Slot::from_index(1).unwrap());
        assert_eq!(slots.next_waiting(), None);
    }

    #[test]
    fn a_limit_leaves_at_least_one_slot() {
        for (limit, slots) in [(0, 1), (2, 1), (3, 1), (4, 2), (16, 14), (2048, 14)] {
            let mut table = SendSlots::with_limit(limit);
            let taken = (0..).map_while(|conn| table.take_cdc(conn)).count();
            assert_eq!(taken, slots, "limit {limit}");
            assert_eq!(table.next_waiting(), None);
            table.release(Slot(0));
            assert!(table.next_waiting().is_some());
            assert!(table.take_llc().is_some());
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Alert tokens: how an incoming CDC message finds its connection.

use crate::ids::AlertToken;
use core::ops::{Deref, DerefMut};

/// The most connections a link group can have.
pub const MAX_CONNS: u8 = 255;

/// The smallest limit two hosts may agree on (version 2.1).
pub const MIN_NEGOTIATED_CONNS: u8 = 16;

/// One place in the table of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenSlot {
    generation: u16,
    used: bool,
    abandoned: bool,
}

/// Gives out alert tokens and counts the connections of one link group.
///
/// A token names a slot and the generation of its occupant, so that a late message for an earlier
/// connection finds nobody. The low byte is the slot counted from 1, so no token is 0.
#[derive(Clone, Debug)]
pub struct TokenSlots<S> {
    slots: S,
    limit: u8,
    used: u8,
    abandoned: u8,
}

impl<S: Deref<Target = [TokenSlot]> + DerefMut> TokenSlots<S> {
    /// Makes a table of at most `limit` connections; storage for fewer lowers the limit.
    pub fn new(slots: S, limit: u8) -> Self {
        let stored = u8::try_from(slots.len()).unwrap_or(MAX_CONNS);
        Self {
            limit: limit.min(stored),
            slots,
            used: 0,
            abandoned: 0,
        }
    }

    /// The number of connections.
    pub const fn used(&self) -> u8 {
        self.used
    }

    /// Whether nobody uses a connection: what there are were abandoned.
    pub const fn is_idle(&self) -> bool {
        self.used == self.abandoned
    }

    /// The most connections the group may have.
    pub const fn limit(&self) -> u8 {
        self.limit
    }

    /// Whether another connection has to go to another group.
    pub const fn is_full(&self) -> bool {
        self.used >= self.limit
    }

    /// Lowers the limit to what was agreed with the peer. Connections beyond it stay.
    pub fn set_limit(&mut self, limit: u8) {
        self.limit = self.limit.min(limit);
    }

    /// Takes a free slot; returns its index and the token for the peer. `None` when full.
    pub fn allocate(&mut self) -> Option<(u8, AlertToken)> {
        if self.is_full() {
            return None;
        }
        let limit = usize::from(self.limit);
        let (index, slot) = self
            .slots
            .iter_mut()
            .take(limit)
            .enumerate()
            .find(|(_, slot)| !slot.used)?;
        let index = u8::try_from(index).ok()?;
        slot.used = true;
        slot.generation = slot.generation.wrapping_add(1);
        let token = token_for(index, slot.generation);
        self.used = self.used.saturating_add(1);
        Some((index, token))
    }

    /// The slot of a connection that is alive; `None` for any other token.
    pub fn find(&self, token: AlertToken) -> Option<u8> {
        let [high, upper, lower, number] = token.0.to_be_bytes();
        let index = number.checked_sub(1)?;
        let slot = self.slots.get(usize::from(index))?;
        let generation = u16::from_be_bytes([upper, lower]);
        (high == 0 && slot.used && slot.generation == generation).then_some(index)
    }

    /// Nobody uses the connection of `token` any more; its slot stays taken.
    pub fn abandon(&mut self, token: AlertToken) {
        if let Some(slot) = self.slot_mut(token) {
            if !core::mem::replace(&mut slot.abandoned, true) {
                self.abandoned = self.abandoned.saturating_add(1);
            }
        }
    }

    /// Frees the slot of `token`; returns false when no connection has it.
    pub fn release(&mut self, token: AlertToken) -> bool {
        let Some(slot) = self.slot_mut(token) else {
            return false;
        };
        slot.used = false;
        if core::mem::take(&mut slot.abandoned) {
            self.abandoned = self.abandoned.saturating_sub(1);
        }
        self.used = self.used.saturating_sub(1);
        true
    }

    fn slot_mut(&mut self, token: AlertToken) -> Option<&mut TokenSlot> {
        let index = self.find(token)?;
        self.slots.get_mut(usize::from(index))
    }
}

fn token_for(index: u8, generation: u16) -> AlertToken {
    let [upper, lower] = generation.to_be_bytes();
    AlertToken(u32::from_be_bytes([
        0,
        upper,
        lower,
        index.saturating_add(1),
    ]))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    fn table(limit: u8) -> TokenSlots<&'static mut [TokenSlot]> {
        let storage = std::vec![TokenSlot::default(); 255];
        TokenSlots::new(storage.leak(), limit)
    }

    #[test]
    fn a_reused_slot_gets_a_new_token() {
        let mut table = table(16);
        let (index, first) = table.allocate().unwrap();
        assert_eq!(table.find(first), Some(index));
        assert!(table.release(first));
        assert!(!table.release(first));
        let (again, second) = table.allocate().unwrap();
        assert_eq!(again, index);
        assert_ne!(first, second);
        assert_eq!(table.find(first), None);
    }

    #[test]
    fn an_abandoned_connection_has_its_slot_until_it_is_released() {
        let mut table = table(16);
        assert!(table.is_idle());
        let (index, lost) = table.allocate().unwrap();
        let (_, used) = table.allocate().unwrap();
        table.abandon(lost);
        table.abandon(lost);
        assert!(!table.is_idle());
        assert_eq!(table.find(lost), Some(index));
        table.release(used);
        assert!(table.is_idle());
        assert_eq!(table.used(), 1);
        let (_, used) = table.allocate().unwrap();
        table.release(lost);
        table.abandon(lost);
        assert!(!table.is_idle());
        let (again, _) = table.allocate().unwrap();
        assert_eq!(again, index);
        table.release(used);
        assert!(!table.is_idle());
    }

    #[test]
    fn the_limit_holds_and_tokens_differ() {
        let mut table = table(255);
        let mut seen = std::collections::BTreeSet::new();
        while let Some((_, token)) = table.allocate() {
            assert_ne!(token, AlertToken(0));
            assert!(seen.insert(token));
        }
        assert_eq!((seen.len(), table.used()), (255, 255));
        for number in 0..=0xffff {
            let found = table.find(AlertToken(number)).is_some();
            assert_eq!(found, seen.contains(&AlertToken(number)));
        }
        table.set_limit(16);
        assert!(table.is_full());
    }
}

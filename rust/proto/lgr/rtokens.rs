// SPDX-License-Identifier: GPL-2.0

//! The peer's RMBs as known on one link: remote keys and addresses (RFC 7609 section 4.4.2).

use crate::ids::Rkey;
use core::ops::{Deref, DerefMut};

/// Key and address of one RMB, as LLC messages tell them.
pub use crate::wire::llc::Token as Rtoken;

/// The most RMBs one side of a link group may have (RFC 7609 section 2.1).
pub const MAX_RTOKENS: usize = 255;

/// Why an RMB of the peer could not be noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtokenError {
    /// The peer has more RMBs than the protocol or the storage allows.
    Full,
    /// The key is known with another address.
    Conflict,
}

impl RtokenError {
    /// Says in one sentence what went wrong.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Full => "the peer announced more than 255 receive buffers for one link group",
            Self::Conflict => "the peer announced one remote key for two receive buffers",
        }
    }
}

/// The set of RMBs the peer announced.
#[derive(Clone, Debug)]
pub struct RtokenTable<S> {
    slots: S,
    used: usize,
}

impl<S: Deref<Target = [Rtoken]> + DerefMut> RtokenTable<S> {
    /// Makes an empty table over storage for at most [`MAX_RTOKENS`] entries.
    pub const fn new(slots: S) -> Self {
        Self { slots, used: 0 }
    }

    /// The RMBs known, in no particular order.
    pub fn entries(&self) -> &[Rtoken] {
        self.slots.get(..self.used).unwrap_or(&[])
    }

    /// Notes an RMB; returns whether it was new. Saying the same twice is no fault.
    ///
    /// # Errors
    ///
    /// [`RtokenError`] when there is no room or the key is in use for another address.
    pub fn add(&mut self, token: Rtoken) -> Result<bool, RtokenError> {
        match self.find(token.rkey) {
            Some(known) if known == token => return Ok(false),
            Some(_) => return Err(RtokenError::Conflict),
            None => {}
        }
        if self.used >= MAX_RTOKENS {
            return Err(RtokenError::Full);
        }
        let slot = self.slots.get_mut(self.used).ok_or(RtokenError::Full)?;
        *slot = token;
        self.used = self.used.saturating_add(1);
        Ok(true)
    }

    /// The RMB with key `rkey`.
    pub fn find(&self, rkey: Rkey) -> Option<Rtoken> {
        self.entries()
            .iter()
            .copied()
            .find(|token| token.rkey == rkey)
    }

    /// Forgets the RMB with key `rkey`; returns whether it was known.
    pub fn remove(&mut self, rkey: Rkey) -> bool {
        let found = self.entries().iter().position(|token| token.rkey == rkey);
        let (Some(index), Some(last)) = (found, self.used.checked_sub(1)) else {
            return false;
        };
        let moved = self.slots.get(last).copied();
        if let (Some(slot), Some(moved)) = (self.slots.get_mut(index), moved) {
            *slot = moved;
        }
        self.used = last;
        true
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::ids::VirtAddr;

    fn token(rkey: u32, addr: u64) -> Rtoken {
        Rtoken {
            rkey: Rkey(rkey),
            addr: VirtAddr(addr),
        }
    }

    #[test]
    fn add_find_remove() {
        let mut table = RtokenTable::new(std::vec![Rtoken::default(); 300]);
        for n in 0..255 {
            assert_eq!(table.add(token(n, 4096)), Ok(true));
        }
        assert_eq!(table.add(token(7, 4096)), Ok(false));
        assert_eq!(table.add(token(7, 8192)), Err(RtokenError::Conflict));
        assert_eq!(table.add(token(255, 0)), Err(RtokenError::Full));
        assert!(table.remove(Rkey(0)));
        assert!(!table.remove(Rkey(0)));
        assert_eq!(table.find(Rkey(0)), None);
        assert_eq!(table.find(Rkey(254)), Some(token(254, 4096)));
        assert_eq!(table.add(token(255, 0)), Ok(true));
    }

    #[test]
    fn small_storage_is_full_early() {
        let mut table = RtokenTable::new(std::vec![Rtoken::default(); 1]);
        assert_eq!(table.add(token(1, 0)), Ok(true));
        assert_eq!(table.add(token(2, 0)), Err(RtokenError::Full));
        assert!(table.remove(Rkey(1)));
        assert!(table.entries().is_empty());
    }
}

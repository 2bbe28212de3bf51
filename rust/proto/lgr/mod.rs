// SPDX-License-Identifier: GPL-2.0

//! Book-keeping of a link group (RFC 7609 section 2).
//!
//! The tables here borrow their storage: the owner decides where some kilobytes live.

mod elements;
mod rtokens;
mod tokens;

pub use elements::{element_address, elements_within, next_slab, ElementMap, MAX_ELEMENTS};
pub use rtokens::{Rtoken, RtokenError, RtokenTable, MAX_RTOKENS};
pub use tokens::{TokenSlot, TokenSlots, MAX_CONNS, MIN_NEGOTIATED_CONNS};

/// Which side of a link group this host is. The server decides about links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side whose program called `connect`.
    Client,
    /// The side whose program called `listen`.
    Server,
}

impl Role {
    /// The number that monitoring tools show.
    pub const fn number(self) -> u8 {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }

    /// How long a link group without connections is kept, in milliseconds.
    ///
    /// The client waits longer, so that the side in charge of the links ends the group.
    pub const fn idle_ms(self) -> u64 {
        match self {
            Self::Client => 20_000,
            Self::Server => 15_000,
        }
    }
}

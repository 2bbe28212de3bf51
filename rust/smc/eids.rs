// SPDX-License-Identifier: GPL-2.0

//! The system-wide table of user-defined enterprise IDs.

use kernel::{
    new_mutex,
    prelude::*,
    sync::Mutex, //
};
use smc_proto::ids::{
    Eid,
    EidList, //
};

/// User-defined enterprise IDs that can be configured.
pub(crate) const MAX_UEIDS: usize = 4;

/// The table. Process context.
#[pin_data]
pub(crate) struct EidTable {
    #[pin]
    entries: Mutex<KVec<Eid>>,
}

impl EidTable {
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            entries <- new_mutex!(KVec::with_capacity(MAX_UEIDS, GFP_KERNEL)?, "smc_ueids"),
        }? Error)
    }

    /// Adds an enterprise ID.
    ///
    /// # Errors
    ///
    /// `EEXIST` when it is there, `ERANGE` when the table is full.
    pub(crate) fn add(&self, eid: Eid) -> Result {
        let mut entries = self.entries.lock();
        if entries.contains(&eid) {
            return Err(EEXIST);
        }
        if entries.len() >= MAX_UEIDS {
            return Err(ERANGE);
        }
        entries.push(eid, GFP_KERNEL)?;
        Ok(())
    }

    /// Removes an enterprise ID; `ENOENT` when it is not there.
    pub(crate) fn remove(&self, eid: Eid) -> Result {
        let mut entries = self.entries.lock();
        let before = entries.len();
        entries.retain(|entry| *entry != eid);
        if entries.len() == before {
            return Err(ENOENT);
        }
        Ok(())
    }

    /// Removes all enterprise IDs.
    pub(crate) fn flush(&self) {
        self.entries.lock().clear();
    }

    /// The entry at a position, for listing.
    pub(crate) fn entry(&self, index: usize) -> Option<Eid> {
        self.entries.lock().get(index).copied()
    }

    /// A copy of the table, in the order of entry.
    pub(crate) fn list(&self) -> EidList {
        let entries = self.entries.lock();
        let mut list = EidList::EMPTY;
        for eid in entries.iter() {
            // The list holds twice what the table does.
            let _ = list.push(*eid);
        }
        list
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Lists of up to 255 entries that stay where they are.

use crate::wire::io::Writer;
use crate::wire::Error;
use core::fmt;

/// An entry of a [`List`].
pub trait Item: Copy {
    /// Length of an entry on the wire, in bytes.
    const LEN: usize;

    /// Reads an entry from the start of `bytes`; `None` if they are too few.
    fn decode(bytes: &[u8]) -> Option<Self>;

    /// Appends an entry.
    #[doc(hidden)]
    fn encode(&self, writer: &mut ListWriter<'_, '_>) -> Result<(), Error>;
}

/// Where the entries of a list are written to.
pub struct ListWriter<'w, 'b>(pub(super) &'w mut Writer<'b>);

impl fmt::Debug for ListWriter<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListWriter").finish_non_exhaustive()
    }
}

/// Entries of a message: either values to be sent, or received bytes.
#[derive(Clone, Copy)]
pub struct List<'a, T>(Inner<'a, T>);

#[derive(Clone, Copy)]
enum Inner<'a, T> {
    Items(&'a [T]),
    /// A whole number of entries.
    Wire(&'a [u8]),
}

impl<'a, T: Item> List<'a, T> {
    /// No entries.
    pub const EMPTY: List<'a, T> = List(Inner::Wire(&[]));

    /// A list of these values. A message carries at most 255 of them.
    pub const fn new(items: &'a [T]) -> List<'a, T> {
        List(Inner::Items(items))
    }

    /// The first `count` entries in `bytes`; `None` if there are fewer.
    pub(super) fn from_wire(bytes: &'a [u8], count: u8) -> Option<List<'a, T>> {
        let len = usize::from(count).checked_mul(T::LEN)?;
        bytes.get(..len).map(|bytes| List(Inner::Wire(bytes)))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        match self.0 {
            Inner::Items(items) => items.len(),
            Inner::Wire(bytes) => bytes.len().checked_div(T::LEN).unwrap_or(0),
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entry at `index`, counted from 0.
    pub fn get(&self, index: usize) -> Option<T> {
        match self.0 {
            Inner::Items(items) => items.get(index).copied(),
            Inner::Wire(bytes) => T::decode(bytes.get(index.checked_mul(T::LEN)?..)?),
        }
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = T> + 'a {
        let list = *self;
        (0..list.len()).filter_map(move |index| list.get(index))
    }

    /// The number of entries as a byte.
    pub(super) fn count(&self, field: &'static str) -> Result<u8, Error> {
        let too_many = |_| Error::field(field, u32::try_from(self.len()).unwrap_or(u32::MAX));
        u8::try_from(self.len()).map_err(too_many)
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        self.iter()
            .try_for_each(|item| item.encode(&mut ListWriter(writer)))
    }
}

impl<T: Item + PartialEq> PartialEq for List<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Item + Eq> Eq for List<'_, T> {}

impl<T: Item + fmt::Debug> fmt::Debug for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

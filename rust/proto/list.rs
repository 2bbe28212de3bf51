// SPDX-License-Identifier: GPL-2.0

//! A short list stored in place, for code that cannot allocate.

use core::fmt;
use core::ops::Deref;

/// Up to `N` values of `T`, stored in place. Behaves as a slice.
#[derive(Clone, Copy)]
pub struct ArrayList<T, const N: usize> {
    items: [T; N],
    len: u8,
}

/// A list is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl<T: Copy, const N: usize> ArrayList<T, N> {
    /// An empty list; `filler` occupies the unused places and is never seen.
    pub(crate) const fn filled_with(filler: T) -> Self {
        ArrayList {
            items: [filler; N],
            len: 0,
        }
    }

    /// Appends `item`.
    ///
    /// # Errors
    ///
    /// [`Full`] if the list already has `N` items.
    pub fn push(&mut self, item: T) -> Result<(), Full> {
        let slot = self.items.get_mut(usize::from(self.len)).ok_or(Full)?;
        *slot = item;
        self.len = self.len.checked_add(1).ok_or(Full)?;
        Ok(())
    }

    /// Appends all of `items`.
    ///
    /// # Errors
    ///
    /// [`Full`] at the first item that finds no place; those before it stay.
    pub fn extend_from_slice(&mut self, items: &[T]) -> Result<(), Full> {
        items.iter().try_for_each(|&item| self.push(item))
    }

    /// The items as a slice.
    pub fn as_slice(&self) -> &[T] {
        self.items.get(..usize::from(self.len)).unwrap_or(&[])
    }

    /// The number of items as the byte that stands for it on the wire.
    pub(crate) fn count(&self) -> u8 {
        self.len
    }
}

impl<T: Copy, const N: usize> Deref for ArrayList<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Copy + PartialEq, const N: usize> PartialEq for ArrayList<T, N> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Copy + Eq, const N: usize> Eq for ArrayList<T, N> {}

impl<T: Copy + fmt::Debug, const N: usize> fmt::Debug for ArrayList<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

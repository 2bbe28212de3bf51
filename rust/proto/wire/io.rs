// SPDX-License-Identifier: GPL-2.0

//! Bounded reading and writing of fixed-layout structures.

use super::Error;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Reads structures one after the other and never beyond the end.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// A reader that starts `offset` bytes into `bytes`.
    pub(crate) fn at(bytes: &'a [u8], offset: usize) -> Result<Reader<'a>, Error> {
        match bytes.get(offset..) {
            Some(rest) => Ok(Reader { rest }),
            None => Err(Error::Truncated {
                needed: offset,
                available: bytes.len(),
            }),
        }
    }

    /// The bytes not yet read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next structure, in place.
    pub(crate) fn read<T>(&mut self) -> Result<&'a T, Error>
    where
        T: FromBytes + KnownLayout + Immutable + Unaligned,
    {
        match T::ref_from_prefix(self.rest) {
            Ok((value, rest)) => {
                self.rest = rest;
                Ok(value)
            }
            Err(_) => Err(Error::Truncated {
                needed: size_of::<T>(),
                available: self.rest.len(),
            }),
        }
    }
}

/// Writes structures one after the other and never beyond the end.
pub(crate) struct Writer<'a> {
    rest: &'a mut [u8],
    written: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(buf: &'a mut [u8]) -> Writer<'a> {
        Writer {
            rest: buf,
            written: 0,
        }
    }

    /// Appends the bytes of `value`.
    pub(crate) fn write<T>(&mut self, value: &T) -> Result<(), Error>
    where
        T: IntoBytes + Immutable + ?Sized,
    {
        let bytes = value.as_bytes();
        let rest = core::mem::take(&mut self.rest);
        let (slot, rest) = rest
            .split_at_mut_checked(bytes.len())
            .ok_or(Error::NoSpace)?;
        for (to, from) in slot.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.rest = rest;
        self.written = self.written.saturating_add(bytes.len());
        Ok(())
    }

    /// Appends zeros up to a total of `len` bytes.
    pub(crate) fn pad_to(&mut self, len: usize) -> Result<(), Error> {
        const ZEROS: [u8; 64] = [0; 64];
        while let Some(missing) = len.checked_sub(self.written).filter(|&n| n > 0) {
            self.write(ZEROS.get(..missing).unwrap_or(&ZEROS))?;
        }
        Ok(())
    }

    /// Bytes written so far.
    pub(crate) fn written(&self) -> usize {
        self.written
    }
}

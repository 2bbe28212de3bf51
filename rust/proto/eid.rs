// SPDX-License-Identifier: GPL-2.0

//! Enterprise IDs and host names: blank-padded text of version 2.

use core::fmt;

/// Length of an enterprise ID and of a host name on the wire, in bytes.
pub const EID_LEN: usize = 32;

const BLANK: u8 = b' ';

/// An enterprise ID: two hosts may use SMC version 2 if they share one.
///
/// 32 bytes, padded with blanks. An ID received from a peer is kept as it is and
/// only compared; an ID set by the local user goes through [`Eid::parse`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Eid(pub [u8; EID_LEN]);

/// Why a text is not an enterprise ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EidError {
    /// Nothing but padding.
    Empty,
    /// More than 32 characters.
    TooLong,
    /// The first character is not one of A-Z and 0-9.
    BadStart(u8),
    /// A character other than A-Z, 0-9, dot and hyphen.
    BadCharacter(u8),
}

impl EidError {
    /// One sentence for the user who typed the ID.
    pub const fn describe(self) -> &'static str {
        match self {
            EidError::Empty => "The enterprise ID is empty: give 1 to 32 characters.",
            EidError::TooLong => "The enterprise ID is too long: give at most 32 characters.",
            EidError::BadStart(_) => {
                "The enterprise ID must begin with a capital letter or a digit."
            }
            EidError::BadCharacter(_) => {
                "The enterprise ID may hold only capital letters, digits, dots and hyphens."
            }
        }
    }
}

impl Eid {
    /// Checks a user-defined enterprise ID and pads it.
    ///
    /// Trailing blanks, and a NUL with all that follows it, are padding. The
    /// first character is A-Z or 0-9, the others may also be dot and hyphen.
    ///
    /// # Errors
    ///
    /// [`EidError`] says which of these rules is broken.
    pub fn parse(text: &[u8]) -> Result<Eid, EidError> {
        let text = text.split(|&byte| byte == 0).next().unwrap_or(&[]);
        let text = text.trim_ascii_end();
        let first = *text.first().ok_or(EidError::Empty)?;
        if !is_alphanumeric(first) {
            return Err(EidError::BadStart(first));
        }
        let is_bad = |byte: &&u8| !is_alphanumeric(**byte) && !matches!(**byte, b'.' | b'-');
        if let Some(&bad) = text.iter().find(is_bad) {
            return Err(EidError::BadCharacter(bad));
        }
        pad(text).map(Eid).ok_or(EidError::TooLong)
    }

    /// The ID without its padding.
    pub fn text(&self) -> &[u8] {
        unpad(&self.0)
    }
}

impl fmt::Debug for Eid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Eid({})", self.text().escape_ascii())
    }
}

/// Name of a host as it tells it in the first-contact extension: 32 bytes,
/// padded with blanks, for display only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(pub [u8; EID_LEN]);

impl HostName {
    /// No name.
    pub const EMPTY: HostName = HostName([BLANK; EID_LEN]);

    /// Pads a name; what is longer than 32 bytes is cut off.
    pub fn new(name: &[u8]) -> HostName {
        let name = name.get(..EID_LEN).unwrap_or(name);
        pad(name).map(HostName).unwrap_or(HostName::EMPTY)
    }

    /// The name without its padding.
    pub fn text(&self) -> &[u8] {
        unpad(&self.0)
    }
}

impl fmt::Debug for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostName({})", self.text().escape_ascii())
    }
}

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn pad(text: &[u8]) -> Option<[u8; EID_LEN]> {
    let mut padded = [BLANK; EID_LEN];
    for (slot, &byte) in padded.get_mut(..text.len())?.iter_mut().zip(text) {
        *slot = byte;
    }
    Some(padded)
}

fn unpad(padded: &[u8; EID_LEN]) -> &[u8] {
    let text = padded.split(|&byte| byte == 0).next().unwrap_or(&[]);
    text.trim_ascii_end()
}

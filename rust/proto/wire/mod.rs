// SPDX-License-Identifier: GPL-2.0

//! Byte formats of SMC: the TCP option, CLC, LLC and CDC messages.
//!
//! `parse` functions take untrusted bytes and give values that hold only what
//! the protocol allows; `emit` functions are their inverse. Reserved fields are
//! written as zero and ignored when read.

pub mod cdc;
pub mod clc;
mod io;
pub mod llc;
pub mod tcp_opt;

use crate::reason::DeclineReason;
use core::fmt;

/// Why bytes are not a message, or a message cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The message ends before all of it was seen.
    Truncated {
        /// Bytes the message needs.
        needed: usize,
        /// Bytes there are.
        available: usize,
    },
    /// The eyecatcher at the start or end of a CLC message is missing.
    BadEyecatcher,
    /// The length a message gives for itself is not possible for its type.
    BadLength {
        /// Length as given.
        length: usize,
    },
    /// The message type is not known and must be.
    BadType(u8),
    /// The type of an LLC message is not known, and RFC 7609 A.3 says to drop
    /// such messages without an answer.
    Ignorable(u8),
    /// The protocol version of the message is not one that can be spoken.
    BadVersion(u8),
    /// A field has a value that the protocol does not allow.
    BadField {
        /// What the field is.
        field: &'static str,
        /// The value, cut to 32 bits.
        value: u32,
    },
    /// A message to be written does not fit into the buffer.
    NoSpace,
}

impl Error {
    /// What happened, in words.
    pub const fn describe(&self) -> &'static str {
        match self {
            Error::Truncated { .. } => "the message ends too early",
            Error::BadEyecatcher => "the eyecatcher of the message is missing",
            Error::BadLength { .. } => "the length of the message does not fit its type",
            Error::BadType(_) => "the message type is not known",
            Error::Ignorable(_) => "the message type is not known and may be ignored",
            Error::BadVersion(_) => "the protocol version is not supported",
            Error::BadField { .. } => "a field of the message has an illegal value",
            Error::NoSpace => "the buffer is too small for the message",
        }
    }

    /// The reason to decline a CLC message with, or `None` where the two ends no
    /// longer agree on where a message ends, so that the TCP connection has to be
    /// ended (RFC 7609 C.6).
    pub const fn decline_reason(&self) -> Option<DeclineReason> {
        match self {
            Error::BadVersion(_) => Some(DeclineReason::VERSMISMAT),
            Error::BadField { .. } => Some(DeclineReason::CNFERR),
            Error::Truncated { .. }
            | Error::BadEyecatcher
            | Error::BadLength { .. }
            | Error::BadType(_)
            | Error::Ignorable(_)
            | Error::NoSpace => None,
        }
    }

    pub(crate) fn field(field: &'static str, value: impl Into<u32>) -> Error {
        Error::BadField {
            field,
            value: value.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())?;
        match *self {
            Error::Truncated { needed, available } => {
                write!(f, " ({available} of {needed} bytes)")
            }
            Error::BadLength { length } => write!(f, " ({length} bytes)"),
            Error::BadType(value) | Error::Ignorable(value) => write!(f, " ({value:#04x})"),
            Error::BadVersion(version) => write!(f, " ({version})"),
            Error::BadField { field, value } => write!(f, " ({field} is {value:#x})"),
            Error::BadEyecatcher | Error::NoSpace => Ok(()),
        }
    }
}

impl core::error::Error for Error {}

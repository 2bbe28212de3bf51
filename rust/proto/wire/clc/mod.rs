// SPDX-License-Identifier: GPL-2.0

//! Connection Layer Control messages: the handshake on the TCP connection
//! (RFC 7609 A.2, and versions 2 and 2.1 as Linux speaks them).
//!
//! A message is an eight-byte header, a body and a four-byte trailer that
//! repeats the eyecatcher of the header. A receiver reads the header, learns the
//! length from [`Header::parse`], reads the rest and hands all of it to
//! [`Message::parse`].

mod accept;
mod decline;
mod endpoint;
mod first_contact;
mod offer;
mod proposal;

pub use accept::{Accept, Confirm, V2Fields};
pub use decline::Decline;
pub use endpoint::{Endpoint, IsmEndpoint, RdmaEndpoint};
pub use first_contact::{FirstContactExt, V21Limits};
pub use offer::{IsmId, IsmList, PathType, V1Offer, V2Offer};
pub use proposal::Proposal;

use super::io::Writer;
use super::Error;
use zerocopy::network_endian::U16;
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 8;

/// Length of the trailer in bytes.
pub const TRAILER_LEN: usize = 4;

/// Length of the longest message this implementation sends, in bytes.
pub const MAX_LEN: usize = 652;

/// Length of the longest message that is read from a peer, in bytes. Peers that
/// speak later versions may send more than [`MAX_LEN`]; what is not known is
/// skipped.
pub const MAX_RECEIVE_LEN: usize = 2048;

const EYECATCHER_SMCR: [u8; 4] = [0xe2, 0xd4, 0xc3, 0xd9];
const EYECATCHER_SMCD: [u8; 4] = [0xe2, 0xd4, 0xc3, 0xc4];

const FLAG_FIRST_CONTACT: u8 = 0x08;
const FLAG_OUT_OF_SYNC: u8 = 0x08;

/// Type of a CLC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The client offers SMC.
    Proposal,
    /// The server accepts.
    Accept,
    /// The client confirms.
    Confirm,
    /// Either side goes back to TCP.
    Decline,
}

impl Kind {
    const fn code(self) -> u8 {
        match self {
            Kind::Proposal => 1,
            Kind::Accept => 2,
            Kind::Confirm => 3,
            Kind::Decline => 4,
        }
    }

    const fn from_code(code: u8) -> Option<Kind> {
        match code {
            1 => Some(Kind::Proposal),
            2 => Some(Kind::Accept),
            3 => Some(Kind::Confirm),
            4 => Some(Kind::Decline),
            _ => None,
        }
    }

    /// The shortest legal message of this type, in bytes.
    const fn min_len(self) -> usize {
        match self {
            Kind::Proposal => 52,
            Kind::Accept | Kind::Confirm => 48,
            Kind::Decline => 28,
        }
    }
}

/// Which of the two eyecatchers a message has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eyecatcher {
    Smcr,
    Smcd,
}

impl Eyecatcher {
    const fn bytes(self) -> [u8; 4] {
        match self {
            Eyecatcher::Smcr => EYECATCHER_SMCR,
            Eyecatcher::Smcd => EYECATCHER_SMCD,
        }
    }
}

/// The first eight bytes of a CLC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    eyecatcher: Eyecatcher,
    /// Type of the message.
    pub kind: Kind,
    /// Version: the highest one offered in a Proposal, the one in use elsewhere.
    /// At least 1.
    pub version: u8,
    /// The four flag bits; their meaning depends on the type.
    pub flags: u8,
    /// Length of the whole message in bytes, with header and trailer. Not below
    /// the minimum of the type and not above [`MAX_RECEIVE_LEN`].
    pub length: usize,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireHeader {
    eyecatcher: [u8; 4],
    kind: u8,
    length: U16,
    version_flags: u8,
}

const _: () = assert!(size_of::<WireHeader>() == HEADER_LEN);

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    ///
    /// [`Error::BadEyecatcher`], [`Error::BadType`], [`Error::BadLength`] for a
    /// length no message of this type can have, and [`Error::BadVersion`] for
    /// version 0.
    pub fn parse(bytes: &[u8; HEADER_LEN]) -> Result<Header, Error> {
        let wire: WireHeader = zerocopy::transmute!(*bytes);
        let eyecatcher = match wire.eyecatcher {
            EYECATCHER_SMCR => Eyecatcher::Smcr,
            EYECATCHER_SMCD => Eyecatcher::Smcd,
            _ => return Err(Error::BadEyecatcher),
        };
        let kind = Kind::from_code(wire.kind).ok_or(Error::BadType(wire.kind))?;
        let length = usize::from(wire.length.get());
        if length < kind.min_len() || length > MAX_RECEIVE_LEN {
            return Err(Error::BadLength { length });
        }
        let version = wire.version_flags >> 4;
        if version == 0 {
            return Err(Error::BadVersion(version));
        }
        Ok(Header {
            eyecatcher,
            kind,
            version,
            flags: wire.version_flags & 0x0f,
            length,
        })
    }

    /// The error for a message whose fixed fields do not fit: all of its bytes are
    /// here, so that the length in its header is wrong.
    fn too_short(&self, error: Error) -> Error {
        match error {
            Error::Truncated { .. } => Error::BadLength {
                length: self.length,
            },
            other => other,
        }
    }

    /// The length that the header states, whether or not it can be right.
    pub const fn stated_length(bytes: &[u8; HEADER_LEN]) -> usize {
        let [_, _, _, _, _, high, low, _] = *bytes;
        u16::from_be_bytes([high, low]) as usize
    }

    /// Length in bytes of what follows the header, trailer included.
    pub fn remaining(&self) -> usize {
        self.length.saturating_sub(HEADER_LEN)
    }
}

/// A CLC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "boxing needs an allocator")]
pub enum Message {
    /// The client offers SMC.
    Proposal(Proposal),
    /// The server accepts.
    Accept(Accept),
    /// The client confirms.
    Confirm(Confirm),
    /// Either side goes back to TCP.
    Decline(Decline),
}

impl Message {
    /// Reads one message, from its header to its trailer. Bytes after the
    /// trailer are not looked at.
    ///
    /// # Errors
    ///
    /// Any [`Error`]; [`Error::decline_reason`] tells those to be answered with a
    /// Decline from those that end the TCP connection.
    pub fn parse(bytes: &[u8]) -> Result<Message, Error> {
        let (header, body) = split_frame(bytes)?;
        match header.kind {
            Kind::Proposal => Proposal::parse_body(&header, body),
            Kind::Accept => Accept::parse_body(&header, body),
            Kind::Confirm => Confirm::parse_body(&header, body),
            Kind::Decline => Decline::parse_body(&header, body),
        }
    }

    /// Writes the message to the start of `buf` and returns its length. A buffer
    /// of [`MAX_LEN`] bytes is always large enough.
    ///
    /// # Errors
    ///
    /// [`Error::NoSpace`] if `buf` is too small, [`Error::BadField`] if fields
    /// contradict each other.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, Error> {
        match self {
            Message::Proposal(message) => message.emit(buf),
            Message::Accept(message) => message.emit(buf),
            Message::Confirm(message) => message.emit(buf),
            Message::Decline(message) => message.emit(buf),
        }
    }
}

/// Checks header and trailer, and returns what is between them.
fn split_frame(bytes: &[u8]) -> Result<(Header, &[u8]), Error> {
    let Some((head, _)) = bytes.split_first_chunk::<HEADER_LEN>() else {
        return Err(Error::Truncated {
            needed: HEADER_LEN,
            available: bytes.len(),
        });
    };
    let header = Header::parse(head)?;
    let Some(frame) = bytes.get(HEADER_LEN..header.length) else {
        return Err(Error::Truncated {
            needed: header.length,
            available: bytes.len(),
        });
    };
    match frame.split_last_chunk::<TRAILER_LEN>() {
        Some((body, trailer)) if *trailer == header.eyecatcher.bytes() => Ok((header, body)),
        _ => Err(Error::BadEyecatcher),
    }
}

/// What a header says besides the length.
struct HeaderFields {
    kind: Kind,
    eyecatcher: Eyecatcher,
    version: u8,
    flags: u8,
}

/// Writes header, body and trailer; returns the length of all three.
fn emit_frame(
    buf: &mut [u8],
    fields: &HeaderFields,
    body: impl FnOnce(&mut Writer<'_>) -> Result<(), Error>,
) -> Result<usize, Error> {
    let (head, rest) = buf
        .split_first_chunk_mut::<HEADER_LEN>()
        .ok_or(Error::NoSpace)?;
    let mut writer = Writer::new(rest);
    body(&mut writer)?;
    writer.write(&fields.eyecatcher.bytes())?;
    let total = writer.written().saturating_add(HEADER_LEN);
    let length = u16::try_from(total).map_err(|_| Error::NoSpace)?;
    *head = zerocopy::transmute!(WireHeader {
        eyecatcher: fields.eyecatcher.bytes(),
        kind: fields.kind.code(),
        length: length.into(),
        version_flags: (fields.version << 4) | (fields.flags & 0x0f),
    });
    Ok(total)
}

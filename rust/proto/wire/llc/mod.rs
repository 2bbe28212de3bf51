// SPDX-License-Identifier: GPL-2.0

//! Link Layer Control messages: links and remote keys of a link group (RFC 7609
//! A.3, and version 2 as Linux speaks it).
//!
//! Version 1 messages are 44 bytes long. Version 2 sets 0x20 in the type, has a
//! 16-bit length, and some of its messages are longer. Linux writes that length,
//! and the number of keys in ADD LINK, in the byte order of the host; both orders
//! are understood here and the host's own is written.

mod add_link;
mod link;
mod list;
mod rkey;

pub use add_link::{AddLink, AddLinkCont, AddLinkExt, RejectReason, RkeyMapping};
pub use link::{ConfirmLink, DeleteLink, DeleteLinkReason, RequestAddLink, TestLink};
pub use list::List;
pub use rkey::{
    ConfirmRkey, ConfirmRkeyCont, DeleteRkey, LinkToken, RkeyAnswer, Token, MAX_OTHER_LINKS,
};

use super::io::{Reader, Writer};
use super::Error;
use crate::ids::Version;

/// Length of a version 1 message, and least length of a version 2 message.
pub const LEN: usize = 44;

/// Length of the longest message, in bytes.
pub const MAX_LEN: usize = 8192;

const LEN_BYTE: u8 = 44;
const V2: u8 = 0x20;
const FLAG_RESPONSE: u8 = 0x80;

/// An LLC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Version of the link group, which decides the form.
    pub version: Version,
    /// The message answers one of the same type.
    pub response: bool,
    /// The message proper.
    pub body: Body<'a>,
}

/// What an LLC message says. The lifetime is that of lists in version 2
/// messages, which stay in the buffer they were received in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// Proves that a new link works.
    ConfirmLink(ConfirmLink),
    /// Adds a link.
    AddLink(AddLink<'a>),
    /// Tells the keys of the RMBs on the new link; version 1 only.
    AddLinkCont(AddLinkCont),
    /// Removes a link, or all of them.
    DeleteLink(DeleteLink),
    /// Asks the server to add a link; version 2 only.
    RequestAddLink(RequestAddLink<'a>),
    /// Tells the keys of a new RMB.
    ConfirmRkey(ConfirmRkey),
    /// Tells further keys of a new RMB; version 1 only.
    ConfirmRkeyCont(ConfirmRkeyCont),
    /// Withdraws RMBs.
    DeleteRkey(DeleteRkey<'a>),
    /// Asks for a sign of life.
    TestLink(TestLink),
}

/// Type of a message without the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    ConfirmLink,
    AddLink,
    AddLinkCont,
    DeleteLink,
    RequestAddLink,
    ConfirmRkey,
    TestLink,
    ConfirmRkeyCont,
    DeleteRkey,
}

impl Kind {
    const fn code(self) -> u8 {
        match self {
            Kind::ConfirmLink => 0x01,
            Kind::AddLink => 0x02,
            Kind::AddLinkCont => 0x03,
            Kind::DeleteLink => 0x04,
            Kind::RequestAddLink => 0x05,
            Kind::ConfirmRkey => 0x06,
            Kind::TestLink => 0x07,
            Kind::ConfirmRkeyCont => 0x08,
            Kind::DeleteRkey => 0x09,
        }
    }

    /// Whether the message exists in `version`.
    const fn is_in(self, version: Version) -> bool {
        match self {
            Kind::AddLinkCont | Kind::ConfirmRkeyCont => matches!(version, Version::V1),
            Kind::RequestAddLink => matches!(version, Version::V2),
            _ => true,
        }
    }
}

const KINDS: [Kind; 9] = [
    Kind::ConfirmLink,
    Kind::AddLink,
    Kind::AddLinkCont,
    Kind::DeleteLink,
    Kind::RequestAddLink,
    Kind::ConfirmRkey,
    Kind::TestLink,
    Kind::ConfirmRkeyCont,
    Kind::DeleteRkey,
];

/// The first four bytes of a message.
#[derive(Clone, Copy, Debug)]
struct Head {
    kind: Kind,
    version: Version,
    /// Flags with the response flag.
    flags: u8,
    /// Why an ADD LINK is refused; shares its place with half of the version 2
    /// length.
    reason: u8,
}

impl Head {
    const fn is_response(&self) -> bool {
        self.flags & FLAG_RESPONSE != 0
    }
}

/// Finds type and version. The two high bits of an unknown type say whether the
/// message may be dropped.
fn parse_type(code: u8) -> Result<(Kind, Version), Error> {
    let version = if code & V2 == 0 {
        Version::V1
    } else {
        Version::V2
    };
    let known = |kind: &&Kind| kind.code() == code & !V2 && kind.is_in(version);
    match KINDS.iter().find(known) {
        Some(&kind) => Ok((kind, version)),
        None if code & 0xc0 == 0x80 => Err(Error::Ignorable(code)),
        None => Err(Error::BadType(code)),
    }
}

/// Length of the message that starts with `head`, from its own length field.
fn declared_len(head: [u8; 4], version: Version, available: usize) -> Result<usize, Error> {
    let [_, first, second, _] = head;
    if version == Version::V1 {
        return match first {
            LEN_BYTE => Ok(LEN),
            _ => Err(Error::BadLength {
                length: first.into(),
            }),
        };
    }
    let native = u16::from_ne_bytes([first, second]);
    let plausible = |len: &usize| (LEN..=available).contains(len);
    let orders = [native, native.swap_bytes()].map(usize::from);
    match orders.into_iter().find(plausible) {
        Some(len) => Ok(len),
        // A refusal of ADD LINK overlays half of the length with its reason.
        None if first == LEN_BYTE && second & 0xf0 == 0 => Ok(LEN),
        None => Err(Error::BadLength {
            length: native.into(),
        }),
    }
}

impl<'a> Message<'a> {
    /// Reads a message from the bytes that arrived on a link.
    ///
    /// # Errors
    ///
    /// [`Error::Ignorable`] if RFC 7609 A.3 says to drop the message without an
    /// answer; any other [`Error`] is a violation of the protocol.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, Error> {
        let Some((&head_bytes, _)) = bytes.split_first_chunk::<4>() else {
            return Err(truncated(bytes));
        };
        let [code, _, reason, flags] = head_bytes;
        let (kind, version) = parse_type(code)?;
        if bytes.len() < LEN {
            return Err(truncated(bytes));
        }
        let len = declared_len(head_bytes, version, bytes.len())?;
        let head = Head {
            kind,
            version,
            flags,
            reason: reason & 0x0f,
        };
        let rest = bytes.get(4..len).ok_or_else(|| truncated(bytes))?;
        Ok(Message {
            version,
            response: head.is_response(),
            body: Body::read(&head, &mut Reader::new(rest))?,
        })
    }

    /// Writes the message to the start of `buf` and returns its length: 44 unless
    /// a version 2 message carries a long list.
    ///
    /// # Errors
    ///
    /// [`Error::NoSpace`] if `buf` is too small, [`Error::BadVersion`] if the
    /// message does not exist in its version, [`Error::BadField`] if fields
    /// contradict each other.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, Error> {
        let (kind, flags, reason) = self.body.head();
        if !kind.is_in(self.version) {
            return Err(Error::BadVersion(self.version.number()));
        }
        let (head, rest) = buf.split_first_chunk_mut::<4>().ok_or(Error::NoSpace)?;
        let mut writer = Writer::new(rest);
        self.body.write(self.version, &mut writer)?;
        writer.pad_to(LEN.saturating_sub(4))?;
        let len = writer.written().saturating_add(4);
        let response = if self.response { FLAG_RESPONSE } else { 0 };
        *head = match self.version {
            Version::V1 => [kind.code(), LEN_BYTE, reason, flags | response],
            Version::V2 => {
                let short = u16::try_from(len).map_err(|_| Error::NoSpace)?;
                let [first, second] = short.to_ne_bytes();
                let second = if reason == 0 {
                    second
                } else {
                    (second & 0xf0) | reason
                };
                [kind.code() | V2, first, second, flags | response]
            }
        };
        Ok(len)
    }
}

fn truncated(bytes: &[u8]) -> Error {
    Error::Truncated {
        needed: LEN,
        available: bytes.len(),
    }
}

impl<'a> Body<'a> {
    fn read(head: &Head, reader: &mut Reader<'a>) -> Result<Body<'a>, Error> {
        Ok(match head.kind {
            Kind::ConfirmLink => Body::ConfirmLink(ConfirmLink::read(head, reader)?),
            Kind::AddLink => Body::AddLink(AddLink::read(head, reader)?),
            Kind::AddLinkCont => Body::AddLinkCont(AddLinkCont::read(reader)?),
            Kind::DeleteLink => Body::DeleteLink(DeleteLink::read(head, reader)?),
            Kind::RequestAddLink => Body::RequestAddLink(RequestAddLink::read(reader)?),
            Kind::ConfirmRkey => Body::ConfirmRkey(ConfirmRkey::read(head, reader)?),
            Kind::ConfirmRkeyCont => Body::ConfirmRkeyCont(ConfirmRkeyCont::read(head, reader)?),
            Kind::DeleteRkey => Body::DeleteRkey(DeleteRkey::read(head, reader)?),
            Kind::TestLink => Body::TestLink(TestLink::read(reader)?),
        })
    }

    /// Type, flags other than the response flag, and reason.
    fn head(&self) -> (Kind, u8, u8) {
        match self {
            Body::ConfirmLink(body) => (Kind::ConfirmLink, body.flags(), 0),
            Body::AddLink(body) => (Kind::AddLink, body.flags(), body.reason()),
            Body::AddLinkCont(_) => (Kind::AddLinkCont, 0, 0),
            Body::DeleteLink(body) => (Kind::DeleteLink, body.flags(), 0),
            Body::RequestAddLink(_) => (Kind::RequestAddLink, 0, 0),
            Body::ConfirmRkey(body) => (Kind::ConfirmRkey, body.answer.flags(), 0),
            Body::ConfirmRkeyCont(body) => (Kind::ConfirmRkeyCont, body.answer.flags(), 0),
            Body::DeleteRkey(body) => (Kind::DeleteRkey, body.flags(), 0),
            Body::TestLink(_) => (Kind::TestLink, 0, 0),
        }
    }

    fn write(&self, version: Version, writer: &mut Writer<'_>) -> Result<(), Error> {
        match self {
            Body::ConfirmLink(body) => body.write(version, writer),
            Body::AddLink(body) => body.write(version, writer),
            Body::AddLinkCont(body) => body.write(writer),
            Body::DeleteLink(body) => body.write(writer),
            Body::RequestAddLink(body) => body.write(writer),
            Body::ConfirmRkey(body) => body.write(writer),
            Body::ConfirmRkeyCont(body) => body.write(writer),
            Body::DeleteRkey(body) => body.write(version, writer),
            Body::TestLink(body) => body.write(writer),
        }
    }
}

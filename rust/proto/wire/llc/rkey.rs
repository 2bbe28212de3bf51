// SPDX-License-Identifier: GPL-2.0

//! LLC messages about remote keys: CONFIRM RKEY with its continuation, and
//! DELETE RKEY.

use super::list::{Item, List, ListWriter};
use super::Head;
use crate::ids::{LinkId, Rkey, Version, VirtAddr};
use crate::list::ArrayList;
use crate::wire::io::{Reader, Writer};
use crate::wire::Error;
use zerocopy::network_endian::{U32, U64};
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The most links besides its own that a CONFIRM RKEY may speak of: seven of a
/// full link group, and an asymmetric one, which is not counted.
pub const MAX_OTHER_LINKS: u8 = 8;

/// Where an RMB is on one link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Token {
    /// Key of the RMB.
    pub rkey: Rkey,
    /// Address of the RMB.
    pub addr: VirtAddr,
}

/// Where an RMB is on the link with this number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkToken {
    /// The link.
    pub link: LinkId,
    /// The RMB.
    pub token: Token,
}

/// The answer that a message about keys carries in its flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RkeyAnswer {
    /// The keys were taken; also used in requests.
    #[default]
    Positive,
    /// The keys could not be taken.
    Negative,
    /// The link group is changing: try again when that is over.
    Retry,
}

/// CONFIRM RKEY: keys of a new RMB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfirmRkey {
    /// The RMB on the link over which the message is sent.
    pub own: Token,
    /// Links to be told of besides that one, at most [`MAX_OTHER_LINKS`]. Those
    /// that do not fit follow in continuations.
    pub other_links: u8,
    /// The RMB on the first two of those links.
    pub others: ArrayList<LinkToken, 2>,
    /// In a response: whether the keys were taken.
    pub answer: RkeyAnswer,
}

/// CONFIRM RKEY CONTINUATION: keys on further links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfirmRkeyCont {
    /// Links still to be told of, with those in this message; at most
    /// [`MAX_OTHER_LINKS`].
    pub remaining: u8,
    /// The RMB on the first three of them.
    pub tokens: ArrayList<LinkToken, 3>,
    /// In a response: whether the keys were taken.
    pub answer: RkeyAnswer,
}

/// DELETE RKEY: withdraws RMBs, named by their keys on the link over which the
/// message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteRkey<'a> {
    /// The keys; at most 8 in version 1 and 255 in version 2.
    pub rkeys: List<'a, Rkey>,
    /// In a response: some keys are not known.
    pub negative: bool,
    /// In a negative response of version 1, which keys are not known: the first
    /// is the highest bit. In one of version 2, how many.
    pub errors: u8,
}

/// The most keys in a version 1 DELETE RKEY.
const MAX_DELETE_V1: u8 = 8;

const FLAG_NEGATIVE: u8 = 0x20;
const FLAG_RETRY: u8 = 0x10;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireToken {
    /// Number of the link, or in the first token of CONFIRM RKEY the number of
    /// other links.
    first: u8,
    rkey: U32,
    addr: U64,
}

const _: () = assert!(size_of::<WireToken>() == 13);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireConfirmRkeyCont {
    remaining: u8,
    tokens: [WireToken; 3],
}

const _: () = assert!(size_of::<WireConfirmRkeyCont>() == 40);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireDeleteRkey {
    count: u8,
    errors: u8,
    reserved: [u8; 2],
}

impl RkeyAnswer {
    fn from_flags(flags: u8) -> RkeyAnswer {
        match (flags & FLAG_NEGATIVE != 0, flags & FLAG_RETRY != 0) {
            (false, _) => RkeyAnswer::Positive,
            (true, false) => RkeyAnswer::Negative,
            (true, true) => RkeyAnswer::Retry,
        }
    }

    pub(super) fn flags(self) -> u8 {
        match self {
            RkeyAnswer::Positive => 0,
            RkeyAnswer::Negative => FLAG_NEGATIVE,
            RkeyAnswer::Retry => FLAG_NEGATIVE | FLAG_RETRY,
        }
    }
}

impl Token {
    fn to_wire(self, first: u8) -> WireToken {
        WireToken {
            first,
            rkey: self.rkey.0.into(),
            addr: self.addr.0.into(),
        }
    }
}

impl LinkToken {
    fn to_wire(self) -> WireToken {
        self.token.to_wire(self.link.0)
    }
}

impl WireToken {
    fn token(&self) -> Token {
        Token {
            rkey: Rkey(self.rkey.get()),
            addr: VirtAddr(self.addr.get()),
        }
    }

    fn link_token(&self) -> LinkToken {
        LinkToken {
            link: LinkId(self.first),
            token: self.token(),
        }
    }
}

/// As many of `tokens` as there are, but not more than `count` and not more than
/// the list takes.
fn collect<const N: usize>(
    tokens: impl Iterator<Item = LinkToken>,
    count: u8,
) -> ArrayList<LinkToken, N> {
    let mut list = ArrayList::filled_with(LinkToken::default());
    for token in tokens.take(usize::from(count).min(N)) {
        if list.push(token).is_err() {
            break;
        }
    }
    list
}

/// The number of links in `links` as a byte within the limit.
fn link_count(links: &[LinkToken]) -> Result<u8, Error> {
    let count = u32::try_from(links.len()).unwrap_or(u32::MAX);
    match u8::try_from(count) {
        Ok(count) => check_links(count),
        Err(_) => Err(Error::field("number of links", count)),
    }
}

fn check_links(count: u8) -> Result<u8, Error> {
    if count <= MAX_OTHER_LINKS {
        Ok(count)
    } else {
        Err(Error::field("number of links", count))
    }
}

impl ConfirmRkey {
    /// A request that tells of an RMB on this link and on `others`, of which the
    /// first two fit; the rest is for continuations.
    ///
    /// # Errors
    ///
    /// [`Error::BadField`] if there are more than [`MAX_OTHER_LINKS`].
    pub fn new(own: Token, others: &[LinkToken]) -> Result<ConfirmRkey, Error> {
        let other_links = link_count(others)?;
        Ok(ConfirmRkey {
            own,
            other_links,
            others: collect(others.iter().copied(), other_links),
            answer: RkeyAnswer::Positive,
        })
    }

    pub(super) fn read(head: &Head, reader: &mut Reader<'_>) -> Result<ConfirmRkey, Error> {
        let [own, others @ ..]: &[WireToken; 3] = reader.read()?;
        let other_links = check_links(own.first)?;
        Ok(ConfirmRkey {
            own: own.token(),
            other_links,
            others: collect(others.iter().map(WireToken::link_token), other_links),
            answer: RkeyAnswer::from_flags(head.flags),
        })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        let count = check_links(self.other_links)?;
        if self.others.count() != count.min(2) {
            return Err(Error::field("number of links", count));
        }
        writer.write(&self.own.to_wire(count))?;
        let mut others = self.others.iter();
        others.try_for_each(|other| writer.write(&other.to_wire()))
    }
}

impl ConfirmRkeyCont {
    /// A request that tells of an RMB on `links`, of which the first three fit;
    /// the rest is for further continuations.
    ///
    /// # Errors
    ///
    /// [`Error::BadField`] if there are more than [`MAX_OTHER_LINKS`].
    pub fn new(links: &[LinkToken]) -> Result<ConfirmRkeyCont, Error> {
        let remaining = link_count(links)?;
        Ok(ConfirmRkeyCont {
            remaining,
            tokens: collect(links.iter().copied(), remaining),
            answer: RkeyAnswer::Positive,
        })
    }

    pub(super) fn read(head: &Head, reader: &mut Reader<'_>) -> Result<ConfirmRkeyCont, Error> {
        let wire: &WireConfirmRkeyCont = reader.read()?;
        let remaining = check_links(wire.remaining)?;
        Ok(ConfirmRkeyCont {
            remaining,
            tokens: collect(wire.tokens.iter().map(WireToken::link_token), remaining),
            answer: RkeyAnswer::from_flags(head.flags),
        })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        let remaining = check_links(self.remaining)?;
        if self.tokens.count() != remaining.min(3) {
            return Err(Error::field("number of links", remaining));
        }
        writer.write(&remaining)?;
        let mut tokens = self.tokens.iter();
        tokens.try_for_each(|token| writer.write(&token.to_wire()))
    }
}

impl<'a> DeleteRkey<'a> {
    pub(super) fn read(head: &Head, reader: &mut Reader<'a>) -> Result<DeleteRkey<'a>, Error> {
        let wire: &WireDeleteRkey = reader.read()?;
        let bad_count = || Error::field("number of keys", wire.count);
        if head.version == Version::V1 && wire.count > MAX_DELETE_V1 {
            return Err(bad_count());
        }
        let rkeys = match List::from_wire(reader.rest(), wire.count) {
            Some(rkeys) => rkeys,
            // Linux answers a long request of version 2 without the keys.
            None if head.is_response() => List::EMPTY,
            None => return Err(bad_count()),
        };
        Ok(DeleteRkey {
            rkeys,
            negative: head.flags & FLAG_NEGATIVE != 0,
            errors: wire.errors,
        })
    }

    pub(super) fn flags(&self) -> u8 {
        if self.negative {
            FLAG_NEGATIVE
        } else {
            0
        }
    }

    pub(super) fn write(&self, version: Version, writer: &mut Writer<'_>) -> Result<(), Error> {
        let count = self.rkeys.count("number of keys")?;
        if version == Version::V1 && count > MAX_DELETE_V1 {
            return Err(Error::field("number of keys", count));
        }
        writer.write(&WireDeleteRkey {
            count,
            errors: self.errors,
            reserved: [0; 2],
        })?;
        self.rkeys.write(writer)
    }
}

impl Item for Rkey {
    const LEN: usize = 4;

    fn decode(bytes: &[u8]) -> Option<Rkey> {
        bytes
            .first_chunk()
            .copied()
            .map(u32::from_be_bytes)
            .map(Rkey)
    }

    fn encode(&self, writer: &mut ListWriter<'_, '_>) -> Result<(), Error> {
        writer.0.write(&self.0.to_be_bytes())
    }
}

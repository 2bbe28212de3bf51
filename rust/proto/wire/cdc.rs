// SPDX-License-Identifier: GPL-2.0

//! Connection Data Control messages (RFC 7609 A.4): where both ends of one
//! connection stand in their rings.

use super::Error;
use crate::ids::AlertToken;
use zerocopy::network_endian::{U16, U32};
use zerocopy::FromBytes as _;
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Message type of CDC in the first byte; both high bits are set, which no LLC
/// type has.
pub const TYPE: u8 = 0xfe;

/// Length of a CDC message in bytes.
pub const LEN: usize = 44;

const LEN_BYTE: u8 = 44;

/// A cursor as a peer sent it. Nothing is known yet about its value: only
/// together with a ring's length does it become a position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawCursor {
    /// How many times the cursor went over the end of the ring, modulo 2^16.
    pub wrap: u16,
    /// Offset in the ring, in bytes.
    pub count: u32,
}

/// Flags about what the sender of a CDC message writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProdFlags(u8);

/// Flags about how far the sender of a CDC message is in ending the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnFlags(u8);

macro_rules! flag_set {
    ($name:ident { $($(#[$doc:meta])* $flag:ident = $value:literal,)* }) => {
        impl $name {
            $($(#[$doc])* pub const $flag: $name = $name($value);)*

            /// No flag.
            pub const NONE: $name = $name(0);

            const KNOWN: u8 = 0 $(| $value)*;

            /// The known flags in `bits`; reserved bits are dropped.
            pub const fn from_bits(bits: u8) -> $name {
                $name(bits & Self::KNOWN)
            }

            /// The flags as on the wire.
            pub const fn bits(self) -> u8 {
                self.0
            }

            /// Whether all of `flags` are set.
            pub const fn contains(self, flags: $name) -> bool {
                self.0 & flags.0 == flags.0
            }

            /// Whether no flag is set.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// These flags and those of `other`.
            #[must_use]
            pub const fn with(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }

            /// These flags and `other` if `condition` holds.
            #[must_use]
            pub const fn with_if(self, condition: bool, other: $name) -> $name {
                if condition { self.with(other) } else { self }
            }
        }
    };
}

flag_set!(ProdFlags {
    /// B: the sender waits for room and wants to be told of it.
    WRITER_BLOCKED = 0x80,
    /// P: urgent data is waiting to be sent.
    URGENT_PENDING = 0x40,
    /// U: the producer cursor is one byte beyond the urgent byte.
    URGENT_PRESENT = 0x20,
    /// R: the sender asks for a consumer cursor update at once.
    CONS_UPDATE_REQUESTED = 0x10,
    /// F: the message only asks the receiver to check, after a failover, that it
    /// has processed the message with this sequence number (RFC 7609 4.6.1).
    FAILOVER_VALIDATION = 0x08,
});

flag_set!(ConnFlags {
    /// D: the sender will write no more data.
    SENDING_DONE = 0x80,
    /// C: the sender has closed and will send nothing more at all.
    CLOSED = 0x40,
    /// A: the sender has ended the connection abnormally.
    ABORT = 0x20,
});

impl ConnFlags {
    /// Whether the sender is gone (C or A): it neither writes nor reads any more.
    pub const fn sender_is_gone(self) -> bool {
        self.contains(Self::CLOSED) || self.contains(Self::ABORT)
    }
}

/// A Connection Data Control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CdcMessage {
    /// Sequence number: starts at 1 and wraps to 0.
    pub seq: u16,
    /// Token of the connection, as its receiver gave it out.
    pub token: AlertToken,
    /// The next byte the sender will write into the receiver's ring.
    pub prod: RawCursor,
    /// The next byte the sender will read from its own ring.
    pub cons: RawCursor,
    /// Flags about writing.
    pub prod_flags: ProdFlags,
    /// Flags about closing.
    pub conn_flags: ConnFlags,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireCursor {
    reserved: [u8; 2],
    wrap: U16,
    count: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Wire {
    kind: u8,
    len: u8,
    seq: U16,
    token: U32,
    prod: WireCursor,
    cons: WireCursor,
    prod_flags: u8,
    conn_flags: u8,
    reserved: [u8; 18],
}

const _: () = assert!(size_of::<Wire>() == LEN);

impl CdcMessage {
    /// Reads a message from the bytes that arrived on a link.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] below 44 bytes, [`Error::BadType`] if this is no CDC
    /// message, [`Error::BadLength`] if its length byte is not 44.
    pub fn parse(bytes: &[u8]) -> Result<CdcMessage, Error> {
        let Ok((wire, _)) = Wire::ref_from_prefix(bytes) else {
            return Err(Error::Truncated {
                needed: LEN,
                available: bytes.len(),
            });
        };
        if wire.kind != TYPE {
            return Err(Error::BadType(wire.kind));
        }
        if wire.len != LEN_BYTE {
            return Err(Error::BadLength {
                length: usize::from(wire.len),
            });
        }
        Ok(CdcMessage {
            seq: wire.seq.get(),
            token: AlertToken(wire.token.get()),
            prod: wire.prod.into(),
            cons: wire.cons.into(),
            prod_flags: ProdFlags::from_bits(wire.prod_flags),
            conn_flags: ConnFlags::from_bits(wire.conn_flags),
        })
    }

    /// The bytes of the message.
    pub fn emit(&self) -> [u8; LEN] {
        zerocopy::transmute!(Wire {
            kind: TYPE,
            len: LEN_BYTE,
            seq: self.seq.into(),
            token: self.token.0.into(),
            prod: self.prod.into(),
            cons: self.cons.into(),
            prod_flags: self.prod_flags.bits(),
            conn_flags: self.conn_flags.bits(),
            reserved: [0; 18],
        })
    }
}

impl From<WireCursor> for RawCursor {
    fn from(wire: WireCursor) -> RawCursor {
        RawCursor {
            wrap: wire.wrap.get(),
            count: wire.count.get(),
        }
    }
}

impl From<RawCursor> for WireCursor {
    fn from(cursor: RawCursor) -> WireCursor {
        WireCursor {
            reserved: [0; 2],
            wrap: cursor.wrap.into(),
            count: cursor.count.into(),
        }
    }
}

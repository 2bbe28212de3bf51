// SPDX-License-Identifier: GPL-2.0

//! Decline (RFC 7609 A.2.5): the connection stays on TCP.

use super::{emit_frame, Eyecatcher, Header, HeaderFields, Kind, Message, FLAG_OUT_OF_SYNC};
use crate::ids::{PeerId, Version};
use crate::reason::DeclineReason;
use crate::wire::io::Reader;
use crate::wire::Error;
use zerocopy::network_endian::U32;
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A Decline message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decline {
    /// Decides between the 28-byte and the 44-byte form.
    pub version: Version,
    /// Why.
    pub reason: DeclineReason,
    /// The sender.
    pub peer_id: PeerId,
    /// S flag: the receiver must give up its side of the link group.
    pub out_of_sync: bool,
    /// Operating system of the sender: 1 z/OS, 2 Linux, 3 AIX.
    pub os_type: u8,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Wire {
    peer_id: [u8; 8],
    diagnosis: U32,
    os_type: u8,
    reserved: [u8; 3],
}

const _: () = assert!(size_of::<Wire>() == 16);

/// Four further words of diagnosis in the version 2 form, unused so far.
const V2_EXTRA: [u8; 16] = [0; 16];

impl Decline {
    /// Reads the body. Both forms begin alike and the rest has no use, so that a
    /// Decline is understood whatever its version.
    pub(super) fn parse_body(header: &Header, body: &[u8]) -> Result<Message, Error> {
        if header.eyecatcher != Eyecatcher::Smcr {
            return Err(Error::BadEyecatcher);
        }
        let wire: &Wire = Reader::new(body)
            .read()
            .map_err(|error| header.too_short(error))?;
        Ok(Message::Decline(Decline {
            version: Version::common(header.version).ok_or(Error::BadVersion(header.version))?,
            reason: DeclineReason(wire.diagnosis.get()),
            peer_id: PeerId(wire.peer_id),
            out_of_sync: header.flags & FLAG_OUT_OF_SYNC != 0,
            os_type: wire.os_type >> 4,
        }))
    }

    /// Writes the message to the start of `buf` and returns its length.
    ///
    /// # Errors
    ///
    /// [`Error::NoSpace`] if `buf` is too small.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, Error> {
        let fields = HeaderFields {
            kind: Kind::Decline,
            eyecatcher: Eyecatcher::Smcr,
            version: self.version.number(),
            flags: if self.out_of_sync {
                FLAG_OUT_OF_SYNC
            } else {
                0
            },
        };
        emit_frame(buf, &fields, |writer| {
            writer.write(&Wire {
                peer_id: self.peer_id.0,
                diagnosis: self.reason.0.into(),
                os_type: self.os_type << 4,
                reserved: [0; 3],
            })?;
            match self.version {
                Version::V1 => Ok(()),
                Version::V2 => writer.write(&V2_EXTRA),
            }
        })
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Accept and Confirm (RFC 7609 A.2.3, A.2.4): both ends tell each other where
//! their queue pair and receive buffer are.

use super::endpoint::{Endpoint, IsmEndpoint, RdmaEndpoint};
use super::first_contact::{read_gids, write_gids, FirstContactExt};
use super::offer::PathType;
use super::{emit_frame, Header, HeaderFields, Kind, Message, FLAG_FIRST_CONTACT};
use crate::ids::{Eid, GidList, Version};
use crate::wire::io::{Reader, Writer};
use crate::wire::Error;
use zerocopy::network_endian::{U16, U64};
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The server's answer to a Proposal that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// The version chosen.
    pub version: Version,
    /// F flag: the server has no link group with this client that it can use.
    pub first_contact: bool,
    /// The server's end.
    pub endpoint: Endpoint,
    /// Present exactly in version 2.
    pub v2: Option<V2Fields>,
}

/// The client's answer to an Accept that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// The version chosen.
    pub version: Version,
    /// Repeats the flag of the Accept where the peer speaks as Linux does;
    /// RFC 7609 does not define it here.
    pub first_contact: bool,
    /// The client's end.
    pub endpoint: Endpoint,
    /// Present exactly in version 2.
    pub v2: Option<V2Fields>,
}

/// What version 2 adds to Accept and Confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V2Fields {
    /// The enterprise ID that both sides have.
    pub eid: Eid,
    /// Present exactly with the F flag.
    pub fce: Option<FirstContactExt>,
    /// All RoCE GIDs of a client that can carry links; in a first-contact Confirm
    /// over RDMA only, empty otherwise.
    pub gids: GidList,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireRdmaV2 {
    eid: [u8; 32],
    reserved: [u8; 8],
}

const _: () = assert!(size_of::<WireRdmaV2>() == 40);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WireIsmV2 {
    chid: U16,
    eid: [u8; 32],
    gid_ext: U64,
}

const _: () = assert!(size_of::<WireIsmV2>() == 42);

/// Length of a version 1 message over RDMA, header and trailer included.
const RDMA_V1_LEN: usize = 68;
/// Length of a version 1 message over ISM, header and trailer included.
const ISM_V1_LEN: usize = 48;
/// Reserved bytes that fill a version 1 message over ISM up to its length.
const ISM_V1_RESERVED: [u8; 12] = [0; 12];

/// Both messages are read and written through [`Common`].
macro_rules! message {
    ($name:ident) => {
        impl $name {
            #[inline(never)]
            pub(super) fn parse_body(header: &Header, body: &[u8]) -> Result<Message, Error> {
                let common = Common::parse(header, body)?;
                Ok(Message::$name($name {
                    version: common.version,
                    first_contact: common.first_contact,
                    endpoint: common.endpoint,
                    v2: common.v2,
                }))
            }

            /// Writes the message to the start of `buf` and returns its length.
            ///
            /// # Errors
            ///
            /// [`Error::NoSpace`] if `buf` is too small, [`Error::BadField`] if fields
            /// contradict each other.
            pub fn emit(&self, buf: &mut [u8]) -> Result<usize, Error> {
                let common = Common {
                    version: self.version,
                    first_contact: self.first_contact,
                    endpoint: self.endpoint,
                    v2: self.v2,
                };
                common.emit(Kind::$name, buf)
            }
        }
    };
}

message!(Accept);
message!(Confirm);

/// The fields of both messages; they differ only in type and GID list.
struct Common {
    version: Version,
    first_contact: bool,
    endpoint: Endpoint,
    v2: Option<V2Fields>,
}

impl Common {
    fn parse(header: &Header, body: &[u8]) -> Result<Common, Error> {
        let too_short = |error| header.too_short(error);
        let version =
            Version::from_number(header.version).ok_or(Error::BadVersion(header.version))?;
        let first_contact = header.flags & FLAG_FIRST_CONTACT != 0;
        let mut reader = Reader::new(body);
        let path = PathType::from_bits(header.flags);
        let mut endpoint = match path {
            PathType::Rdma => Endpoint::Rdma(RdmaEndpoint::read(&mut reader).map_err(too_short)?),
            PathType::Ism => Endpoint::Ism(IsmEndpoint::read(&mut reader).map_err(too_short)?),
            PathType::None | PathType::Both => {
                return Err(Error::field("path type", path.bits()));
            }
        };
        if header.eyecatcher != endpoint.eyecatcher() {
            return Err(Error::BadEyecatcher);
        }
        let v2 = match version {
            Version::V1 => {
                check_v1_length(header, &endpoint)?;
                None
            }
            Version::V2 => {
                let eid = read_v2(&mut reader, &mut endpoint).map_err(too_short)?;
                let has_gids = header.kind == Kind::Confirm && path == PathType::Rdma;
                let (fce, gids) = read_extension(&mut reader, first_contact, has_gids)?;
                Some(V2Fields { eid, fce, gids })
            }
        };
        Ok(Common {
            version,
            first_contact,
            endpoint,
            v2,
        })
    }

    fn emit(&self, kind: Kind, buf: &mut [u8]) -> Result<usize, Error> {
        self.check(kind)?;
        let path = match self.endpoint {
            Endpoint::Rdma(_) => PathType::Rdma,
            Endpoint::Ism(_) => PathType::Ism,
        };
        let first_contact = if self.first_contact {
            FLAG_FIRST_CONTACT
        } else {
            0
        };
        let fields = HeaderFields {
            kind,
            eyecatcher: self.endpoint.eyecatcher(),
            version: self.version.number(),
            flags: path.bits() | first_contact,
        };
        emit_frame(buf, &fields, |writer| {
            match &self.endpoint {
                Endpoint::Rdma(end) => end.write(writer)?,
                Endpoint::Ism(end) => end.write(writer)?,
            }
            match (&self.v2, &self.endpoint) {
                (None, Endpoint::Rdma(_)) => Ok(()),
                (None, Endpoint::Ism(_)) => writer.write(&ISM_V1_RESERVED),
                (Some(v2), endpoint) => write_v2(v2, endpoint, kind, writer),
            }
        })
    }

    /// Refuses combinations that would be read back differently.
    fn check(&self, kind: Kind) -> Result<(), Error> {
        let contradiction = |field| Err(Error::field(field, self.version.number()));
        let Some(v2) = &self.v2 else {
            return match (self.version, &self.endpoint) {
                (Version::V2, _) => contradiction("version 2 fields, missing"),
                (Version::V1, Endpoint::Ism(end)) if end.chid != 0 || end.gid_ext != 0 => {
                    contradiction("version 2 fields")
                }
                (Version::V1, _) => Ok(()),
            };
        };
        if self.version != Version::V2 {
            return contradiction("version 2 fields");
        }
        if v2.fce.is_some() != self.first_contact {
            return contradiction("first-contact extension");
        }
        let has_gids = kind == Kind::Confirm
            && self.first_contact
            && matches!(self.endpoint, Endpoint::Rdma(_));
        if !v2.gids.is_empty() && !has_gids {
            return contradiction("number of GIDs");
        }
        Ok(())
    }
}

/// Version 1 has no room for growth.
fn check_v1_length(header: &Header, endpoint: &Endpoint) -> Result<(), Error> {
    let expected = match endpoint {
        Endpoint::Rdma(_) => RDMA_V1_LEN,
        Endpoint::Ism(_) => ISM_V1_LEN,
    };
    if header.length == expected {
        Ok(())
    } else {
        Err(Error::BadLength {
            length: header.length,
        })
    }
}

fn read_v2(reader: &mut Reader<'_>, endpoint: &mut Endpoint) -> Result<Eid, Error> {
    match endpoint {
        Endpoint::Rdma(_) => {
            let wire: &WireRdmaV2 = reader.read()?;
            Ok(Eid(wire.eid))
        }
        Endpoint::Ism(end) => {
            let wire: &WireIsmV2 = reader.read()?;
            end.chid = wire.chid.get();
            end.gid_ext = wire.gid_ext.get();
            Ok(Eid(wire.eid))
        }
    }
}

/// Reads what follows the fixed fields. Without the F flag nothing may follow;
/// after a first-contact extension, fields of later releases are skipped.
fn read_extension(
    reader: &mut Reader<'_>,
    first_contact: bool,
    has_gids: bool,
) -> Result<(Option<FirstContactExt>, GidList), Error> {
    if !first_contact {
        return if reader.rest().is_empty() {
            Ok((None, GidList::EMPTY))
        } else {
            Err(Error::field("first-contact flag", 0_u32))
        };
    }
    let fce = FirstContactExt::read(reader)?;
    let gids = if has_gids {
        read_gids(reader)?
    } else {
        GidList::EMPTY
    };
    Ok((Some(fce), gids))
}

fn write_v2(
    v2: &V2Fields,
    endpoint: &Endpoint,
    kind: Kind,
    writer: &mut Writer<'_>,
) -> Result<(), Error> {
    match endpoint {
        Endpoint::Rdma(_) => writer.write(&WireRdmaV2 {
            eid: v2.eid.0,
            reserved: [0; 8],
        })?,
        Endpoint::Ism(end) => writer.write(&WireIsmV2 {
            chid: end.chid.into(),
            eid: v2.eid.0,
            gid_ext: end.gid_ext.into(),
        })?,
    }
    let Some(fce) = &v2.fce else {
        return Ok(());
    };
    fce.write(writer)?;
    match (kind, endpoint) {
        (Kind::Confirm, Endpoint::Rdma(_)) => write_gids(&v2.gids, writer),
        _ => Ok(()),
    }
}

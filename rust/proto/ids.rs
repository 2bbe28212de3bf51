// SPDX-License-Identifier: GPL-2.0

//! Identifiers and small values that appear in more than one message.
//!
//! Each type holds legal values only, so that code which receives one has
//! nothing left to check. Types over the full range of their integer are
//! transparent wrappers with a public field.

use crate::list::ArrayList;
use core::num::NonZeroU8;

pub use crate::eid::{Eid, EidError, HostName, EID_LEN};

/// Version of the SMC protocol spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Version 1, RFC 7609: both peers in one IP subnet.
    V1,
    /// Version 2: peers find each other by enterprise ID, RoCEv2 can be routed.
    V2,
}

impl Version {
    /// The highest version this implementation speaks.
    pub const HIGHEST: Version = Version::V2;

    /// Number used for this version in CLC headers.
    pub const fn number(self) -> u8 {
        match self {
            Version::V1 => 1,
            Version::V2 => 2,
        }
    }

    /// The version with exactly this number, if it is spoken here.
    pub const fn from_number(number: u8) -> Option<Version> {
        match number {
            1 => Some(Version::V1),
            2 => Some(Version::V2),
            _ => None,
        }
    }

    /// The highest version spoken here that a peer offering up to `number` also
    /// speaks; `None` where there is none.
    pub const fn common(number: u8) -> Option<Version> {
        match number {
            0 => None,
            1 => Some(Version::V1),
            _ => Some(Version::V2),
        }
    }
}

/// Release within version 2: 0 is v2.0, 1 is v2.1. Four bits on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release(u8);

impl Release {
    /// Version 2.0.
    pub const V2_0: Release = Release(0);
    /// Version 2.1, with negotiated limits.
    pub const V2_1: Release = Release(1);
    /// The highest release this implementation speaks.
    pub const HIGHEST: Release = Release::V2_1;

    /// A release from its number, `None` above 15.
    pub const fn new(number: u8) -> Option<Release> {
        if number <= 0x0f {
            Some(Release(number))
        } else {
            None
        }
    }

    /// The release in the low four bits of `byte`.
    pub(crate) const fn from_low_nibble(byte: u8) -> Release {
        Release(byte & 0x0f)
    }

    /// The number of this release, 0 to 15.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Whether messages of this release carry the v2.1 fields.
    pub const fn has_v2_1_fields(self) -> bool {
        self.0 >= 1
    }
}

/// Identifies one instance of an SMC peer (RFC 7609 A.2.1).
///
/// Two bytes that differ between restarts, then the MAC address of a RoCE port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub [u8; 8]);

impl PeerId {
    /// Makes a peer ID from an instance number and the MAC address of a port.
    pub const fn new(instance: [u8; 2], mac: Mac) -> PeerId {
        let [i0, i1] = instance;
        let [m0, m1, m2, m3, m4, m5] = mac.0;
        PeerId([i0, i1, m0, m1, m2, m3, m4, m5])
    }
}

/// RDMA global identifier of a port: an IPv6 address, or a mapped IPv4 one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// The all-zero GID: none given.
    pub const ZERO: Gid = Gid([0; 16]);

    /// The GID `::ffff:a.b.c.d` of an IPv4 address.
    pub const fn from_ipv4(addr: [u8; 4]) -> Gid {
        let [a, b, c, d] = addr;
        Gid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d])
    }

    /// The IPv4 address of a mapped GID.
    pub const fn ipv4(&self) -> Option<[u8; 4]> {
        match self.0 {
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d] => Some([a, b, c, d]),
            _ => None,
        }
    }

    /// Length of [`Gid::text`].
    pub const TEXT_LEN: usize = 39;

    /// The GID as user space shows it: eight groups of four hexadecimal digits, with colons between.
    pub fn text(&self) -> [u8; Gid::TEXT_LEN] {
        const DIGITS: [u8; 16] = *b"0123456789abcdef";
        let mut text = [b':'; Gid::TEXT_LEN];
        for (group, pair) in text.chunks_mut(5).zip(self.0.chunks(2)) {
            let digits = pair.iter().flat_map(|byte| [byte >> 4, byte & 0x0f]);
            for (place, digit) in group.iter_mut().zip(digits) {
                *place = DIGITS.get(usize::from(digit)).copied().unwrap_or(b'0');
            }
        }
        text
    }

    /// Whether no GID is given.
    pub const fn is_zero(&self) -> bool {
        matches!(self.0, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }
}

/// Ethernet address of a RoCE port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

/// Number of a reliably connected queue pair: 24 bits, neither 0 nor all ones.
///
/// Zero is the subnet management queue pair and all ones means multicast; an
/// ordinary connection can be on neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Qpn(u32);

impl Qpn {
    /// Makes a queue pair number; `None` for numbers no connection can have.
    pub const fn new(number: u32) -> Option<Qpn> {
        if number == 0 || number >= 0x00ff_ffff {
            None
        } else {
            Some(Qpn(number))
        }
    }

    /// The number as an integer.
    pub const fn get(self) -> u32 {
        self.0
    }

    pub(crate) const fn from_wire(bytes: [u8; 3]) -> Option<Qpn> {
        Qpn::new(u24(bytes))
    }

    pub(crate) const fn to_wire(self) -> [u8; 3] {
        u24_bytes(self.0)
    }
}

/// Packet sequence number of a queue pair: 24 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Psn(u32);

impl Psn {
    /// The low 24 bits of `number`: sequence numbers wrap.
    pub const fn new(number: u32) -> Psn {
        Psn(number & 0x00ff_ffff)
    }

    /// The number as an integer.
    pub const fn get(self) -> u32 {
        self.0
    }

    pub(crate) const fn from_wire(bytes: [u8; 3]) -> Psn {
        Psn(u24(bytes))
    }

    pub(crate) const fn to_wire(self) -> [u8; 3] {
        u24_bytes(self.0)
    }
}

const fn u24(bytes: [u8; 3]) -> u32 {
    let [a, b, c] = bytes;
    u32::from_be_bytes([0, a, b, c])
}

const fn u24_bytes(number: u32) -> [u8; 3] {
    let [_, a, b, c] = number.to_be_bytes();
    [a, b, c]
}

/// Remote key of a registered memory region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rkey(pub u32);

/// Address of a remote memory region as its owner's RNIC assigned it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtAddr(pub u64);

/// Token by which an endpoint names a connection of a link group; opaque to
/// the peer, which puts it into each CDC message for that connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlertToken(pub u32);

/// Number of a link in its link group, given out by the server. 0 is not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u8);

/// Number under which a peer shows a link to its users; opaque.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkUid(pub u32);

/// Index of an RMB element in its RMB, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RmbeIndex(NonZeroU8);

impl RmbeIndex {
    /// The first element.
    pub const FIRST: RmbeIndex = RmbeIndex(NonZeroU8::MIN);

    /// Makes an index; `None` for 0.
    pub const fn new(index: u8) -> Option<RmbeIndex> {
        match NonZeroU8::new(index) {
            Some(index) => Some(RmbeIndex(index)),
            None => None,
        }
    }

    /// The index as it is on the wire, 1 to 255.
    pub const fn get(self) -> u8 {
        self.0.get()
    }

    /// The position counted from 0.
    pub const fn zero_based(self) -> u8 {
        self.0.get().wrapping_sub(1)
    }
}

/// Size of an RMB element: 16 KiB times a power of two, four bits on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufSize(u8);

impl BufSize {
    /// 16 KiB, the smallest size.
    pub const MIN: BufSize = BufSize(0);
    /// 512 MiB, the largest size the four bits can say.
    pub const MAX: BufSize = BufSize(15);
    /// 512 KiB, the largest size of RFC 7609.
    pub const MAX_RFC: BufSize = BufSize(5);

    /// The size with compressed code `code`; `None` above 15.
    pub const fn from_code(code: u8) -> Option<BufSize> {
        if code <= 15 {
            Some(BufSize(code))
        } else {
            None
        }
    }

    pub(crate) const fn from_low_nibble(byte: u8) -> BufSize {
        BufSize(byte & 0x0f)
    }

    /// The smallest size of at least `bytes`; [`BufSize::MAX`] where none is.
    pub const fn from_bytes_ceil(bytes: u32) -> BufSize {
        let mut size = BufSize::MIN;
        while size.bytes() < bytes && size.0 < BufSize::MAX.0 {
            size = BufSize(size.0.wrapping_add(1));
        }
        size
    }

    /// The compressed code, 0 to 15.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The size in bytes.
    pub const fn bytes(self) -> u32 {
        // The code is at most 15, so that the result is at most 2^29.
        0x4000_u32.wrapping_shl(self.0 as u32)
    }

    /// The next smaller size, `None` below the smallest.
    pub const fn smaller(self) -> Option<BufSize> {
        match self.0.checked_sub(1) {
            Some(code) => Some(BufSize(code)),
            None => None,
        }
    }
}

/// Path MTU of a queue pair, in the codes that RFC 7609 A.2.3 shares with the
/// RDMA verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathMtu {
    /// 256 bytes.
    Mtu256,
    /// 512 bytes.
    Mtu512,
    /// 1024 bytes.
    Mtu1024,
    /// 2048 bytes.
    Mtu2048,
    /// 4096 bytes.
    Mtu4096,
}

impl PathMtu {
    /// The MTU with this code; `None` for reserved codes.
    pub const fn from_code(code: u8) -> Option<PathMtu> {
        match code {
            1 => Some(PathMtu::Mtu256),
            2 => Some(PathMtu::Mtu512),
            3 => Some(PathMtu::Mtu1024),
            4 => Some(PathMtu::Mtu2048),
            5 => Some(PathMtu::Mtu4096),
            _ => None,
        }
    }

    /// The code of this MTU, 1 to 5.
    pub const fn code(self) -> u8 {
        match self {
            PathMtu::Mtu256 => 1,
            PathMtu::Mtu512 => 2,
            PathMtu::Mtu1024 => 3,
            PathMtu::Mtu2048 => 4,
            PathMtu::Mtu4096 => 5,
        }
    }

    /// The MTU in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            PathMtu::Mtu256 => 256,
            PathMtu::Mtu512 => 512,
            PathMtu::Mtu1024 => 1024,
            PathMtu::Mtu2048 => 2048,
            PathMtu::Mtu4096 => 4096,
        }
    }
}

/// Operating system type in Decline and first-contact extension: Linux.
pub const OS_TYPE_LINUX: u8 = 2;

/// The most enterprise IDs, GIDs, prefixes or ISM devices that a list in a CLC
/// message may hold.
pub const MAX_LIST: usize = 8;

/// Enterprise IDs of a host, at most eight.
pub type EidList = ArrayList<Eid, MAX_LIST>;

impl EidList {
    /// A list without IDs.
    pub const EMPTY: EidList = ArrayList::filled_with(Eid([b' '; EID_LEN]));
}

/// GIDs of a host, at most eight.
pub type GidList = ArrayList<Gid, MAX_LIST>;

impl GidList {
    /// A list without GIDs.
    pub const EMPTY: GidList = ArrayList::filled_with(Gid::ZERO);
}

/// An IPv4 subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv4Prefix {
    addr: [u8; 4],
    len: u8,
}

impl Ipv4Prefix {
    /// Makes a prefix of 1 to 32 bits; `None` for other lengths. Bits of `addr`
    /// beyond the prefix are kept and do not matter.
    pub const fn new(addr: [u8; 4], len: u8) -> Option<Ipv4Prefix> {
        match len {
            1..=32 => Some(Ipv4Prefix { addr, len }),
            _ => None,
        }
    }

    /// An address of the subnet.
    pub const fn addr(&self) -> [u8; 4] {
        self.addr
    }

    /// Length of the prefix in bits, 1 to 32.
    pub const fn prefix_len(&self) -> u8 {
        self.len
    }

    /// Whether both are the same subnet with the same length.
    pub const fn same_subnet(&self, other: &Ipv4Prefix) -> bool {
        let differing = u32::from_be_bytes(self.addr) ^ u32::from_be_bytes(other.addr);
        self.len == other.len && self.len as u32 <= differing.leading_zeros()
    }
}

/// An IPv6 prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv6Prefix {
    addr: [u8; 16],
    len: u8,
}

impl Ipv6Prefix {
    const FILLER: Ipv6Prefix = Ipv6Prefix {
        addr: [0; 16],
        len: 1,
    };

    /// Makes a prefix of 1 to 128 bits; `None` for other lengths. Bits of `addr`
    /// beyond the prefix are kept and do not matter.
    pub const fn new(addr: [u8; 16], len: u8) -> Option<Ipv6Prefix> {
        match len {
            1..=128 => Some(Ipv6Prefix { addr, len }),
            _ => None,
        }
    }

    /// An address of the prefix.
    pub const fn addr(&self) -> [u8; 16] {
        self.addr
    }

    /// Length of the prefix in bits, 1 to 128.
    pub const fn prefix_len(&self) -> u8 {
        self.len
    }

    /// Whether both are the same prefix with the same length.
    pub const fn same_subnet(&self, other: &Ipv6Prefix) -> bool {
        let differing = u128::from_be_bytes(self.addr) ^ u128::from_be_bytes(other.addr);
        self.len == other.len && self.len as u32 <= differing.leading_zeros()
    }
}

/// IPv6 prefixes of an interface, at most eight.
pub type Ipv6PrefixList = ArrayList<Ipv6Prefix, MAX_LIST>;

impl Ipv6PrefixList {
    /// A list without prefixes.
    pub const EMPTY: Ipv6PrefixList = ArrayList::filled_with(Ipv6Prefix::FILLER);
}

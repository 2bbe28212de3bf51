// SPDX-License-Identifier: GPL-2.0

//! Socket addresses.
//!
//! C headers: [`include/linux/socket.h`](srctree/include/linux/socket.h),
//! [`include/uapi/linux/in.h`](srctree/include/uapi/linux/in.h)

use crate::sys;
use kernel::prelude::*;

/// Largest address the kernel takes from user space, in bytes.
pub const ADDR_MAX: usize = 128;

/// Address family of IPv4.
pub const AF_INET: u16 = 2;
/// Address family of IPv6.
pub const AF_INET6: u16 = 10;
/// Address family "none", which `connect` uses to dissolve a connection.
pub const AF_UNSPEC: u16 = 0;

const IN_LEN: usize = size_of::<sys::sockaddr_in>();
const IN6_LEN: usize = size_of::<sys::sockaddr_in6>();

/// An address that a socket call was given, already copied into the kernel.
#[derive(Clone, Copy)]
pub struct SockAddr<'a>(&'a [u8]);

impl<'a> SockAddr<'a> {
    /// Wraps the bytes of an address, family first, in the layout user space uses.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The family, `None` if the address is too short to have one.
    pub fn family(&self) -> Option<u16> {
        let bytes = self.0.get(..2)?;
        Some(u16::from_ne_bytes([bytes[0], bytes[1]]))
    }

    /// The address and port.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the address is too short for its family, `EAFNOSUPPORT` if it is neither IPv4
    /// nor IPv6.
    pub fn parse(&self) -> Result<InetAddr> {
        fn take<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
            let part = bytes.get(at..at + N).ok_or(EINVAL)?;
            part.try_into().map_err(|_| EINVAL)
        }

        match self.family().ok_or(EINVAL)? {
            AF_INET => Ok(InetAddr::V4 {
                port: u16::from_be_bytes(take(self.0, 2)?),
                addr: take(self.0, 4)?,
            }),
            AF_INET6 => Ok(InetAddr::V6 {
                port: u16::from_be_bytes(take(self.0, 2)?),
                addr: take(self.0, 8)?,
                scope_id: take(self.0, 24).map_or(0, u32::from_ne_bytes),
            }),
            _ => Err(EAFNOSUPPORT),
        }
    }
}

/// Whose address `getname` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The socket's.
    Own,
    /// The peer's, as `getpeername` asks for: of a connection that is there.
    Peer,
    /// The peer's, also of a connection that has ended, as `accept` and `SO_PEERNAME` ask for.
    FormerPeer,
}

impl Whose {
    /// The argument of the operation.
    pub(crate) fn from_raw(peer: c_int) -> Self {
        match peer {
            0 => Self::Own,
            1 => Self::Peer,
            _ => Self::FormerPeer,
        }
    }

    pub(crate) fn to_raw(self) -> c_int {
        match self {
            Self::Own => 0,
            Self::Peer => 1,
            Self::FormerPeer => 2,
        }
    }
}

/// An address that a socket call returns.
pub struct SockAddrStorage {
    bytes: [u8; ADDR_MAX],
    len: usize,
}

impl SockAddrStorage {
    /// An address of `len` zero bytes.
    pub fn zeroed(len: usize) -> Self {
        Self {
            bytes: [0; ADDR_MAX],
            len: len.min(ADDR_MAX),
        }
    }

    /// The address as it is passed to a call.
    pub fn as_addr(&self) -> SockAddr<'_> {
        SockAddr(self.as_bytes())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Where C may write [`ADDR_MAX`] bytes.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut sys::sockaddr {
        self.bytes.as_mut_ptr().cast()
    }

    /// Says how many bytes are in use.
    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len.min(ADDR_MAX);
    }
}

impl From<InetAddr> for SockAddrStorage {
    fn from(addr: InetAddr) -> Self {
        match addr {
            InetAddr::V4 { addr, port } => {
                let mut me = Self::zeroed(IN_LEN);
                me.bytes[..2].copy_from_slice(&AF_INET.to_ne_bytes());
                me.bytes[2..4].copy_from_slice(&port.to_be_bytes());
                me.bytes[4..8].copy_from_slice(&addr);
                me
            }
            InetAddr::V6 {
                addr,
                port,
                scope_id,
            } => {
                let mut me = Self::zeroed(IN6_LEN);
                me.bytes[..2].copy_from_slice(&AF_INET6.to_ne_bytes());
                me.bytes[2..4].copy_from_slice(&port.to_be_bytes());
                me.bytes[8..24].copy_from_slice(&addr);
                me.bytes[24..28].copy_from_slice(&scope_id.to_ne_bytes());
                me
            }
        }
    }
}

/// An internet address with port. Addresses are in network byte order, ports are plain numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InetAddr {
    /// IPv4.
    V4 {
        /// The address.
        addr: [u8; 4],
        /// The port.
        port: u16,
    },
    /// IPv6.
    V6 {
        /// The address.
        addr: [u8; 16],
        /// The port.
        port: u16,
        /// Interface index for link-local addresses, else 0.
        scope_id: u32,
    },
}

impl InetAddr {
    /// The port.
    pub fn port(&self) -> u16 {
        match *self {
            Self::V4 { port, .. } | Self::V6 { port, .. } => port,
        }
    }

    /// The IPv4 address, also of an IPv4-mapped IPv6 address (`::ffff:a.b.c.d`).
    pub fn to_v4(&self) -> Option<[u8; 4]> {
        match *self {
            Self::V4 { addr, .. } => Some(addr),
            Self::V6 { addr, .. } => match addr {
                [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d] => Some([a, b, c, d]),
                _ => None,
            },
        }
    }

    /// Whether this is an IPv4-mapped IPv6 address.
    pub fn is_v4_mapped(&self) -> bool {
        matches!(self, Self::V6 { .. }) && self.to_v4().is_some()
    }

    /// The address as 16 bytes, an IPv4 address in its mapped form.
    pub fn to_v6(&self) -> [u8; 16] {
        match *self {
            Self::V4 {
                addr: [a, b, c, d], ..
            } => [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d],
            Self::V6 { addr, .. } => addr,
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Socket families under test and socket addresses.

use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Address family number of SMC sockets (`include/linux/socket.h`).
pub const AF_SMC: i32 = 43;

/// The socket family a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// TCP over IPv4.
    Tcp,
    /// TCP over IPv6.
    Tcp6,
    /// SMC with IPv4 addresses.
    Smc,
    /// SMC with IPv6 addresses.
    Smc6,
    /// SMC as a protocol of `AF_INET`.
    SmcInet,
    /// SMC as a protocol of `AF_INET6`.
    SmcInet6,
}

/// SMC's number as a protocol of the internet families (`include/uapi/linux/in.h`).
pub const IPPROTO_SMC: i32 = 256;

const ALL: [Family; 6] = [
    Family::Tcp,
    Family::Tcp6,
    Family::Smc,
    Family::Smc6,
    Family::SmcInet,
    Family::SmcInet6,
];

impl Family {
    /// True for all but the two TCP families.
    pub fn is_smc(self) -> bool {
        !matches!(self, Family::Tcp | Family::Tcp6)
    }

    /// True for the families with IPv6 addresses.
    pub const fn is_v6(self) -> bool {
        matches!(self, Family::Tcp6 | Family::Smc6 | Family::SmcInet6)
    }

    /// The TCP family with the same kind of addresses.
    pub fn tcp(self) -> Family {
        if self.is_v6() {
            Family::Tcp6
        } else {
            Family::Tcp
        }
    }

    /// The family of the same kind with addresses of IPv4, or of IPv6.
    pub fn of_version(self, v6: bool) -> Family {
        match self {
            Family::Tcp | Family::Tcp6 if v6 => Family::Tcp6,
            Family::Tcp | Family::Tcp6 => Family::Tcp,
            Family::Smc | Family::Smc6 if v6 => Family::Smc6,
            Family::Smc | Family::Smc6 => Family::Smc,
            Family::SmcInet | Family::SmcInet6 if v6 => Family::SmcInet6,
            Family::SmcInet | Family::SmcInet6 => Family::SmcInet,
        }
    }

    /// The address family that names of such sockets must carry.
    pub fn name_family(self) -> u16 {
        if self.is_v6() {
            libc::AF_INET6 as u16
        } else {
            libc::AF_INET as u16
        }
    }

    /// First and third argument of `socket(2)`.
    pub fn domain_and_protocol(self) -> (i32, i32) {
        match self {
            Family::Tcp => (libc::AF_INET, 0),
            Family::Tcp6 => (libc::AF_INET6, 0),
            Family::Smc => (AF_SMC, 0),
            Family::Smc6 => (AF_SMC, 1),
            Family::SmcInet => (libc::AF_INET, IPPROTO_SMC),
            Family::SmcInet6 => (libc::AF_INET6, IPPROTO_SMC),
        }
    }

    /// The loopback address of the family.
    pub fn loopback(self) -> IpAddr {
        if self.is_v6() {
            IpAddr::V6(Ipv6Addr::LOCALHOST)
        } else {
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        }
    }

    /// The wildcard address of the family.
    pub fn any(self) -> IpAddr {
        if self.is_v6() {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        } else {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        }
    }

    /// The name used on command lines and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Family::Tcp => "tcp",
            Family::Tcp6 => "tcp6",
            Family::Smc => "smc",
            Family::Smc6 => "smc6",
            Family::SmcInet => "smc-inet",
            Family::SmcInet6 => "smc-inet6",
        }
    }
}

impl FromStr for Family {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        ALL.into_iter().find(|f| f.name() == s).ok_or_else(|| {
            let names = ALL.map(Family::name).join(", ");
            format!("unknown family '{s}': use one of {names}")
        })
    }
}

/// A socket address in the form the kernel takes.
#[derive(Clone, Copy)]
pub struct RawAddr {
    /// Room for every address family.
    pub storage: libc::sockaddr_storage,
    /// How many bytes of it count.
    pub len: libc::socklen_t,
}

impl RawAddr {
    /// An empty address with all of its room on offer.
    pub fn empty() -> RawAddr {
        RawAddr {
            // SAFETY: all-zero bytes are a valid sockaddr_storage.
            storage: unsafe { mem::zeroed() },
            len: size_of::<libc::sockaddr_storage>() as libc::socklen_t,
        }
    }

    /// The address family field, whatever it holds.
    pub fn family(&self) -> u16 {
        self.storage.ss_family
    }

    pub(crate) fn ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    /// Decodes an IPv4 or IPv6 address.
    ///
    /// # Errors
    ///
    /// Any other family, named in the message.
    pub fn decode(&self) -> io::Result<SocketAddr> {
        match i32::from(self.family()) {
            libc::AF_INET => {
                // SAFETY: the storage is larger and stricter aligned than sockaddr_in.
                let a = unsafe { &*self.ptr().cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(u32::from_be(a.sin_addr.s_addr));
                Ok(SocketAddr::new(IpAddr::V4(ip), u16::from_be(a.sin_port)))
            }
            libc::AF_INET6 => {
                // SAFETY: the storage is larger and stricter aligned than sockaddr_in6.
                let a = unsafe { &*self.ptr().cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(a.sin6_addr.s6_addr);
                Ok(SocketAddr::new(IpAddr::V6(ip), u16::from_be(a.sin6_port)))
            }
            other => Err(io::Error::other(format!(
                "the kernel returned an address of family {other}"
            ))),
        }
    }
}

impl From<SocketAddr> for RawAddr {
    fn from(addr: SocketAddr) -> RawAddr {
        let mut raw = RawAddr::empty();
        let p: *mut libc::sockaddr_storage = &raw mut raw.storage;
        match addr {
            SocketAddr::V4(v4) => {
                // SAFETY: as above, the storage has room for a sockaddr_in.
                let a = unsafe { &mut *p.cast::<libc::sockaddr_in>() };
                a.sin_family = libc::AF_INET as u16;
                a.sin_port = v4.port().to_be();
                a.sin_addr.s_addr = u32::from(*v4.ip()).to_be();
                raw.len = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            }
            SocketAddr::V6(v6) => {
                // SAFETY: as above, the storage has room for a sockaddr_in6.
                let a = unsafe { &mut *p.cast::<libc::sockaddr_in6>() };
                a.sin6_family = libc::AF_INET6 as u16;
                a.sin6_port = v6.port().to_be();
                a.sin6_addr.s6_addr = v6.ip().octets();
                a.sin6_scope_id = v6.scope_id();
                raw.len = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
            }
        }
        raw
    }
}

impl std::fmt::Debug for RawAddr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.decode() {
            Ok(addr) => write!(f, "{addr}"),
            Err(_) => write!(f, "an address of family {}", self.family()),
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Addresses of the interface that a TCP connection leaves through.
//!
//! C headers: [`include/linux/inetdevice.h`](srctree/include/linux/inetdevice.h),
//! [`include/net/if_inet6.h`](srctree/include/net/if_inet6.h)

use super::{
    msg::flags,
    sock::Sock,
    tcp::TcpSocket,
    Msg,
    Net, //
};
use crate::sys;
use kernel::prelude::*;

/// Prefixes that are looked at.
const MAX_PREFIXES: usize = 8;

impl TcpSocket {
    /// The namespace of the connection.
    pub fn net(&self) -> &Net {
        self.sock().net()
    }

    /// The local IPv4 address, also of a connection of an IPv6 socket over IPv4.
    pub fn local_ipv4(&self) -> Option<[u8; 4]> {
        self.local_addr().ok()?.to_v4()
    }

    /// The subnet of the local IPv4 address: network address and prefix length.
    pub fn local_ipv4_subnet(&self) -> Option<([u8; 4], u8)> {
        let mut subnet = [0; 4];
        let mut len = 0;
        // SAFETY: The socket is valid and connected sockets are IPv4 or IPv6 ones; the pointers
        // are to a network address and a length.
        let ret = unsafe {
            sys::smc_rs_helper_ipv4_subnet(self.sock().as_ptr(), subnet.as_mut_ptr(), &mut len)
        };
        (ret == 0).then_some((subnet, len))
    }

    /// Calls `f` with the IPv6 prefixes of the egress interface, link-local ones left out.
    pub fn for_each_ipv6_prefix(&self, mut f: impl FnMut([u8; 16], u8)) {
        let mut prefixes = [sys::smc_rs_ipv6_prefix::default(); MAX_PREFIXES];
        // SAFETY: The socket is valid; there is room for as many prefixes as is said.
        let n = unsafe {
            sys::smc_rs_helper_ipv6_prefixes(
                self.sock().as_ptr(),
                prefixes.as_mut_ptr(),
                MAX_PREFIXES as c_int,
            )
        };
        for entry in prefixes.iter().take(usize::try_from(n).unwrap_or(0)) {
            f(entry.prefix, entry.len);
        }
    }
}

impl Sock {
    /// Sends `SIGPIPE` to the calling thread when sending failed with `EPIPE`, unless the message
    /// forbids it.
    pub fn signal_broken_pipe(&self, error: Error, msg: &Msg<'_>) {
        if error == EPIPE && msg.flags() & flags::NOSIGNAL == 0 {
            // SAFETY: The socket is valid and the thread is one of user space, or the signal is
            // ignored.
            unsafe { sys::smc_rs_helper_broken_pipe(self.as_ptr(), 0) };
        }
    }
}

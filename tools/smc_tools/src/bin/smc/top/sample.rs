// SPDX-License-Identifier: GPL-2.0

//! What is asked of the kernel.

use std::collections::HashMap;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::Instant;

use smc_netlink::diag::{self, Connection, Details, Socket, State};
use smc_netlink::{Error, Fallbacks, Group, Result, Smc, Stats};

/// What there is at one time. What the kernel does not tell is left out.
pub(super) struct Look {
    /// When this was.
    pub(super) at: Instant,
    /// Sockets with a peer.
    pub(super) sockets: Vec<Socket>,
    /// Cursors, by the cookie of their socket.
    pub(super) cursors: HashMap<u64, Connection>,
    /// Link groups of this network namespace, with their links.
    pub(super) groups: Vec<Group>,
    /// Counters.
    pub(super) stats: Option<Stats>,
    /// Connections that stayed on TCP so far.
    pub(super) fallbacks: Option<Fallbacks>,
}

/// Looks at the kernel.
pub(super) struct Sampler {
    /// `None` where SMC is older than its generic netlink family.
    smc: Option<Smc>,
    /// The number of this network namespace.
    namespace: Option<u64>,
}

impl Sampler {
    pub(super) fn open() -> std::result::Result<Self, String> {
        let smc = match Smc::open() {
            Ok(smc) => Some(smc),
            Err(Error::NoFamily(_)) => None,
            Err(error) => return Err(error.to_string()),
        };
        Ok(Self {
            smc,
            namespace: namespace(),
        })
    }

    pub(super) fn look(&mut self) -> std::result::Result<Look, String> {
        self.ask().map_err(|error| match error {
            // The module has been unloaded since.
            Error::Kernel(libc::ENOENT) => Error::NoFamily("SMC_GEN_NETLINK").to_string(),
            other => other.to_string(),
        })
    }

    fn ask(&mut self) -> Result<Look> {
        let details = Details {
            cursors: true,
            link: true,
            shared_memory: false,
        };
        let mut sockets = match diag::sockets(details) {
            // The kernel's own SMC lists sockets in a module apart.
            Err(Error::NoFamily(_)) if self.smc.is_some() => Vec::new(),
            result => result?,
        };
        sockets
            .retain(|socket| !matches!(socket.state, State::INIT | State::LISTEN | State::CLOSED));
        let at = Instant::now();
        let mut look = Look {
            at,
            cursors: cursors(&sockets),
            sockets,
            groups: Vec::new(),
            stats: None,
            fallbacks: None,
        };
        if let Some(smc) = &mut self.smc {
            look.groups = known(smc.groups())?.unwrap_or_default();
            look.stats = known(smc.stats())?;
            look.fallbacks = known(smc.fallbacks())?;
        }
        let ours = |group: &Group| match (group.net_cookie, self.namespace) {
            (Some(theirs), Some(ours)) => theirs == ours,
            _ => true,
        };
        look.groups.retain(ours);
        Ok(look)
    }
}

/// The cursors of sockets, by cookie.
pub(super) fn cursors(sockets: &[Socket]) -> HashMap<u64, Connection> {
    let with_cursors = sockets
        .iter()
        .filter_map(|socket| Some((socket.cookie, socket.connection.clone()?)));
    with_cursors.collect()
}

/// `None` for a command that this kernel does not know.
fn known<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::Kernel(libc::EOPNOTSUPP)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The number of the caller's network namespace: link groups of all namespaces are listed.
fn namespace() -> Option<u64> {
    /// `<asm-generic/socket.h>`.
    const SO_NETNS_COOKIE: i32 = 71;
    let socket = UdpSocket::bind(("127.0.0.1", 0)).ok()?;
    let mut cookie = 0_u64;
    let mut length = libc::socklen_t::try_from(mem::size_of_val(&cookie)).ok()?;
    // SAFETY: The descriptor is open, and the kernel writes at most `length` bytes, which the
    // number has.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    (failed == 0).then_some(cookie)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_does_not_know_is_left_out() {
        assert!(matches!(known(Ok(1)), Ok(Some(1))));
        let unknown = known::<()>(Err(Error::Kernel(libc::EOPNOTSUPP)));
        assert!(matches!(unknown, Ok(None)));
        let refused = known::<()>(Err(Error::Kernel(libc::EPERM)));
        assert!(matches!(refused, Err(Error::Kernel(libc::EPERM))));
    }
}

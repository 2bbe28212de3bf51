// SPDX-License-Identifier: GPL-2.0

//! Where and on what the checks run.

use crate::check::{fails, works};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use testlib::counters::Counters;
use testlib::event::poll_until;
use testlib::process::in_netns;
use testlib::sock::{Family, Sock};

/// What connections must use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Expect {
    /// No matter.
    Any,
    /// SMC-R; a fallback fails the check.
    Smcr,
    /// TCP, because there is no RDMA device.
    Fallback,
}

/// The circumstances of a run.
pub(crate) struct Ctx {
    pub(crate) family: Family,
    pub(crate) server_ns: Option<String>,
    pub(crate) client_ns: Option<String>,
    pub(crate) ip: IpAddr,
    pub(crate) expect: Expect,
}

impl Ctx {
    /// A socket where listeners live.
    pub(crate) fn server_socket(&self, flags: i32) -> Result<Sock, String> {
        let make = || Sock::with_flags(self.family, flags | libc::SOCK_CLOEXEC);
        works("socket()", in_netns(self.server_ns.as_deref(), make))
    }

    /// A socket where clients live.
    pub(crate) fn client_socket(&self, flags: i32) -> Result<Sock, String> {
        let make = || Sock::with_flags(self.family, flags | libc::SOCK_CLOEXEC);
        works("socket()", in_netns(self.client_ns.as_deref(), make))
    }

    /// A listener on a port of the kernel's choice.
    pub(crate) fn listener(&self, flags: i32) -> Result<(Sock, SocketAddr), String> {
        let sock = self.server_socket(flags)?;
        works("bind()", sock.bind(SocketAddr::new(self.ip, 0)))?;
        works("listen()", sock.listen(128))?;
        let addr = works("getsockname()", sock.local())?;
        Ok((sock, addr))
    }

    /// A connected pair: client, server.
    pub(crate) fn pair(&self) -> Result<(Sock, Sock), String> {
        let (listener, addr) = self.listener(0)?;
        self.pair_on(&listener, addr)
    }

    /// A connected pair through a given listener: client, server.
    pub(crate) fn pair_on(
        &self,
        listener: &Sock,
        addr: SocketAddr,
    ) -> Result<(Sock, Sock), String> {
        let client = self.client_socket(0)?;
        works("connect()", client.connect(addr))?;
        let (server, _) = works("accept()", listener.accept(libc::SOCK_CLOEXEC))?;
        Ok((client, server))
    }

    /// A port of the server's address on which nobody listens.
    pub(crate) fn closed_port(&self) -> Result<SocketAddr, String> {
        // A bound port stays reserved for the life of the check, so nobody takes it.
        let sock = self.server_socket(0)?;
        works("bind()", sock.bind(SocketAddr::new(self.ip, 0)))?;
        let addr = works("getsockname()", sock.local())?;
        std::mem::forget(sock);
        Ok(addr)
    }

    /// Fallback totals of both namespaces; `None` where the module does not tell.
    pub(crate) fn fallbacks(&self) -> Vec<Option<u64>> {
        [&self.server_ns, &self.client_ns]
            .into_iter()
            .map(|ns| {
                self.counters(ns.as_deref())
                    .map(|c| c.value("fallback_total"))
            })
            .collect()
    }

    /// The module's counters in a namespace.
    pub(crate) fn counters(&self, ns: Option<&str>) -> Option<Counters> {
        if !self.family.is_smc() {
            return None;
        }
        in_netns(ns, Counters::read).ok()
    }
}

/// Begins a connection on a non-blocking socket. That it is complete at once is
/// unusual but allowed.
pub(crate) fn begin(sock: &Sock, addr: SocketAddr) -> Result<(), String> {
    match sock.connect(addr) {
        Ok(()) => Ok(()),
        Err(e) => fails("connect()", Err::<(), _>(e), &[libc::EINPROGRESS]).map(drop),
    }
}

/// Waits until the socket can be read.
pub(crate) fn readable(sock: &Sock) -> Result<i16, String> {
    poll_until(sock, libc::POLLIN, Duration::from_secs(10))
}

/// Sends and receives a short text in both directions.
pub(crate) fn talk(a: &Sock, b: &Sock) -> Result<(), String> {
    for (from, to) in [(a, b), (b, a)] {
        works("send()", from.send_all(b"ping-pong"))?;
        let mut buf = [0u8; 9];
        works("recv()", to.recv_exact(&mut buf))?;
        if &buf != b"ping-pong" {
            return Err(format!("received {buf:?}"));
        }
    }
    Ok(())
}

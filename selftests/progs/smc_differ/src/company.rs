// SPDX-License-Identifier: GPL-2.0

//! Sockets that come and go beside the one under test: visitors, rivals, what takes its place.

use crate::name::errno;
use crate::stage::{check_kind, Place, Stage};
use crate::state::Role;
use crate::world::{End, Over};
use libc::{SOL_SOCKET, SO_REUSEADDR, SO_SNDTIMEO};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use testlib::extra::close_under;
use testlib::sock::Sock;

/// Longest time a visitor may take to connect.
const SOON: Duration = Duration::from_secs(10);

fn said(result: io::Result<()>) -> String {
    result.map_or_else(|error| errno(&error), |()| String::new())
}

impl Stage<'_> {
    /// The end of the socket under test.
    fn near_end(&self) -> &End {
        match self.role {
            Role::Client => &self.network.client,
            Role::Server => &self.network.server,
        }
    }

    /// The end of its peers.
    fn far_end(&self) -> &End {
        match self.role {
            Role::Client => &self.network.server,
            Role::Server => &self.network.client,
        }
    }

    /// Closes the socket under test; a new one that nothing uses takes its place.
    pub(crate) fn close(&mut self) -> String {
        let made = self.near_end().socket(self.mode.subject);
        said(made.map(|other| self.subject = Arc::new(other)))
    }

    /// The same while a call may be under way on it.
    pub(crate) fn close_under(&self) -> String {
        let made = self.near_end().socket(self.mode.subject);
        said(made.and_then(|other| close_under(&self.subject, &other)))
    }

    /// Connects a new peer to the socket under test, without waiting.
    pub(crate) fn new_peer(&mut self) -> String {
        let made = self.network.client.socket(self.mode.peer).and_then(|peer| {
            peer.set_nonblocking(true)?;
            match peer.connect(self.place.server) {
                Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
                _ => Ok(peer),
            }
        });
        said(made.map(|peer| self.kept.extend(self.peer.replace(peer))))
    }

    /// Connects a new peer to the port of the socket under test, and checks what the connection uses.
    pub(crate) fn visit(&mut self, v6: bool) -> String {
        let ip = if v6 {
            self.near_end().v6
        } else {
            self.near_end().v4
        };
        let made = self.subject.local().and_then(|name| {
            let peer = self.far_end().socket(self.mode.peer.of_version(v6))?;
            peer.set_timeout(SO_SNDTIMEO, SOON)?;
            peer.connect(SocketAddr::new(ip, name.port()))?;
            Ok(peer)
        });
        let peer = match made {
            Ok(peer) => peer,
            Err(error) => return errno(&error),
        };
        let over = match self.mode.over {
            // SMC-R version 2 does not do IPv6.
            Over::Rdma if v6 => Over::Fallback,
            over => over,
        };
        let used = match self.mode.peer.is_smc() {
            true => check_kind(&peer, over),
            false => Ok(()),
        };
        self.kept.extend(self.peer.replace(peer));
        used.err().unwrap_or_default()
    }

    /// The peer is what the listener at the other end has to accept.
    pub(crate) fn peer_accept(&mut self) -> String {
        let Some(listener) = &self.listener else {
            return "there is no listener".into();
        };
        let accepted = listener.accept(libc::SOCK_CLOEXEC);
        said(accepted.map(|(peer, _)| self.peer = Some(peer)))
    }

    /// Binds another socket of this end to the address of the one under test, after `option` was
    /// set unless that is 0.
    pub(crate) fn rival(&self, option: i32) -> String {
        let made = self.near_end().socket(self.mode.subject).and_then(|rival| {
            if option != 0 {
                rival.set_int(SOL_SOCKET, option, 1)?;
            }
            rival.bind_raw(&self.subject.name_raw()?)?;
            Ok(rival)
        });
        self.keep(made)
    }

    /// Binds a socket with IPv4 addresses to the port of the one under test, and all addresses.
    pub(crate) fn rival_v4(&self) -> String {
        let family = self.mode.subject.of_version(false);
        let made = self.near_end().socket(family).and_then(|rival| {
            rival.set_int(SOL_SOCKET, SO_REUSEADDR, 1)?;
            let port = self.subject.local()?.port();
            rival.bind(SocketAddr::new(Place::nowhere(family).own, port))?;
            Ok(rival)
        });
        self.keep(made)
    }

    fn keep(&self, made: io::Result<Sock>) -> String {
        said(made.map(|sock| self.more.lock().expect("no panic before").push(sock)))
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Sockets of both families through one interface.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use clap::ValueEnum;
use socket2::{Domain, Protocol, Socket, Type};

/// The socket family number of SMC.
const AF_SMC: i32 = 43;
/// A peer that is silent for so long is stuck.
const SILENCE: Duration = Duration::from_secs(20);
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 512;

/// Which sockets to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Family {
    /// `AF_INET` or `AF_INET6`
    Tcp,
    /// `AF_SMC`
    Smc,
}

impl Family {
    /// The name on the command line and in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Family::Tcp => "tcp",
            Family::Smc => "smc",
        }
    }

    fn socket(self, address: SocketAddr) -> Result<Socket, String> {
        let (domain, protocol) = match self {
            Family::Tcp => (Domain::for_address(address), Protocol::TCP),
            // Protocol 0 is SMC over IPv4, 1 over IPv6.
            Family::Smc => (
                Domain::from(AF_SMC),
                Protocol::from(i32::from(address.is_ipv6())),
            ),
        };
        Socket::new(domain, Type::STREAM, Some(protocol))
            .map_err(|error| format!("no {} socket can be opened: {error}.", self.name()))
    }

    /// Connects to a server, with small writes sent at once.
    pub(crate) fn connect(self, address: SocketAddr) -> Result<Socket, String> {
        let socket = self.socket(address)?;
        socket
            .connect(&address.into())
            .and_then(|()| prepare(&socket))
            .map_err(|error| format!("cannot connect to {address}: {error}."))?;
        Ok(socket)
    }

    /// Listens for clients.
    pub(crate) fn listen(self, address: SocketAddr) -> Result<Socket, String> {
        let socket = self.socket(address)?;
        socket
            .set_reuse_address(true)
            .and_then(|()| socket.bind(&address.into()))
            .and_then(|()| socket.listen(BACKLOG))
            .map_err(|error| format!("cannot listen on {address}: {error}."))?;
        Ok(socket)
    }
}

/// Sets the options that both ends of a connection have.
pub(crate) fn prepare(socket: &Socket) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_read_timeout(Some(SILENCE))?;
    socket.set_write_timeout(Some(SILENCE))
}

/// What a client wants; the first bytes on every connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Read to the end of the stream, then answer with the number of bytes.
    Sink,
    /// Send back every message of the given size.
    Echo(u32),
    /// Keep the connection without doing anything.
    Keep,
    /// Close all connections that are kept.
    Release,
}

/// Length of a request on the wire.
pub(crate) const REQUEST_LENGTH: usize = 8;

impl Request {
    /// The form on the wire: kind, three bytes of zero, size.
    pub(crate) fn to_bytes(self) -> [u8; REQUEST_LENGTH] {
        let (kind, size) = match self {
            Request::Sink => (1, 0),
            Request::Echo(size) => (2, size),
            Request::Keep => (3, 0),
            Request::Release => (4, 0),
        };
        let mut bytes = [0; REQUEST_LENGTH];
        bytes[0] = kind;
        bytes[4..].copy_from_slice(&size.to_be_bytes());
        bytes
    }

    /// Reads the form on the wire.
    pub(crate) fn from_bytes(bytes: [u8; REQUEST_LENGTH]) -> Option<Self> {
        let size = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        match (bytes[0], size) {
            (1, 0) => Some(Request::Sink),
            (2, 1..) => Some(Request::Echo(size)),
            (3, 0) => Some(Request::Keep),
            (4, 0) => Some(Request::Release),
            _ => None,
        }
    }

    /// Sends the request as the first thing on a connection.
    pub(crate) fn send(self, mut socket: &Socket) -> io::Result<()> {
        socket.write_all(&self.to_bytes())
    }

    /// Receives a request; `None` for a client that went away or sent something else.
    pub(crate) fn receive(mut socket: &Socket) -> Option<Self> {
        let mut bytes = [0; REQUEST_LENGTH];
        socket.read_exact(&mut bytes).ok()?;
        Request::from_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_survive_the_wire() {
        for request in [
            Request::Sink,
            Request::Echo(1),
            Request::Echo(u32::MAX),
            Request::Keep,
            Request::Release,
        ] {
            assert_eq!(Request::from_bytes(request.to_bytes()), Some(request));
        }
        assert_eq!(Request::from_bytes([0; REQUEST_LENGTH]), None);
        assert_eq!(Request::from_bytes([2, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(Request::from_bytes(*b"GET / HT"), None);
    }
}

// SPDX-License-Identifier: GPL-2.0

//! What the two ends of `smc check connect` have in common: SMC sockets, and how each sees a
//! connection.
//!
//! The client sends a head, which says how many bytes follow, and that many bytes. The server sends
//! them back, and then its view as a length and JSON.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde::{Deserialize, Serialize};
use smc_netlink::diag::{self, Details, Mode};
use smc_netlink::Reason;
use socket2::{Domain, Protocol, Socket, Type};

/// Number of the address family.
const AF_SMC: i32 = 43;
/// Begins what the client sends.
const MAGIC: [u8; 8] = *b"SMCCHECK";
/// Most bytes that a client may ask for.
const MAX_BYTES: u32 = 16 << 20;
/// Most bytes of a view.
const MAX_VIEW: u32 = 4096;

/// An SMC socket for an address of this kind.
pub(super) fn socket(address: SocketAddr) -> io::Result<Socket> {
    let protocol = Protocol::from(i32::from(address.is_ipv6()));
    Socket::new(Domain::from(AF_SMC), Type::STREAM, Some(protocol))
}

/// How one end sees the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct View {
    /// `SMCR`, `SMCD` or `TCP`.
    pub(super) mode: String,
    /// RDMA device, if there is one.
    pub(super) device: String,
    /// Reason to be on TCP.
    pub(super) reason: u32,
    /// The other end's reason.
    pub(super) peer_reason: u32,
}

impl View {
    /// Looks the connection up in the kernel's list.
    pub(super) fn of(stream: &TcpStream) -> Result<Self, String> {
        let ends = (stream.local_addr(), stream.peer_addr());
        let (Ok(local), Ok(peer)) = ends else {
            return Err("the connection ended before it could be looked at.".to_owned());
        };
        let same = |one: SocketAddr, other: SocketAddr| {
            one.ip().to_canonical() == other.ip().to_canonical() && one.port() == other.port()
        };
        let sockets = diag::sockets(Details::ALL).map_err(|error| error.to_string())?;
        let mut sockets = sockets.into_iter();
        let found = sockets.find(|socket| same(socket.local, local) && same(socket.peer, peer));
        let found = found.ok_or("the kernel's list does not show the connection.")?;
        let mode = match found.mode {
            Mode::Rdma => "SMCR",
            Mode::SharedMemory => "SMCD",
            Mode::Tcp => "TCP",
        };
        Ok(Self {
            mode: mode.to_owned(),
            device: found.link.map(|link| link.device).unwrap_or_default(),
            reason: found.fallback.0,
            peer_reason: found.peer_diagnosis.0,
        })
    }

    /// The reason that tells most.
    pub(super) fn telling(&self) -> Reason {
        Reason(if self.peer_reason != 0 {
            self.peer_reason
        } else {
            self.reason
        })
    }

    /// In words, as a phrase.
    pub(super) fn text(&self) -> String {
        match self.mode.as_str() {
            "TCP" => format!("on TCP because {}", self.telling().describe()),
            mode => {
                let name = if mode == "SMCD" { "SMC-D" } else { "SMC-R" };
                if self.device.is_empty() {
                    format!("over {name}")
                } else {
                    format!("over {name} with {}", self.device)
                }
            }
        }
    }
}

/// Sends `data`, reads it back, and gives the server's view.
pub(super) fn exchange(stream: &mut TcpStream, data: &[u8]) -> io::Result<(bool, View)> {
    stream.write_all(&MAGIC)?;
    // CAST: The caller's data is short.
    stream.write_all(&(data.len() as u32).to_be_bytes())?;
    stream.write_all(data)?;
    let mut back = vec![0; data.len()];
    stream.read_exact(&mut back)?;
    let length = read_u32(stream)?.min(MAX_VIEW);
    let mut view = vec![0; length as usize];
    stream.read_exact(&mut view)?;
    let view = serde_json::from_slice(&view)?;
    Ok((back == data, view))
}

/// The server's part.
pub(super) fn serve(stream: &mut TcpStream, view: &View) -> io::Result<()> {
    let mut magic = [0; MAGIC.len()];
    stream.read_exact(&mut magic)?;
    let length = read_u32(stream)?;
    if magic != MAGIC || length > MAX_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut data = vec![0; length as usize];
    stream.read_exact(&mut data)?;
    stream.write_all(&data)?;
    let view = serde_json::to_vec(view)?;
    // CAST: A view is short.
    stream.write_all(&(view.len() as u32).to_be_bytes())?;
    stream.write_all(&view)
}

fn read_u32(stream: &mut TcpStream) -> io::Result<u32> {
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes)?;
    Ok(u32::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let client = TcpStream::connect(address).expect("a connection");
        (client, listener.accept().expect("a connection").0)
    }

    #[test]
    fn data_and_view_come_back() {
        let (mut client, mut server) = pair();
        let view = View {
            mode: "SMCR".to_owned(),
            device: "rxe0".to_owned(),
            ..View::default()
        };
        let sent = view.clone();
        let peer = thread::spawn(move || serve(&mut server, &sent));
        let answer = exchange(&mut client, &[7; 5000]).expect("the exchange is good");
        assert_eq!(answer, (true, view));
        peer.join()
            .expect("no panic")
            .expect("the exchange is good");
    }

    #[test]
    fn strangers_are_turned_away() {
        for bytes in [&b"GET / HTTP/1.1\r\n"[..], b"SMCCHECK\xff\xff\xff\xff"] {
            let (mut client, mut server) = pair();
            client.write_all(bytes).expect("there is room");
            let error = serve(&mut server, &View::default()).expect_err("it is no check");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn views_are_put_into_words() {
        let mut view = View {
            mode: "SMCR".to_owned(),
            device: "rxe0".to_owned(),
            ..View::default()
        };
        assert_eq!(view.text(), "over SMC-R with rxe0");
        view.mode = "TCP".to_owned();
        view.reason = 0x0301_0000;
        assert_eq!(view.text(), "on TCP because the peer does not offer SMC");
    }
}

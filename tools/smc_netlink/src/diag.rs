// SPDX-License-Identifier: GPL-2.0

//! Sockets, as `sock_diag` lists them (`<linux/smc_diag.h>`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use serde::{Serialize, Serializer};

use crate::attrs::text;
use crate::exchange::{Exchange, Request};
use crate::{Attrs, Error, Reason, Result};

/// Request for the sockets of a family.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Number of the address family.
const AF_SMC: u8 = 43;
/// Bytes of the fixed part of a message.
const MESSAGE: usize = 64;

/// Attributes.
mod attr {
    pub(super) const CONNINFO: u16 = 1;
    pub(super) const LGRINFO: u16 = 2;
    pub(super) const SHUTDOWN: u16 = 3;
    pub(super) const DMBINFO: u16 = 4;
    pub(super) const FALLBACK: u16 = 5;
}

/// Which details are asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Details {
    /// Cursors and flags.
    pub cursors: bool,
    /// The link.
    pub link: bool,
    /// Shared memory buffers.
    pub shared_memory: bool,
}

impl Details {
    /// Everything there is.
    pub const ALL: Self = Self {
        cursors: true,
        link: true,
        shared_memory: true,
    };

    fn mask(self) -> u8 {
        let bit = |on, attr: u16| u8::from(on) << (attr - 1);
        bit(self.cursors, attr::CONNINFO)
            | bit(self.link, attr::LGRINFO)
            | bit(self.shared_memory, attr::DMBINFO)
    }
}

/// What a socket does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Mode {
    /// Data goes over RDMA, or the socket is not connected.
    #[serde(rename = "SMCR")]
    Rdma,
    /// Data stays on TCP.
    #[serde(rename = "TCP")]
    Tcp,
    /// Data goes over shared memory.
    #[serde(rename = "SMCD")]
    SharedMemory,
}

/// The state of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State(pub u8);

impl State {
    /// Not connected.
    pub const INIT: Self = Self(2);
    /// Over.
    pub const CLOSED: Self = Self(7);
    /// Accepts connections.
    pub const LISTEN: Self = Self(10);

    /// The name of the state.
    pub fn name(self) -> String {
        let name = match self.0 {
            1 => "ACTIVE",
            2 => "INIT",
            7 => "CLOSED",
            10 => "LISTEN",
            20 => "PEERCLOSEWAIT1",
            21 => "PEERCLOSEWAIT2",
            22 => "APPCLOSEWAIT1",
            23 => "APPCLOSEWAIT2",
            24 => "APPFINCLOSEWAIT1",
            25 => "PEERFINCLOSEWAIT",
            26 => "PEERABORTWAIT",
            27 => "PROCESSABORT",
            other => return format!("{other:#x}?"),
        };
        name.to_owned()
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

/// A place in a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cursor {
    /// How often the ring was gone round.
    pub wrap: u16,
    /// Bytes from its beginning.
    pub count: u32,
}

/// Cursors and flags of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connection {
    /// Names the connection in this host.
    pub token: u32,
    /// Bytes of the send buffer.
    pub sndbuf_size: u32,
    /// Bytes of the receive buffer.
    pub rmbe_size: u32,
    /// Bytes of the peer's receive buffer.
    pub peer_rmbe_size: u32,
    /// Producer cursor of the peer.
    pub rx_prod: Cursor,
    /// Consumer cursor of the peer.
    pub rx_cons: Cursor,
    /// Producer cursor told to the peer.
    pub tx_prod: Cursor,
    /// Consumer cursor told to the peer.
    pub tx_cons: Cursor,
    /// Flags of the peer's producer.
    pub rx_prod_flags: u8,
    /// Flags of the peer about the end.
    pub rx_conn_flags: u8,
    /// Flags of the producer here.
    pub tx_prod_flags: u8,
    /// Flags about the end told to the peer.
    pub tx_conn_flags: u8,
    /// What the program wrote.
    pub tx_prep: Cursor,
    /// What was sent.
    pub tx_sent: Cursor,
    /// What was acknowledged.
    pub tx_fin: Cursor,
}

/// The link of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkInfo {
    /// Number of the link in its group.
    pub link_id: u8,
    /// RDMA device.
    pub device: String,
    /// Port of the device.
    pub port: u8,
    /// Address here.
    pub gid: String,
    /// Address at the peer.
    pub peer_gid: String,
    /// This host is the server's side of the group.
    pub server: bool,
}

/// The shared memory of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SharedMemory {
    /// Number of the link group.
    pub link_id: u32,
    /// Address of the peer.
    pub peer_gid: u64,
    /// Address here.
    pub gid: u64,
    /// Names the buffer here.
    pub token: u64,
    /// Names the buffer of the peer.
    pub peer_token: u64,
}

/// A socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Socket {
    /// Its state.
    pub state: State,
    /// What it does.
    pub mode: Mode,
    /// Address here.
    pub local: SocketAddr,
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Number of the interface it is bound to.
    pub interface: u32,
    /// Names the socket as long as it exists.
    pub cookie: u64,
    /// The user that owns it.
    pub uid: u32,
    /// Number of its inode.
    pub inode: u64,
    /// Directions that are shut down: 1 for receiving, 2 for sending.
    pub shutdown: u8,
    /// Why it stays on TCP.
    pub fallback: Reason,
    /// Why the peer wants to stay on TCP.
    pub peer_diagnosis: Reason,
    /// Cursors and flags.
    pub connection: Option<Connection>,
    /// The link.
    pub link: Option<LinkInfo>,
    /// Shared memory.
    pub shared_memory: Option<SharedMemory>,
}

/// The sockets of the caller's network namespace.
///
/// # Errors
///
/// [`Error::NoFamily`] when no SMC module is loaded, else what the kernel answers.
pub fn sockets(details: Details) -> Result<Vec<Socket>> {
    let mut exchange = Exchange::open(NETLINK_SOCK_DIAG)?;
    let mut body = vec![0; 52];
    body[0] = AF_SMC;
    body[3] = details.mask();
    let request = Request {
        kind: SOCK_DIAG_BY_FAMILY,
        list: true,
        body,
    };
    let replies = exchange.call(&request).map_err(|error| match error {
        Error::Kernel(libc::ENOENT) => Error::NoFamily("sock_diag"),
        other => other,
    })?;
    let messages = replies.iter().map(|reply| Socket::parse(&reply.body));
    messages.collect()
}

impl Socket {
    /// Takes a message apart.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] when it is too short.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let (head, rest) = body
            .split_at_checked(MESSAGE)
            .ok_or(Error::Malformed("a socket's message is too short"))?;
        let mut head = Reader(head);
        let [_, state, mode, _] = head.take::<4>();
        let (sport, dport) = (head.port(), head.port());
        let (src, dst) = (head.take::<16>(), head.take::<16>());
        let interface = head.u32();
        let cookie = u64::from(head.u32()) | u64::from(head.u32()) << 32;
        let attrs = Attrs::parse(rest)?;
        let fallback = attrs.bytes(attr::FALLBACK).map(Reader);
        let (fallback, peer) = fallback.map_or((0, 0), |mut pair| (pair.u32(), pair.u32()));
        Ok(Self {
            state: State(state),
            mode: match mode {
                0 => Mode::Rdma,
                2 => Mode::SharedMemory,
                _ => Mode::Tcp,
            },
            local: SocketAddr::new(address(src), sport),
            peer: SocketAddr::new(address(dst), dport),
            interface,
            cookie,
            uid: head.u32(),
            inode: head.u64(),
            shutdown: attrs.u8(attr::SHUTDOWN).unwrap_or(0),
            fallback: Reason(fallback),
            peer_diagnosis: Reason(peer),
            connection: attrs.bytes(attr::CONNINFO).map(Connection::parse),
            link: attrs.bytes(attr::LGRINFO).map(LinkInfo::parse),
            shared_memory: attrs.bytes(attr::DMBINFO).map(SharedMemory::parse),
        })
    }
}

/// The two ends of a connection in a `struct inet_diag_sockid`.
pub(crate) fn endpoints(id: &[u8]) -> (SocketAddr, SocketAddr) {
    let mut from = Reader(id);
    let (sport, dport) = (from.port(), from.port());
    let (src, dst) = (from.take::<16>(), from.take::<16>());
    (
        SocketAddr::new(address(src), sport),
        SocketAddr::new(address(dst), dport),
    )
}

impl Connection {
    fn parse(bytes: &[u8]) -> Self {
        let mut from = Reader(bytes);
        let (token, sndbuf_size, rmbe_size, peer_rmbe_size) =
            (from.u32(), from.u32(), from.u32(), from.u32());
        let [rx_prod, rx_cons, tx_prod, tx_cons] = from.cursors();
        let [rx_prod_flags, rx_conn_flags, tx_prod_flags, tx_conn_flags] = from.take();
        let [tx_prep, tx_sent, tx_fin] = from.cursors();
        Self {
            token,
            sndbuf_size,
            rmbe_size,
            peer_rmbe_size,
            rx_prod,
            rx_cons,
            tx_prod,
            tx_cons,
            rx_prod_flags,
            rx_conn_flags,
            tx_prod_flags,
            tx_conn_flags,
            tx_prep,
            tx_sent,
            tx_fin,
        }
    }
}

impl LinkInfo {
    fn parse(bytes: &[u8]) -> Self {
        let mut from = Reader(bytes);
        let [link_id] = from.take();
        let device = text(&from.take::<64>());
        let [port] = from.take();
        Self {
            link_id,
            device,
            port,
            gid: text(&from.take::<40>()),
            peer_gid: text(&from.take::<40>()),
            server: from.take::<1>() != [0],
        }
    }
}

impl SharedMemory {
    fn parse(bytes: &[u8]) -> Self {
        let mut from = Reader(bytes);
        let link_id = from.u32();
        // The next number lies on a multiple of eight.
        let _ = from.u32();
        Self {
            link_id,
            peer_gid: from.u64(),
            gid: from.u64(),
            token: from.u64(),
            peer_token: from.u64(),
        }
    }
}

/// IPv4 addresses have nothing behind their four bytes.
fn address(bytes: [u8; 16]) -> IpAddr {
    match bytes {
        [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] => Ipv4Addr::new(a, b, c, d).into(),
        _ => Ipv6Addr::from(bytes).into(),
    }
}

/// Reads a structure from its beginning; what is not there reads as zero.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let n = N.min(self.0.len());
        out[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        out
    }

    fn port(&mut self) -> u16 {
        u16::from_be_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }

    fn cursors<const N: usize>(&mut self) -> [Cursor; N] {
        [(); N].map(|()| {
            let _reserved: [u8; 2] = self.take();
            Cursor {
                wrap: u16::from_ne_bytes(self.take()),
                count: self.u32(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use smc_proto::diag as kernel;
    use smc_proto::ids::Gid;
    use smc_proto::wire::cdc::RawCursor;

    use super::*;
    use crate::Writer;

    /// What the kernel's side makes is understood here.
    #[test]
    fn a_socket_is_read_as_the_kernel_writes_it() {
        let mut id = [0; 48];
        id[..4].copy_from_slice(&[0x1b, 0x58, 0xc3, 0x50]);
        id[4..8].copy_from_slice(&[192, 0, 2, 7]);
        id[20..36].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
        id[36..40].copy_from_slice(&3_u32.to_ne_bytes());
        id[40..].copy_from_slice(&9_u64.to_ne_bytes());
        let head = kernel::SocketInfo {
            family: AF_SMC,
            state: 20,
            mode: kernel::Mode::Tcp,
            id,
            uid: 1000,
            inode: 4711,
        };
        let cursor = |wrap| RawCursor { wrap, count: 7 };
        let connection = kernel::ConnInfo {
            token: 0xabc,
            send_len: 1,
            rmbe_len: 2,
            peer_len: 3,
            rx_prod: cursor(1),
            tx_cons: cursor(2),
            tx_fin: cursor(3),
            flags: kernel::Flags {
                rx_prod: 0x80,
                rx_conn: 0x40,
                tx_prod: 0x20,
                tx_conn: 0x10,
            },
            ..kernel::ConnInfo::default()
        };
        let link = kernel::GroupInfo {
            link_id: 1,
            device: b"rxe_b",
            port: 1,
            gid: Gid::from_ipv4([10, 0, 0, 2]),
            peer_gid: Gid::from_ipv4([10, 0, 0, 1]),
            role: 1,
        };
        let mut bytes = head.emit().to_vec();
        bytes.extend(
            Writer::new()
                .put(attr::SHUTDOWN, &[3])
                .put(attr::FALLBACK, &kernel::fallback(0x0301_0000, 0x0500_0000))
                .put(attr::CONNINFO, &connection.emit())
                .put(attr::LGRINFO, &link.emit())
                .into_bytes(),
        );
        let socket = Socket::parse(&bytes).expect("the message is whole");
        assert_eq!(socket.state.name(), "PEERCLOSEWAIT1");
        assert_eq!(socket.mode, Mode::Tcp);
        assert_eq!(socket.local.to_string(), "192.0.2.7:7000");
        assert_eq!(socket.peer.to_string(), "[::1]:50000");
        assert_eq!((socket.interface, socket.cookie), (3, 9));
        assert_eq!((socket.uid, socket.inode, socket.shutdown), (1000, 4711, 3));
        assert_eq!(socket.fallback.name(), "PEERNOSMC");
        assert_eq!(socket.peer_diagnosis.name(), "PEERDECL");
        let connection = socket.connection.expect("it is there");
        assert_eq!(connection.token, 0xabc);
        assert_eq!(connection.rx_prod, Cursor { wrap: 1, count: 7 });
        assert_eq!(connection.tx_cons.wrap, 2);
        assert_eq!(connection.rx_conn_flags, 0x40);
        assert_eq!(connection.tx_conn_flags, 0x10);
        assert_eq!(connection.tx_fin.wrap, 3);
        let link = socket.link.expect("it is there");
        assert_eq!((link.device.as_str(), link.port), ("rxe_b", 1));
        assert_eq!(link.peer_gid, "0000:0000:0000:0000:0000:ffff:0a00:0001");
        assert!(link.server);
        assert!(socket.shared_memory.is_none());
    }

    #[test]
    fn a_short_message_is_an_error() {
        assert!(Socket::parse(&[43; 63]).is_err());
    }

    #[test]
    fn details_are_asked_for_by_bits() {
        assert_eq!(Details::default().mask(), 0);
        assert_eq!(Details::ALL.mask(), 0b1011);
    }
}

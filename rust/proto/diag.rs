// SPDX-License-Identifier: GPL-2.0

//! The structures by which `sock_diag` shows a socket (`include/uapi/linux/smc_diag.h`).
//!
//! Numbers are in the byte order of the host; reserved and padding bytes are zero.

use crate::ids::Gid;
use crate::wire::cdc::RawCursor;

/// Number of the attribute with a [`ConnInfo`].
pub const ATTR_CONNINFO: u16 = 1;
/// Number of the attribute with a [`GroupInfo`].
pub const ATTR_LGRINFO: u16 = 2;
/// Number of the attribute with the directions that are shut down, one byte.
pub const ATTR_SHUTDOWN: u16 = 3;
/// Number of the attribute with a [`fallback`].
pub const ATTR_FALLBACK: u16 = 5;

/// What a socket does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Data goes over RDMA, or the socket is not connected.
    Rdma = 0,
    /// Data stays on TCP.
    Tcp = 1,
}

/// The fixed part of a message about a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketInfo {
    /// The address family.
    pub family: u8,
    /// Number of the state.
    pub state: u8,
    /// What it does.
    pub mode: Mode,
    /// A `struct inet_diag_sockid`.
    pub id: [u8; 48],
    /// The user that owns it.
    pub uid: u32,
    /// Number of the inode, 0 without one.
    pub inode: u64,
}

impl SocketInfo {
    /// Bytes of `struct smc_diag_msg`.
    pub const LEN: usize = 64;

    /// The bytes of `struct smc_diag_msg`.
    pub fn emit(&self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        let mut writer = Writer(&mut out);
        // The byte for directions that are shut down is not used: there is an attribute for them.
        writer.put(&[self.family, self.state, self.mode as u8, 0]);
        writer.put(&self.id);
        writer.put(&self.uid.to_ne_bytes());
        writer.put(&self.inode.to_ne_bytes());
        out
    }
}

/// How far a connection over RDMA is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnInfo {
    /// Names the connection in this host.
    pub token: u32,
    /// Bytes of the send ring.
    pub send_len: u32,
    /// Bytes of the RMB element.
    pub rmbe_len: u32,
    /// Bytes of the peer's RMB element.
    pub peer_len: u32,
    /// What the peer said last: its producer cursor.
    pub rx_prod: RawCursor,
    /// What the peer said last: its consumer cursor.
    pub rx_cons: RawCursor,
    /// What the peer was told last: the producer cursor.
    pub tx_prod: RawCursor,
    /// What the peer was told last: the consumer cursor.
    pub tx_cons: RawCursor,
    /// Flags of the last messages.
    pub flags: Flags,
    /// Bytes that the program wrote, as a cursor in the send ring.
    pub tx_prep: RawCursor,
    /// Bytes that were posted.
    pub tx_sent: RawCursor,
    /// Bytes that were acknowledged.
    pub tx_fin: RawCursor,
}

/// Flags of the last CDC messages of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// About the peer's producer.
    pub rx_prod: u8,
    /// About the end of the connection, from the peer.
    pub rx_conn: u8,
    /// About the producer here.
    pub tx_prod: u8,
    /// About the end of the connection, to the peer.
    pub tx_conn: u8,
}

impl ConnInfo {
    /// Bytes of `struct smc_diag_conninfo`.
    pub const LEN: usize = 76;

    /// The bytes of `struct smc_diag_conninfo`.
    pub fn emit(&self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        let mut writer = Writer(&mut out);
        for number in [self.token, self.send_len, self.rmbe_len, self.peer_len] {
            writer.put(&number.to_ne_bytes());
        }
        for cursor in [self.rx_prod, self.rx_cons, self.tx_prod, self.tx_cons] {
            writer.cursor(cursor);
        }
        let flags = self.flags;
        writer.put(&[flags.rx_prod, flags.rx_conn, flags.tx_prod, flags.tx_conn]);
        for cursor in [self.tx_prep, self.tx_sent, self.tx_fin] {
            writer.cursor(cursor);
        }
        out
    }
}

/// Bytes of `struct smc_diag_lgrinfo`.
pub const GROUP_INFO_LEN: usize = 147;

/// The link that a connection uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupInfo<'a> {
    /// Number of the link in its group.
    pub link_id: u8,
    /// Name of the RDMA device, at most 63 bytes.
    pub device: &'a [u8],
    /// Port of the device.
    pub port: u8,
    /// Address of the link here.
    pub gid: Gid,
    /// Address of the link at the peer.
    pub peer_gid: Gid,
    /// 0 for the client's side of the group, 1 for the server's.
    pub role: u8,
}

impl GroupInfo<'_> {
    /// The bytes of `struct smc_diag_lgrinfo`.
    pub fn emit(&self) -> [u8; GROUP_INFO_LEN] {
        let mut out = [0; GROUP_INFO_LEN];
        let mut writer = Writer(&mut out);
        writer.put(&[self.link_id]);
        writer.padded::<64>(self.device);
        writer.put(&[self.port]);
        writer.padded::<40>(&self.gid.text());
        writer.padded::<40>(&self.peer_gid.text());
        writer.put(&[self.role]);
        out
    }
}

/// The bytes of `struct smc_diag_fallback`.
pub fn fallback(reason: u32, peer_diagnosis: u32) -> [u8; 8] {
    let mut out = [0; 8];
    let mut writer = Writer(&mut out);
    writer.put(&reason.to_ne_bytes());
    writer.put(&peer_diagnosis.to_ne_bytes());
    out
}

/// The place in a ring of `len` bytes of the byte after `total` others.
pub fn ring_cursor(total: u64, len: u32) -> RawCursor {
    let len = u64::from(len);
    let wraps = total.checked_div(len).unwrap_or(0);
    let count = total.checked_rem(len).unwrap_or(0);
    RawCursor {
        // CAST: Wraps are counted modulo 2^16, a place is below the length.
        wrap: wraps as u16,
        count: count as u32,
    }
}

/// Fills a buffer from its beginning; what does not fit is left out.
pub(crate) struct Writer<'a>(pub(crate) &'a mut [u8]);

impl Writer<'_> {
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        let whole = core::mem::take(&mut self.0);
        if let Some((head, rest)) = whole.split_at_mut_checked(bytes.len()) {
            head.copy_from_slice(bytes);
            self.0 = rest;
        }
    }

    fn cursor(&mut self, cursor: RawCursor) {
        self.put(&[0; 2]);
        self.put(&cursor.wrap.to_ne_bytes());
        self.put(&cursor.count.to_ne_bytes());
    }

    /// A text of at most `N - 1` bytes with zeros behind it.
    pub(crate) fn padded<const N: usize>(&mut self, text: &[u8]) {
        let mut field = [0; N];
        for (to, from) in field.iter_mut().zip(text.iter().take(N.saturating_sub(1))) {
            *to = *from;
        }
        self.put(&field);
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(smc_diag))]
mod tests {
    use super::*;

    fn at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(&bytes[offset..offset + N]);
        out
    }

    #[test]
    fn a_socket_has_its_inode_on_a_multiple_of_eight() {
        let bytes = SocketInfo {
            family: 43,
            state: 10,
            mode: Mode::Tcp,
            id: [7; 48],
            uid: 1000,
            inode: 0x1_0000_0002,
        }
        .emit();
        assert_eq!(at(&bytes, 0), [43, 10, 1, 0]);
        assert_eq!(at(&bytes, 4), [7; 48]);
        assert_eq!(u32::from_ne_bytes(at(&bytes, 52)), 1000);
        assert_eq!(u64::from_ne_bytes(at(&bytes, 56)), 0x1_0000_0002);
    }

    #[test]
    fn a_connection_has_its_flags_between_the_cursors() {
        let cursor = |wrap| RawCursor { wrap, count: 9 };
        let bytes = ConnInfo {
            token: 1,
            send_len: 2,
            rmbe_len: 3,
            peer_len: 4,
            rx_prod: cursor(5),
            rx_cons: cursor(6),
            tx_prod: cursor(7),
            tx_cons: cursor(8),
            flags: Flags {
                rx_prod: 0x11,
                rx_conn: 0x22,
                tx_prod: 0x33,
                tx_conn: 0x44,
            },
            tx_prep: cursor(10),
            tx_sent: cursor(11),
            tx_fin: cursor(12),
        }
        .emit();
        assert_eq!(u32::from_ne_bytes(at(&bytes, 12)), 4);
        assert_eq!(u16::from_ne_bytes(at(&bytes, 18)), 5);
        assert_eq!(u16::from_ne_bytes(at(&bytes, 42)), 8);
        assert_eq!(at(&bytes, 48), [0x11, 0x22, 0x33, 0x44]);
        assert_eq!(u16::from_ne_bytes(at(&bytes, 70)), 12);
        assert_eq!(u32::from_ne_bytes(at(&bytes, 72)), 9);
    }

    #[test]
    fn a_link_has_its_role_at_the_end() {
        let bytes = GroupInfo {
            link_id: 1,
            device: &[b'x'; 80],
            port: 2,
            gid: Gid::from_ipv4([10, 0, 0, 1]),
            peer_gid: Gid([0xfe; 16]),
            role: 1,
        }
        .emit();
        assert_eq!(bytes[0], 1);
        assert_eq!(at(&bytes, 63), [b'x', 0, 2]);
        assert_eq!(
            at(&bytes, 66),
            *b"0000:0000:0000:0000:0000:ffff:0a00:0001\0"
        );
        assert_eq!(
            at(&bytes, 106),
            *b"fefe:fefe:fefe:fefe:fefe:fefe:fefe:fefe\0"
        );
        assert_eq!(bytes[146], 1);
    }

    #[test]
    fn a_cursor_counts_wraps() {
        let place = |total| {
            let cursor = ring_cursor(total, 100);
            (cursor.wrap, cursor.count)
        };
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(99), (0, 99));
        assert_eq!(place(100), (1, 0));
        assert_eq!(place(6_553_799), (1, 99));
        assert_eq!(ring_cursor(5, 0).count, 0);
    }
}

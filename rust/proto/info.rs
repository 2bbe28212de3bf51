// SPDX-License-Identifier: GPL-2.0

//! What a program can ask about its own socket: the value of the option [`SMC_INFO`] at level
//! `SOL_SMC`, in the way of `TCP_INFO`.
//!
//! Numbers are in the byte order of the host. Fields are only ever added at the end: a program gets as
//! many bytes as it has room for.

use crate::diag::Writer;

/// Level of the options of SMC sockets.
pub const SOL_SMC: i32 = 286;
/// Number of the option that limits handshakes of a listening socket under load
/// (`include/uapi/linux/smc.h`).
pub const SMC_LIMIT_HS: i32 = 1;
/// Number of the option.
pub const SMC_INFO: i32 = 64;

/// What a socket does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Use {
    /// Not connected.
    #[default]
    None = 0,
    /// Data goes over SMC-R.
    Rdma = 1,
    /// Data stays on TCP.
    Tcp = 2,
}

/// A name of at most 63 bytes, with zeros behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceName([u8; 64]);

impl DeviceName {
    /// A longer name is cut.
    pub fn new(text: &[u8]) -> Self {
        let mut name = [0; 64];
        for (to, from) in name.iter_mut().zip(text.iter().take(63)) {
            *to = *from;
        }
        Self(name)
    }
}

impl Default for DeviceName {
    fn default() -> Self {
        Self([0; 64])
    }
}

/// The value of the option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketInfo {
    /// What the socket does. Offset 0, one byte.
    pub mode: Use,
    /// Number of the state, as `sock_diag` has it. Offset 1, one byte.
    pub state: u8,
    /// 1 for the server's side of the link group. Offset 2, one byte; the next one is zero.
    pub role: u8,
    /// Reason for staying on TCP. Offset 4.
    pub fallback: u32,
    /// The peer's reason. Offset 8.
    pub peer_diagnosis: u32,
    /// Number of the link group. Offset 12.
    pub group: u32,
    /// Names the connection. Offset 16.
    pub token: u32,
    /// Bytes of the send ring. Offset 20.
    pub send_len: u32,
    /// Bytes of the receive buffer. Offset 24.
    pub rmbe_len: u32,
    /// Bytes of the peer's receive buffer. Offset 28.
    pub peer_len: u32,
    /// Bytes that can be read. Offset 32.
    pub readable: u32,
    /// Bytes that wait to be sent. Offset 36.
    pub unsent: u32,
    /// Bytes that the peer has room for. Offset 40; the next four bytes are zero.
    pub peer_room: u32,
    /// Bytes sent so far. Offset 48.
    pub sent: u64,
    /// Bytes received so far. Offset 56.
    pub received: u64,
    /// Name of the RDMA device, at most 63 bytes. Offset 64, 64 bytes.
    pub device: DeviceName,
    /// Port of the device. Offset 128, one byte.
    pub port: u8,
    /// Number of the link within its group, 0 when it is gone. Offset 129, one byte; the next six are
    /// zero.
    pub link: u8,
}

/// Bytes of the value.
pub const INFO_LEN: usize = 136;

impl SocketInfo {
    /// The bytes of the value.
    pub fn emit(&self) -> [u8; INFO_LEN] {
        let mut out = [0; INFO_LEN];
        let mut writer = Writer(&mut out);
        writer.put(&[self.mode as u8, self.state, self.role, 0]);
        for number in [
            self.fallback,
            self.peer_diagnosis,
            self.group,
            self.token,
            self.send_len,
            self.rmbe_len,
            self.peer_len,
            self.readable,
            self.unsent,
            self.peer_room,
            0,
        ] {
            writer.put(&number.to_ne_bytes());
        }
        writer.put(&self.sent.to_ne_bytes());
        writer.put(&self.received.to_ne_bytes());
        writer.put(&self.device.0);
        writer.put(&[self.port, self.link]);
        out
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(smc_info))]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_programs_look_for_them() {
        let bytes = SocketInfo {
            mode: Use::Rdma,
            state: 1,
            role: 1,
            fallback: 2,
            peer_room: 3,
            sent: 4,
            received: 5,
            device: DeviceName::new(b"rxe0"),
            port: 6,
            link: 7,
            ..SocketInfo::default()
        }
        .emit();
        assert_eq!(&bytes[..4], [1, 1, 1, 0]);
        assert_eq!(&bytes[4..8], 2_u32.to_ne_bytes());
        assert_eq!(&bytes[40..44], 3_u32.to_ne_bytes());
        assert_eq!(&bytes[48..56], 4_u64.to_ne_bytes());
        assert_eq!(&bytes[56..64], 5_u64.to_ne_bytes());
        assert_eq!(&bytes[64..69], b"rxe0\0");
        assert_eq!(bytes[128..], [6, 7, 0, 0, 0, 0, 0, 0]);
    }
}

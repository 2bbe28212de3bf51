// SPDX-License-Identifier: GPL-2.0

//! `ioctl()`: how much is in the rings. Everything else is TCP's.

use kernel::{
    prelude::*,
    sync::Arc,
    uaccess::{
        UserPtr,
        UserSlice, //
    },
};
use smc_kapi::net::Sock;

use super::{
    Phase,
    SmcSocket, //
};
use crate::smc::conn::Connection;

/// Bytes that can be read; also `FIONREAD`.
const SIOCINQ: u32 = 0x541b;
/// Bytes written that the peer has not consumed; also `TIOCOUTQ`. The end counts as one, as on TCP.
const SIOCOUTQ: u32 = 0x5411;
/// Bytes written and not sent.
const SIOCOUTQNSD: u32 = 0x894b;
/// Whether the next byte is the urgent one.
const SIOCATMARK: u32 = 0x8905;

/// `ioctl()`; `arg` is the user address of an `int`.
pub(super) fn ioctl(socket: &Arc<SmcSocket>, sock: &Sock, cmd: u32, arg: usize) -> Result<i32> {
    match socket.phase() {
        Phase::Smc(conn) => {
            let mut value = query(&conn, cmd)?;
            if cmd == SIOCOUTQ {
                value += i32::from(socket.tcp()?.state().awaits_fin_ack());
            }
            let slice = UserSlice::new(UserPtr::from_addr(arg), size_of::<i32>());
            slice.writer().write(&value)?;
            Ok(0)
        }
        _ => socket.on_tcp(sock, |tcp| tcp.ioctl(cmd, arg)),
    }
}

fn query(conn: &Connection, cmd: u32) -> Result<i32> {
    let value = conn
        .with(|conn| {
            Some(match cmd {
                SIOCINQ => conn.readable(),
                SIOCOUTQ => conn.tx().buf_len() - conn.tx().room(),
                SIOCOUTQNSD => conn.tx().pending(),
                SIOCATMARK => u32::from(conn.at_mark()),
                _ => return None,
            })
        })
        .flatten()
        .ok_or(ENOIOCTLCMD)?;
    i32::try_from(value).map_err(|_| EOVERFLOW)
}

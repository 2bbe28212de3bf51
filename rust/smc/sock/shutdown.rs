// SPDX-License-Identifier: GPL-2.0

//! `shutdown()`.
//!
//! The socket lock keeps calls at the same time from losing a direction, and keeps them apart from
//! the begin and the end of a handshake.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use smc_kapi::net::{
    sock::shutdown,
    How,
    Sock,
    SockGuard,
    TcpSocket, //
};

use super::{
    listen,
    ops::is_over,
    Phase,
    SmcSocket, //
};
use crate::smc::conn::Connection;

/// Carries out `shutdown()`. May sleep.
pub(super) fn shut(socket: &Arc<SmcSocket>, sock: &Sock, how: How) -> Result {
    loop {
        match socket.phase() {
            Phase::Smc(conn) => {
                let over = is_over(&conn, sock);
                let tcp = socket.tcp()?;
                shut_connection(&sock.lock(), sock, &conn, &tcp, how.mask());
                sock.wake_state();
                return if over { Err(ENOTCONN) } else { Ok(()) };
            }
            Phase::Listening(listener) => {
                let result = socket.on_tcp(sock, |tcp| tcp.shutdown(how));
                if !listener.is_listening() {
                    // TCP has a socket then that does nothing.
                    listen::end(socket, sock, &listener);
                }
                return result;
            }
            Phase::Connecting(connecting) => {
                // Without outcome, the socket has entered its next phase meanwhile.
                if let Some(result) = connecting.shut(&sock.lock(), sock, how) {
                    return result;
                }
            }
            _ => return socket.on_tcp(sock, |tcp| tcp.shutdown(how)),
        }
    }
}

/// Shuts directions of a connection over SMC-R, given as bits of the shutdown mask.
pub(super) fn shut_connection(
    _locked: &SockGuard<'_>,
    sock: &Sock,
    conn: &Arc<Connection>,
    tcp: &TcpSocket,
    mask: u8,
) {
    sock.set_shutdown(sock.shutdown_mask() | mask);
    if mask & shutdown::SEND != 0 {
        conn.shutdown_write();
        // The states of the TCP connection are those that programs ask for.
        let _ = tcp.shutdown(How::Write);
    }
}

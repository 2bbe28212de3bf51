// SPDX-License-Identifier: GPL-2.0

//! `connect()` to an address of family `AF_UNSPEC`: back to the beginning, from whatever state.

use kernel::{
    ffi::c_long,
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    },
};
use smc_kapi::net::{
    Sock,
    SockAddr, //
};

use super::{
    connect,
    fallback::LateFilter,
    listen,
    ops::is_over,
    wait::wait_until,
    Phase,
    SmcSocket, //
};

/// Gives up what the socket does and resets its connection; it can then be connected, or listen,
/// again. The error that TCP leaves behind is the program's to read.
///
/// # Errors
///
/// Those of TCP; `ERESTARTSYS` or `EINTR` while a handshake ends, `EBADF` after release.
pub(super) fn disconnect(socket: &Arc<SmcSocket>, sock: &Sock, nowhere: &SockAddr<'_>) -> Result {
    // What the program has read is no error of the TCP socket any more.
    socket.on_tcp(sock, |_| Ok(()))?;
    let mut reset = Reset::NONE;
    loop {
        match socket.phase() {
            Phase::Closed => return Err(EBADF),
            Phase::Init => break,
            Phase::Connecting(connecting) => {
                connecting.tcp().connect(nowhere, true)?;
                connecting.kick();
                // A new attempt on the same TCP socket must not meet the end of this one.
                let mut timeout = c_long::MAX;
                wait_until(sock, &mut timeout, || !connecting.is_under_way())?;
                connect::leave(socket, &connecting);
            }
            Phase::Smc(conn) => {
                let known = Reset {
                    over: is_over(&conn, sock),
                    pending: sock.err(),
                };
                let left = socket.change_phase(
                    Phase::Init,
                    |phase| matches!(phase, Phase::Smc(current) if Arc::ptr_eq(current, &conn)),
                );
                if left.is_some() {
                    reset = known;
                    conn.leave_tcp();
                    if !reset.over {
                        conn.abort();
                    }
                    conn.close();
                    let _ = socket.tcp()?.sock().take_err();
                }
            }
            Phase::Listening(listener) => listen::end(socket, sock, &listener),
            Phase::Fallback => {
                let left =
                    socket.change_phase(Phase::Init, |phase| matches!(phase, Phase::Fallback));
                drop(left);
            }
        }
    }
    socket.forget_connection();
    let tcp = socket.tcp()?;
    let result = tcp.connect(nowhere, true);
    tcp.withdraw_option();
    sock.copy_peek_offset(&tcp);
    sock.set_shutdown(0);
    if reset.over {
        let _ = tcp.sock().take_err();
    }
    if reset.pending != 0 && tcp.sock().err() == 0 {
        tcp.sock().set_err(reset.pending);
    }
    let _ = sock.take_err();
    socket.mirror_error(&tcp, sock);
    result
}

/// What a connection over SMC-R leaves behind.
struct Reset {
    /// It had ended before: there is nothing to reset, so nothing to report.
    over: bool,
    /// The error that the program has not read, or 0.
    pending: i32,
}

impl Reset {
    const NONE: Self = Self {
        over: false,
        pending: 0,
    };
}

impl SmcSocket {
    /// What is left of a connection concerns the next one no more.
    fn forget_connection(&self) {
        self.reason.store(0, Relaxed);
        self.peer_reason.store(0, Relaxed);
        self.late_possible.store(false, Relaxed);
        *self.late.lock() = LateFilter::NONE;
    }
}

// SPDX-License-Identifier: GPL-2.0

//! `poll()`, `select()` and `epoll`.

use kernel::sync::Arc;
use smc_kapi::net::{
    sock::shutdown,
    PollMask,
    PollRequest,
    Sock, //
};
use smc_proto::conn::Conn;

use super::{
    Phase,
    SmcSocket, //
};
use crate::smc::conn::{
    recv::has_enough,
    Connection, //
};

/// Registers the poller on the socket's wait queue, then says what is possible now.
pub(super) fn poll(socket: &Arc<SmcSocket>, sock: &Sock, request: &PollRequest<'_>) -> PollMask {
    request.register();
    let mask = match socket.phase() {
        Phase::Smc(conn) => connection(&conn, sock, request),
        Phase::Connecting(connecting) if connecting.is_under_way() => PollMask::NONE,
        // An error from before is not a listener's, says TCP.
        Phase::Listening(listener) if listener.is_ready() => return PollMask::READABLE,
        Phase::Listening(listener) if listener.is_listening() => return PollMask::NONE,
        Phase::Closed => PollMask::HUP,
        _ => return fallback(socket, sock, request),
    };
    if sock.err() != 0 {
        mask | PollMask::ERR
    } else {
        mask
    }
}

/// What TCP says, unless all there is to read is a late handshake message.
fn fallback(socket: &Arc<SmcSocket>, sock: &Sock, request: &PollRequest<'_>) -> PollMask {
    let mask = socket.on_tcp(sock, |tcp| {
        let hidden = socket.has_late_filter() && !socket.clear_late(tcp);
        let mask = tcp.poll_mask(request);
        Ok(if hidden {
            mask & PollMask::from_bits(!PollMask::READABLE.bits())
        } else {
            mask
        })
    });
    mask.unwrap_or(PollMask::HUP)
}

fn connection(conn: &Connection, sock: &Sock, request: &PollRequest<'_>) -> PollMask {
    let lowat = sock.rcvlowat(false, usize::MAX);
    let Some((mask, has_room)) = conn.with(|conn| state(conn, sock, lowat)) else {
        return PollMask::NONE;
    };
    if mask.intersects(PollMask::HUP) {
        // The error may be on its way to the socket.
        conn.report_error();
    }
    if has_room {
        return mask | PollMask::WRITABLE;
    }
    // Room may come between the look and the note; then nobody would tell.
    request.note_no_space();
    if conn.is_writable() {
        mask | PollMask::WRITABLE
    } else {
        mask
    }
}

/// The mask without writability, and whether writing would not block.
fn state(conn: &Conn, sock: &Sock, lowat: usize) -> (PollMask, bool) {
    let shut = sock.shutdown_mask();
    let reset = conn.error().is_some();
    let no_receive = conn.is_end_of_data() || reset || shut & shutdown::RCV != 0;
    // That the peer has closed is no hang-up as long as this end has not shut its own direction: on
    // TCP nobody could know, and programs take a hang-up for the end of what they can read.
    let hung_up = no_receive && (reset || shut & shutdown::SEND != 0);
    let no_send = conn.may_send().is_err() || shut & shutdown::SEND != 0;
    let mut mask = PollMask::NONE;
    if no_receive {
        mask |= PollMask::READABLE | PollMask::RDHUP;
    }
    if hung_up {
        mask |= PollMask::HUP;
    }
    if conn.readable() > 0 && has_enough(conn, lowat) {
        mask |= PollMask::READABLE;
    }
    if conn.urgent_available() {
        mask |= PollMask::PRI;
    }
    (mask, conn.is_writable() || no_send)
}

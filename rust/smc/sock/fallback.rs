// SPDX-License-Identifier: GPL-2.0

//! Sockets that stay on TCP: their calls are passed on to the TCP socket.
//!
//! Two things are left to do here. An error of the TCP socket is mirrored to the program's socket,
//! where `SO_ERROR` looks for it, and has to be consumed in both. And when both ends gave up the
//! handshake at the same time, a late handshake message may be in front of the program's data.

use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    },
};
use smc_kapi::{
    module::now_ms,
    net::{
        Sock,
        TcpSocket,
        TcpState, //
    },
};
use smc_proto::{
    handshake::{
        LateClc,
        Scan,
        LATE_CLC_MS, //
    },
    wire::clc::MAX_RECEIVE_LEN, //
};

use super::SmcSocket;
use crate::smc::{
    handshake::Fallback,
    stats::Side, //
};

/// Handshake messages to be taken off the TCP stream, and until when to hold bytes back for them.
pub(crate) struct LateFilter {
    late: LateClc,
    until: u64,
}

impl LateFilter {
    pub(super) const NONE: Self = Self {
        late: LateClc::NONE,
        until: 0,
    };
}

impl SmcSocket {
    /// Notes and counts the fallback. The caller enters the phase afterwards.
    pub(crate) fn begin_fallback(&self, fallback: &Fallback, side: Side) {
        self.note_fallback(side, fallback.reason, fallback.peer_reason);
        if fallback.late.may_follow() {
            *self.late.lock() = LateFilter {
                late: fallback.late,
                until: now_ms() + LATE_CLC_MS,
            };
            self.late_possible.store(true, Relaxed);
        }
    }

    /// Whether the head of the TCP stream may be a late handshake message.
    pub(crate) fn has_late_filter(&self) -> bool {
        self.late_possible.load(Relaxed)
    }

    /// Takes late handshake messages off the head of the stream; true when the program may read.
    /// May sleep.
    pub(crate) fn clear_late(&self, tcp: &TcpSocket) -> bool {
        if !self.late_possible.load(Relaxed) {
            return true;
        }
        let mut filter = self.late.lock();
        loop {
            let mut head = [0u8; HEAD];
            let n = match tcp.peek(&mut head) {
                Ok(n) => n,
                Err(error) => {
                    // Nothing there is no reason to let go of the filter; an error is the program's.
                    return error != EAGAIN;
                }
            };
            let at_end = now_ms() >= filter.until || tcp.state() != TcpState::Established;
            let seen = head.get(..n).unwrap_or(&[]);
            if n == 0 {
                return true;
            }
            match filter.late.scan(seen, at_end) {
                Scan::Wait => return false,
                Scan::Skip(len) => {
                    if self.skip(tcp, len).is_err() {
                        return true;
                    }
                }
                Scan::Clean => {
                    self.late_possible.store(false, Relaxed);
                    return true;
                }
            }
        }
    }

    fn skip(&self, tcp: &TcpSocket, len: usize) -> Result {
        let mut bytes = [0u8; HEAD];
        let bytes = bytes.get_mut(..len).ok_or(EINVAL)?;
        tcp.recv_exact(bytes, 0)
    }

    /// Calls `f` on the TCP socket with the errors of both sockets kept in step.
    pub(crate) fn on_tcp<R>(
        self: &Arc<Self>,
        sock: &Sock,
        f: impl FnOnce(&TcpSocket) -> Result<R>,
    ) -> Result<R> {
        let tcp = self.tcp()?;
        let pending = tcp.sock().err();
        if pending != 0 && sock.err() == 0 {
            // `SO_ERROR` has reported and cleared it.
            tcp.clear_err_if(pending);
        }
        let result = f(&tcp);
        if sock.err() != 0 && tcp.sock().err() == 0 {
            let _ = sock.take_err();
        }
        result
    }
}

/// Bytes looked at for a late message: the longest answer of a peer with some growth.
const HEAD: usize = if MAX_RECEIVE_LEN < 256 { MAX_RECEIVE_LEN } else { 256 };

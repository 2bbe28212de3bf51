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
        SockGuard,
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

use super::{
    Phase,
    SmcSocket, //
};
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
        let Ok(mut head) = KVec::from_elem(0u8, MAX_RECEIVE_LEN, GFP_KERNEL) else {
            return false;
        };
        let mut filter = self.late.lock();
        loop {
            if tcp.sock().err() != 0 {
                // Looking at the stream would take the error, which is the program's.
                return true;
            }
            let n = match tcp.peek(&mut head) {
                Ok(n) => n,
                // Nothing there is no reason to let go of the filter.
                Err(EAGAIN) => return false,
                Err(error) => {
                    // A socket in repair mode (TCP_REPAIR) refuses the look with these.
                    if !matches!(error, ENOTCONN | EINVAL | EPERM) {
                        // It came a moment ago.
                        tcp.sock().set_err(-error.to_errno());
                    }
                    return true;
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
                    let skipped = head.get_mut(..len).ok_or(EINVAL);
                    if skipped.and_then(|bytes| tcp.recv_exact(bytes, 0)).is_err() {
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

    /// Calls `f` on the TCP socket with the errors of both sockets kept in step.
    pub(crate) fn on_tcp<R>(
        self: &Arc<Self>,
        sock: &Sock,
        f: impl FnOnce(&TcpSocket) -> Result<R>,
    ) -> Result<R> {
        let tcp = self.tcp()?;
        let mirrored = self.mirrored.load(Relaxed);
        if mirrored != 0 && sock.err() == 0 {
            // `SO_ERROR` has reported and cleared it.
            self.mirrored.store(0, Relaxed);
            tcp.clear_err_if(mirrored);
        }
        let result = f(&tcp);
        if self.mirrored.load(Relaxed) != 0 && tcp.sock().err() == 0 {
            self.mirrored.store(0, Relaxed);
            let _ = sock.take_err();
        }
        result
    }

    /// Like [`SmcSocket::on_tcp`] for calls on a socket that is not connected, which TCP answers at once;
    /// `None` where a `connect()` was faster. As the handshake cannot begin meanwhile, its stream has
    /// nothing of the program's, nor the program anything of the handshake's. May sleep.
    pub(crate) fn on_idle_tcp<R>(
        self: &Arc<Self>,
        sock: &Sock,
        f: impl FnOnce(&TcpSocket) -> Result<R>,
    ) -> Option<Result<R>> {
        let _locked = sock.lock();
        match self.phase() {
            Phase::Connecting(connecting) if connecting.is_under_way() => None,
            Phase::Smc(_) | Phase::Fallback => None,
            _ => Some(self.on_tcp(sock, f)),
        }
    }

    /// Begins to connect: enters `next` from [`Phase::Init`], if the socket is there. The lock keeps out
    /// calls of [`SmcSocket::on_idle_tcp`].
    pub(super) fn leave_init(&self, _locked: &SockGuard<'_>, next: Phase) -> bool {
        self.change_phase(next, |phase| matches!(phase, Phase::Init))
            .is_some()
    }

    /// For calls that go by the state of TCP: where the peer has said over the link that it aborted,
    /// the end of the TCP connection is waited for a moment. May sleep.
    pub(crate) fn await_tcp_end(&self, sock: &Sock) -> Result {
        if let Phase::Smc(conn) = self.phase() {
            conn.await_tcp_end(sock, &*self.tcp()?);
        }
        Ok(())
    }

    /// Copies a pending error of the TCP socket to the program's socket and wakes it. Any context.
    pub(crate) fn mirror_error(&self, tcp: &TcpSocket, sock: &Sock) {
        let errno = tcp.sock().err();
        if errno != 0 {
            self.report_error(tcp, sock, errno);
        }
    }

    /// Reports `errno` on the program's socket in place of the pending error of the TCP socket; it
    /// is consumed in both. Any context.
    pub(crate) fn report_error(&self, tcp: &TcpSocket, sock: &Sock, errno: i32) {
        sock.set_err(errno);
        self.mirrored.store(tcp.sock().err(), Relaxed);
        sock.wake_error();
    }
}

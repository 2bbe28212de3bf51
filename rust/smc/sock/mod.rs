// SPDX-License-Identifier: GPL-2.0

//! AF_SMC sockets.
//!
//! Every socket owns a TCP socket inside the kernel. Names, options and the SYN go through that one;
//! it carries the handshake, and the data too where SMC-R cannot be had. The program's socket stays
//! the same object all its life: after a fallback its calls are passed on, so that poll and epoll
//! registrations made before stay valid. Both sockets share one wait queue.
//!
//! Each phase has a file: [`connect`], [`listen`], [`fallback`]; [`ops`] is the table of calls.

pub(crate) mod connect;
pub(crate) mod disconnect;
pub(crate) mod fallback;
pub(crate) mod incoming;
pub(crate) mod ioctl;
pub(crate) mod listen;
pub(crate) mod ops;
pub(crate) mod options;
pub(crate) mod poll;
pub(crate) mod ready;
mod shutdown;
pub(crate) mod table;
pub(crate) mod wait;

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
};
use smc_kapi::{
    net::{
        OptionUse,
        Sock,
        SockRef,
        TcpEvents,
        TcpSocket, //
    },
    new_spinlock_bh,
    sync::SpinLockBh,
    trace, //
};
use smc_proto::{
    ids::BufSize,
    reason::DeclineReason, //
};

use crate::smc::{
    conn::Connection,
    events,
    lgr::buffers::Wish,
    netns::NetState,
    stats::Side, //
};
use connect::Connecting;
use fallback::LateFilter;
use listen::Listener;

/// A socket of the family.
#[pin_data]
pub(crate) struct SmcSocket {
    pub(crate) net: Arc<NetState>,
    /// Its number in the table of sockets, 0 while it has none.
    number: Atomic<u64>,
    #[pin]
    phase: SpinLockBh<PhaseCell>,
    /// One reader at a time.
    #[pin]
    pub(crate) reader: Mutex<()>,
    /// One writer at a time.
    #[pin]
    pub(crate) writer: Mutex<()>,
    /// What the fallback was decided for, and the peer's diagnosis; 0 while there is none.
    reason: Atomic<u32>,
    peer_reason: Atomic<u32>,
    /// `TCP_CORK` is set.
    corked: Atomic<bool>,
    /// `TCP_INQ` is set: `recvmsg()` tells how much is left to read.
    tells_left: Atomic<bool>,
    /// `TCP_REPAIR` is on: TCP says what it does to reads.
    repairs: Atomic<bool>,
    /// The reason not to offer SMC that a socket option gave before `connect()` or `listen()`.
    no_smc: Atomic<u32>,
    /// Whether handshakes are limited, where `SMC_LIMIT_HS` has said so; else [`AS_NAMESPACE`].
    limits: Atomic<i32>,
    /// Seconds of `TCP_DEFER_ACCEPT`.
    defers: Atomic<i32>,
    /// Handshake messages that may be at the head of the TCP stream after a fallback.
    #[pin]
    late: Mutex<LateFilter>,
    late_possible: Atomic<bool>,
    /// The error of the TCP socket that was copied to the program's socket; 0 while there is none.
    mirrored: Atomic<i32>,
}

/// The namespace says whether handshakes are limited.
const AS_NAMESPACE: i32 = -1;

struct PhaseCell {
    phase: Phase,
    held: Option<Held>,
}

/// What a socket holds until it is released; dropping it may sleep.
pub(crate) struct Held {
    pub(crate) tcp: Arc<TcpSocket>,
    /// Keeps the TCP option alive in this namespace.
    _option: OptionUse,
}

/// What a socket is doing.
#[derive(Clone)]
pub(crate) enum Phase {
    /// Neither connected nor listening.
    Init,
    /// `connect()` was called and has not ended, or failed and was not asked about.
    Connecting(Arc<Connecting>),
    /// `listen()` was called.
    Listening(Arc<Listener>),
    /// Connected over SMC-R.
    Smc(Arc<Connection>),
    /// On TCP, for good.
    Fallback,
    /// Released.
    Closed,
}

impl SmcSocket {
    /// A socket with its TCP socket. May sleep.
    pub(crate) fn new(
        net: Arc<NetState>,
        option: OptionUse,
        tcp: Arc<TcpSocket>,
        phase: Phase,
    ) -> Result<Arc<Self>> {
        let tells_left = tcp.reports_inq();
        Arc::pin_init(
            try_pin_init!(Self {
                net,
                number: Atomic::new(0),
                phase <- new_spinlock_bh!(
                    PhaseCell { phase, held: Some(Held { tcp, _option: option }) },
                    "smc_socket_phase"
                ),
                reader <- new_mutex!((), "smc_socket_reader"),
                writer <- new_mutex!((), "smc_socket_writer"),
                reason: Atomic::new(0),
                peer_reason: Atomic::new(0),
                corked: Atomic::new(false),
                tells_left: Atomic::new(tells_left),
                repairs: Atomic::new(false),
                no_smc: Atomic::new(0),
                limits: Atomic::new(AS_NAMESPACE),
                defers: Atomic::new(0),
                late <- new_mutex!(LateFilter::NONE, "smc_socket_late"),
                late_possible: Atomic::new(false),
                mirrored: Atomic::new(0),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Enters the socket into the table of its namespace, until it is closed. May sleep.
    fn enlist(self: &Arc<Self>, sock: &Sock) -> Result {
        let number = self.net.sockets.add(self, sock)?;
        self.number.store(number, Relaxed);
        Ok(())
    }

    /// A copy of the current phase. Any context.
    pub(crate) fn phase(&self) -> Phase {
        self.phase.lock().phase.clone()
    }

    /// The TCP socket.
    ///
    /// # Errors
    ///
    /// `EBADF` after release.
    pub(crate) fn tcp(&self) -> Result<Arc<TcpSocket>> {
        let cell = self.phase.lock();
        let held = cell.held.as_ref().ok_or(EBADF)?;
        Ok(held.tcp.clone())
    }

    /// Enters `next` if `from` allows it; gives the phase left behind. Any context.
    pub(crate) fn change_phase(
        &self,
        next: Phase,
        from: impl FnOnce(&Phase) -> bool,
    ) -> Option<Phase> {
        let mut cell = self.phase.lock();
        if from(&cell.phase) {
            Some(core::mem::replace(&mut cell.phase, next))
        } else {
            None
        }
    }

    /// Ends the socket's life and gives what it held, to be dropped in process context.
    fn close_phase(&self) -> (Phase, Option<Held>) {
        let mut cell = self.phase.lock();
        (
            core::mem::replace(&mut cell.phase, Phase::Closed),
            cell.held.take(),
        )
    }

    /// Notes why the socket is on TCP and counts it.
    pub(crate) fn note_fallback(&self, side: Side, reason: DeclineReason, peer: DeclineReason) {
        self.reason.store(reason.0, Relaxed);
        self.peer_reason.store(peer.0, Relaxed);
        self.net.stats.count_fallback(side, reason);
        events::fallback(self, side, reason, peer);
        if trace::watches_fallback() {
            if let Ok(tcp) = self.tcp() {
                trace::fallback(&tcp, self.net.id(), reason.0);
            }
        }
    }

    /// Why the socket is on TCP: our reason and the peer's diagnosis.
    pub(crate) fn fallback_reason(&self) -> (DeclineReason, DeclineReason) {
        (
            DeclineReason(self.reason.load(Relaxed)),
            DeclineReason(self.peer_reason.load(Relaxed)),
        )
    }

    /// Limits handshakes of this socket, whatever the namespace says.
    fn limit_handshakes(&self, on: bool) {
        self.limits.store(i32::from(on), Relaxed);
        if let Phase::Listening(listener) = self.phase() {
            listener.limit_handshakes(on);
        }
    }

    /// Whether handshakes of this socket are limited.
    fn limits_handshakes(&self) -> bool {
        match self.limits.load(Relaxed) {
            AS_NAMESPACE => self.net.settings.limits_handshakes(),
            on => on != 0,
        }
    }

    /// Why this socket does not offer SMC; `None` when it does.
    fn refusal(&self, tcp: &TcpSocket) -> Option<DeclineReason> {
        match self.no_smc.load(Relaxed) {
            0 if tcp.has_signature() || tcp.has_fastopen() => Some(DeclineReason::OPTUNSUPP),
            0 => None,
            reason => Some(DeclineReason(reason)),
        }
    }
}

/// The buffers for a connection of `sock`, or of a listener's: its own control group pays for them.
pub(crate) fn buffers_of(sock: &Sock) -> Wish {
    Wish {
        send: buffer_size(sock.sndbuf()),
        receive: buffer_size(sock.rcvbuf()),
        payer: sock.payer(),
    }
}

/// Buffer size for the connection of a socket: half of what the socket layer accounts for.
fn buffer_size(socket_bytes: i32) -> BufSize {
    // SMC-R peers on Linux accept up to 512 MiB, the RFC allows 512 KiB.
    let bytes = u32::try_from(socket_bytes / 2).unwrap_or(0);
    core::cmp::min(BufSize::from_bytes_ceil(bytes), BufSize::MAX_RFC)
}

/// Receives what happens on the TCP socket of a program's socket.
pub(crate) struct TcpWatch {
    socket: Arc<SmcSocket>,
    sock: SockRef,
}

impl TcpWatch {
    /// Begins to watch; [`SmcSocket`]'s release ends it.
    pub(crate) fn install(socket: &Arc<SmcSocket>, sock: &Sock, tcp: &TcpSocket) -> Result {
        let watch = Arc::new(
            Self {
                socket: socket.clone(),
                sock: sock.hold(),
            },
            GFP_KERNEL,
        )?;
        tcp.install(watch)
    }
}

impl TcpEvents for TcpWatch {
    fn data_ready(&self) {
        if let Phase::Listening(listener) = self.socket.phase() {
            listener.kick();
        }
    }

    fn state_change(&self) {
        match self.socket.phase() {
            Phase::Connecting(connecting) => connecting.kick(),
            Phase::Smc(conn) => {
                // Never the last reference: see below.
                if let Ok(tcp) = self.socket.tcp() {
                    conn.watch_tcp(&tcp);
                }
            }
            _ => {}
        }
    }

    fn urgent(&self) {
        // The signal goes to the owner of the program's file.
        if let Phase::Fallback = self.socket.phase() {
            self.sock.send_sigurg();
        }
    }

    fn error_report(&self) {
        match self.socket.phase() {
            Phase::Connecting(connecting) => connecting.kick(),
            Phase::Smc(conn) => {
                // Never the last reference: a release drops its own after it has ended these calls.
                if let Ok(tcp) = self.socket.tcp() {
                    conn.tcp_reset(&tcp);
                }
            }
            Phase::Fallback => {
                // As above.
                if let Ok(tcp) = self.socket.tcp() {
                    self.socket.mirror_error(&tcp, &self.sock);
                }
            }
            _ => {}
        }
    }
}

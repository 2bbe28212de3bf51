// SPDX-License-Identifier: GPL-2.0

//! `connect()`: the TCP connection first, then the handshake in a work item.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    workqueue::{
        impl_has_work,
        new_work,
        Work,
        WorkItem, //
    },
};
use smc_kapi::{
    net::{
        addr::AF_UNSPEC,
        sock::Flag,
        How,
        Sock,
        SockAddr,
        SockGuard,
        SockRef,
        TcpSocket,
        TcpState, //
    },
    new_spinlock_bh,
    sync::SpinLockBh,
    work, //
};
use smc_proto::reason::DeclineReason;

use super::{
    buffers_of,
    disconnect::disconnect,
    shutdown::shut_connection,
    wait::wait_until,
    Phase,
    SmcSocket, //
};
use crate::smc::{
    global::{
        self,
        Global, //
    },
    handshake::{
        client,
        steps::Clock,
        End,
        Fallback,
        Handshake, //
    },
    stats::Side, //
};

/// An address of family `AF_UNSPEC`: connecting to it resets the TCP connection.
const UNSPECIFIED: [u8; 16] = [0; 16];

/// A `connect()` that has not ended.
#[pin_data]
pub(crate) struct Connecting {
    global: Arc<Global>,
    socket: Arc<SmcSocket>,
    sock: SockRef,
    tcp: Arc<TcpSocket>,
    /// The program has shut the socket down before the handshake.
    given_up: Atomic<bool>,
    /// Directions that it shut down during the handshake; written with the socket lock held.
    shut: Atomic<u32>,
    #[pin]
    progress: SpinLockBh<Progress>,
    #[pin]
    work: Work<Connecting>,
}

impl_has_work! {
    impl HasWork<Self> for Connecting { self.work }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The TCP connection is being established.
    Tcp,
    /// The handshake runs.
    Handshake,
    /// It failed; for a failed handshake with this errno, else TCP knows.
    Failed(i32),
    /// The socket has entered its next phase.
    Done,
}

impl Connecting {
    fn new(socket: &Arc<SmcSocket>, sock: &Sock, tcp: &Arc<TcpSocket>) -> Result<Arc<Self>> {
        let global = global::get().ok_or(ENODEV)?;
        Arc::pin_init(
            try_pin_init!(Self {
                global,
                socket: socket.clone(),
                sock: sock.hold(),
                tcp: tcp.clone(),
                given_up: Atomic::new(false),
                shut: Atomic::new(0),
                progress <- new_spinlock_bh!(Progress::Tcp, "smc_connecting"),
                work <- new_work!("smc_connecting_work"),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// The state of the TCP connection changed. Any context.
    pub(crate) fn kick(self: &Arc<Self>) {
        let undecided = matches!(self.tcp.state(), TcpState::SynSent | TcpState::SynRecv);
        if !undecided && *self.progress.lock() == Progress::Tcp {
            work::queue::<_, 0>(&self.global.client_queue, self);
        }
    }

    /// The TCP connection.
    pub(crate) fn tcp(&self) -> &TcpSocket {
        &self.tcp
    }

    /// The program shuts the socket down; `None` if that has entered its next phase.
    ///
    /// TCP ends an attempt that has no answer yet, and does not know of it any more. The handshake, of
    /// which the program knows nothing, needs both directions: what is shut down while it is under way,
    /// or about to begin, is so once it has ended.
    pub(super) fn shut(&self, _locked: &SockGuard<'_>, sock: &Sock, how: How) -> Option<Result> {
        let begins = matches!(
            self.tcp.state(),
            TcpState::Established | TcpState::CloseWait
        );
        let progress = *self.progress.lock();
        match progress {
            Progress::Done => return None,
            Progress::Tcp if !begins => {}
            Progress::Failed(_) => {}
            Progress::Tcp | Progress::Handshake => {
                let mask = self.shut.load(Relaxed) | u32::from(how.mask());
                self.shut.store(mask, Relaxed);
                return Some(Ok(()));
            }
        }
        self.given_up.store(true, Relaxed);
        Some(self.socket.on_tcp(sock, |tcp| tcp.shutdown(how)))
    }

    /// Whether neither success nor failure is known.
    pub(crate) fn is_under_way(&self) -> bool {
        matches!(*self.progress.lock(), Progress::Tcp | Progress::Handshake)
    }

    /// Makes the step that TCP's state allows. Process context.
    fn advance(self: &Arc<Self>) {
        let Some(connected) = self.leave_tcp() else {
            return;
        };
        if !connected {
            self.socket.mirror_error(&self.tcp, &self.sock);
            self.fail(0);
            return;
        }
        let clock = Clock::begin();
        let end = self.handshake(&clock);
        clock.end(&self.tcp, &self.socket.net, Side::Client, &end);
        match end {
            End::Smc(conn) => {
                // Nobody was signalled until now.
                let urgent = conn.with(|conn| conn.urgent_announced()).unwrap_or(false);
                conn.set_owner(self.sock.clone());
                conn.set_tcp(&self.tcp);
                if self.enter(Phase::Smc(conn.clone())) {
                    conn.report_error();
                    // It may have been set during the handshake.
                    let inline = self.sock.flag(Flag::UrgInline);
                    conn.change(|conn| conn.set_oob_inline(inline));
                    // Errors until now were nobody's.
                    if self.tcp.sock().err() != 0 {
                        conn.tcp_reset(&self.tcp);
                    }
                    conn.watch_tcp(&self.tcp);
                    if urgent {
                        self.sock.send_sigurg();
                    }
                } else {
                    conn.leave_tcp();
                    conn.close();
                }
            }
            End::Tcp(fallback) => {
                self.socket.begin_fallback(&fallback, Side::Client);
                if self.enter(Phase::Fallback) {
                    self.socket.mirror_error(&self.tcp, &self.sock);
                }
            }
            End::Broken(error) => {
                // No program may get at a stream that is left within the handshake.
                let _ = self.tcp.connect(&SockAddr::new(&UNSPECIFIED), true);
                let errno = -error.to_errno();
                self.socket.report_error(&self.tcp, &self.sock, errno);
                self.fail(errno);
                return;
            }
        }
        self.sock.wake_connected();
    }

    /// The attempt of TCP is over: whether it has led to a connection. `None` when it is not over, or
    /// was seen to be before.
    fn leave_tcp(&self) -> Option<bool> {
        // The program does not shut down between the look at the state and the note of it.
        let _locked = self.sock.lock();
        let connected = match self.tcp.state() {
            TcpState::SynSent | TcpState::SynRecv => return None,
            TcpState::Established | TcpState::CloseWait => true,
            // It was faster: shut down as soon as the connection was there.
            TcpState::FinWait1 | TcpState::FinWait2 | TcpState::Closing | TcpState::LastAck => true,
            _ => false,
        };
        let mut progress = self.progress.lock();
        if *progress != Progress::Tcp {
            return None;
        }
        *progress = Progress::Handshake;
        Some(connected)
    }

    /// The attempt has failed, and the socket has its error: whoever sees the failure takes it.
    fn fail(&self, errno: i32) {
        *self.progress.lock() = Progress::Failed(errno);
        // A program that looked when the error was reported was told that the attempt goes on.
        self.sock.wake_error();
        self.sock.wake_state();
    }

    fn handshake(&self, clock: &Clock) -> End {
        if !self.tcp.option_seen() {
            return End::Tcp(Fallback::quiet(DeclineReason::PEERNOSMC));
        }
        if self.given_up.load(Relaxed) {
            // Shut down before the first message: the peer takes it for what it is.
            return End::Tcp(Fallback::quiet(DeclineReason::OPTUNSUPP));
        }
        client::run(&Handshake {
            global: &self.global,
            net: &self.socket.net,
            tcp: &self.tcp,
            side: Side::Client,
            clock,
            wish: buffers_of(&self.sock),
        })
    }

    /// Enters the phase that `connect()` led to, unless the socket was closed meanwhile.
    ///
    /// The phase comes first: whoever sees that the handshake is over must not find the TCP
    /// connection in its place. What the program has shut down meanwhile is so from the beginning.
    fn enter(self: &Arc<Self>, next: Phase) -> bool {
        let locked = self.sock.lock();
        // CAST: bits of the shutdown mask.
        let mask = self.shut.load(Relaxed) as u8;
        if let Phase::Smc(conn) = &next {
            shut_connection(&locked, &self.sock, conn, &self.tcp, mask);
        } else {
            for how in [How::Read, How::Write] {
                if mask & how.mask() != 0 {
                    let _ = self.tcp.shutdown(how);
                }
            }
        }
        let left = self.socket.change_phase(
            next,
            |phase| matches!(phase, Phase::Connecting(current) if Arc::ptr_eq(current, self)),
        );
        *self.progress.lock() = Progress::Done;
        left.is_some()
    }
}

impl WorkItem for Connecting {
    type Pointer = Arc<Connecting>;

    fn run(this: Arc<Connecting>) {
        this.advance();
    }
}

/// Carries out `connect()`.
pub(super) fn connect(
    socket: &Arc<SmcSocket>,
    sock: &Sock,
    addr: &SockAddr<'_>,
    nonblock: bool,
) -> Result {
    if addr.family().ok_or(EINVAL)? == AF_UNSPEC {
        return disconnect(socket, sock, addr);
    }
    let mut too_late = EINPROGRESS;
    let connecting = match socket.phase() {
        Phase::Init => {
            let tcp = socket.tcp()?;
            if let Some(reason) = socket.refusal(&tcp) {
                return connect_tcp(socket, sock, addr, nonblock, reason);
            }
            let connecting = start(socket, sock, addr)?;
            if nonblock {
                // However soon it is there: TCP says so, too.
                return Err(EINPROGRESS);
            }
            connecting
        }
        Phase::Connecting(connecting) if !connecting.is_under_way() => {
            if connecting.given_up.load(Relaxed) {
                leave(socket, &connecting);
                return connect(socket, sock, addr, nonblock);
            }
            return finish(socket, sock, addr, &connecting);
        }
        Phase::Connecting(_) if nonblock => return Err(EALREADY),
        Phase::Connecting(connecting) => {
            too_late = EALREADY;
            connecting
        }
        // TCP says once that the connection is there, then that it was there before.
        Phase::Fallback => return socket.on_tcp(sock, |tcp| tcp.connect(addr, nonblock)),
        Phase::Smc(_) => return socket.tcp()?.connect(addr, nonblock),
        Phase::Listening(_) => return Err(EISCONN),
        Phase::Closed => return Err(EBADF),
    };
    let mut timeout = sock.sndtimeo(nonblock);
    wait_until(sock, &mut timeout, || !connecting.is_under_way())?;
    if connecting.is_under_way() {
        return Err(too_late);
    }
    finish(socket, sock, addr, &connecting)
}

/// Connects a socket that must not offer SMC: it is TCP's from the beginning, so that options like
/// `TCP_FASTOPEN_CONNECT`, which connects later, have the meaning that they have there.
fn connect_tcp(
    socket: &Arc<SmcSocket>,
    sock: &Sock,
    addr: &SockAddr<'_>,
    nonblock: bool,
    reason: DeclineReason,
) -> Result {
    let entered = socket.leave_init(&sock.lock(), Phase::Fallback);
    if !entered {
        return Err(EALREADY);
    }
    let result = socket.on_tcp(sock, |tcp| tcp.connect(addr, nonblock));
    match result {
        Err(error) if !matches!(error, EINPROGRESS | EINTR | ERESTARTSYS) => {
            // The program may try again.
            let left = socket.change_phase(Phase::Init, |phase| matches!(phase, Phase::Fallback));
            drop(left);
        }
        _ => socket.begin_fallback(&Fallback::quiet(reason), Side::Client),
    }
    result
}

/// Starts the TCP connection.
fn start(socket: &Arc<SmcSocket>, sock: &Sock, addr: &SockAddr<'_>) -> Result<Arc<Connecting>> {
    let tcp = socket.tcp()?;
    let connecting = Connecting::new(socket, sock, &tcp)?;
    tcp.offer_option()?;
    // Whoever looks at the TCP socket finds it before the call or connecting.
    let locked = sock.lock();
    if !socket.leave_init(&locked, Phase::Connecting(connecting.clone())) {
        return Err(EALREADY);
    }
    match socket.on_tcp(sock, |tcp| tcp.connect(addr, true)) {
        Ok(()) => {}
        Err(error) if error == EINPROGRESS => {}
        Err(error) => {
            leave(socket, &connecting);
            return Err(error);
        }
    }
    drop(locked);
    // The answer may have come before the phase was entered.
    connecting.kick();
    Ok(connecting)
}

/// Gives the outcome of a `connect()` that has ended.
fn finish(
    socket: &Arc<SmcSocket>,
    sock: &Sock,
    addr: &SockAddr<'_>,
    connecting: &Arc<Connecting>,
) -> Result {
    let progress = *connecting.progress.lock();
    match progress {
        Progress::Done => {
            // The TCP socket wants to be asked, too, before it counts as connected.
            if let Ok(tcp) = socket.tcp() {
                let _ = tcp.connect(addr, true);
            }
            Ok(())
        }
        Progress::Failed(0) => {
            leave(socket, connecting);
            let pending = socket.on_tcp(sock, |tcp| tcp.sock().take_err());
            // The TCP socket is ready for the next attempt, too.
            let _ = connecting.tcp.connect(&SockAddr::new(&UNSPECIFIED), true);
            pending?;
            // The program has read the error itself.
            Err(ECONNABORTED)
        }
        Progress::Failed(errno) => {
            leave(socket, connecting);
            let _ = sock.take_err();
            let _ = connecting.tcp.sock().take_err();
            Err(Error::from_errno(-errno))
        }
        Progress::Tcp | Progress::Handshake => Err(EALREADY),
    }
}

/// Back to the beginning: the program may try again.
pub(super) fn leave(socket: &SmcSocket, connecting: &Arc<Connecting>) {
    let left = socket.change_phase(
        Phase::Init,
        |phase| matches!(phase, Phase::Connecting(current) if Arc::ptr_eq(current, connecting)),
    );
    drop(left);
}

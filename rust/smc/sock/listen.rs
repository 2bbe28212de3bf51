// SPDX-License-Identifier: GPL-2.0

//! `listen()` and `accept()`.
//!
//! A work item takes connections off the TCP listener. Plain TCP connections are ready at once; the
//! others wait for the client's Proposal without occupying a worker, and run the handshake when it
//! comes. `accept()` makes the program's socket only when a connection is ready.

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
        impl_has_delayed_work,
        new_delayed_work,
        DelayedWork,
        WorkItem, //
    },
};
use smc_kapi::{
    net::{
        NewSocket,
        Sock,
        SockRef,
        TcpSocket,
        TcpState, //
    },
    new_spinlock_bh,
    sync::SpinLockBh,
    work, //
};
use smc_proto::{
    reason::DeclineReason,
    wire::tcp_opt::OPTION, //
};

use super::{
    incoming::ServerHandshake,
    ready::{
        Outcome,
        Ready, //
    },
    wait::wait_until,
    Phase,
    SmcSocket,
    TcpWatch,
    AS_NAMESPACE, //
};
use crate::smc::{
    global::{
        self,
        Global, //
    },
    handshake::Fallback,
    netns::NetState,
    stats::Side, //
};

/// The most connections a listener keeps for `accept()`, whatever the backlog says.
const MAX_BACKLOG: i32 = 4096;
/// Handshakes that may be under way however short the backlog is, so that a few clients which say
/// nothing do not keep the others waiting, and a program that accepts at once loses none of many who
/// come together: a handshake takes longer than TCP's.
const MIN_HANDSHAKES: usize = 256;
/// Handshakes under way from which on new ones are shed, where the namespace says so.
const SHED_ABOVE: usize = 32;
/// After so many milliseconds a connection is tried to be taken again for which there was no memory.
const RETRY_MS: u32 = 100;
/// How often a listener looks for data on connections that it keeps from `accept()` until some come,
/// in milliseconds.
const DEFERRED_MS: u32 = 20;

/// A listening socket.
#[pin_data]
pub(crate) struct Listener {
    pub(super) global: Arc<Global>,
    pub(super) net: Arc<NetState>,
    pub(super) sock: SockRef,
    /// Until the listener is closed: handshakes that go on after that must not hold the port.
    #[pin]
    tcp: SpinLockBh<Option<Arc<TcpSocket>>>,
    /// Why SMC is not offered to clients.
    refusal: Option<DeclineReason>,
    backlog: Atomic<i32>,
    /// As the socket has it.
    limits: Atomic<i32>,
    /// How long a connection without data is kept from `accept()`, in seconds: `TCP_DEFER_ACCEPT`.
    defers: Atomic<i32>,
    /// Clients are not answered the option at the moment.
    sheds: Atomic<bool>,
    #[pin]
    queue: SpinLockBh<Queue>,
    #[pin]
    work: DelayedWork<Listener>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Listener { self.work }
}

struct Queue {
    ready: KVec<Ready>,
    /// How many of them are deferred. To TCP these are in the middle of their handshake.
    deferred: usize,
    /// Handshakes under way.
    pending: usize,
    closed: bool,
}

impl Listener {
    fn new(socket: &SmcSocket, sock: &Sock, tcp: &Arc<TcpSocket>) -> Result<Arc<Self>> {
        let global = global::get().ok_or(ENODEV)?;
        Arc::pin_init(
            try_pin_init!(Self {
                global,
                net: socket.net.clone(),
                sock: sock.hold(),
                refusal: socket.refusal(tcp),
                tcp <- new_spinlock_bh!(Some(tcp.clone()), "smc_listener_tcp"),
                backlog: Atomic::new(0),
                limits: Atomic::new(socket.limits.load(Relaxed)),
                defers: Atomic::new(socket.defers.load(Relaxed)),
                sheds: Atomic::new(false),
                queue <- new_spinlock_bh!(Queue {
                    ready: KVec::new(),
                    deferred: 0,
                    pending: 0,
                    closed: false,
                }, "smc_listener"),
                work <- new_delayed_work!("smc_listener_work"),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// The TCP listener has connections, or room came free. Any context.
    pub(crate) fn kick(self: &Arc<Self>) {
        work::reschedule::<_, 0>(&self.global.listener_queue, self, 0);
    }

    /// Whether `accept()` would return a connection.
    pub(crate) fn is_ready(&self) -> bool {
        self.queue.lock().ready.iter().any(Ready::is_due)
    }

    /// Whether the socket still listens: `shutdown()` ends that.
    pub(crate) fn is_listening(&self) -> bool {
        self.tcp
            .lock()
            .as_ref()
            .is_some_and(|tcp| tcp.state() == TcpState::Listen)
    }

    fn tcp(&self) -> Result<Arc<TcpSocket>> {
        self.tcp.lock().clone().ok_or(EBADF)
    }

    fn set_backlog(&self, backlog: i32) {
        self.backlog.store(backlog.clamp(1, MAX_BACKLOG), Relaxed);
    }

    fn has_room(&self) -> bool {
        let queue = self.queue.lock();
        let backlog = self.backlog.load(Relaxed) as usize;
        let ready = queue.ready.len().saturating_sub(queue.deferred);
        let pending = queue.pending + queue.deferred;
        let fits = ready + pending <= backlog || pending < MIN_HANDSHAKES;
        !queue.closed && ready <= backlog && fits
    }

    /// Takes connections off the TCP listener while there is room for them.
    fn take_connections(self: &Arc<Self>) {
        let Ok(listening) = self.tcp() else {
            return;
        };
        self.shed_or_not(&listening);
        while self.has_room() {
            let tcp = match listening.accept_nonblock() {
                Ok(tcp) => tcp,
                // Nothing else would bring the listener back to a connection that is there.
                Err(error) if error == ENOMEM || error == ENFILE => {
                    work::schedule::<_, 0>(&self.global.listener_queue, self, RETRY_MS);
                    return;
                }
                Err(_) => return,
            };
            let Ok(tcp) = Arc::new(tcp, GFP_KERNEL) else {
                continue;
            };
            if let Some(reason) = self.refusal {
                self.add(Ready::now(tcp, Outcome::Tcp(Fallback::quiet(reason))));
            } else if tcp.peer_offered_option(&OPTION) {
                self.begin_handshake(tcp);
            } else {
                let fallback = Fallback::quiet(DeclineReason::PEERNOSMC);
                self.add(Ready::now(tcp, Outcome::Tcp(fallback)));
            }
        }
    }

    /// `TCP_DEFER_ACCEPT` was set.
    pub(super) fn defer(&self, seconds: i32) {
        self.defers.store(seconds, Relaxed);
    }

    /// Hands over a connection whose handshake is over. For TCP the handshake was data, so what
    /// `TCP_DEFER_ACCEPT` asks for is left to be done.
    pub(super) fn finish(self: &Arc<Self>, tcp: Arc<TcpSocket>, outcome: Outcome) {
        let seconds = self.defers.load(Relaxed);
        self.add(Ready::deferred(tcp, outcome, seconds));
    }

    /// Looks whether connections that were kept from `accept()` are so no more.
    fn look_at_deferred(self: &Arc<Self>) {
        let mut due = 0;
        let left = {
            let mut queue = self.queue.lock();
            let deferred = queue.ready.iter_mut().filter(|ready| ready.is_deferred());
            for ready in deferred.filter(|ready| ready.is_due()) {
                ready.defer_no_more();
                due += 1;
            }
            queue.deferred = queue.deferred.saturating_sub(due);
            queue.deferred
        };
        if due > 0 {
            self.sock.wake_readable();
        }
        if left > 0 {
            work::schedule::<_, 0>(&self.global.listener_queue, self, DEFERRED_MS);
        }
    }

    /// `SMC_LIMIT_HS` was set.
    pub(super) fn limit_handshakes(&self, on: bool) {
        self.limits.store(i32::from(on), Relaxed);
    }

    /// Where the socket or the namespace limits handshakes, clients are not answered the option while
    /// many handshakes are under way: they stay on TCP.
    fn shed_or_not(&self, listening: &TcpSocket) {
        if self.refusal.is_some() {
            return;
        }
        let many = self.queue.lock().pending >= SHED_ABOVE;
        let limits = match self.limits.load(Relaxed) {
            AS_NAMESPACE => self.net.settings.limits_handshakes(),
            on => on != 0,
        };
        let shed = many && limits;
        if self.sheds.xchg(shed, Relaxed) != shed {
            // Should this fail, clients are answered as before.
            let _ = listening.suspend_answers(shed);
        }
    }

    fn begin_handshake(self: &Arc<Self>, tcp: Arc<TcpSocket>) {
        self.queue.lock().pending += 1;
        if ServerHandshake::start(self, tcp).is_err() {
            self.handshake_over();
        }
    }

    /// A handshake has ended.
    pub(super) fn handshake_over(&self) {
        let mut queue = self.queue.lock();
        queue.pending = queue.pending.saturating_sub(1);
    }

    /// Hands a connection to `accept()`, or closes it when the listener is gone.
    fn add(&self, ready: Ready) {
        let due = ready.is_due();
        if !self.is_listening() {
            ready.discard();
            return;
        }
        // Room is made outside of the spinlock.
        let mut grown = KVec::new();
        loop {
            let needed = self.queue.lock().ready.len() + 1;
            let room = needed.next_power_of_two();
            if grown.capacity() < needed && grown.reserve(room, GFP_KERNEL).is_err() {
                ready.discard();
                return;
            }
            let mut queue = self.queue.lock();
            if queue.closed {
                drop(queue);
                ready.discard();
                return;
            }
            if queue.ready.len() + 1 > queue.ready.capacity() {
                if queue.ready.len() + 1 > grown.capacity() {
                    continue;
                }
                while let Some(entry) = queue.ready.pop() {
                    let _ = grown.push_within_capacity(entry);
                }
                grown.reverse();
                core::mem::swap(&mut queue.ready, &mut grown);
            }
            queue.deferred += usize::from(ready.is_deferred());
            let _ = queue.ready.push_within_capacity(ready);
            break;
        }
        if due {
            self.sock.wake_readable();
        }
    }

    fn pop(&self) -> Option<Ready> {
        let mut queue = self.queue.lock();
        let first = queue.ready.iter().position(Ready::is_due)?;
        let ready = queue.ready.remove(first).ok()?;
        if ready.is_deferred() {
            queue.deferred = queue.deferred.saturating_sub(1);
        }
        Some(ready)
    }

    /// The listening socket is being closed. Process context.
    pub(crate) fn close(self: &Arc<Self>) {
        let ready = {
            let mut queue = self.queue.lock();
            queue.closed = true;
            core::mem::take(&mut queue.ready)
        };
        for entry in ready {
            entry.discard();
        }
        work::cancel_delayed_sync::<_, 0>(self);
        let tcp = self.tcp.lock().take();
        drop(tcp);
    }
}

impl WorkItem for Listener {
    type Pointer = Arc<Listener>;

    fn run(this: Arc<Listener>) {
        this.take_connections();
        this.look_at_deferred();
    }
}

/// Carries out `listen()`.
pub(super) fn listen(socket: &Arc<SmcSocket>, sock: &Sock, backlog: i32) -> Result {
    match socket.phase() {
        Phase::Init => {}
        Phase::Listening(listener) => {
            listener.tcp()?.listen(backlog)?;
            listener.set_backlog(backlog);
            return Ok(());
        }
        Phase::Closed => return Err(EBADF),
        _ => return Err(EINVAL),
    }
    let tcp = socket.tcp()?;
    let listener = Listener::new(socket, sock, &tcp)?;
    listener.set_backlog(backlog);
    if listener.refusal.is_none() {
        tcp.answer_option()?;
    }
    let entered = socket.change_phase(Phase::Listening(listener), |phase| {
        matches!(phase, Phase::Init)
    });
    if entered.is_none() {
        return Err(EINVAL);
    }
    // `SO_ACCEPTCONN` looks at the state.
    sock.set_state(TcpState::Listen.to_raw());
    tcp.listen(backlog).inspect_err(|_| {
        sock.set_state(TcpState::Close.to_raw());
        let left = socket.change_phase(Phase::Init, |phase| matches!(phase, Phase::Listening(_)));
        drop(left);
    })
}

/// The socket listens no more, and does nothing from now on; its TCP socket is told by the caller.
/// Process context.
pub(super) fn end(socket: &SmcSocket, sock: &Sock, listener: &Arc<Listener>) {
    let left = socket.change_phase(
        Phase::Init,
        |phase| matches!(phase, Phase::Listening(current) if Arc::ptr_eq(current, listener)),
    );
    if left.is_some() {
        listener.close();
        sock.set_state(TcpState::Close.to_raw());
        sock.wake_state();
    }
}

/// Carries out `accept()`.
pub(super) fn accept(
    socket: &Arc<SmcSocket>,
    sock: &Sock,
    nonblock: bool,
    new: NewSocket<'_, SmcSocket>,
) -> Result {
    let Phase::Listening(listener) = socket.phase() else {
        return Err(EINVAL);
    };
    let mut timeout = sock.rcvtimeo(nonblock);
    let ready = loop {
        if !listener.is_listening() {
            return Err(EINVAL);
        }
        if let Some(ready) = listener.pop() {
            break ready;
        }
        if timeout == 0 {
            return Err(EAGAIN);
        }
        wait_until(sock, &mut timeout, || {
            listener.is_ready() || !listener.is_listening()
        })?;
    };
    listener.kick();
    install(&listener, ready, new)
}

/// Makes the program's socket for a connection.
fn install(listener: &Listener, ready: Ready, new: NewSocket<'_, SmcSocket>) -> Result {
    let Ready { tcp, outcome, .. } = ready;
    let phase = match &outcome {
        Outcome::Smc(conn) => Phase::Smc(conn.clone()),
        Outcome::Tcp(_) => Phase::Fallback,
    };
    let option = listener.net.use_option(listener.sock.net());
    let made = option.and_then(|option| {
        let child = SmcSocket::new(listener.net.clone(), option, tcp.clone(), phase)?;
        let sock = new.install(child.clone())?;
        Ok((child, sock))
    });
    let (child, sock) = match made {
        Ok(made) => made,
        Err(error) => {
            Ready::now(tcp, outcome).discard();
            return Err(error);
        }
    };
    tcp.charge_to(&sock);
    sock.copy_options_from(&tcp);
    sock.set_sndbuf(listener.sock.sndbuf());
    sock.set_rcvbuf(listener.sock.rcvbuf());
    tcp.share_wait_queue(&sock)?;
    match TcpWatch::install(&child, &sock, &tcp) {
        // BPF has the connection in a map of sockets; calls ask TCP itself.
        Err(EBUSY) if matches!(outcome, Outcome::Tcp(_)) => {}
        installed => installed?,
    }
    child.enlist(&sock)?;
    match outcome {
        Outcome::Smc(conn) => {
            conn.set_owner(sock.clone());
            conn.report_error();
            // Nobody watched the TCP connection while it waited for `accept()`.
            if tcp.sock().err() != 0 {
                conn.tcp_reset(&tcp);
            }
            conn.watch_tcp(&tcp);
        }
        Outcome::Tcp(fallback) => {
            child.begin_fallback(&fallback, Side::Server);
            child.mirror_error(&tcp, &sock);
        }
    }
    Ok(())
}

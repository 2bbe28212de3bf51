// SPDX-License-Identifier: GPL-2.0

//! A connection that a listener took and whose client offered SMC: the wait for its Proposal.
//!
//! Waiting occupies no worker: bytes on the TCP connection, or a timer, queue the work item.

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
    module::now_ms,
    net::{
        TcpEvents,
        TcpSocket,
        TcpState, //
    },
    work, //
};
use smc_proto::{
    handshake::{
        LateClc,
        PROPOSAL_WAIT_MS, //
    },
    reason::DeclineReason,
    wire::clc::{
        Header,
        Kind,
        HEADER_LEN, //
    },
};

use super::{
    buffers_of,
    listen::Listener,
    ready::Outcome, //
};
use crate::smc::{
    handshake::{
        server,
        steps::Clock,
        End,
        Fallback,
        Handshake, //
    },
    stats::Side, //
};

/// How often a connection is looked at whose events go elsewhere, in milliseconds.
const UNWATCHED_MS: u64 = 20;

/// The server's side of one handshake: waits for the Proposal, then runs.
#[pin_data]
pub(crate) struct ServerHandshake {
    listener: Arc<Listener>,
    tcp: Arc<TcpSocket>,
    deadline: u64,
    clock: Clock,
    /// The wait is over. An event may still queue the work item once more.
    started: Atomic<bool>,
    /// Events of the TCP connection come here.
    watched: Atomic<bool>,
    #[pin]
    work: DelayedWork<ServerHandshake>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for ServerHandshake { self.work }
}

/// Tells a waiting handshake that bytes came.
struct ProposalWatch(Arc<ServerHandshake>);

impl TcpEvents for ProposalWatch {
    fn data_ready(&self) {
        self.0.kick();
    }

    fn state_change(&self) {
        self.0.kick();
    }

    fn error_report(&self) {
        self.0.kick();
    }
}

/// What the head of the TCP stream says.
enum Head {
    /// Too little to tell.
    Wait,
    /// A handshake message begins, of which the rest may come.
    Begun,
    /// A handshake message is there, or all of it that will come.
    Clc,
    /// Bytes of a program, or the end of the stream.
    Plain,
}

impl ServerHandshake {
    /// Begins to wait for the Proposal on `tcp`.
    pub(super) fn start(listener: &Arc<Listener>, tcp: Arc<TcpSocket>) -> Result {
        let watched = tcp.clone();
        let this = Arc::pin_init(
            try_pin_init!(Self {
                listener: listener.clone(),
                tcp,
                deadline: now_ms() + PROPOSAL_WAIT_MS,
                clock: Clock::begin(),
                started: Atomic::new(false),
                watched: Atomic::new(true),
                work <- new_delayed_work!("smc_server_handshake"),
            }? Error),
            GFP_KERNEL,
        )?;
        let watch = Arc::new(ProposalWatch(this.clone()), GFP_KERNEL)?;
        // The timer keeps the handshake alive while it waits.
        work::schedule::<_, 0>(
            &listener.global.server_queue,
            &this,
            PROPOSAL_WAIT_MS as u32,
        );
        // BPF, which may have the connection in a map of sockets, owns the callbacks then. For want
        // of memory, the deadline ends the wait.
        if watched.install(watch) == Err(EBUSY) {
            this.watched.store(false, Relaxed);
        }
        // Bytes may have come before the watch was there.
        this.kick();
        Ok(())
    }

    fn kick(self: &Arc<Self>) {
        work::reschedule::<_, 0>(&self.listener.global.server_queue, self, 0);
    }

    fn head(&self) -> Head {
        let mut bytes = [0u8; HEADER_LEN];
        match self.tcp.peek(&mut bytes) {
            Ok(HEADER_LEN) if has_eyecatcher(&bytes) || Header::parse(&bytes).is_ok() => {
                let whole = self.tcp.readable_len() >= Header::stated_length(&bytes);
                if whole || self.tcp.state() != TcpState::Established {
                    Head::Clc
                } else {
                    Head::Begun
                }
            }
            Ok(HEADER_LEN) => Head::Plain,
            Ok(0) => Head::Plain,
            Ok(n) if has_eyecatcher(bytes.get(..n).unwrap_or(&[])) => {
                if self.tcp.state() == TcpState::Established {
                    Head::Wait
                } else {
                    Head::Plain
                }
            }
            Ok(_) => Head::Plain,
            Err(error) if error == EAGAIN => Head::Wait,
            Err(_) => Head::Plain,
        }
    }

    fn advance(self: &Arc<Self>) {
        if self.started.load(Relaxed) {
            return;
        }
        let left = self.deadline.saturating_sub(now_ms());
        let end = match self.head() {
            // To wait for the rest in a worker would let a few peers occupy them all.
            Head::Wait | Head::Begun if left > 0 => {
                let pause = if self.watched.load(Relaxed) {
                    left
                } else {
                    left.min(UNWATCHED_MS)
                };
                work::schedule::<_, 0>(&self.listener.global.server_queue, self, pause as u32);
                return;
            }
            Head::Clc | Head::Begun => {
                self.stop_waiting();
                self.run_handshake()
            }
            // A client that says nothing may wait for the server to speak first: its SYN-ACK lost
            // the option on the way. Or its Proposal was lost and comes late.
            Head::Wait => End::Tcp(Fallback {
                late: LateClc::after_decline(Some(Kind::Proposal)),
                ..Fallback::quiet(DeclineReason::PEERNOSMC)
            }),
            Head::Plain => End::Tcp(Fallback::quiet(DeclineReason::PEERNOSMC)),
        };
        self.stop_waiting();
        self.finish(end);
    }

    fn stop_waiting(&self) {
        self.started.store(true, Relaxed);
        self.tcp.uninstall();
    }

    fn run_handshake(&self) -> End {
        let listener = &self.listener;
        let hs = Handshake {
            global: &listener.global,
            net: &listener.net,
            tcp: &self.tcp,
            side: Side::Server,
            clock: &self.clock,
            wish: buffers_of(&listener.sock),
        };
        server::run(&hs, self.watched.load(Relaxed))
    }

    fn finish(self: &Arc<Self>, end: End) {
        self.clock
            .end(&self.tcp, &self.listener.net, Side::Server, &end);
        self.listener.handshake_over();
        let outcome = match end {
            End::Smc(conn) => {
                conn.set_tcp(&self.tcp);
                Outcome::Smc(conn)
            }
            End::Tcp(fallback) => Outcome::Tcp(fallback),
            End::Broken(_) => {
                self.tcp.abort_on_close();
                self.listener.kick();
                return;
            }
        };
        self.listener.finish(self.tcp.clone(), outcome);
        self.listener.kick();
    }
}

impl WorkItem for ServerHandshake {
    type Pointer = Arc<ServerHandshake>;

    fn run(this: Arc<ServerHandshake>) {
        this.advance();
    }
}

/// Whether bytes are, or may become, the beginning of a handshake message.
fn has_eyecatcher(bytes: &[u8]) -> bool {
    const EYECATCHER: [u8; 4] = [0xe2, 0xd4, 0xc3, 0xd9];
    bytes.iter().zip(EYECATCHER).all(|(byte, own)| *byte == own)
}

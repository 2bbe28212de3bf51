// SPDX-License-Identifier: GPL-2.0

//! One established connection without I/O (RFC 7609 section 4).
//!
//! CDC messages, completions and calls of the application go in; what is to be written, announced
//! or told to the application comes out. The owner moves the bytes and serialises the calls.

pub mod close;
mod early;
mod events;
mod receive;
mod send;

pub use close::{CloseActions, CloseError, CloseEvent, CloseState};
pub use early::Early;
pub use events::{Events, Violation};
pub use receive::Consumed;
pub use send::SendError;

use crate::cursor::Cursor;
use crate::diag::Flags;
use crate::ids::AlertToken;
use crate::rx_ring::RxRing;
use crate::state::ConnState;
use crate::tx_ring::TxRing;
use crate::urgent::{RxUrgent, TxUrgent};
use crate::window::{Mover, SenderWants};
use crate::wire::cdc::{CdcMessage, ConnFlags, ProdFlags};

/// What both sides agreed on for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnParams {
    /// The token by which the peer recognises this connection.
    pub peer_token: AlertToken,
    /// Length of the local send ring in bytes.
    pub send_len: u32,
    /// Length of the peer's RMB element in bytes.
    pub peer_len: u32,
    /// Length of the local RMB element in bytes.
    pub rmbe_len: u32,
    /// Who moves the bytes.
    pub mover: Mover,
}

/// The data and close state of one connection.
#[derive(Clone, Debug)]
pub struct Conn {
    peer_token: AlertToken,
    mover: Mover,
    tx: TxRing,
    rx: RxRing,
    tx_urgent: TxUrgent,
    rx_urgent: RxUrgent,
    close: CloseState,
    /// An end requested by the application that waits until its data was posted.
    closing: Option<CloseEvent>,
    /// The application closed the socket: nobody reads any more.
    unattended: bool,
    /// The first error the connection ended with.
    error: Option<CloseError>,
    /// Sequence number of the last CDC message built.
    tx_seq: u16,
    /// Sequence number of the last CDC message taken.
    rx_seq: u16,
    /// What the peer's last message asked for.
    wants: SenderWants,
    /// The producer cursor of the last message built.
    announced_prod: Cursor,
    /// Close flags wait to be sent.
    flags_due: bool,
    /// The consumer cursor is to be announced whatever the window says.
    update_forced: bool,
    /// The next message asks for a consumer cursor update.
    request_update: bool,
    /// Whether more data is about to follow what was committed.
    coming: Coming,
    /// The writer found no room for the rest of its data.
    found_full: bool,
}

/// What is expected of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coming {
    /// It is away.
    Nothing,
    /// It is in the middle of its data.
    Rest,
    /// It had filled the ring and has handed over the last few bytes: likely to be back at once. The
    /// next acknowledgement or consumer cursor of the peer ends that.
    NextCall,
}

impl Conn {
    /// A connection whose rings are empty and whose handshake is not over yet.
    pub const fn new(params: ConnParams) -> Self {
        Self {
            peer_token: params.peer_token,
            mover: params.mover,
            tx: TxRing::new(params.send_len, params.peer_len),
            rx: RxRing::new(params.rmbe_len),
            tx_urgent: TxUrgent::Idle,
            rx_urgent: RxUrgent::new(),
            close: CloseState::new(),
            closing: None,
            unattended: false,
            error: None,
            tx_seq: 0,
            rx_seq: 0,
            wants: SenderWants {
                blocked: false,
                update: false,
            },
            announced_prod: Cursor::START,
            flags_due: false,
            update_forced: false,
            request_update: false,
            coming: Coming::Nothing,
            found_full: false,
        }
    }

    /// The handshake succeeded: data may flow.
    pub fn activate(&mut self) {
        self.close.activate();
    }

    /// The state as monitoring tools see it.
    pub const fn state(&self) -> ConnState {
        self.close.state()
    }

    /// What was said by both sides about the end of the connection.
    pub const fn close_state(&self) -> &CloseState {
        &self.close
    }

    /// The sending direction's accounting, for monitoring.
    pub const fn tx(&self) -> &TxRing {
        &self.tx
    }

    /// The receiving direction's accounting, for monitoring.
    pub const fn rx(&self) -> &RxRing {
        &self.rx
    }

    /// The error that ended the connection, if it did not end in order.
    pub const fn error(&self) -> Option<CloseError> {
        self.error
    }

    /// Whether the connection is closed and its last message was built.
    ///
    /// The RMB element may be reused as soon as that message was sent.
    pub const fn is_finished(&self) -> bool {
        matches!(self.close.state(), ConnState::Closed) && !self.flags_due
    }

    /// Takes a CDC message that carried this connection's token.
    ///
    /// A message older than the last one changes nothing (RFC 7609 A.4).
    ///
    /// # Errors
    ///
    /// A [`Violation`] when the peer's cursors are impossible or data was lost in a failover. The
    /// connection is then to be aborted.
    pub fn on_cdc(&mut self, message: &CdcMessage) -> Result<Events, Violation> {
        let behind = seq_before(self.rx_seq, message.seq);
        if message.prod_flags.contains(ProdFlags::FAILOVER_VALIDATION) {
            return if behind {
                Err(Violation::DataLost)
            } else {
                Ok(Events::NONE)
            };
        }
        if seq_before(message.seq, self.rx_seq) {
            return Ok(Events::NONE);
        }
        self.rx_seq = message.seq;
        let mut events = Events::NONE;
        if !matches!(
            self.close.state(),
            ConnState::Closed | ConnState::PeerAbortWait
        ) {
            events = events
                .with(self.on_producer(message)?)
                .with(self.on_consumer(message)?);
        }
        Ok(events.with(self.on_peer_flags(message.conn_flags)))
    }

    /// The flags that both sides told each other last, for monitoring.
    pub fn flags(&self) -> Flags {
        let (pending, present) = self.tx_urgent.flags();
        let sent = ProdFlags::NONE
            .with_if(self.is_blocked(), ProdFlags::WRITER_BLOCKED)
            .with_if(pending, ProdFlags::URGENT_PENDING)
            .with_if(present, ProdFlags::URGENT_PRESENT);
        let received = ProdFlags::NONE
            .with_if(self.wants.blocked, ProdFlags::WRITER_BLOCKED)
            .with_if(self.wants.update, ProdFlags::CONS_UPDATE_REQUESTED);
        Flags {
            rx_prod: received.bits(),
            rx_conn: self.close.received().bits(),
            tx_prod: sent.bits(),
            tx_conn: self.close.sent().bits(),
        }
    }

    /// Builds the next CDC message; everything it says counts as announced.
    pub fn next_cdc(&mut self) -> CdcMessage {
        let blocked = self.is_blocked();
        let (pending, present) = self.tx_urgent.flags();
        self.tx_seq = self.tx_seq.wrapping_add(1);
        let message = CdcMessage {
            seq: self.tx_seq,
            token: self.peer_token,
            prod: self.tx.prod().raw(),
            cons: self.rx.cons().raw(),
            prod_flags: ProdFlags::NONE
                .with_if(blocked, ProdFlags::WRITER_BLOCKED)
                .with_if(pending, ProdFlags::URGENT_PENDING)
                .with_if(present, ProdFlags::URGENT_PRESENT)
                .with_if(self.request_update, ProdFlags::CONS_UPDATE_REQUESTED),
            conn_flags: self.close.sent(),
        };
        self.announced_prod = self.tx.prod();
        self.tx_urgent.on_announced();
        self.rx.confirm();
        self.update_forced = false;
        self.request_update = false;
        self.flags_due = false;
        message
    }

    /// The message that opens a failover (RFC 7609 section 4.6.1).
    ///
    /// `acked` is the sequence number of the last message whose delivery the device confirmed.
    pub fn validation_cdc(&self, acked: u16) -> CdcMessage {
        CdcMessage {
            seq: acked,
            token: self.peer_token,
            prod: Cursor::START.raw(),
            cons: Cursor::START.raw(),
            prod_flags: ProdFlags::FAILOVER_VALIDATION,
            conn_flags: ConnFlags::NONE,
        }
    }

    /// Asks the peer, in the next message, to report its consumer cursor without delay.
    pub fn request_cons_update(&mut self) {
        self.request_update = true;
    }

    /// Whether a CDC message is to be built now.
    ///
    /// That the writer is blocked is said in passing only: a peer reports what it consumes of a full
    /// element anyway, once that is worth a message.
    pub fn cdc_due(&self) -> bool {
        if self.flags_due {
            return true;
        }
        if self.close.left() || self.close.state() == ConnState::Closed {
            return false;
        }
        self.tx.prod() != self.announced_prod
            || self.tx_urgent.message_due()
            || self.request_update
            || self.window_update_due()
    }

    /// Whether the consumer cursor alone makes a message worthwhile.
    fn window_update_due(&self) -> bool {
        !self.close.peer_left() && self.rx.window_update_due(self.update_forced, self.wants)
    }

    /// The application shut down writing. The peer is told after the data.
    pub fn shutdown_write(&mut self) -> Events {
        self.end(CloseEvent::AppShutdownWr)
    }

    /// The application closed the socket. The peer is told after the data, except that unread data
    /// turns the close into an abort at once (RFC 7609 section 4.8.1, step 3A).
    pub fn close(&mut self) -> Events {
        let unread = self.readable() > 0;
        self.unattended = true;
        self.end(CloseEvent::AppClose { unread })
    }

    /// Resets the connection; unsent data is lost.
    pub fn abort(&mut self) -> Events {
        self.end(CloseEvent::AppAbort)
    }

    /// The TCP connection was reset, `after_end` of what the peer sends through it: then what the
    /// peer said about that end here may still be on its way.
    ///
    /// Nothing happens when the peer has said itself that it aborted.
    pub fn tcp_reset(&mut self, after_end: bool) -> Events {
        if self.close.received().contains(ConnFlags::ABORT) {
            return Events::NONE;
        }
        if after_end && !self.close.peer_is_done() {
            let _ = self.apply(CloseEvent::PeerDone);
        }
        self.abort()
    }

    /// The application sent to a peer that has closed ([`SendError::PeerClosed`]). On TCP, whose
    /// peer answers that with a reset, the call succeeds and the next ones fail.
    pub fn sent_in_vain(&mut self) -> Events {
        self.abort()
    }

    /// The link is gone and nothing can be sent.
    pub fn link_down(&mut self) -> Events {
        self.end(CloseEvent::LinkDown)
    }

    /// The peer did not react in time after the application closed.
    pub fn wait_timeout(&mut self) -> Events {
        self.end(CloseEvent::WaitTimeout)
    }

    /// The peer ended the TCP connection and has been silent for long since.
    ///
    /// An end of the TCP connection alone means nothing: a peer may close it while its last data wait
    /// for room, or for the reader to pass an urgent byte. But one that may write and said nothing of
    /// an end has nobody left who could say it.
    pub fn peer_vanished(&mut self) -> Events {
        let waits_for_room = self.rx.sender_room() == 0;
        let waits_behind_mark = self.rx_urgent.is_ahead() || self.update_forced;
        if self.unattended || self.close.peer_is_done() || waits_for_room || waits_behind_mark {
            return Events::NONE;
        }
        self.abort()
    }

    /// Whether the application has asked for an end that waits for its data to be posted.
    pub const fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Whether the application has closed and nothing is left to be sent or acknowledged, but for
    /// messages on their way.
    pub const fn has_said_all(&self) -> bool {
        self.unattended && self.closing.is_none() && !self.flags_due && self.tx.all_sent()
    }

    fn end(&mut self, event: CloseEvent) -> Events {
        let orderly = matches!(
            event,
            CloseEvent::AppShutdownWr | CloseEvent::AppClose { unread: false }
        );
        if orderly && self.tx.pending() > 0 && self.close.may_send() {
            // A close outranks a shutdown that is still waiting.
            if !matches!(self.closing, Some(CloseEvent::AppClose { .. })) {
                self.closing = Some(event);
            }
            return Events::NONE;
        }
        self.closing = None;
        self.apply(event)
    }

    /// Carries out an end that waited for the data, once that is posted.
    fn end_if_drained(&mut self) -> Events {
        if self.tx.pending() > 0 {
            return Events::NONE;
        }
        match self.closing.take() {
            Some(event) => self.apply(event),
            None => Events::NONE,
        }
    }

    fn on_peer_flags(&mut self, flags: ConnFlags) -> Events {
        let known = self.close.received();
        let news = |flag| flags.contains(flag) && !known.contains(flag);
        let mut events = Events::NONE;
        if news(ConnFlags::ABORT) {
            events = events
                .with(Events::PEER_ABORT)
                .with(self.apply(CloseEvent::PeerAbort))
                .with(self.end_if_drained());
        } else {
            if news(ConnFlags::SENDING_DONE) {
                events = events
                    .with(Events::PEER_DONE)
                    .with(self.apply(CloseEvent::PeerDone));
            }
            if news(ConnFlags::CLOSED) {
                events = events
                    .with(Events::PEER_CLOSED)
                    .with(self.apply(CloseEvent::PeerClosed))
                    .with(self.drop_undeliverable());
            }
        }
        events
    }

    /// The peer closed: data that waits can reach nobody, what it has not consumed it never will, and
    /// a close that waits for the data goes on.
    ///
    /// The RFC asks for a reset (section 4.8.1, step 4A). The peer is past listening, so the reset is
    /// local: writers get an error while what the peer sent before stays readable.
    fn drop_undeliverable(&mut self) -> Events {
        let is_lost = self.tx.discard_pending() > 0 || !self.tx.all_acked();
        if is_lost && self.error.is_none() {
            self.error = self.close.reset_error(CloseError::PeerAborted);
        }
        self.tx_urgent = TxUrgent::Idle;
        self.end_if_drained()
    }

    fn apply(&mut self, event: CloseEvent) -> Events {
        let actions = self.close.on(event);
        self.error = self.error.or(actions.error);
        let gone = self.close.left() || self.close.state() == ConnState::Closed;
        if gone || self.close.received().contains(ConnFlags::ABORT) {
            self.tx.discard_pending();
            self.tx_urgent = TxUrgent::Idle;
        }
        if !actions.send.is_empty() {
            self.flags_due = true;
        } else if actions.free {
            // Nothing can be sent, so nothing is owed.
            self.flags_due = self.flags_due && actions.error.is_none();
        }
        Events::NONE
            .with_if(actions.wake, Events::READABLE.with(Events::WRITABLE))
            .with_if(actions.free, Events::FREE)
            .with_if(actions.quarantine, Events::QUARANTINE)
            .with_if(actions.reset_tcp, Events::RESET_TCP)
    }
}

/// Whether sequence number `a` is older than `b`, with wrapping.
const fn seq_before(a: u16, b: u16) -> bool {
    b.wrapping_sub(a).wrapping_sub(1) < 0x7fff
}

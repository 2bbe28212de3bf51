// SPDX-License-Identifier: GPL-2.0

//! How a connection ends (RFC 7609 section 4.8.1 and 4.8.1.1).
//!
//! One table: a state and an event give the next state and the things to do. The RMB element may be
//! reused when `free` is among them, and only then: until that moment the peer may still write to it.
//! A timeout ends the wait without that certainty, which `quarantine` says.

use crate::state::ConnState;
use crate::wire::cdc::ConnFlags;

/// Something that moves a connection towards its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseEvent {
    /// The application shut down writing, and everything it wrote was posted.
    AppShutdownWr,
    /// The application closed the socket, and everything it wrote was posted.
    AppClose {
        /// Received data was not read; that turns the close into an abort.
        unread: bool,
    },
    /// The connection is to be reset: the application asked for it, the peer broke the protocol, or
    /// the TCP connection was reset.
    AppAbort,
    /// The peer is done sending (D).
    PeerDone,
    /// The peer closed (C): it writes and reads no more.
    PeerClosed,
    /// The peer aborted (A).
    PeerAbort,
    /// The last link was lost; nothing can be sent.
    LinkDown,
    /// The peer did not answer in time while the application is gone.
    WaitTimeout,
}

impl CloseEvent {
    /// Every event, for exhaustive tests.
    pub const ALL: [Self; 9] = [
        Self::AppShutdownWr,
        Self::AppClose { unread: false },
        Self::AppClose { unread: true },
        Self::AppAbort,
        Self::PeerDone,
        Self::PeerClosed,
        Self::PeerAbort,
        Self::LinkDown,
        Self::WaitTimeout,
    ];

    const fn is_from_peer(self) -> bool {
        matches!(self, Self::PeerDone | Self::PeerClosed | Self::PeerAbort)
    }
}

/// Why a connection ended other than by an orderly close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseError {
    /// The peer aborted; corresponds to `ECONNRESET`.
    PeerAborted,
    /// The connection was reset after the peer was done sending; corresponds to `EPIPE`.
    NobodyReads,
    /// This side aborted; corresponds to `ECONNABORTED`.
    Aborted,
    /// The link is gone; corresponds to `ECONNABORTED`.
    LinkLost,
    /// The peer did not answer; corresponds to `ETIMEDOUT`.
    TimedOut,
}

/// What is to be done because of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CloseActions {
    /// Flags to be sent to the peer in a CDC message.
    pub send: ConnFlags,
    /// Sleeping readers, writers and pollers are to look again.
    pub wake: bool,
    /// The connection is over: the RMB element may be reused once `send` is out.
    pub free: bool,
    /// With `free`: the peer has not said that it is done with the element, which must not serve
    /// another connection until it does, or the link group ends.
    pub quarantine: bool,
    /// The TCP connection is to be reset rather than closed.
    pub reset_tcp: bool,
    /// The error that socket calls return from now on.
    pub error: Option<CloseError>,
}

impl CloseActions {
    const NONE: Self = Self {
        send: ConnFlags::NONE,
        wake: false,
        free: false,
        quarantine: false,
        reset_tcp: false,
        error: None,
    };

    const WAKE: Self = Self {
        wake: true,
        ..Self::NONE
    };

    const fn send(flags: ConnFlags) -> Self {
        Self {
            send: flags,
            ..Self::NONE
        }
    }
}

/// State of one connection and what both sides have said about its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseState {
    state: ConnState,
    sent: ConnFlags,
    received: ConnFlags,
}

impl Default for CloseState {
    fn default() -> Self {
        Self::new()
    }
}

impl CloseState {
    /// A socket that is not connected.
    pub const fn new() -> Self {
        Self {
            state: ConnState::Init,
            sent: ConnFlags::NONE,
            received: ConnFlags::NONE,
        }
    }

    /// A socket that listens.
    pub const fn listening() -> Self {
        Self {
            state: ConnState::Listen,
            ..Self::new()
        }
    }

    /// The handshake succeeded.
    ///
    /// The peer may have been faster and ended the connection already; then its state stays.
    pub fn activate(&mut self) {
        if self.state == ConnState::Init {
            self.state = ConnState::Active;
        }
    }

    /// The current state.
    pub const fn state(&self) -> ConnState {
        self.state
    }

    /// The flags sent so far; a CDC message repeats them.
    pub const fn sent(&self) -> ConnFlags {
        self.sent
    }

    /// The flags received so far.
    pub const fn received(&self) -> ConnFlags {
        self.received
    }

    /// Whether this side said that it is gone (C or A) and may not send anything any more.
    pub const fn left(&self) -> bool {
        self.sent.sender_is_gone()
    }

    /// Whether the peer said that it is gone (C or A).
    pub const fn peer_left(&self) -> bool {
        self.received.sender_is_gone()
    }

    /// Whether no more data will come: the peer is done sending or gone.
    pub const fn peer_is_done(&self) -> bool {
        !self.received.is_empty()
    }

    /// Whether the peer ended what it sends in order, with S or C, whatever came afterwards.
    pub const fn peer_ended_stream(&self) -> bool {
        self.received.contains(ConnFlags::SENDING_DONE) || self.received.contains(ConnFlags::CLOSED)
    }

    /// Whether the application may hand over more data.
    pub const fn may_send(&self) -> bool {
        matches!(self.state, ConnState::Active | ConnState::AppCloseWait1) && !self.peer_left()
    }

    /// Whether this side has not ended its direction, of which the peer, having closed, reads no more.
    pub const fn has_lost_reader(&self) -> bool {
        matches!(self.state, ConnState::AppCloseWait1) && self.peer_left()
    }

    /// Applies `event` and says what is to be done.
    pub fn on(&mut self, event: CloseEvent) -> CloseActions {
        if matches!(self.state, ConnState::Listen | ConnState::Closed) && event.is_from_peer() {
            return CloseActions::NONE;
        }
        let actions = match event {
            CloseEvent::AppShutdownWr => self.shutdown_write(),
            CloseEvent::AppClose { unread } => self.close(unread),
            CloseEvent::AppAbort => self.abort(),
            CloseEvent::PeerDone => self.peer_done(),
            CloseEvent::PeerClosed => self.peer_closed(),
            CloseEvent::PeerAbort => self.peer_abort(),
            CloseEvent::LinkDown => self.link_down(),
            CloseEvent::WaitTimeout => self.wait_timeout(),
        };
        self.sent = self.sent.with(actions.send);
        actions
    }

    fn shutdown_write(&mut self) -> CloseActions {
        self.state = match self.state {
            ConnState::Active => ConnState::PeerCloseWait1,
            ConnState::AppCloseWait1 => ConnState::AppCloseWait2,
            _ => return CloseActions::NONE,
        };
        CloseActions::send(ConnFlags::SENDING_DONE)
    }

    fn close(&mut self, unread: bool) -> CloseActions {
        match self.state {
            ConnState::Init | ConnState::Listen | ConnState::ProcessAbort => {
                self.finish(ConnFlags::NONE)
            }
            ConnState::PeerFinCloseWait | ConnState::PeerAbortWait | ConnState::Closed => {
                CloseActions::NONE
            }
            ConnState::PeerCloseWait1 | ConnState::PeerCloseWait2 if self.left() => {
                CloseActions::NONE
            }
            _ if unread => self.abort(),
            ConnState::AppFinCloseWait => self.finish(ConnFlags::CLOSED),
            ConnState::AppCloseWait1 | ConnState::AppCloseWait2 if self.peer_left() => {
                self.finish(ConnFlags::CLOSED)
            }
            ConnState::AppCloseWait1 | ConnState::AppCloseWait2 => {
                self.state = ConnState::PeerFinCloseWait;
                CloseActions::send(ConnFlags::CLOSED)
            }
            ConnState::Active => {
                self.state = ConnState::PeerCloseWait1;
                CloseActions::send(ConnFlags::CLOSED)
            }
            ConnState::PeerCloseWait1 | ConnState::PeerCloseWait2 => {
                CloseActions::send(ConnFlags::CLOSED)
            }
        }
    }

    /// What a reset means to the application, which is `plain` in the midst of a connection. After
    /// the ends of both directions it means nothing.
    pub(super) const fn reset_error(&self, plain: CloseError) -> Option<CloseError> {
        match self.state {
            ConnState::AppCloseWait1 => Some(CloseError::NobodyReads),
            ConnState::AppCloseWait2 | ConnState::PeerCloseWait2 | ConnState::AppFinCloseWait => {
                None
            }
            _ => Some(plain),
        }
    }

    fn abort(&mut self) -> CloseActions {
        let error = self.reset_error(CloseError::Aborted);
        match self.state {
            ConnState::Init | ConnState::Listen | ConnState::ProcessAbort => {
                self.finish(ConnFlags::NONE)
            }
            ConnState::PeerAbortWait | ConnState::Closed => CloseActions::NONE,
            // After C no message may follow. The reset of the TCP connection tells the peer, which may
            // be writing until it has noticed.
            _ if self.left() => {
                self.state = ConnState::PeerAbortWait;
                CloseActions {
                    reset_tcp: true,
                    ..CloseActions::NONE
                }
            }
            _ if self.peer_left() => CloseActions {
                reset_tcp: true,
                error,
                ..self.finish(ConnFlags::ABORT)
            },
            _ => {
                self.state = ConnState::PeerAbortWait;
                CloseActions {
                    send: ConnFlags::ABORT,
                    reset_tcp: true,
                    error,
                    ..CloseActions::WAKE
                }
            }
        }
    }

    fn peer_done(&mut self) -> CloseActions {
        self.received = self.received.with(ConnFlags::SENDING_DONE);
        self.state = match self.state {
            ConnState::Init | ConnState::Active => ConnState::AppCloseWait1,
            ConnState::PeerCloseWait1 => ConnState::PeerCloseWait2,
            _ => return CloseActions::NONE,
        };
        CloseActions::WAKE
    }

    fn peer_closed(&mut self) -> CloseActions {
        self.received = self.received.with(ConnFlags::CLOSED);
        match self.state {
            ConnState::Init | ConnState::Active => self.state = ConnState::AppCloseWait1,
            ConnState::PeerCloseWait1 | ConnState::PeerCloseWait2 if !self.left() => {
                self.state = ConnState::AppFinCloseWait;
            }
            ConnState::PeerCloseWait1
            | ConnState::PeerCloseWait2
            | ConnState::PeerFinCloseWait
            | ConnState::PeerAbortWait => return self.finish(ConnFlags::NONE),
            // Writers have to learn that nobody reads any more.
            ConnState::AppCloseWait1 | ConnState::AppCloseWait2 => {}
            ConnState::AppFinCloseWait
            | ConnState::ProcessAbort
            | ConnState::Closed
            | ConnState::Listen => return CloseActions::NONE,
        }
        CloseActions::WAKE
    }

    fn peer_abort(&mut self) -> CloseActions {
        let answer = if self.left() || self.peer_left() {
            ConnFlags::NONE
        } else {
            ConnFlags::ABORT
        };
        let error = self.reset_error(CloseError::PeerAborted);
        self.received = self.received.with(ConnFlags::ABORT);
        match self.state {
            ConnState::PeerFinCloseWait | ConnState::PeerAbortWait => {
                return self.finish(ConnFlags::NONE)
            }
            ConnState::PeerCloseWait1 | ConnState::PeerCloseWait2 if self.left() => {
                return self.finish(ConnFlags::NONE)
            }
            ConnState::ProcessAbort | ConnState::Closed | ConnState::Listen => {
                return CloseActions::NONE
            }
            _ => self.state = ConnState::ProcessAbort,
        }
        CloseActions {
            send: answer,
            error,
            ..CloseActions::WAKE
        }
    }

    fn link_down(&mut self) -> CloseActions {
        match self.state {
            ConnState::Closed | ConnState::Listen => CloseActions::NONE,
            _ => CloseActions {
                reset_tcp: true,
                error: Some(CloseError::LinkLost),
                ..self.finish(ConnFlags::NONE)
            },
        }
    }

    fn wait_timeout(&mut self) -> CloseActions {
        if !(self.state.waits_for_peer() && self.left()) {
            return CloseActions::NONE;
        }
        CloseActions {
            quarantine: true,
            reset_tcp: true,
            error: Some(CloseError::TimedOut),
            ..self.finish(ConnFlags::NONE)
        }
    }

    fn finish(&mut self, send: ConnFlags) -> CloseActions {
        self.state = ConnState::Closed;
        CloseActions {
            send,
            free: true,
            ..CloseActions::WAKE
        }
    }
}

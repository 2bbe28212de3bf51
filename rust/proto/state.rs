// SPDX-License-Identifier: GPL-2.0

//! The states of a connection (RFC 7609 section 4.8), numbered as `sock_diag` shows them.

/// State of an SMC socket.
///
/// The numbers are part of the interface to user space: monitoring tools print them by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ConnState {
    /// Data flows in both directions.
    Active = 1,
    /// Not connected, or the handshake is under way.
    Init = 2,
    /// Over; the RMB element is free for reuse.
    Closed = 7,
    /// Accepts connections.
    Listen = 10,
    /// This side closed first, or shut down writing, and waits for the peer.
    PeerCloseWait1 = 20,
    /// As `PeerCloseWait1`, and the peer is done sending.
    PeerCloseWait2 = 21,
    /// The peer closed first, or is done sending; the application has not reacted.
    AppCloseWait1 = 22,
    /// As `AppCloseWait1`, and the application shut down writing.
    AppCloseWait2 = 23,
    /// Both are done sending and the peer closed; the application has yet to close.
    AppFinCloseWait = 24,
    /// The application closed after the peer was done sending; the peer has yet to close.
    PeerFinCloseWait = 25,
    /// This side aborted and waits for the peer to confirm.
    PeerAbortWait = 26,
    /// The peer aborted; the application has yet to close.
    ProcessAbort = 27,
}

impl ConnState {
    /// Every state, in the order of the numbers.
    pub const ALL: [Self; 12] = [
        Self::Active,
        Self::Init,
        Self::Closed,
        Self::Listen,
        Self::PeerCloseWait1,
        Self::PeerCloseWait2,
        Self::AppCloseWait1,
        Self::AppCloseWait2,
        Self::AppFinCloseWait,
        Self::PeerFinCloseWait,
        Self::PeerAbortWait,
        Self::ProcessAbort,
    ];

    /// The number user space sees.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The name that monitoring tools print.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::Init => "INIT",
            Self::Closed => "CLOSED",
            Self::Listen => "LISTEN",
            Self::PeerCloseWait1 => "PEERCLOSEWAIT1",
            Self::PeerCloseWait2 => "PEERCLOSEWAIT2",
            Self::AppCloseWait1 => "APPCLOSEWAIT1",
            Self::AppCloseWait2 => "APPCLOSEWAIT2",
            Self::AppFinCloseWait => "APPFINCLOSEWAIT",
            Self::PeerFinCloseWait => "PEERFINCLOSEWAIT",
            Self::PeerAbortWait => "PEERABORTWAIT",
            Self::ProcessAbort => "PROCESSABORT",
        }
    }

    /// Whether the connection waits for the peer after the application let go of it.
    ///
    /// Such a state needs a timer (RFC 7609 section 4.8.1): the peer may never answer.
    pub const fn waits_for_peer(self) -> bool {
        matches!(
            self,
            Self::PeerCloseWait1
                | Self::PeerCloseWait2
                | Self::PeerFinCloseWait
                | Self::PeerAbortWait
        )
    }
}

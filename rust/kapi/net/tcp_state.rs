// SPDX-License-Identifier: GPL-2.0

//! States of a TCP connection.
//!
//! C header: [`include/net/tcp_states.h`](srctree/include/net/tcp_states.h)

/// States of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpState {
    /// Open in both directions.
    Established,
    /// SYN sent.
    SynSent,
    /// SYN received.
    SynRecv,
    /// FIN sent, not acknowledged.
    FinWait1,
    /// FIN sent and acknowledged.
    FinWait2,
    /// Both sides closed, waiting for old segments to die.
    TimeWait,
    /// Not connected.
    Close,
    /// The peer sent FIN.
    CloseWait,
    /// Both sent FIN, ours is not acknowledged.
    LastAck,
    /// Waiting for connections.
    Listen,
    /// Both sent FIN at the same time.
    Closing,
    /// Some other state of the kernel.
    Other(u8),
}

impl TcpState {
    /// The state with the number the kernel uses.
    pub(crate) fn from_raw(state: u8) -> Self {
        match state {
            1 => Self::Established,
            2 => Self::SynSent,
            3 => Self::SynRecv,
            4 => Self::FinWait1,
            5 => Self::FinWait2,
            6 => Self::TimeWait,
            7 => Self::Close,
            8 => Self::CloseWait,
            9 => Self::LastAck,
            10 => Self::Listen,
            11 => Self::Closing,
            other => Self::Other(other),
        }
    }

    /// Whether a FIN was sent, or is to be, and not acknowledged.
    pub fn awaits_fin_ack(self) -> bool {
        matches!(self, Self::FinWait1 | Self::Closing | Self::LastAck)
    }

    /// The number the kernel uses, which is also what `Sock::set_state` takes.
    pub fn to_raw(self) -> u8 {
        match self {
            Self::Established => 1,
            Self::SynSent => 2,
            Self::SynRecv => 3,
            Self::FinWait1 => 4,
            Self::FinWait2 => 5,
            Self::TimeWait => 6,
            Self::Close => 7,
            Self::CloseWait => 8,
            Self::LastAck => 9,
            Self::Listen => 10,
            Self::Closing => 11,
            Self::Other(state) => state,
        }
    }
}

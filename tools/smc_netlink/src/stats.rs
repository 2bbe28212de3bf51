// SPDX-License-Identifier: GPL-2.0

//! Counters.

use serde::Serialize;

use crate::{Attrs, Reason, Result};

/// Number of size classes: up to 8 KiB, 16 KiB, and so on to 1 MiB, and larger.
const CLASSES: usize = 9;

/// Counts by size class.
pub type Sizes = [u64; CLASSES];

/// Counters of a network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Shared memory within a host.
    pub smcd: Transport,
    /// RDMA.
    pub smcr: Transport,
    /// Handshakes of clients that broke the connection.
    pub client_handshake_errors: u64,
    /// Handshakes of servers that broke the connection.
    pub server_handshake_errors: u64,
}

/// Counters of one way to move data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Transport {
    /// Sent.
    pub tx: Direction,
    /// Received.
    pub rx: Direction,
    /// Handshakes won by clients in version 1.
    pub client_v1: u64,
    /// Handshakes won by clients in version 2.
    pub client_v2: u64,
    /// Handshakes won by servers in version 1.
    pub server_v1: u64,
    /// Handshakes won by servers in version 2.
    pub server_v2: u64,
    /// Calls of `sendpage`.
    pub sendpage: u64,
    /// Calls of `splice` from a socket.
    pub splice: u64,
    /// Times that `TCP_CORK` was taken away.
    pub cork: u64,
    /// Times that `TCP_NODELAY` was set.
    pub nodelay: u64,
    /// Calls for urgent data.
    pub urgent: u64,
}

/// Counters of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Direction {
    /// Buffers by size.
    pub buffer_sizes: Sizes,
    /// Calls by size.
    pub call_sizes: Sizes,
    /// How buffers did.
    pub buffers: Buffers,
    /// Payload bytes.
    pub bytes: u64,
    /// Calls.
    pub calls: u64,
    /// Bytes of buffers in use.
    pub buffer_usage: u64,
}

/// How the buffers of one direction did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Buffers {
    /// Calls for more than the peer's buffer holds.
    pub small_peer: u64,
    /// Calls for more than the own buffer holds.
    pub small: u64,
    /// The peer's buffer was full.
    pub full_peer: u64,
    /// The own buffer was full.
    pub full: u64,
    /// Buffers that were used again.
    pub reused: u64,
    /// Buffers that were new.
    pub allocated: u64,
    /// Buffers smaller than asked for.
    pub downgraded: u64,
}

/// Which side stayed on TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FallbackSide {
    /// The side that called `accept()`.
    Server,
    /// The side that called `connect()`.
    Client,
}

/// How often one side stayed on TCP for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fallback {
    /// The side.
    pub side: FallbackSide,
    /// The reason.
    pub reason: Reason,
    /// How often; the kernel counts to 65535.
    pub count: u64,
}

/// Connections that stayed on TCP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fallbacks {
    /// All of the server's side.
    pub server: u64,
    /// All of the client's side.
    pub client: u64,
    /// By reason.
    pub reasons: Vec<Fallback>,
}

impl Stats {
    pub(crate) fn parse(stats: &Attrs) -> Result<Self> {
        Ok(Self {
            smcd: Transport::parse(&stats.nested(1)?)?,
            smcr: Transport::parse(&stats.nested(2)?)?,
            client_handshake_errors: stats.uint(3).unwrap_or(0),
            server_handshake_errors: stats.uint(4).unwrap_or(0),
        })
    }
}

impl Transport {
    /// All handshakes won.
    pub fn connections(&self) -> u64 {
        self.client_v1 + self.client_v2 + self.server_v1 + self.server_v2
    }

    fn parse(tech: &Attrs) -> Result<Self> {
        let count = |attr| tech.uint(attr).unwrap_or(0);
        let direction = |sizes, calls, buffers, bytes, number, usage| -> Result<Direction> {
            Ok(Direction {
                buffer_sizes: parse_sizes(&tech.nested(sizes)?),
                call_sizes: parse_sizes(&tech.nested(calls)?),
                buffers: Buffers::parse(&tech.nested(buffers)?),
                bytes: count(bytes),
                calls: count(number),
                buffer_usage: count(usage),
            })
        };
        Ok(Self {
            tx: direction(1, 3, 5, 17, 19, 21)?,
            rx: direction(2, 4, 6, 16, 18, 20)?,
            client_v1: count(7),
            client_v2: count(8),
            server_v1: count(9),
            server_v2: count(10),
            sendpage: count(11),
            splice: count(12),
            cork: count(13),
            nodelay: count(14),
            urgent: count(15),
        })
    }
}

fn parse_sizes(sizes: &Attrs) -> Sizes {
    let mut counts = [0; CLASSES];
    for (attr, count) in (1..).zip(&mut counts) {
        *count = sizes.uint(attr).unwrap_or(0);
    }
    counts
}

impl Buffers {
    fn parse(buffers: &Attrs) -> Self {
        let count = |attr| buffers.uint(attr).unwrap_or(0);
        Self {
            small_peer: count(1),
            small: count(2),
            full_peer: count(3),
            full: count(4),
            reused: count(5),
            allocated: count(6),
            downgraded: count(7),
        }
    }
}

impl Fallbacks {
    pub(crate) fn add(&mut self, item: &Attrs) {
        if let Some(count) = item.uint(2) {
            self.server = count;
        }
        if let Some(count) = item.uint(3) {
            self.client = count;
        }
        if let Some(code) = item.u32(4) {
            self.reasons.push(Fallback {
                side: if item.flag(1) {
                    FallbackSide::Server
                } else {
                    FallbackSide::Client
                },
                reason: Reason(code),
                count: item.uint(5).unwrap_or(0),
            });
        }
    }
}

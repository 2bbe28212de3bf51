// SPDX-License-Identifier: GPL-2.0

//! Counters.

use serde::Serialize;
use smc_proto::genl::smc::{fback, pload, rmb, stats, tech};

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
    pub(crate) fn parse(all: &Attrs) -> Result<Self> {
        Ok(Self {
            smcd: Transport::parse(&all.nested(stats::SMCD_TECH)?)?,
            smcr: Transport::parse(&all.nested(stats::SMCR_TECH)?)?,
            client_handshake_errors: all.uint(stats::CLNT_HS_ERR_CNT).unwrap_or(0),
            server_handshake_errors: all.uint(stats::SRV_HS_ERR_CNT).unwrap_or(0),
        })
    }
}

impl Transport {
    /// All handshakes won.
    pub fn connections(&self) -> u64 {
        self.client_v1 + self.client_v2 + self.server_v1 + self.server_v2
    }

    fn parse(counters: &Attrs) -> Result<Self> {
        let count = |attr| counters.uint(attr).unwrap_or(0);
        let direction = |sizes, calls, buffers, bytes, number, usage| -> Result<Direction> {
            Ok(Direction {
                buffer_sizes: parse_sizes(&counters.nested(sizes)?),
                call_sizes: parse_sizes(&counters.nested(calls)?),
                buffers: Buffers::parse(&counters.nested(buffers)?),
                bytes: count(bytes),
                calls: count(number),
                buffer_usage: count(usage),
            })
        };
        Ok(Self {
            tx: direction(
                tech::TX_RMB_SIZE,
                tech::TXPLOAD_SIZE,
                tech::TX_RMB_STATS,
                tech::TX_BYTES,
                tech::TX_CNT,
                tech::TX_RMB_USAGE,
            )?,
            rx: direction(
                tech::RX_RMB_SIZE,
                tech::RXPLOAD_SIZE,
                tech::RX_RMB_STATS,
                tech::RX_BYTES,
                tech::RX_CNT,
                tech::RX_RMB_USAGE,
            )?,
            client_v1: count(tech::CLNT_V1_SUCC),
            client_v2: count(tech::CLNT_V2_SUCC),
            server_v1: count(tech::SRV_V1_SUCC),
            server_v2: count(tech::SRV_V2_SUCC),
            sendpage: count(tech::SENDPAGE_CNT),
            splice: count(tech::SPLICE_CNT),
            cork: count(tech::CORK_CNT),
            nodelay: count(tech::NDLY_CNT),
            urgent: count(tech::URG_DATA_CNT),
        })
    }
}

fn parse_sizes(sizes: &Attrs) -> Sizes {
    let mut counts = [0; CLASSES];
    for (attr, count) in (pload::SIZE_8K..).zip(&mut counts) {
        *count = sizes.uint(attr).unwrap_or(0);
    }
    counts
}

impl Buffers {
    fn parse(buffers: &Attrs) -> Self {
        let count = |attr| buffers.uint(attr).unwrap_or(0);
        Self {
            small_peer: count(rmb::SIZE_SM_PEER_CNT),
            small: count(rmb::SIZE_SM_CNT),
            full_peer: count(rmb::FULL_PEER_CNT),
            full: count(rmb::FULL_CNT),
            reused: count(rmb::REUSE_CNT),
            allocated: count(rmb::ALLOC_CNT),
            downgraded: count(rmb::DGRADE_CNT),
        }
    }
}

impl Fallbacks {
    pub(crate) fn add(&mut self, item: &Attrs) {
        if let Some(count) = item.uint(fback::SRV_CNT) {
            self.server = count;
        }
        if let Some(count) = item.uint(fback::CLNT_CNT) {
            self.client = count;
        }
        if let Some(code) = item.u32(fback::RSN_CODE) {
            self.reasons.push(Fallback {
                side: if item.flag(fback::TYPE) {
                    FallbackSide::Server
                } else {
                    FallbackSide::Client
                },
                reason: Reason(code),
                count: item.uint(fback::RSN_CNT).unwrap_or(0),
            });
        }
    }
}

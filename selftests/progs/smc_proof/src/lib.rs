// SPDX-License-Identifier: GPL-2.0

//! What the kernel and the wire say about SMC connections.
//!
//! [`peer_stats`] asks the SMC that comes with the kernel for its statistics, [`capture`] counts the bytes that went over the TCP connections, [`rdma`] reads the
//! counters of the RDMA devices; [`table`] and [`style`] lay reports out.

#![forbid(unsafe_code)]

pub mod capture;
pub mod packet;
pub mod peer_stats;
pub mod rdma;
pub mod scan;
pub mod style;
pub mod table;

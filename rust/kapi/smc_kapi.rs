// SPDX-License-Identifier: GPL-2.0

//! Safe wrappers around kernel interfaces which the `kernel` crate does not have.

#![deny(clippy::undocumented_unsafe_blocks)]

pub mod abi;
pub mod defer;
pub mod diag;
pub mod genl;
pub mod global;
pub mod mem;
pub mod module;
pub mod net;
pub mod params;
pub mod proc;
pub mod proc_files;
pub mod ratelimit;
pub mod rdma;
pub mod sync;
mod sys;
pub mod sysctl;
pub mod trace;
pub mod work;

/// What log lines of this crate begin with.
const __LOG_PREFIX: &[u8] = b"smc_rs\0";

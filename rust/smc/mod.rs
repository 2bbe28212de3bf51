// SPDX-License-Identifier: GPL-2.0

//! The glue between the kernel and the protocol.
//!
//! A kernel callback comes in through `smc_kapi`, the protocol in `smc_proto` decides, and the
//! modules here carry out the decision after the locks are dropped. `Documentation/locking.rst`
//! lists the locks and their order.

pub(crate) mod conn;
pub(crate) mod device;
pub(crate) mod diag;
pub(crate) mod eids;
pub(crate) mod events;
pub(crate) mod global;
pub(crate) mod handshake;
#[cfg(CONFIG_KUNIT = "y")]
mod kunit;
pub(crate) mod lgr;
pub(crate) mod link;
pub(crate) mod netlink;
pub(crate) mod netns;
pub(crate) mod pnet;
pub(crate) mod proc;
pub(crate) mod sock;
pub(crate) mod stats;
pub(crate) mod sysctl;

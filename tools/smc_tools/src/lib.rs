// SPDX-License-Identifier: GPL-2.0

//! What the programs of this package share.
//!
//! `smcss`, `smcr`, `smcd` and `smc_pnet` have the options and layouts of the tools of the same names
//! in IBM's smc-tools, which scripts know. `--json` is their addition.

pub mod baseline;
pub mod device;
pub mod group;
pub mod info;
pub mod number;
pub mod object;
pub mod output;
pub mod sockets;
pub mod stats;
pub mod ueid;

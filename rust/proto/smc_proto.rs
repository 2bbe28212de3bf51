// SPDX-License-Identifier: GPL-2.0

//! The SMC-R protocol core: wire formats, identifiers and state machines.
//!
//! This crate is compiled twice from the same files: by Kbuild into the kernel
//! module, and by Cargo on a development host, where its tests run. It has no
//! I/O, no clock, no allocation and no `unsafe`: bytes, events and times go in,
//! values come out.
//!
//! Every number that comes from a peer is checked before it leaves [`wire`].
//! Nothing in here can panic, whatever the input: a panic in the kernel is a
//! crash that a remote host could cause at will. The lints below hold the code
//! to that.

// Kbuild already injects the attribute.
#![cfg_attr(not(CONFIG_RUST), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]
#![warn(missing_docs)]

pub mod conn;
pub mod cursor;
pub mod diag;
pub mod eid;
pub mod genl;
pub mod handshake;
pub mod ids;
pub mod info;
pub mod lgr;
pub mod list;
pub mod llc_flow;
pub mod pnet;
pub mod reason;
pub mod rx_ring;
pub mod send_slots;
pub mod size_class;
pub mod state;
pub mod tx_ring;
pub mod urgent;
pub mod window;
pub mod wire;

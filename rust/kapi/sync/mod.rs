// SPDX-License-Identifier: GPL-2.0

//! Locks and context control which the `kernel` crate does not have.

mod bh;
pub mod spin_bh;

pub use bh::BhDisabled;
pub use spin_bh::{BhBackend, SpinLockBh, SpinLockBhGuard};

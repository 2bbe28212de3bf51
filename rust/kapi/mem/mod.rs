// SPDX-License-Identifier: GPL-2.0

//! Memory that devices read and write.

mod flags;
mod mapping;
mod pages;

pub use mapping::{Direction, DmaMapping};
pub use pages::PageRun;

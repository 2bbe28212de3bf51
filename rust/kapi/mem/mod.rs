// SPDX-License-Identifier: GPL-2.0

//! Memory that devices read and write.

mod flags;
mod mapping;
mod pages;
mod payer;
mod scatter;

pub(crate) use mapping::Place;
pub use mapping::{Direction, DmaMapping};
pub use pages::PageRun;
pub use payer::Payer;

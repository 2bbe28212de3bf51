// SPDX-License-Identifier: GPL-2.0

//! What the functional test programs share.
//!
//! The programs talk to the kernel through raw system calls, because they test
//! exactly those: the standard library hides `AF_SMC`, most flags and most
//! error numbers. Every unsafe call of the test programs is in this crate.

pub mod addr;
pub mod cases;
pub mod counters;
pub mod event;
pub mod extra;
pub mod json;
pub mod lazy;
pub mod msg;
pub mod opts;
pub mod pattern;
pub mod process;
pub mod sock;
pub mod tap;
pub mod uring;

// SPDX-License-Identifier: GPL-2.0

//! Bounded fuzzing of everything that reads bytes from a peer.
//!
//! `SMC_FUZZ_SECONDS=60 cargo test --release -p smc_proto --test fuzz_wire -- --nocapture`

mod corpus;
mod driver;
mod targets;

#[test]
fn clc() {
    driver::run("clc", targets::clc, &corpus::clc());
}

#[test]
fn llc() {
    driver::run("llc", targets::llc, &corpus::llc());
}

#[test]
fn cdc() {
    driver::run("cdc", targets::cdc, &corpus::cdc());
}

#[test]
fn tcp_option() {
    driver::run("tcp_option", targets::tcp_option, &corpus::tcp_option());
}

#[test]
fn eid() {
    driver::run("eid", targets::eid, &corpus::eid());
}

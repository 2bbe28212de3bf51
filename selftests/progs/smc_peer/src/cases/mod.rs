// SPDX-License-Identifier: GPL-2.0

//! All cases.

mod cdc;
mod crowd;
mod first_contact;
mod flags;
mod join;
mod llc;
mod rdma;
mod server;
mod version1;

use crate::case::{ClientCase, ServerCase};

pub(crate) fn client() -> impl Iterator<Item = &'static ClientCase> {
    // Those that wait for time-outs come first, so that they run beside all others.
    [
        first_contact::CLIENT,
        crowd::CLIENT,
        join::KEYS,
        join::CONFIRMS,
        rdma::CLIENT,
        llc::LINKS,
        llc::RKEYS,
        llc::STRAY,
        cdc::PRODUCER,
        cdc::CONSUMER,
        cdc::FORM,
        flags::CLIENT,
        version1::CLIENT,
    ]
    .into_iter()
    .flatten()
}

pub(crate) fn server() -> impl Iterator<Item = &'static ServerCase> {
    [server::SETUP, server::DATA, version1::SERVER]
        .into_iter()
        .flatten()
}

// SPDX-License-Identifier: GPL-2.0

//! Whether handshakes are limited under load.

use serde::Serialize;
use smc_cli::smc::Switch;
use smc_netlink::Smc;
use smc_tools::output::{self, Outcome};

/// What JSON has.
#[derive(Serialize)]
struct Limit {
    limited: bool,
}

pub(crate) fn run(set: Option<Switch>, json: bool) -> Outcome {
    let words = |error: smc_netlink::Error| error.to_string();
    let mut smc = Smc::open().map_err(words)?;
    if let Some(set) = set {
        let limit = set == Switch::On;
        return smc.set_handshake_limitation(limit).map_err(words);
    }
    let limited = smc.handshake_limitation().map_err(words)?;
    if json {
        return output::print_json(&Limit { limited });
    }
    output::print(if limited {
        "Handshakes are limited under load.\n"
    } else {
        "Handshakes are not limited.\n"
    })
}

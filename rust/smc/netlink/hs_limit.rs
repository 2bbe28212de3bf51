// SPDX-License-Identifier: GPL-2.0

//! Whether a namespace sheds handshakes under load.

use kernel::prelude::*;
use smc_kapi::genl::{
    Dump,
    Info, //
};
use smc_proto::genl::smc::{
    cmd,
    hs_limitation as attr, //
};

use super::{
    namespace,
    once, //
};

pub(super) fn dump(dump: &mut Dump<'_>) -> Result {
    let limited = namespace(dump.net())?.settings.limits_handshakes();
    once(dump, |dump| {
        dump.item(cmd::DUMP_HS_LIMITATION, |message| {
            message.put_u8(attr::ENABLED, u8::from(limited))
        })
    })
}

pub(super) fn enable(info: &Info<'_>) -> Result {
    namespace(info.net())?.settings.limit_handshakes(true);
    Ok(())
}

pub(super) fn disable(info: &Info<'_>) -> Result {
    namespace(info.net())?.settings.limit_handshakes(false);
    Ok(())
}

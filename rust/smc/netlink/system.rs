// SPDX-License-Identifier: GPL-2.0

//! What this host can do.

use kernel::prelude::*;
use smc_kapi::genl::Dump;
use smc_proto::{
    genl::smc::{
        cmd,
        outer,
        sys as attr, //
    },
    ids::{
        Release,
        Version, //
    },
};

use super::once;
use crate::smc::global;

pub(super) fn dump(dump: &mut Dump<'_>) -> Result {
    let global = global::get().ok_or(ENODEV)?;
    once(dump, |dump| {
        dump.item(cmd::GET_SYS_INFO, |message| {
            message.nest(outer::SYS_INFO, |info| {
                info.put_u8(attr::VER, Version::HIGHEST.number())?;
                info.put_u8(attr::REL, Release::HIGHEST.number())?;
                info.put_u8(attr::IS_ISM_V2, 0)?;
                info.put_u8(attr::IS_SMCR_V2, 1)?;
                info.put_text(attr::LOCAL_HOST, &global.host.0)
            })
        })
    })
}

// SPDX-License-Identifier: GPL-2.0

//! The table of user-defined enterprise IDs.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use smc_kapi::genl::{
    Attrs,
    Dump,
    Info,
    Kind,
    Policy, //
};
use smc_proto::{
    genl::smc::{
        cmd,
        eid as attr, //
    },
    ids::{
        Eid,
        EID_LEN, //
    },
};

use crate::smc::global::{
    self,
    Global, //
};

pub(super) const POLICY: &[Policy] = &[Policy {
    attr: attr::ENTRY,
    kind: Kind::String(EID_LEN as u16 + 1),
}];

/// The attribute of a request: exactly 33 bytes.
fn entry<'a>(attrs: &Attrs<'a>) -> Result<&'a [u8]> {
    let bytes = attrs.required(attr::ENTRY)?;
    if bytes.len() == EID_LEN + 1 {
        Ok(bytes)
    } else {
        Err(EINVAL)
    }
}

fn global() -> Result<Arc<Global>> {
    global::get().ok_or(ENODEV)
}

pub(super) fn add(info: &Info<'_>) -> Result {
    let eid = Eid::parse(entry(&info.attrs())?).map_err(|_| EINVAL)?;
    global()?.ueids.add(eid)
}

pub(super) fn remove(info: &Info<'_>) -> Result {
    // What is no identifier cannot be in the table.
    let eid = Eid::parse(entry(&info.attrs())?).map_err(|_| ENOENT)?;
    global()?.ueids.remove(eid)
}

pub(super) fn flush(_info: &Info<'_>) -> Result {
    global()?.ueids.flush();
    Ok(())
}

pub(super) fn dump(dump: &mut Dump<'_>) -> Result {
    let global = global()?;
    loop {
        let index = dump.cookie(0);
        let Some(eid) = global.ueids.entry(index as usize) else {
            return Ok(());
        };
        dump.item(cmd::DUMP_UEID, |message| {
            message.put_text(attr::ENTRY, &eid.0)
        })?;
        dump.set_cookie(0, index + 1);
    }
}

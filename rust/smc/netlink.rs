// SPDX-License-Identifier: GPL-2.0

//! The generic netlink family `SMC_GEN_NETLINK`: the table of user-defined enterprise IDs.
//!
//! UAPI: `include/uapi/linux/smc.h`. Commands that are not served here answer `EOPNOTSUPP`.

use kernel::prelude::*;
use smc_kapi::genl::{
    Attrs,
    Dump,
    Family,
    FamilyRegistration,
    Info,
    Kind,
    Operation,
    Policy, //
};
use smc_proto::ids::{
    Eid,
    EID_LEN, //
};

use crate::smc::global::{
    self,
    Global, //
};

const CMD_DUMP_UEID: u8 = 9;
const CMD_ADD_UEID: u8 = 10;
const CMD_REMOVE_UEID: u8 = 11;
const CMD_FLUSH_UEID: u8 = 12;

/// `SMC_NLA_EID_TABLE_ENTRY`: 32 characters, padded with blanks, and a NUL.
const ATTR_EID: u16 = 1;

/// The registration of the family.
pub(crate) type UeidFamily = FamilyRegistration<SmcGenl>;

/// The family.
pub(crate) struct SmcGenl;

const EID_POLICY: &[Policy] = &[Policy {
    attr: ATTR_EID,
    kind: Kind::NulString(EID_LEN as u16),
}];

impl Family for SmcGenl {
    const NAME: &'static CStr = c"SMC_GEN_NETLINK";
    const VERSION: u8 = 1;
    const STRICT_FROM: u8 = 19;
    const OPERATIONS: &'static [Operation] = &[
        Operation {
            cmd: CMD_DUMP_UEID,
            admin: false,
            policy: &[],
            doit: None,
            dump: Some(dump),
        },
        Operation {
            cmd: CMD_ADD_UEID,
            admin: true,
            policy: EID_POLICY,
            doit: Some(add),
            dump: None,
        },
        Operation {
            cmd: CMD_REMOVE_UEID,
            admin: true,
            policy: EID_POLICY,
            doit: Some(remove),
            dump: None,
        },
        Operation {
            cmd: CMD_FLUSH_UEID,
            admin: true,
            policy: &[],
            doit: Some(flush),
            dump: None,
        },
    ];
}

/// The enterprise ID of a request: exactly 33 bytes, the last one NUL.
fn eid_of(attrs: &Attrs<'_>) -> Result<Eid> {
    let bytes = attrs.required(ATTR_EID)?;
    if bytes.len() != EID_LEN + 1 {
        return Err(EINVAL);
    }
    Eid::parse(bytes).map_err(|_| EINVAL)
}

fn table() -> Result<kernel::sync::Arc<Global>> {
    global::get().ok_or(ENODEV)
}

fn add(info: &Info<'_>) -> Result {
    table()?.ueids.add(eid_of(&info.attrs())?)
}

fn remove(info: &Info<'_>) -> Result {
    table()?.ueids.remove(eid_of(&info.attrs())?)
}

fn flush(_info: &Info<'_>) -> Result {
    table()?.ueids.flush();
    Ok(())
}

fn dump(dump: &mut Dump<'_>) -> Result {
    let global = table()?;
    loop {
        let index = dump.cookie(0);
        let Some(eid) = global.ueids.entry(index as usize) else {
            return Ok(());
        };
        dump.item(CMD_DUMP_UEID, |message| {
            let mut text = [0; EID_LEN + 1];
            if let Some(head) = text.get_mut(..EID_LEN) {
                head.copy_from_slice(&eid.0);
            }
            message.put(ATTR_EID, &text)
        })?;
        dump.set_cookie(0, index + 1);
    }
}

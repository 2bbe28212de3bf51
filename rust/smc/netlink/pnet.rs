// SPDX-License-Identifier: GPL-2.0

//! The generic netlink family `SMC_PNETID`.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use smc_kapi::{
    genl::{
        Attrs,
        Builder,
        Dump,
        Family,
        FamilyRegistration,
        Info,
        Kind,
        Operation,
        Policy, //
    },
    net::Net, //
};
use smc_proto::{
    genl::pnet::{
        attr,
        cmd,
        NO_DEVICE,
        NO_PORT,
        VERSION, //
    },
    pnet::{
        PnetId,
        PNETID_LEN, //
    },
};

use crate::smc::{
    global::{
        self,
        Global, //
    },
    pnet::{
        Name,
        Row,
        Target, //
    },
};

/// Ports of a device that can have a network.
const MAX_PORTS: u8 = 2;

/// The registration of the family.
pub(crate) type PnetFamily = FamilyRegistration<PnetGenl>;

/// The family.
pub(crate) struct PnetGenl;

const POLICY: &[Policy] = &[
    Policy {
        attr: attr::NAME,
        kind: Kind::NulString(PNETID_LEN as u16),
    },
    Policy {
        attr: attr::ETHNAME,
        kind: Kind::NulString(15),
    },
    Policy {
        attr: attr::IBNAME,
        kind: Kind::NulString(63),
    },
    Policy {
        attr: attr::IBPORT,
        kind: Kind::U8,
    },
];

impl Family for PnetGenl {
    const NAME: &'static CStr = c"SMC_PNETID";
    const VERSION: u8 = VERSION;
    const STRICT_FROM: u8 = cmd::FLUSH + 1;
    const LENIENT: bool = true;
    const OPERATIONS: &'static [Operation] = &[
        Operation {
            cmd: cmd::GET,
            admin: false,
            policy: POLICY,
            doit: Some(get),
            dump: Some(dump),
        },
        change(cmd::ADD, add),
        change(cmd::DEL, remove),
        change(cmd::FLUSH, flush),
    ];
}

const fn change(cmd: u8, doit: fn(&Info<'_>) -> Result) -> Operation {
    Operation {
        cmd,
        admin: true,
        policy: POLICY,
        doit: Some(doit),
        dump: None,
    }
}

fn global() -> Result<Arc<Global>> {
    global::get().ok_or(ENODEV)
}

/// The name of the network in a request, if it can be one.
fn network(attrs: &Attrs<'_>) -> Result<Option<PnetId>> {
    let text = attrs.string(attr::NAME).ok_or(EINVAL)?;
    Ok(PnetId::parse(text))
}

/// Adds a row for each device named; `EEXIST` only when nothing new was added.
fn add(info: &Info<'_>) -> Result {
    let attrs = info.attrs();
    let network = network(&attrs)?.ok_or(EINVAL)?;
    let table = &global()?.pnet;
    let mut added = false;
    let mut enter = |target| match table.add(Row { network, target }) {
        Ok(()) => {
            added = true;
            Ok(())
        }
        Err(error) if error == EEXIST => Ok(()),
        Err(error) => Err(error),
    };
    if let Some(text) = attrs.string(attr::ETHNAME) {
        let name = Name::new(text).ok_or(EINVAL)?;
        enter(Target::Interface(info.net().id(), name))?;
    }
    if info.net().is_initial() {
        if let Some(text) = attrs.string(attr::IBNAME) {
            let port = attrs.u8(attr::IBPORT).unwrap_or(1);
            if !(1..=MAX_PORTS).contains(&port) {
                return Err(EINVAL);
            }
            let name = Name::new(text.trim_ascii()).ok_or(EINVAL)?;
            enter(Target::Port(name, port))?;
        }
    }
    if added {
        Ok(())
    } else {
        Err(EEXIST)
    }
}

fn remove(info: &Info<'_>) -> Result {
    let network = network(&info.attrs())?.ok_or(ENOENT)?;
    global()?.pnet.remove(info.net(), Some(network))
}

fn flush(info: &Info<'_>) -> Result {
    // An empty table is none the less flushed.
    let _ = global()?.pnet.remove(info.net(), None);
    Ok(())
}

/// The rows of one network, as a list in a single answer.
fn get(info: &Info<'_>) -> Result {
    let network = network(&info.attrs())?;
    let table = global()?;
    info.reply_list(|list| {
        let mut last = 0;
        while let Some((number, row)) = next(&table, info.net(), last) {
            last = number;
            if Some(row.network) == network {
                list.item(cmd::GET, |message| put(message, &row))?;
            }
        }
        Ok(())
    })
}

fn dump(dump: &mut Dump<'_>) -> Result {
    let table = global()?;
    while let Some((number, row)) = next(&table, dump.net(), dump.cookie(0)) {
        dump.item(cmd::GET, |message| put(message, &row))?;
        dump.set_cookie(0, number);
    }
    Ok(())
}

fn next(global: &Global, net: &Net, last: u64) -> Option<(u64, Row)> {
    global.pnet.after(net, last)
}

fn put(message: &mut Builder, row: &Row) -> Result {
    message.put_text(attr::NAME, row.network.text())?;
    let (interface, device, port) = match &row.target {
        Target::Interface(_, name) => (name.text(), NO_DEVICE.as_bytes(), NO_PORT),
        Target::Port(name, port) => (NO_DEVICE.as_bytes(), name.text(), *port),
    };
    message.put_text(attr::ETHNAME, interface)?;
    message.put_text(attr::IBNAME, device)?;
    message.put_u8(attr::IBPORT, port)
}

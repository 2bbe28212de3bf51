// SPDX-License-Identifier: GPL-2.0

//! The generic netlink family `SMC_GEN_NETLINK`.
//!
//! UAPI: `include/uapi/linux/smc.h`. A caller in the initial network namespace sees the link groups
//! of all namespaces, others see their own. What belongs to SMC-D, which this module does not have,
//! is answered as by a host without such devices.
//!
//! Dumps keep the number of the last item that was sent, not its position, so that nothing is shown
//! twice or left out when tables change between two parts.

mod device;
mod eid;
mod fallback;
mod group;
mod hs_limit;
pub(crate) mod pnet;
mod stats;
mod system;

use kernel::prelude::*;
use smc_kapi::{
    genl::{
        Dump,
        Family,
        FamilyRegistration,
        Info,
        Kind,
        Operation,
        Policy, //
    },
    net::PernetRegistration, //
};
use smc_proto::genl::smc::cmd;

use crate::smc::netns::NetState;

/// The registration of the family.
pub(crate) type SmcFamily = FamilyRegistration<SmcGenl>;

/// The family.
pub(crate) struct SmcGenl;

/// Commands without attributes refuse all.
const NO_ATTRIBUTES: &[Policy] = &[Policy {
    attr: 1,
    kind: Kind::Reject,
}];

/// A list, which everybody may have.
const fn list(cmd: u8, dump: fn(&mut Dump<'_>) -> Result) -> Operation {
    Operation {
        cmd,
        admin: false,
        policy: NO_ATTRIBUTES,
        doit: None,
        dump: Some(dump),
    }
}

/// A change, for administrators.
const fn change(cmd: u8, policy: &'static [Policy], doit: fn(&Info<'_>) -> Result) -> Operation {
    Operation {
        cmd,
        admin: true,
        policy,
        doit: Some(doit),
        dump: None,
    }
}

impl Family for SmcGenl {
    const NAME: &'static CStr = c"SMC_GEN_NETLINK";
    const VERSION: u8 = smc_proto::genl::smc::VERSION;
    const STRICT_FROM: u8 = cmd::DISABLE_HS_LIMITATION + 1;
    const OPERATIONS: &'static [Operation] = &[
        list(cmd::GET_SYS_INFO, system::dump),
        list(cmd::GET_LGR_SMCR, group::dump_groups),
        list(cmd::GET_LINK_SMCR, group::dump_links),
        list(cmd::GET_LGR_SMCD, nothing),
        list(cmd::GET_DEV_SMCD, nothing),
        list(cmd::GET_DEV_SMCR, device::dump),
        list(cmd::GET_STATS, stats::dump),
        list(cmd::GET_FBACK_STATS, fallback::dump),
        list(cmd::DUMP_UEID, eid::dump),
        change(cmd::ADD_UEID, eid::POLICY, eid::add),
        change(cmd::REMOVE_UEID, eid::POLICY, eid::remove),
        change(cmd::FLUSH_UEID, NO_ATTRIBUTES, eid::flush),
        list(cmd::DUMP_SEID, no_seid),
        change(cmd::ENABLE_SEID, NO_ATTRIBUTES, unsupported),
        change(cmd::DISABLE_SEID, NO_ATTRIBUTES, unsupported),
        list(cmd::DUMP_HS_LIMITATION, hs_limit::dump),
        change(cmd::ENABLE_HS_LIMITATION, NO_ATTRIBUTES, hs_limit::enable),
        change(cmd::DISABLE_HS_LIMITATION, NO_ATTRIBUTES, hs_limit::disable),
    ];
}

/// There are no SMC-D devices, hence no link groups over them.
fn nothing(_dump: &mut Dump<'_>) -> Result {
    Ok(())
}

/// System enterprise IDs exist on s390 only.
fn unsupported(_info: &Info<'_>) -> Result {
    Err(EOPNOTSUPP)
}

/// One message without attributes says that there is no system enterprise ID.
fn no_seid(dump: &mut Dump<'_>) -> Result {
    once(dump, |dump| dump.item(cmd::DUMP_SEID, |_| Ok(())))
}

/// Sends a list that is one message.
fn once(dump: &mut Dump<'_>, send: impl FnOnce(&mut Dump<'_>) -> Result) -> Result {
    if dump.cookie(0) == 0 {
        send(dump)?;
        dump.set_cookie(0, 1);
    }
    Ok(())
}

/// The state of the caller's namespace.
fn namespace(net: &smc_kapi::net::Net) -> Result<kernel::sync::Arc<NetState>> {
    PernetRegistration::<NetState>::get(net)
}

// SPDX-License-Identifier: GPL-2.0

//! How often connections stayed on TCP, and why.

use kernel::prelude::*;
use smc_kapi::genl::Dump;
use smc_proto::genl::smc::{
    cmd,
    fback as attr,
    outer, //
};

use super::namespace;
use crate::smc::stats::Side;

/// Reasons are only ever added, so their positions tell how far the list has come. The first message
/// of the list carries the totals.
pub(super) fn dump(dump: &mut Dump<'_>) -> Result {
    let net = namespace(dump.net())?;
    loop {
        let sent = dump.cookie(0);
        let index = (sent / 2) as usize;
        let side = if sent % 2 == 0 {
            Side::Server
        } else {
            Side::Client
        };
        match net.stats.fallback_of(side, index) {
            Some(entry) => {
                let with_totals = dump.cookie(1) == 0;
                dump.item(cmd::GET_FBACK_STATS, |message| {
                    message.nest(outer::FBACK_STATS, |item| {
                        item.put_u8(attr::TYPE, u8::from(side == Side::Server))?;
                        if with_totals {
                            let servers = net.stats.fallbacks_of(Side::Server);
                            let clients = net.stats.fallbacks_of(Side::Client);
                            item.put_u64(attr::SRV_CNT, servers, attr::PAD)?;
                            item.put_u64(attr::CLNT_CNT, clients, attr::PAD)?;
                        }
                        item.put_u32(attr::RSN_CODE, entry.reason.0)?;
                        let count = u16::try_from(entry.count).unwrap_or(u16::MAX);
                        item.put_u16(attr::RSN_CNT, count)
                    })
                })?;
                dump.set_cookie(1, 1);
            }
            None if side == Side::Client
                && net.stats.fallback_of(Side::Server, index).is_none() =>
            {
                return Ok(());
            }
            None => {}
        }
        dump.set_cookie(0, sent + 1);
    }
}

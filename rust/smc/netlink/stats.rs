// SPDX-License-Identifier: GPL-2.0

//! Counters of calls, buffers and handshakes.

use kernel::prelude::*;
use smc_kapi::genl::{
    Builder,
    Dump, //
};
use smc_proto::{
    ids::Version,
    lgr::Role,
    size_class::SIZE_CLASSES, //
};

use super::{
    cmd,
    namespace,
    once,
    outer, //
};
use crate::smc::stats::{
    Count,
    Dir,
    Item,
    Traffic, //
};

mod attr {
    pub(super) const PAD: u16 = 0;
    pub(super) const SMCD_TECH: u16 = 1;
    pub(super) const SMCR_TECH: u16 = 2;
    pub(super) const CLNT_HS_ERR_CNT: u16 = 3;
    pub(super) const SRV_HS_ERR_CNT: u16 = 4;
}

/// Attributes within `SMCD_TECH` and `SMCR_TECH`.
mod tech {
    pub(super) const TX_RMB_SIZE: u16 = 1;
    pub(super) const RX_RMB_SIZE: u16 = 2;
    pub(super) const TXPLOAD_SIZE: u16 = 3;
    pub(super) const RXPLOAD_SIZE: u16 = 4;
    pub(super) const TX_RMB_STATS: u16 = 5;
    pub(super) const RX_RMB_STATS: u16 = 6;
    pub(super) const CLNT_V1_SUCC: u16 = 7;
    pub(super) const CLNT_V2_SUCC: u16 = 8;
    pub(super) const SRV_V1_SUCC: u16 = 9;
    pub(super) const SRV_V2_SUCC: u16 = 10;
    pub(super) const SENDPAGE_CNT: u16 = 11;
    pub(super) const SPLICE_CNT: u16 = 12;
    pub(super) const CORK_CNT: u16 = 13;
    pub(super) const NDLY_CNT: u16 = 14;
    pub(super) const URG_DATA_CNT: u16 = 15;
    pub(super) const RX_BYTES: u16 = 16;
    pub(super) const TX_BYTES: u16 = 17;
    pub(super) const RX_CNT: u16 = 18;
    pub(super) const TX_CNT: u16 = 19;
    pub(super) const RX_RMB_USAGE: u16 = 20;
    pub(super) const TX_RMB_USAGE: u16 = 21;
}

/// Counters of one transport; SMC-D, which is not there, has zeros everywhere.
struct Source<'a>(Option<&'a Traffic>);

impl Source<'_> {
    fn get(&self, count: Count) -> u64 {
        self.0.map_or(0, |traffic| traffic.total(count))
    }

    fn put(&self, out: &mut Builder, attr: u16, count: Count) -> Result {
        out.put_u64(attr, self.get(count), attr::PAD)
    }

    fn sizes(&self, out: &mut Builder, attr: u16, count: impl Fn(u8) -> Count) -> Result {
        out.nest(attr, |out| {
            for class in 0..SIZE_CLASSES {
                self.put(out, u16::from(class) + 1, count(class))?;
            }
            Ok(())
        })
    }

    fn buffers(&self, out: &mut Builder, attr: u16, dir: Dir) -> Result {
        const ITEMS: [(u16, Item); 7] = [
            (1, Item::SmallPeer),
            (2, Item::Small),
            (3, Item::FullPeer),
            (4, Item::Full),
            (5, Item::Reuse),
            (6, Item::Alloc),
            (7, Item::Downgrade),
        ];
        out.nest(attr, |out| {
            for (attr, item) in ITEMS {
                self.put(out, attr, Count::item(dir, item))?;
            }
            Ok(())
        })
    }

    fn calls(&self, out: &mut Builder) -> Result {
        for (attr, count) in [
            (
                tech::CLNT_V1_SUCC,
                Count::success(Role::Client, Version::V1),
            ),
            (
                tech::CLNT_V2_SUCC,
                Count::success(Role::Client, Version::V2),
            ),
            (tech::SRV_V1_SUCC, Count::success(Role::Server, Version::V1)),
            (tech::SRV_V2_SUCC, Count::success(Role::Server, Version::V2)),
            (tech::RX_BYTES, Count::item(Dir::Rx, Item::Bytes)),
            (tech::TX_BYTES, Count::item(Dir::Tx, Item::Bytes)),
            (tech::RX_CNT, Count::item(Dir::Rx, Item::Calls)),
            (tech::TX_CNT, Count::item(Dir::Tx, Item::Calls)),
            (tech::CORK_CNT, Count::CORK),
            (tech::NDLY_CNT, Count::NODELAY),
            (tech::SPLICE_CNT, Count::SPLICE),
            (tech::URG_DATA_CNT, Count::URGENT),
        ] {
            self.put(out, attr, count)?;
        }
        // Kernels have no such call any more.
        out.put_u64(tech::SENDPAGE_CNT, 0, attr::PAD)
    }

    fn all(&self, out: &mut Builder, attr: u16) -> Result {
        out.nest(attr, |out| {
            self.buffers(out, tech::TX_RMB_STATS, Dir::Tx)?;
            self.buffers(out, tech::RX_RMB_STATS, Dir::Rx)?;
            self.sizes(out, tech::TXPLOAD_SIZE, |class| {
                Count::payloads(Dir::Tx, class)
            })?;
            self.sizes(out, tech::RXPLOAD_SIZE, |class| {
                Count::payloads(Dir::Rx, class)
            })?;
            self.sizes(out, tech::TX_RMB_SIZE, |class| {
                Count::buffers(Dir::Tx, class)
            })?;
            self.sizes(out, tech::RX_RMB_SIZE, |class| {
                Count::buffers(Dir::Rx, class)
            })?;
            for (attr, dir) in [(tech::RX_RMB_USAGE, Dir::Rx), (tech::TX_RMB_USAGE, Dir::Tx)] {
                out.put_uint(attr, self.get(Count::item(dir, Item::InUse)))?;
            }
            self.calls(out)
        })
    }
}

pub(super) fn dump(dump: &mut Dump<'_>) -> Result {
    let net = namespace(dump.net())?;
    let traffic = &net.stats.traffic;
    once(dump, |dump| {
        dump.item(cmd::GET_STATS, |message| {
            message.nest(outer::STATS, |out| {
                Source(None).all(out, attr::SMCD_TECH)?;
                Source(Some(traffic)).all(out, attr::SMCR_TECH)?;
                for (attr, count) in [
                    (attr::CLNT_HS_ERR_CNT, Count::CLIENT_ERRORS),
                    (attr::SRV_HS_ERR_CNT, Count::SERVER_ERRORS),
                ] {
                    out.put_u64(attr, traffic.total(count), attr::PAD)?;
                }
                Ok(())
            })
        })
    })
}

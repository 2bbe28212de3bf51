// SPDX-License-Identifier: GPL-2.0

//! Counters of calls, buffers and handshakes.

use kernel::prelude::*;
use smc_kapi::genl::{
    Builder,
    Dump, //
};
use smc_proto::{
    genl::smc::{
        cmd,
        outer,
        rmb,
        stats as attr,
        tech, //
    },
    ids::Version,
    lgr::Role,
    size_class::SIZE_CLASSES, //
};

use super::{
    namespace,
    once, //
};
use crate::smc::stats::{
    Count,
    Dir,
    Item,
    Traffic, //
};

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
            (rmb::SIZE_SM_PEER_CNT, Item::SmallPeer),
            (rmb::SIZE_SM_CNT, Item::Small),
            (rmb::FULL_PEER_CNT, Item::FullPeer),
            (rmb::FULL_CNT, Item::Full),
            (rmb::REUSE_CNT, Item::Reuse),
            (rmb::ALLOC_CNT, Item::Alloc),
            (rmb::DGRADE_CNT, Item::Downgrade),
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

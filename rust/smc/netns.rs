// SPDX-License-Identifier: GPL-2.0

//! What the module keeps for each network namespace.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use smc_kapi::net::{
    Net,
    NetId,
    OptionHooks,
    OptionUse,
    PerNet,
    PernetSlot, //
};
use smc_proto::wire::tcp_opt::OPTION;

use crate::smc::{
    global,
    lgr::Ending,
    sock::table::SocketTable,
    stats::Stats,
    sysctl::Settings, //
};

static SLOT: PernetSlot = PernetSlot::new();

/// State of one network namespace. Lives as long as a socket or a link group refers to it.
#[pin_data]
pub(crate) struct NetState {
    id: NetId,
    /// The TCP option of the SYN, installed while the namespace has sockets.
    option: Arc<OptionHooks>,
    pub(crate) settings: Settings,
    /// The sockets that programs have open.
    #[pin]
    pub(crate) sockets: SocketTable,
    #[pin]
    pub(crate) stats: Stats,
}

impl NetState {
    /// Keeps the TCP option installed while the result lives. May sleep.
    pub(crate) fn use_option(&self, net: &Net) -> Result<OptionUse> {
        self.option.start_use(net)
    }

    /// Identity of the namespace, to compare with others.
    pub(crate) fn id(&self) -> NetId {
        self.id
    }

    /// Accounts for `bytes` of buffer memory until the returned value is dropped.
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        // CAST: a single buffer is at most a few MiB.
        let bytes = bytes as i64;
        self.stats.memory.add(bytes);
        Charge {
            net: self.clone(),
            bytes,
        }
    }
}

impl PerNet for NetState {
    fn slot() -> &'static PernetSlot {
        &SLOT
    }

    fn new(net: &Net) -> Result<Arc<Self>> {
        let id = net.id();
        let option = OptionHooks::new(&OPTION)?;
        Arc::pin_init(
            try_pin_init!(Self {
                id,
                option,
                settings: Settings::of(net)?,
                sockets <- SocketTable::new(),
                stats <- Stats::new(),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// The namespace goes away: its sockets are gone, its idle link groups follow.
    fn exit(&self) {
        if let Some(global) = global::get() {
            global.pnet.forget_namespace(self.id);
            global
                .groups
                .end_matching(Ending::NamespaceGone, |group| group.net().id() == self.id);
        }
    }
}

/// Buffer memory that is accounted for in a namespace while this value lives.
pub(crate) struct Charge {
    net: Arc<NetState>,
    bytes: i64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.net.stats.memory.add(-self.bytes);
    }
}

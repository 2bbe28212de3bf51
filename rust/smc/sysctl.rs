// SPDX-License-Identifier: GPL-2.0

//! The settings of a network namespace, `/proc/sys/net/smc`.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use smc_kapi::{
    net::{
        Net,
        PernetSlot, //
    },
    sysctl::{
        Kind,
        NetSettings,
        Setting,
        SettingsRegistration,
        Values, //
    },
};
use smc_proto::{
    lgr::MAX_CONNS,
    llc_flow::TEST_LINK_MS, //
};

use crate::smc::lgr::memory::BufferType;

/// Bytes of a buffer where nothing else is asked for.
const DEFAULT_BUFFER: u32 = 64 * 1024;
/// The smallest buffer.
const MIN_BUFFER: i32 = 16 * 1024;
/// The largest buffer; what the socket layer accounts for is twice as much.
const MAX_BUFFER: i32 = i32::MAX / 2;
/// Bytes up to which small writes wait for the acknowledgement of earlier ones.
const DEFAULT_AUTOCORKING: u32 = 64 * 1024;

/// Places in [`SETTINGS`].
mod at {
    pub(super) const AUTOCORKING_SIZE: usize = 0;
    pub(super) const BUF_TYPE: usize = 1;
    pub(super) const TESTLINK_TIME: usize = 2;
    pub(super) const WMEM: usize = 3;
    pub(super) const RMEM: usize = 4;
    pub(super) const MAX_LINKS: usize = 5;
    pub(super) const MAX_CONNS: usize = 6;
    pub(super) const LIMIT_SMC_HS: usize = 7;
    pub(super) const MAX_SEND_WR: usize = 8;
    pub(super) const MAX_RECV_WR: usize = 9;
}

const fn setting(name: &'static CStr, kind: Kind, initial: u32) -> Setting {
    Setting {
        name,
        kind,
        initial,
    }
}

const SETTINGS: [Setting; 10] = [
    setting(c"autocorking_size", Kind::Unsigned, DEFAULT_AUTOCORKING),
    setting(c"smcr_buf_type", Kind::UnsignedRange(0, 2), 0),
    setting(c"smcr_testlink_time", Kind::Seconds, TEST_LINK_MS as u32),
    setting(c"wmem", Kind::Range(MIN_BUFFER, MAX_BUFFER), DEFAULT_BUFFER),
    setting(c"rmem", Kind::Range(MIN_BUFFER, MAX_BUFFER), DEFAULT_BUFFER),
    setting(c"smcr_max_links_per_lgr", Kind::Range(1, 2), 2),
    setting(
        c"smcr_max_conns_per_lgr",
        Kind::Range(16, MAX_CONNS as i32),
        MAX_CONNS as u32,
    ),
    setting(c"limit_smc_hs", Kind::Range(0, 1), 0),
    setting(c"smcr_max_send_wr", Kind::Range(2, 2048), 16),
    setting(c"smcr_max_recv_wr", Kind::Range(2, 2048), 48),
];

static SLOT: PernetSlot = PernetSlot::new();

/// The files.
pub(crate) struct SmcSettings;

impl NetSettings for SmcSettings {
    const PATH: &'static CStr = c"net/smc";
    const SETTINGS: &'static [Setting] = &SETTINGS;

    fn slot() -> &'static PernetSlot {
        &SLOT
    }
}

/// The settings of a namespace.
pub(crate) struct Settings(Arc<Values>);

impl Settings {
    /// Those of `net`.
    pub(crate) fn of(net: &Net) -> Result<Self> {
        let registered = SettingsRegistration::<SmcSettings>::get(net)?;
        Ok(Self(registered.values.clone()))
    }

    /// Bytes of a new socket's send buffer.
    pub(crate) fn wmem(&self) -> u32 {
        self.0.get(at::WMEM)
    }

    /// Bytes of a new socket's receive buffer.
    pub(crate) fn rmem(&self) -> u32 {
        self.0.get(at::RMEM)
    }

    /// Bytes up to which small writes wait for the acknowledgement of earlier ones; 0 for never.
    pub(crate) fn autocorking_size(&self) -> u32 {
        self.0.get(at::AUTOCORKING_SIZE)
    }

    /// How the buffers of a link group lie in memory.
    pub(crate) fn buffer_type(&self) -> BufferType {
        BufferType::from_setting(self.0.get(at::BUF_TYPE))
    }

    /// How long a link may be silent before it is probed, in milliseconds; 0 for never.
    pub(crate) fn test_link_ms(&self) -> u64 {
        u64::from(self.0.get(at::TESTLINK_TIME))
    }

    /// Links that a link group may have.
    pub(crate) fn max_links(&self) -> u8 {
        // CAST: At most 2.
        self.0.get(at::MAX_LINKS) as u8
    }

    /// Connections that a link group may have.
    pub(crate) fn max_conns(&self) -> u8 {
        // CAST: At most 255.
        self.0.get(at::MAX_CONNS) as u8
    }

    /// Messages that a link may have on their way.
    pub(crate) fn max_send_wr(&self) -> u32 {
        self.0.get(at::MAX_SEND_WR)
    }

    /// Messages that a link can receive at a time.
    pub(crate) fn max_recv_wr(&self) -> u32 {
        self.0.get(at::MAX_RECV_WR)
    }

    /// Whether handshakes are shed under load.
    pub(crate) fn limits_handshakes(&self) -> bool {
        self.0.get(at::LIMIT_SMC_HS) != 0
    }

    /// Changes whether handshakes are shed under load.
    pub(crate) fn limit_handshakes(&self, on: bool) {
        self.0.set(at::LIMIT_SMC_HS, u32::from(on));
    }
}

// SPDX-License-Identifier: GPL-2.0

//! What a host can do.

use serde::Serialize;
use smc_proto::genl::smc::sys;

use crate::Attrs;

/// What a host can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SystemInfo {
    /// Version of SMC.
    pub version: u8,
    /// Release of that version.
    pub release: u8,
    /// SMC-D version 2 can be used.
    pub ism_v2: bool,
    /// SMC-R version 2 can be used.
    pub smcr_v2: bool,
    /// Name of the host as peers are told it.
    pub host: Option<String>,
    /// System enterprise ID.
    pub seid: Option<String>,
}

impl SystemInfo {
    pub(crate) fn parse(info: &Attrs) -> Self {
        Self {
            version: info.u8(sys::VER).unwrap_or(0),
            release: info.u8(sys::REL).unwrap_or(0),
            ism_v2: info.flag(sys::IS_ISM_V2),
            host: info.text(sys::LOCAL_HOST),
            seid: info.text(sys::SEID),
            smcr_v2: info.flag(sys::IS_SMCR_V2),
        }
    }
}

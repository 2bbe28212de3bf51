// SPDX-License-Identifier: GPL-2.0

//! What a host can do.

use serde::Serialize;

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
            version: info.u8(1).unwrap_or(0),
            release: info.u8(2).unwrap_or(0),
            ism_v2: info.flag(3),
            host: info.text(4),
            seid: info.text(5),
            smcr_v2: info.flag(6),
        }
    }
}

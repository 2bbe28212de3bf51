// SPDX-License-Identifier: GPL-2.0

//! `info`: what the kernel and the hardware can do.

use std::fmt::Write;

use smc_netlink::{Device, Smc, SystemInfo};

use crate::object::{misused, stem, Options, Program};
use crate::output::{self, Outcome};

/// Numbers of RoCE devices that IBM names.
const ROCE_EXPRESS: [u16; 3] = [0x1004, 0x1016, 0x101e];

/// Runs `info`.
///
/// # Errors
///
/// A sentence for the user.
pub fn run(program: Program, options: Options, words: &[&str], mut smc: Smc) -> Outcome {
    match words {
        [] => {}
        [word] if stem(word, "show") => {}
        _ => return Err(misused(program, "info")),
    }
    let info = smc.system().map_err(|error| error.to_string())?;
    if options.json {
        return output::print_json(&info);
    }
    let roce = smc.devices().map_err(|error| error.to_string())?;
    let ism = smc.smcd_devices().map_err(|error| error.to_string())?;
    output::print(&text(&info, &roce, &ism))
}

/// The text.
pub fn text(info: &SystemInfo, roce: &[Device], ism: &[Device]) -> String {
    let or_none = |value: Option<&str>| match value {
        Some(value) if !value.is_empty() => value.to_owned(),
        _ => "n/a".to_owned(),
    };
    let versions = |first: bool, second: bool| match (first, second) {
        (false, _) => "n/a",
        (true, false) => "v1",
        (true, true) => "v1 v2",
    };
    // RoCE version 2 is known of all but the oldest cards.
    let roce_v2 = roce
        .iter()
        .any(|device| device.pci_device != ROCE_EXPRESS[0]);
    let mut out = String::new();
    let rows = [
        ("SMC Version:", format!("{}.{}", info.version, info.release)),
        // As the kernel pads it, which scripts expect.
        (
            "SMC Hostname:",
            format!("{:<32}", or_none(info.host.as_deref())),
        ),
        (
            "SMC-D Features:",
            versions(true, info.version >= 2).to_owned(),
        ),
        ("SMC-R Features:", versions(true, info.smcr_v2).to_owned()),
        ("", String::new()),
        ("SEID:", or_none(info.seid.as_deref())),
        ("ISM:", versions(!ism.is_empty(), info.ism_v2).to_owned()),
        ("RoCE:", versions(!roce.is_empty(), roce_v2).to_owned()),
    ];
    out.push_str("Kernel Capabilities\n");
    for (name, value) in rows {
        if name.is_empty() {
            out.push_str("\nHardware Capabilities\n");
        } else {
            // Writing to a string does not fail.
            let _ = writeln!(out, "{name:<17} {value}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_said() {
        let info = SystemInfo {
            version: 2,
            release: 1,
            smcr_v2: true,
            host: Some("nodea".to_owned()),
            ..SystemInfo::default()
        };
        assert_eq!(
            text(&info, &[], &[]),
            "Kernel Capabilities\n\
             SMC Version:      2.1\n\
             SMC Hostname:     nodea                           \n\
             SMC-D Features:   v1 v2\n\
             SMC-R Features:   v1 v2\n\
             \n\
             Hardware Capabilities\n\
             SEID:             n/a\n\
             ISM:              n/a\n\
             RoCE:             n/a\n"
        );
        let roce = [Device::default()];
        assert!(text(&info, &roce, &[]).ends_with("RoCE:             v1 v2\n"));
    }
}

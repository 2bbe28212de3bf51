// SPDX-License-Identifier: GPL-2.0

//! Whether this host can do SMC.

use std::fs;
use std::net::Ipv4Addr;

use serde::Serialize;
use smc_netlink::{Device, Smc};
use smc_tools::output::{self, interface_name, Outcome};

/// How a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Good,
    Missing,
}

/// A thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    what: String,
    verdict: Verdict,
    remedy: Option<&'static str>,
}

impl Finding {
    fn new(what: impl Into<String>, good: bool, remedy: &'static str) -> Self {
        Self {
            what: what.into(),
            verdict: if good {
                Verdict::Good
            } else {
                Verdict::Missing
            },
            remedy: (!good).then_some(remedy),
        }
    }
}

pub(crate) fn run(json: bool) -> Outcome {
    let mut findings = Vec::new();
    match Smc::open() {
        Ok(mut smc) => with_module(&mut smc, &mut findings).map_err(|error| error.to_string())?,
        Err(_) => findings.push(Finding::new(
            "an SMC module is loaded",
            false,
            "Load it with \"modprobe smc_rs\".",
        )),
    }
    if json {
        output::print_json(&findings)?;
    } else {
        output::print(&text(&findings))?;
    }
    let missing = findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Missing)
        .count();
    match missing {
        0 => Ok(()),
        1 => Err("one thing is missing.".to_owned()),
        n => Err(format!("{n} things are missing.")),
    }
}

fn with_module(smc: &mut Smc, findings: &mut Vec<Finding>) -> smc_netlink::Result<()> {
    findings.push(Finding::new("an SMC module is loaded", true, ""));
    let system = smc.system()?;
    findings.push(Finding::new(
        "the module can do version 2 of SMC-R",
        system.smcr_v2,
        "Use a newer module: without version 2 both hosts must be in one subnet.",
    ));
    findings.push(Finding::new(
        "an enterprise identifier is set",
        !smc.ueids()?.is_empty(),
        "Set the same one on both hosts with \"smcr ueid add\".",
    ));
    let devices = smc.devices()?;
    findings.push(Finding::new(
        "there is a RoCE device",
        !devices.is_empty(),
        "Load the driver of the card, or make a software device with \"rdma link add\".",
    ));
    for device in &devices {
        of_device(device, findings);
    }
    Ok(())
}

fn of_device(device: &Device, findings: &mut Vec<Finding>) {
    for port in &device.ports {
        let name = format!("{} port {}", device.name, port.number);
        let interface = interface_name(port.ifindex);
        findings.push(Finding::new(
            format!("{name} is active"),
            port.active,
            "Set the network device up and check the cable.",
        ));
        findings.push(Finding::new(
            format!("{name} belongs to a network device here"),
            !interface.is_empty(),
            "Move the network device into this namespace, or its RDMA device with \"rdma dev set\".",
        ));
        findings.push(Finding::new(
            format!("{name} has an IPv4 address to be found by"),
            has_mapped_gid(&device.name, port.number),
            "Give its network device an IPv4 address: version 2 needs one.",
        ));
    }
}

/// Whether one of the port's GIDs stands for an IPv4 address.
fn has_mapped_gid(device: &str, port: u8) -> bool {
    let folder = format!("/sys/class/infiniband/{device}/ports/{port}/gids");
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    entries
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path()).ok())
        .any(|gid| mapped(gid.trim()).is_some())
}

/// The IPv4 address that a GID stands for.
fn mapped(gid: &str) -> Option<Ipv4Addr> {
    let address: std::net::Ipv6Addr = gid.parse().ok()?;
    address.to_ipv4_mapped()
}

fn text(findings: &[Finding]) -> String {
    let mut out = String::new();
    for finding in findings {
        let mark = match finding.verdict {
            Verdict::Good => "good   ",
            Verdict::Missing => "MISSING",
        };
        out.push_str(&format!("{mark}  {}\n", finding.what));
        if let Some(remedy) = finding.remedy {
            out.push_str(&format!("         {remedy}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_has_a_remedy() {
        let findings = [
            Finding::new("there is a RoCE device", true, "no remedy"),
            Finding::new("an identifier is set", false, "Set one."),
        ];
        assert_eq!(
            text(&findings),
            "good     there is a RoCE device\n\
             MISSING  an identifier is set\n         Set one.\n"
        );
    }

    #[test]
    fn gids_of_ipv4_addresses_are_told_apart() {
        let gid = "0000:0000:0000:0000:0000:ffff:0a09:0001";
        assert_eq!(mapped(gid), Some(Ipv4Addr::new(10, 9, 0, 1)));
        assert_eq!(mapped("fe80:0000:0000:0000:0000:0000:0000:0001"), None);
        assert_eq!(mapped("0000:0000:0000:0000:0000:0000:0000:0000"), None);
    }
}

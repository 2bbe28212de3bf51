// SPDX-License-Identifier: GPL-2.0

//! Whether this host can do SMC.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use smc_netlink::{Device, Error, Pnet, PnetEntry, Smc};
use smc_tools::output::interface_name;

use super::{firewall, Finding};

/// Looks at everything.
///
/// # Errors
///
/// A sentence when the kernel cannot be asked.
pub(super) fn look() -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    match Smc::open() {
        Ok(mut smc) => with_module(&mut smc, &mut findings).map_err(|error| error.to_string())?,
        Err(Error::NoFamily(_)) => findings.push(no_module(&release())),
        Err(other) => return Err(other.to_string()),
    }
    findings.extend(firewall::look());
    Ok(findings)
}

/// The name of the kernel that runs.
fn release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

fn no_module(release: &str) -> Finding {
    let installed = ["extra/smc_rs.ko", "updates/smc_rs.ko"].iter().any(|file| {
        let modules = Path::new("/lib/modules").join(release);
        modules.join(file).exists()
    });
    let remedy = if installed {
        "Load it with \"modprobe smc_rs\".".to_owned()
    } else {
        format!("Install it for this kernel, {release}, with \"make install\", then \"modprobe smc_rs\".")
    };
    Finding::missing("an SMC module is loaded", remedy)
}

fn with_module(smc: &mut Smc, findings: &mut Vec<Finding>) -> smc_netlink::Result<()> {
    findings.push(Finding::good("an SMC module is loaded"));
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
    if let Ok(mut pnet) = Pnet::open() {
        networks(&pnet.all()?, &devices, findings);
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
            mapped_gid(&device.name, port.number).is_some(),
            "Give its network device an IPv4 address: version 2 needs one.",
        ));
    }
}

/// Each network of a network device must have a port, else its connections stay on TCP.
fn networks(rows: &[PnetEntry], devices: &[Device], findings: &mut Vec<Finding>) {
    for row in rows.iter().filter(|row| row.interface != "n/a") {
        let mut ports = devices.iter().flat_map(|device| &device.ports);
        findings.push(Finding::new(
            format!(
                "the network {} of {} has an RDMA port",
                row.name, row.interface
            ),
            ports.any(|port| port.pnet_id == row.name),
            format!(
                "Put a port on it with \"smc_pnet -a -D DEVICE {name}\", or remove it with \
                 \"smc_pnet -d {name}\".",
                name = row.name
            ),
        ));
    }
}

/// The IPv4 address that one of the port's GIDs stands for.
pub(crate) fn mapped_gid(device: &str, port: u8) -> Option<Ipv4Addr> {
    let folder = format!("/sys/class/infiniband/{device}/ports/{port}/gids");
    fs::read_dir(folder)
        .ok()?
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path()).ok())
        .find_map(|gid| mapped(gid.trim()))
}

/// The IPv4 address that a GID stands for.
fn mapped(gid: &str) -> Option<Ipv4Addr> {
    let address: Ipv6Addr = gid.parse().ok()?;
    address.to_ipv4_mapped()
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use smc_netlink::DevicePort;

    #[test]
    fn gids_of_ipv4_addresses_are_told_apart() {
        let gid = "0000:0000:0000:0000:0000:ffff:0a09:0001";
        assert_eq!(mapped(gid), Some(Ipv4Addr::new(10, 9, 0, 1)));
        assert_eq!(mapped("fe80:0000:0000:0000:0000:0000:0000:0001"), None);
        assert_eq!(mapped("0000:0000:0000:0000:0000:0000:0000:0000"), None);
    }

    #[test]
    fn a_kernel_without_the_module_is_named() {
        let finding = no_module("0.0-none");
        assert!(finding
            .remedy
            .is_some_and(|remedy| remedy.contains("0.0-none")));
    }

    #[test]
    fn a_network_needs_a_port() {
        let row = |name: &str, interface: &str| PnetEntry {
            name: name.to_owned(),
            interface: interface.to_owned(),
            device: "n/a".to_owned(),
            port: 255,
        };
        let device = Device {
            ports: vec![DevicePort {
                pnet_id: "NETA".to_owned(),
                ..DevicePort::default()
            }],
            ..Device::default()
        };
        let rows = [row("NETA", "eth0"), row("NETB", "eth1"), row("NETC", "n/a")];
        let mut findings = Vec::new();
        networks(&rows, &[device], &mut findings);
        let verdicts: Vec<Verdict> = findings.iter().map(|finding| finding.verdict).collect();
        assert_eq!(verdicts, [Verdict::Good, Verdict::Missing]);
        assert!(findings[1].what.contains("NETB"));
    }
}

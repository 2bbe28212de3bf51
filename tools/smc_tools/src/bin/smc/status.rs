// SPDX-License-Identifier: GPL-2.0

//! What there is.

use std::fmt::Write;

use serde::Serialize;
use smc_netlink::diag::{self, Details, Mode, Socket, State};
use smc_netlink::{Device, Fallbacks, Group, Smc, Stats, SystemInfo};
use smc_tools::output::{self, interface_name, Outcome};

/// All of it.
#[derive(Serialize)]
struct Status {
    system: SystemInfo,
    ueids: Vec<String>,
    devices: Vec<Device>,
    groups: Vec<Group>,
    sockets: Counts,
    stats: Stats,
    fallbacks: Fallbacks,
}

/// Sockets by what they do.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Counts {
    listening: usize,
    unconnected: usize,
    smcr: usize,
    smcd: usize,
    tcp: usize,
}

impl Counts {
    fn of(sockets: &[Socket]) -> Self {
        let mut counts = Self::default();
        for socket in sockets {
            let count = match (socket.state, socket.mode) {
                (State::LISTEN, _) => &mut counts.listening,
                (State::INIT | State::CLOSED, _) => &mut counts.unconnected,
                (_, Mode::Rdma) => &mut counts.smcr,
                (_, Mode::SharedMemory) => &mut counts.smcd,
                (_, Mode::Tcp) => &mut counts.tcp,
            };
            *count += 1;
        }
        counts
    }
}

pub(crate) fn run(json: bool) -> Outcome {
    let words = |error: smc_netlink::Error| error.to_string();
    let mut smc = Smc::open().map_err(words)?;
    let status = Status {
        system: smc.system().map_err(words)?,
        ueids: smc.ueids().map_err(words)?,
        devices: smc.devices().map_err(words)?,
        groups: smc.groups().map_err(words)?,
        sockets: Counts::of(&diag::sockets(Details::default()).map_err(words)?),
        stats: smc.stats().map_err(words)?,
        fallbacks: smc.fallbacks().map_err(words)?,
    };
    if json {
        return output::print_json(&status);
    }
    output::print(&text(&status, &interface_name))
}

/// Writing to a string does not fail.
fn text(status: &Status, interface_name: &dyn Fn(u32) -> String) -> String {
    let mut out = String::new();
    let system = &status.system;
    let _ = writeln!(
        out,
        "SMC {}.{} on {}",
        system.version,
        system.release,
        system.host.as_deref().unwrap_or("this host")
    );
    let ueids = match status.ueids.as_slice() {
        [] => "none: version 2 needs one, see \"smcr ueid add\"".to_owned(),
        some => some.join(", "),
    };
    let _ = writeln!(out, "Identifiers: {ueids}");
    if status.devices.is_empty() {
        out.push_str("Devices: none; \"smc check\" tells more\n");
    }
    for device in &status.devices {
        for port in &device.ports {
            let state = if port.active { "active" } else { "down" };
            let name = interface_name(port.ifindex);
            let on = if name.is_empty() {
                "no interface"
            } else {
                name.as_str()
            };
            let _ = writeln!(
                out,
                "Device: {} port {} on {on}, {state}, {} links",
                device.name, port.number, port.links
            );
        }
    }
    for group in &status.groups {
        let peer = group.v2.as_ref().map_or("", |v2| v2.peer_host.as_str());
        let device = group.links.first().map_or("", |link| link.device.as_str());
        let _ = writeln!(
            out,
            "Link group: {:08x} {} with {peer} over {device}, {} connections",
            group.id,
            group.role_name(),
            group.connections
        );
    }
    let sockets = &status.sockets;
    let _ = writeln!(
        out,
        "Sockets: {} SMC-R, {} SMC-D, {} on TCP, {} listening, {} not connected",
        sockets.smcr, sockets.smcd, sockets.tcp, sockets.listening, sockets.unconnected
    );
    let (fallbacks, connections) = (
        status.fallbacks.client + status.fallbacks.server,
        status.stats.smcr.connections() + status.stats.smcd.connections(),
    );
    let _ = writeln!(
        out,
        "Since the module was loaded: {connections} connections over SMC, {fallbacks} on TCP"
    );
    if fallbacks > 0 {
        out.push_str("\"smc why\" explains those on TCP.\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use smc_netlink::DevicePort;

    #[test]
    fn the_text_says_what_there_is_and_what_is_missing() {
        let mut status = Status {
            system: SystemInfo {
                version: 2,
                release: 1,
                host: Some("nodea".to_owned()),
                ..SystemInfo::default()
            },
            ueids: Vec::new(),
            devices: Vec::new(),
            groups: Vec::new(),
            sockets: Counts::default(),
            stats: Stats::default(),
            fallbacks: Fallbacks::default(),
        };
        let name = |_: u32| "eth0".to_owned();
        let bare = text(&status, &name);
        assert!(
            bare.starts_with("SMC 2.1 on nodea\nIdentifiers: none"),
            "{bare}"
        );
        assert!(bare.contains("Devices: none"), "{bare}");
        assert!(!bare.contains("smc why"), "{bare}");
        status.devices.push(Device {
            name: "rxe0".to_owned(),
            ports: vec![DevicePort {
                number: 1,
                active: true,
                ..DevicePort::default()
            }],
            ..Device::default()
        });
        status.fallbacks.client = 2;
        let full = text(&status, &name);
        assert!(
            full.contains("Device: rxe0 port 1 on eth0, active, 0 links"),
            "{full}"
        );
        assert!(full.contains("2 on TCP\n\"smc why\""), "{full}");
    }
}

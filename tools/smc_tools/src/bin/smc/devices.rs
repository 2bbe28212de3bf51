// SPDX-License-Identifier: GPL-2.0

//! RDMA devices, and whether SMC-R can use them.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use serde::Serialize;
use smc_netlink::{Device, Smc};
use smc_tools::output::{self, interface_name, Outcome};

use crate::check::mapped_gid;

/// A port of a device.
#[derive(Debug, Default, Serialize)]
struct Port {
    device: String,
    port: u8,
    state: String,
    interface: String,
    address: Option<Ipv4Addr>,
    pnet_id: String,
    #[serde(rename = "type")]
    kind: String,
    pci_id: String,
    links: u32,
    /// Why SMC-R version 2 cannot use it.
    obstacle: Option<&'static str>,
}

pub(crate) fn run(json: bool) -> Outcome {
    let known = Smc::open().and_then(|mut smc| smc.devices()).ok();
    let root = Path::new("/sys/class/infiniband");
    let mut ports = Vec::new();
    for device in names(root) {
        for number in names(&root.join(&device).join("ports")) {
            if let Ok(number) = number.parse() {
                ports.push(port(root, &device, number, known.as_deref()));
            }
        }
    }
    if json {
        return output::print_json(&ports);
    }
    if ports.is_empty() {
        return output::print("There is no RDMA device; \"smc check\" tells more.\n");
    }
    output::print(&text(&ports))
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn port(root: &Path, device: &str, number: u8, known: Option<&[Device]>) -> Port {
    let of_kernel = known.and_then(|known| known.iter().find(|entry| entry.name == device));
    let of_port = of_kernel.and_then(|entry| entry.ports.iter().find(|port| port.number == number));
    let home = root.join(device);
    let state = fs::read_to_string(home.join(format!("ports/{number}/state")));
    // "4: ACTIVE"
    let state = state.unwrap_or_default();
    let state = state.split(": ").last().unwrap_or_default().trim();
    let mut port = Port {
        device: device.to_owned(),
        port: number,
        state: state.to_owned(),
        address: mapped_gid(device, number),
        kind: driver(&home),
        ..Port::default()
    };
    if let (Some(entry), Some(known)) = (of_kernel, of_port) {
        port.interface = interface_name(known.ifindex);
        port.pnet_id.clone_from(&known.pnet_id);
        port.pci_id.clone_from(&entry.pci_id);
        port.links = known.links;
    }
    port.obstacle = obstacle(&port, known.is_some(), of_port.is_some());
    port
}

/// The driver of the hardware; a device without hardware is told by its parent.
fn driver(home: &Path) -> String {
    let link = fs::read_link(home.join("device/driver")).ok();
    let name = link.as_deref().and_then(Path::file_name);
    name.map_or_else(
        || "software".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

fn obstacle(port: &Port, module: bool, known: bool) -> Option<&'static str> {
    if !module {
        Some("no SMC module is loaded")
    } else if !known {
        Some("the module does not use it")
    } else if port.state != "ACTIVE" {
        Some("it is not active")
    } else if port.interface.is_empty() {
        Some("its network device is not here")
    } else if port.address.is_none() {
        Some("it has no IPv4 address")
    } else {
        None
    }
}

fn text(ports: &[Port]) -> String {
    let dash = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
    let mut rows = vec![[
        "Device", "Port", "State", "Net-Dev", "Address", "PNET_ID", "Type", "PCI_ID", "Links",
        "SMC-R",
    ]
    .map(str::to_owned)];
    rows.extend(ports.iter().map(|port| {
        let address = port.address.map(|address| address.to_string());
        [
            port.device.clone(),
            port.port.to_string(),
            dash(&port.state),
            dash(&port.interface),
            dash(&address.unwrap_or_default()),
            dash(&port.pnet_id),
            port.kind.clone(),
            dash(&port.pci_id),
            port.links.to_string(),
            port.obstacle.unwrap_or("yes").to_owned(),
        ]
    }));
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    let line = |row: &[String; 10]| {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_a_line() {
        let port = Port {
            device: "rxe0".to_owned(),
            port: 1,
            state: "ACTIVE".to_owned(),
            interface: "eth0".to_owned(),
            kind: "software".to_owned(),
            obstacle: Some("it has no IPv4 address"),
            ..Port::default()
        };
        assert_eq!(
            text(&[port]),
            "Device  Port  State   Net-Dev  Address  PNET_ID  Type      PCI_ID  Links  SMC-R\n\
             rxe0    1     ACTIVE  eth0     -        -        software  -       0      it has no IPv4 address\n"
        );
    }

    #[test]
    fn the_first_obstacle_is_told() {
        let mut port = Port {
            state: "DOWN".to_owned(),
            ..Port::default()
        };
        let module = "no SMC module is loaded";
        assert_eq!(obstacle(&port, false, false), Some(module));
        assert_eq!(obstacle(&port, true, true), Some("it is not active"));
        port.state = "ACTIVE".to_owned();
        port.interface = "eth0".to_owned();
        port.address = Some(Ipv4Addr::LOCALHOST);
        assert_eq!(obstacle(&port, true, true), None);
    }
}

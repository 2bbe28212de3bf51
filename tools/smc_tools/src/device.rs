// SPDX-License-Identifier: GPL-2.0

//! `device`: RoCE ports and shared memory devices.

use std::fmt::Write;

use smc_netlink::{Device, DevicePort, Smc};

use crate::object::{misused, stem, Options, Program};
use crate::output::{self, Outcome};

/// Which ports are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Those of an RDMA device.
    pub ibdev: Option<String>,
    /// Those of a network device.
    pub netdev: Option<String>,
}

impl Filter {
    /// Takes the words after `device` apart.
    fn parse(program: Program, words: &[&str]) -> Option<Self> {
        let words = match words.split_first() {
            Some((word, rest)) if stem(word, "show") => rest,
            _ => words,
        };
        let words = match words.split_first() {
            Some((word, rest)) if stem(word, "all") => rest,
            _ => words,
        };
        match words {
            [] => Some(Self::default()),
            [key, name] if program == Program::Smcr && stem(key, "ibdev") => Some(Self {
                ibdev: Some((*name).to_owned()),
                netdev: None,
            }),
            [key, name] if program == Program::Smcr && stem(key, "netdev") => Some(Self {
                ibdev: None,
                netdev: Some((*name).to_owned()),
            }),
            _ => None,
        }
    }

    fn passes(&self, device: &str, interface: &str) -> bool {
        let fits = |wanted: &Option<String>, name| wanted.as_deref().is_none_or(|w| w == name);
        fits(&self.ibdev, device) && fits(&self.netdev, interface)
    }

    /// Leaves the ports that pass, and their devices.
    fn retain(&self, devices: &mut Vec<Device>, interface_name: &dyn Fn(u32) -> String) {
        if *self == Self::default() {
            return;
        }
        devices.retain_mut(|device| {
            let name = &device.name;
            let passes = |port: &DevicePort| self.passes(name, &interface_name(port.ifindex));
            device.ports.retain(passes);
            !device.ports.is_empty()
        });
    }
}

/// Runs `device`.
///
/// # Errors
///
/// A sentence for the user.
pub fn run(program: Program, options: Options, words: &[&str], mut smc: Smc) -> Outcome {
    let filter = Filter::parse(program, words).ok_or_else(|| misused(program, "device"))?;
    let devices = match program {
        Program::Smcr => smc.devices(),
        Program::Smcd => smc.smcd_devices(),
    };
    let mut devices = devices.map_err(|error| error.to_string())?;
    if options.json {
        filter.retain(&mut devices, &output::interface_name);
        return output::print_json(&devices);
    }
    output::print(&match program {
        Program::Smcr => roce_text(&devices, &filter, options, &output::interface_name),
        Program::Smcd => ism_text(&devices),
    })
}

/// The table of RoCE ports; nothing at all when there is none, as scripts expect.
pub fn roce_text(
    devices: &[Device],
    filter: &Filter,
    options: Options,
    interface_name: &dyn Fn(u32) -> String,
) -> String {
    if devices.is_empty() {
        return String::new();
    }
    let detailed = options.detail > 0;
    let mut out = String::from("Net-Dev         IB-Dev   IB-P  IB-State  Type          Crit  ");
    if detailed {
        out.push_str(" FID   PCI-ID        PCHID  ");
    }
    out.push_str("#Links  PNET-ID  \n");
    for device in devices {
        for port in &device.ports {
            let interface = interface_name(port.ifindex);
            if filter.passes(&device.name, &interface) {
                row(&mut out, device, port, &interface, detailed);
            }
        }
    }
    out
}

fn row(out: &mut String, device: &Device, port: &DevicePort, interface: &str, detailed: bool) {
    let state = if port.active { "ACTIVE" } else { "INACTIVE" };
    let critical = if device.critical { "Yes" } else { "No" };
    let user = if port.pnet_by_user { "*" } else { "" };
    let network = format!("{user}{}", port.pnet_id);
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "{interface:<15.15} {:<8.8} {:>4}  {state:>8}  {:<13}  {critical:>3}   ",
        device.name,
        port.number,
        device.type_name()
    );
    if detailed {
        let _ = write!(
            out,
            "{:04x}  {:<12}  {:04x}    ",
            device.pci_fid, device.pci_id, device.pci_chid
        );
    }
    let _ = writeln!(out, "{:>5}  {network:<16} ", port.links);
}

/// The table of shared memory devices.
pub fn ism_text(devices: &[Device]) -> String {
    if devices.is_empty() {
        return String::new();
    }
    let mut out = String::from("FID  Type  PCI-ID        PCHID  InUse  #LGs  PNET-ID  \n");
    for device in devices {
        let in_use = if device.use_count > 0 { "Yes" } else { "No" };
        let port = device.ports.first();
        let user = port.is_some_and(|port| port.pnet_by_user);
        let network = port.map_or("", |port| port.pnet_id.as_str());
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{:04x} {:<4}  {:<12}  {:04x}   {in_use:<3}    {:>4}  {}{network:<16} ",
            device.pci_fid,
            device.type_name(),
            device.pci_id,
            device.pci_chid,
            device.use_count,
            if user { "*" } else { "" },
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Device {
        Device {
            name: "mlx5_1".to_owned(),
            pci_device: 0x101b,
            pci_id: "0000:01:00.0".to_owned(),
            ports: vec![DevicePort {
                number: 1,
                pnet_by_user: true,
                pnet_id: "RACK12".to_owned(),
                ifindex: 3,
                active: true,
                links: 4,
            }],
            ..Device::default()
        }
    }

    #[test]
    fn columns_stand_where_scripts_look_for_them() {
        let name = |_: u32| "eth2".to_owned();
        let text = roce_text(&[device()], &Filter::default(), Options::default(), &name);
        assert_eq!(
            text,
            "Net-Dev         IB-Dev   IB-P  IB-State  Type          Crit  #Links  PNET-ID  \n\
             eth2            mlx5_1      1    ACTIVE  0x101b          No       4  *RACK12          \n"
        );
        let detailed = Options {
            detail: 1,
            ..Options::default()
        };
        let text = roce_text(&[device()], &Filter::default(), detailed, &name);
        assert!(
            text.contains(" FID   PCI-ID        PCHID  #Links"),
            "{text}"
        );
        assert!(
            text.contains("No   0000  0000:01:00.0  0000        4"),
            "{text}"
        );
        assert_eq!(roce_text(&[], &Filter::default(), detailed, &name), "");
    }

    #[test]
    fn ports_are_chosen_by_device() {
        let parse = |words: &[&str]| Filter::parse(Program::Smcr, words);
        let filter = parse(&["show", "netdev", "eth9"]).expect("the words are good");
        let name = |_: u32| "eth2".to_owned();
        let text = roce_text(&[device()], &filter, Options::default(), &name);
        assert_eq!(text.lines().count(), 1);
        for (words, count) in [(["netdev", "eth9"], 0), (["netdev", "eth2"], 1)] {
            let mut devices = vec![device()];
            let filter = parse(&words).expect("the words are good");
            filter.retain(&mut devices, &name);
            assert_eq!(devices.len(), count, "{words:?}");
        }
        assert_eq!(parse(&["all"]), Some(Filter::default()));
        assert_eq!(parse(&["ibdev"]), None);
        assert_eq!(Filter::parse(Program::Smcd, &["ibdev", "x"]), None);
    }
}

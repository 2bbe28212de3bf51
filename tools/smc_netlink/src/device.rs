// SPDX-License-Identifier: GPL-2.0

//! Devices.

use serde::Serialize;

use crate::{Attrs, Result};

/// A device that can carry SMC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Device {
    /// Name of an RDMA device.
    pub name: String,
    /// Link groups would be lost with it.
    pub critical: bool,
    /// Users, of an SMC-D device.
    pub use_count: u32,
    /// PCI function ID.
    pub pci_fid: u32,
    /// PCI channel ID.
    pub pci_chid: u16,
    /// PCI vendor.
    pub pci_vendor: u16,
    /// PCI device.
    pub pci_device: u16,
    /// Place on the PCI bus.
    pub pci_id: String,
    /// Its ports.
    pub ports: Vec<DevicePort>,
}

/// A port of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DevicePort {
    /// Its number.
    pub number: u8,
    /// The network was set by the user.
    pub pnet_by_user: bool,
    /// Its network.
    pub pnet_id: String,
    /// Number of the network device.
    pub ifindex: u32,
    /// It is up.
    pub active: bool,
    /// Links over it.
    pub links: u32,
}

impl Device {
    pub(crate) fn parse(dev: &Attrs) -> Result<Self> {
        let mut ports = Vec::new();
        for (number, attr) in [(1, 8), (2, 9)] {
            let port = dev.nested(attr)?;
            if dev.has(attr) && port.u8(5) != Some(0) {
                ports.push(DevicePort::parse(number, &port));
            }
        }
        let u16_of = |attr| dev.uint(attr).and_then(|value| value.try_into().ok());
        Ok(Self {
            use_count: dev.u32(1).unwrap_or(0),
            critical: dev.flag(2),
            pci_fid: dev.u32(3).unwrap_or(0),
            pci_chid: u16_of(4).unwrap_or(0),
            pci_vendor: u16_of(5).unwrap_or(0),
            pci_device: u16_of(6).unwrap_or(0),
            pci_id: dev.text(7).unwrap_or_default(),
            name: dev.text(10).unwrap_or_default(),
            ports,
        })
    }

    /// The name of the hardware, or its number.
    pub fn type_name(&self) -> String {
        match self.pci_device {
            0x1004 => "RoCE_Express".to_owned(),
            0x1016 => "RoCE_Express2".to_owned(),
            0x101e => "RoCE_Express3".to_owned(),
            0x04ed => "ISM".to_owned(),
            0 => "0".to_owned(),
            other => format!("{other:#x}"),
        }
    }
}

impl DevicePort {
    fn parse(number: u8, port: &Attrs) -> Self {
        Self {
            number,
            pnet_by_user: port.flag(1),
            pnet_id: port.text(2).unwrap_or_default(),
            ifindex: port.u32(3).unwrap_or(0),
            active: port.flag(4),
            links: port.u32(6).unwrap_or(0),
        }
    }
}

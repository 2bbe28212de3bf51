// SPDX-License-Identifier: GPL-2.0

//! Devices.

use serde::Serialize;
use smc_proto::genl::smc::{dev, dev_port};

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
    pub(crate) fn parse(attrs: &Attrs) -> Result<Self> {
        let mut ports = Vec::new();
        for (number, attr) in [(1, dev::PORT), (2, dev::PORT2)] {
            let port = attrs.nested(attr)?;
            if attrs.has(attr) && port.u8(dev_port::VALID) != Some(0) {
                ports.push(DevicePort::parse(number, &port));
            }
        }
        let u16_of = |attr| attrs.uint(attr).and_then(|value| value.try_into().ok());
        Ok(Self {
            use_count: attrs.u32(dev::USE_CNT).unwrap_or(0),
            critical: attrs.flag(dev::IS_CRIT),
            pci_fid: attrs.u32(dev::PCI_FID).unwrap_or(0),
            pci_chid: u16_of(dev::PCI_CHID).unwrap_or(0),
            pci_vendor: u16_of(dev::PCI_VENDOR).unwrap_or(0),
            pci_device: u16_of(dev::PCI_DEVICE).unwrap_or(0),
            pci_id: attrs.text(dev::PCI_ID).unwrap_or_default(),
            name: attrs.text(dev::IB_NAME).unwrap_or_default(),
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
            pnet_by_user: port.flag(dev_port::PNET_USR),
            pnet_id: port.text(dev_port::PNETID).unwrap_or_default(),
            ifindex: port.u32(dev_port::NETDEV).unwrap_or(0),
            active: port.flag(dev_port::STATE),
            links: port.u32(dev_port::LNK_CNT).unwrap_or(0),
        }
    }
}

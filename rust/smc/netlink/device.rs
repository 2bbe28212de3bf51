// SPDX-License-Identifier: GPL-2.0

//! RoCE devices.

use kernel::prelude::*;
use smc_kapi::{
    genl::{
        Builder,
        Dump, //
    },
    net::Net,
    rdma::Device, //
};
use smc_proto::genl::smc::{
    cmd,
    dev as attr,
    dev_port as port_attr,
    outer, //
};

use crate::smc::global::{
    self,
    Global, //
};

/// Ports of a device that are shown.
const MAX_PORTS: u8 = 2;

/// Devices that the caller's namespace may use, in the order of their numbers.
pub(super) fn dump(dump: &mut Dump<'_>) -> Result {
    let global = global::get().ok_or(ENODEV)?;
    while let Some(device) = global.devices.after(dump.cookie(0)) {
        if device.accessible_from(dump.net()) {
            let net = dump.net().to_ref();
            dump.item(cmd::GET_DEV_SMCR, |message| {
                message.nest(outer::DEV_SMCR, |out| put(out, &global, &net, &device))
            })?;
        }
        dump.set_cookie(0, device.id());
    }
    Ok(())
}

fn put(out: &mut Builder, global: &Global, net: &Net, device: &Device) -> Result {
    let links = |port| global.groups.links_on(device.id(), port);
    // A link group has one link, and ends with it.
    let critical = (1..=MAX_PORTS).any(|port| links(port) != 0);
    out.put_u8(attr::IS_CRIT, u8::from(critical))?;
    if let Some(pci) = device.pci() {
        // Function and channel numbers are those of s390.
        out.put_u32(attr::PCI_FID, 0)?;
        out.put_u16(attr::PCI_CHID, 0)?;
        out.put_u16(attr::PCI_VENDOR, pci.vendor)?;
        out.put_u16(attr::PCI_DEVICE, pci.device)?;
        out.put_text(attr::PCI_ID, pci.slot())?;
    }
    out.put_text(attr::IB_NAME, device.name().as_str().as_bytes())?;
    for port in device.ports().filter(|port| *port <= MAX_PORTS) {
        out.nest(attr::PORT + u16::from(port) - 1, |out| {
            let network = global.pnet.of_port(device, port);
            out.put_u8(port_attr::PNET_USR, u8::from(network.is_some()))?;
            let name = network.as_ref().map_or(&[][..], |network| network.text());
            out.put_text(port_attr::PNETID, name)?;
            let ifindex = global.devices.interface_of(device.id(), port, net.id());
            // CAST: Interface numbers are positive.
            out.put_u32(port_attr::NETDEV, ifindex.unwrap_or(0) as u32)?;
            out.put_u8(port_attr::VALID, 1)?;
            out.put_u8(port_attr::STATE, u8::from(device.port_active(port)))?;
            out.put_u32(port_attr::LNK_CNT, links(port))
        })?;
    }
    Ok(())
}

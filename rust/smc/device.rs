// SPDX-License-Identifier: GPL-2.0

//! RoCE devices, and which port and GID a connection uses.
//!
//! A connection goes over the port whose network device carries its TCP packets. A RoCEv2 GID
//! serves version 2, a RoCEv1 GID version 1.

use core::ops::ControlFlow;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use smc_kapi::{
    net::Net,
    rdma::{
        Client,
        ClientSlot,
        Device,
        EventHandler,
        GidEntry,
        GidKind,
        PortEvent, //
    },
};
use smc_proto::ids::{
    Gid,
    Mac,
    PathMtu, //
};

use crate::smc::{
    global,
    lgr::Ending, //
};

static SLOT: ClientSlot = ClientSlot::new();

/// The port and GID chosen for a link.
#[derive(Clone)]
pub(crate) struct PortChoice {
    pub(crate) device: Arc<Device>,
    pub(crate) port: u8,
    pub(crate) gid_index: u32,
    pub(crate) gid: Gid,
    pub(crate) mac: Mac,
    pub(crate) mtu: PathMtu,
}

impl PortChoice {
    /// Whether both are the same GID of the same port.
    pub(crate) fn same_as(&self, other: &PortChoice) -> bool {
        self.device.id() == other.device.id() && self.port == other.port && self.gid == other.gid
    }
}

/// Where a connection leaves the host.
#[derive(Clone, Copy)]
pub(crate) struct Egress {
    pub(crate) ifindex: i32,
    /// The local IPv4 address of the connection.
    pub(crate) ipv4: Option<[u8; 4]>,
}

/// The RoCE devices of the system.
#[pin_data]
pub(crate) struct DeviceTable {
    #[pin]
    devices: Mutex<KVec<Arc<Device>>>,
}

impl DeviceTable {
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            devices <- new_mutex!(KVec::new(), "smc_devices"),
        }? Error)
    }

    /// MAC address of the first port that has one.
    pub(crate) fn first_mac(&self) -> Option<Mac> {
        let devices = self.devices.lock();
        let mut mac = None;
        for device in devices.iter() {
            for port in device.ports() {
                device.for_each_gid(port, |entry| match entry.mac {
                    [0, 0, 0, 0, 0, 0] => ControlFlow::Continue(()),
                    found => {
                        mac = Some(Mac(found));
                        ControlFlow::Break(())
                    }
                });
                if mac.is_some() {
                    return mac;
                }
            }
        }
        None
    }

    /// Chooses a port with a GID of one of the given kinds for a connection of namespace `net`.
    ///
    /// The GID of the connection's own address is preferred over another one of the port.
    /// Process context.
    pub(crate) fn choose(&self, net: &Net, egress: Egress, kinds: &[GidKind]) -> Option<PortChoice> {
        let devices = self.devices.lock();
        let mut best: Option<PortChoice> = None;
        for device in devices.iter().filter(|device| device.accessible_from(net)) {
            for port in device.ports().filter(|port| device.port_active(*port)) {
                let Some(mtu) = PathMtu::from_code(device.active_mtu(port)) else {
                    continue;
                };
                device.for_each_gid(port, |entry| {
                    if !usable(&entry, net, egress.ifindex, kinds) {
                        return ControlFlow::Continue(());
                    }
                    let gid = Gid(entry.gid);
                    let exact = egress.ipv4.is_some() && gid.ipv4() == egress.ipv4;
                    if best.is_none() || exact {
                        best = Some(PortChoice {
                            device: device.clone(),
                            port,
                            gid_index: entry.index,
                            gid,
                            mac: Mac(entry.mac),
                            mtu,
                        });
                    }
                    if exact {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                });
            }
        }
        best
    }

    fn add(&self, device: Arc<Device>) -> Result {
        self.devices.lock().push(device, GFP_KERNEL)?;
        Ok(())
    }

    fn remove(&self, device: &Arc<Device>) {
        self.devices.lock().retain(|entry| entry.id() != device.id());
    }
}

/// Whether a GID can carry a connection that leaves through `ifindex` of `net`.
///
/// Only IPv4 GIDs serve version 2: peers on Linux accept no others.
fn usable(entry: &GidEntry, net: &Net, ifindex: i32, kinds: &[GidKind]) -> bool {
    let family_fits = entry.kind != GidKind::RoceV2 || Gid(entry.gid).ipv4().is_some();
    kinds.contains(&entry.kind)
        && family_fits
        && entry.ifindex == ifindex
        && entry.net == net.id()
}

/// Receives devices from the RDMA core.
pub(crate) struct DeviceWatcher;

impl Client for DeviceWatcher {
    const NAME: &'static CStr = c"smc_rs";

    fn slot() -> &'static ClientSlot {
        &SLOT
    }

    fn add(device: Arc<Device>) -> Result {
        let global = global::get().ok_or(ENODEV)?;
        global.devices.add(device)
    }

    /// Ends everything that uses the device; its sockets see a reset. The core then waits until the
    /// last object on the device is gone.
    fn remove(device: &Arc<Device>) {
        if let Some(global) = global::get() {
            global.devices.remove(device);
            global
                .groups
                .end_matching_now(Ending::DeviceRemoved, |group| group.uses(device));
        }
    }
}

impl EventHandler for DeviceWatcher {
    fn port_event(device: &Arc<Device>, port: u32, event: PortEvent) {
        if let Some(global) = global::get() {
            global.groups.port_event(device, port, event);
        }
    }
}

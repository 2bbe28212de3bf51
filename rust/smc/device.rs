// SPDX-License-Identifier: GPL-2.0

//! RoCE devices, and which port and GID a connection uses.
//!
//! A connection goes over the port whose network device carries its TCP packets, or over one that
//! the table of networks names for that device. A RoCEv2 GID
//! serves version 2, a RoCEv1 GID version 1.

use core::ops::ControlFlow;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    workqueue::{
        impl_has_work,
        new_work,
        Work,
        WorkItem, //
    },
};
use smc_kapi::{
    net::{
        Net,
        NetId, //
    },
    rdma::{
        Client,
        ClientSlot,
        Device,
        EventHandler,
        GidEntry,
        GidKind,
        PortEvent, //
    },
    work, //
};
use smc_proto::ids::{
    Gid,
    Mac,
    PathMtu, //
};
use smc_proto::pnet::PnetId;

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
    /// The network device of the GID, in its own namespace.
    pub(crate) ifindex: i32,
    /// The network that the port was chosen for, or is on.
    pub(crate) network: Option<PnetId>,
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

/// A GID of a port, as it was when the port's table last changed.
struct PortGid {
    port: u8,
    mtu: PathMtu,
    entry: GidEntry,
}

/// A RoCE device and a copy of its GID tables: those have a thousand places, of which a handshake
/// cannot look at each.
struct Entry {
    device: Arc<Device>,
    gids: KVec<PortGid>,
}

impl Entry {
    /// Reads the GID tables. May sleep.
    fn read(device: Arc<Device>) -> Result<Self> {
        let mut gids = KVec::new();
        let mut result = Ok(());
        for port in device.ports() {
            let Some(mtu) = PathMtu::from_code(device.active_mtu(port)) else {
                continue;
            };
            device.for_each_gid(port, |entry| {
                match gids.push(PortGid { port, mtu, entry }, GFP_KERNEL) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(error) => {
                        result = Err(error.into());
                        ControlFlow::Break(())
                    }
                }
            });
        }
        result.map(|()| Self { device, gids })
    }
}

/// The RoCE devices of the system.
#[pin_data]
pub(crate) struct DeviceTable {
    #[pin]
    devices: Mutex<KVec<Entry>>,
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
        devices
            .iter()
            .flat_map(|entry| entry.gids.iter())
            .map(|gid| gid.entry.mac)
            .find(|mac| *mac != [0; 6])
            .map(Mac)
    }

    /// Chooses a port with a GID of one of the given kinds for a connection of namespace `net`.
    ///
    /// The GID of the connection's own address is preferred over another one of the port.
    /// Process context.
    pub(crate) fn choose(
        &self,
        net: &Net,
        egress: Egress,
        kinds: &[GidKind],
    ) -> Option<PortChoice> {
        let pnet = &global::get()?.pnet;
        let wanted = pnet.of_interface(net, egress.ifindex);
        let devices = self.devices.lock();
        let mut best: Option<PortChoice> = None;
        for Entry { device, gids } in devices.iter() {
            for PortGid { port, mtu, entry } in gids.iter() {
                let network = || pnet.of_port(device.name().as_str(), *port);
                let reaches = match wanted {
                    Some(_) => network() == wanted,
                    None => entry.ifindex == egress.ifindex && entry.net == net.id(),
                };
                if !reaches || !usable(entry, kinds) {
                    continue;
                }
                let gid = Gid(entry.gid);
                let exact = egress.ipv4.is_some() && gid.ipv4() == egress.ipv4;
                if best.is_some() && !exact {
                    continue;
                }
                if !device.accessible_from(net) || !device.port_active(*port) {
                    continue;
                }
                best = Some(PortChoice {
                    device: device.clone(),
                    port: *port,
                    ifindex: entry.ifindex,
                    network: network(),
                    gid_index: entry.index,
                    gid,
                    mac: Mac(entry.mac),
                    mtu: *mtu,
                });
                if exact {
                    return best;
                }
            }
        }
        best
    }

    /// The device with the next number above `id`, for listing.
    pub(crate) fn after(&self, id: u64) -> Option<Arc<Device>> {
        let devices = self.devices.lock();
        let later = devices.iter().filter(|entry| entry.device.id() > id);
        let next = later.min_by_key(|entry| entry.device.id())?;
        Some(next.device.clone())
    }

    /// The network device of a port, if it is in the namespace `net`.
    pub(crate) fn interface_of(&self, device: u64, port: u8, net: NetId) -> Option<i32> {
        let devices = self.devices.lock();
        let entry = devices.iter().find(|entry| entry.device.id() == device)?;
        let of_port = |gid: &&PortGid| gid.port == port && gid.entry.net == net;
        entry.gids.iter().find(of_port).map(|gid| gid.entry.ifindex)
    }

    fn add(&self, device: Arc<Device>) -> Result {
        let entry = Entry::read(device)?;
        self.devices.lock().push(entry, GFP_KERNEL)?;
        Ok(())
    }

    /// Reads the tables of all devices again. May sleep. With the mutex held no device that is in
    /// the table can be removed meanwhile.
    fn refresh(&self) {
        for entry in self.devices.lock().iter_mut() {
            if let Ok(new) = Entry::read(entry.device.clone()) {
                *entry = new;
            }
        }
    }

    fn remove(&self, device: &Arc<Device>) {
        self.devices
            .lock()
            .retain(|entry| entry.device.id() != device.id());
    }
}

/// Whether a GID can carry a connection.
///
/// Only IPv4 GIDs serve version 2: peers on Linux accept no others.
fn usable(entry: &GidEntry, kinds: &[GidKind]) -> bool {
    let family_fits = entry.kind != GidKind::RoceV2 || Gid(entry.gid).ipv4().is_some();
    kinds.contains(&entry.kind) && family_fits
}

/// Reads the tables again after a port has changed. A query of a port may take the RTNL, whose
/// holder may wait for the RDMA core's list of handlers, so no handler can do it.
#[pin_data]
pub(crate) struct Refresher {
    #[pin]
    work: Work<Refresher>,
}

impl_has_work! {
    impl HasWork<Self> for Refresher { self.work }
}

impl Refresher {
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                work <- new_work!("smc_device_refresher"),
            }),
            GFP_KERNEL,
        )
    }
}

impl WorkItem for Refresher {
    type Pointer = Arc<Refresher>;

    fn run(_this: Arc<Refresher>) {
        if let Some(global) = global::get() {
            global.devices.refresh();
        }
    }
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
            work::queue::<_, 0>(&global.link_queue, &global.refresher);
            global.groups.port_event(device, port, event);
        }
    }
}

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
        atomic::{
            Atomic,
            Relaxed, //
        },
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
    /// The VLAN of the GID's network device.
    pub(crate) vlan: Option<u16>,
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

/// A port and a copy of its GID table: that has a thousand places, of which a handshake cannot look
/// at each.
struct Port {
    number: u8,
    /// Its MTU; `None` as long as it cannot be used.
    mtu: Option<PathMtu>,
    gids: KVec<GidEntry>,
    /// The copy is out of date.
    changed: bool,
    /// Turn of the reading that the copy is from.
    turn: u64,
}

impl Port {
    /// Reads the port of `device`. May sleep, and may take the RTNL.
    fn read(device: &Device, number: u8) -> Result<(Option<PathMtu>, KVec<GidEntry>)> {
        let mut gids = KVec::new();
        let mtu = PathMtu::from_code(device.active_mtu(number));
        if mtu.is_none() {
            return Ok((mtu, gids));
        }
        let mut result = Ok(());
        device.for_each_gid(number, |entry| match gids.push(entry, GFP_KERNEL) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                result = Err(error.into());
                ControlFlow::Break(())
            }
        });
        result.map(|()| (mtu, gids))
    }
}

/// A RoCE device and its ports.
struct Entry {
    device: Arc<Device>,
    ports: KVec<Port>,
}

impl Entry {
    /// An entry of which no port has been read.
    fn unread(device: Arc<Device>) -> Result<Self> {
        let mut ports = KVec::new();
        for number in device.ports() {
            let port = Port {
                number,
                mtu: None,
                gids: KVec::new(),
                changed: true,
                turn: 0,
            };
            ports.push(port, GFP_KERNEL)?;
        }
        Ok(Self { device, ports })
    }

    /// Each GID with its port.
    fn gids(&self) -> impl Iterator<Item = (&Port, &GidEntry)> {
        self.ports
            .iter()
            .flat_map(|port| port.gids.iter().map(move |gid| (port, gid)))
    }
}

/// The RoCE devices of the system.
#[pin_data]
pub(crate) struct DeviceTable {
    #[pin]
    devices: Mutex<KVec<Entry>>,
    /// Number of the last reading of a port.
    last_turn: Atomic<u64>,
}

impl DeviceTable {
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            devices <- new_mutex!(KVec::new(), "smc_devices"),
            last_turn: Atomic::new(0),
        }? Error)
    }

    /// MAC address of the first port that has one.
    pub(crate) fn first_mac(&self) -> Option<Mac> {
        let devices = self.devices.lock();
        let mut macs = devices
            .iter()
            .flat_map(|entry| entry.gids().map(|(_, gid)| gid.mac));
        macs.find(|mac| *mac != [0; 6]).map(Mac)
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
        for of_device in devices.iter() {
            let device = &of_device.device;
            for (port, entry) in of_device.gids() {
                let Some(mtu) = port.mtu else {
                    continue;
                };
                let port = port.number;
                let network = || pnet.of_port(device, port);
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
                if !device.accessible_from(net) || !device.port_active(port) {
                    continue;
                }
                best = Some(PortChoice {
                    device: device.clone(),
                    port,
                    ifindex: entry.ifindex,
                    network: network(),
                    gid_index: entry.index,
                    gid,
                    mac: Mac(entry.mac),
                    vlan: entry.vlan,
                    mtu,
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
        let mut gids = entry.gids();
        let found = gids.find(|(of, gid)| of.number == port && gid.net == net)?;
        Some(found.1.ifindex)
    }

    /// Takes a device in. It is in the table before it is read, so that a change meanwhile is not
    /// lost. May sleep, and may take the RTNL.
    fn add(&self, device: Arc<Device>) -> Result {
        let entry = Entry::unread(device.clone())?;
        self.devices.lock().push(entry, GFP_KERNEL)?;
        self.refresh().inspect_err(|_| self.remove(&device))
    }

    /// Notes that a port has changed, or with `None` that all ports of the device have.
    fn mark_changed(&self, device: &Arc<Device>, port: Option<u32>) {
        let mut devices = self.devices.lock();
        let of_device = |entry: &&mut Entry| entry.device.id() == device.id();
        let Some(entry) = devices.iter_mut().find(of_device) else {
            return;
        };
        for known in entry.ports.iter_mut() {
            known.changed |= port.is_none_or(|port| port == u32::from(known.number));
        }
    }

    /// Reads the ports that have changed. May sleep, and may take the RTNL: nothing is locked
    /// meanwhile.
    fn refresh(&self) -> Result {
        while let Some((device, number, turn)) = self.next_changed() {
            let (mtu, gids) = Port::read(&device, number)?;
            let mut devices = self.devices.lock();
            let of_device = |entry: &&mut Entry| entry.device.id() == device.id();
            let Some(entry) = devices.iter_mut().find(of_device) else {
                continue;
            };
            let of_number = |port: &&mut Port| port.number == number;
            let Some(port) = entry.ports.iter_mut().find(of_number) else {
                continue;
            };
            // Somebody who began later saw at least what is seen here.
            if port.turn < turn {
                (port.mtu, port.gids, port.turn) = (mtu, gids, turn);
            }
        }
        Ok(())
    }

    /// A port that is to be read, no longer marked, and the turn of who reads it.
    fn next_changed(&self) -> Option<(Arc<Device>, u8, u64)> {
        let mut devices = self.devices.lock();
        for entry in devices.iter_mut() {
            if let Some(port) = entry.ports.iter_mut().find(|port| port.changed) {
                port.changed = false;
                let turn = self.last_turn.fetch_add(1, Relaxed) + 1;
                return Some((entry.device.clone(), port.number, turn));
            }
        }
        None
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

/// Reads ports again that have changed. A query of a port may take the RTNL, whose holder may wait
/// for the RDMA core's list of handlers, so no handler can do it.
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
            // Without memory what was known stays, until the next event.
            let _ = global.devices.refresh();
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
            let port_of_event = (event != PortEvent::Fatal).then_some(port);
            global.devices.mark_changed(device, port_of_event);
            work::queue::<_, 0>(&global.queues.link, &global.refresher);
            global.groups.port_event(device, port, event);
        }
    }
}

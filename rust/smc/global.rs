// SPDX-License-Identifier: GPL-2.0

//! What the module keeps once for the whole system.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            self,
            Atomic, //
        },
        Arc, //
    },
};
use smc_kapi::{
    global::{
        Global as Slot,
        Installed, //
    },
    module,
    work::{
        OwnedQueue,
        QueueFlags, //
    },
};
use smc_proto::ids::{
    HostName,
    Mac,
    PeerId,
    Release,
    EID_LEN, //
};

use crate::smc::{
    device::{
        DeviceTable,
        Refresher, //
    },
    eids::EidTable,
    lgr::{
        table::GroupTable,
        Queues, //
    },
    pnet::PnetTable, //
};

static GLOBAL: Slot<Global> = Slot::new();

/// Handshakes that may run at the same time on a CPU. One holds its place while it waits for the
/// peer, so there are many; waiting for a client's first message takes none.
const MAX_HANDSHAKES: i32 = 256;
/// Items of the link queue that may run at the same time.
const MAX_LINK_ITEMS: i32 = 512;

/// System-wide state.
#[pin_data]
pub(crate) struct Global {
    /// Runs the handshakes of clients, which wait for servers, maybe for those of this host.
    pub(crate) client_queue: Arc<OwnedQueue>,
    /// Runs the handshakes of servers.
    pub(crate) server_queue: Arc<OwnedQueue>,
    /// Runs listeners, which no handshake may keep from taking the next connection.
    pub(crate) listener_queue: Arc<OwnedQueue>,
    /// Run what link groups and their connections put off.
    pub(crate) queues: Queues,
    /// RoCE devices.
    #[pin]
    pub(crate) devices: DeviceTable,
    /// Keeps what is known of the devices up to date.
    pub(crate) refresher: Arc<Refresher>,
    /// Link groups.
    #[pin]
    pub(crate) groups: GroupTable,
    /// User-defined enterprise IDs.
    #[pin]
    pub(crate) ueids: EidTable,
    /// Which devices are on one network.
    #[pin]
    pub(crate) pnet: PnetTable,
    /// Number of this instance, part of the peer ID: differs between restarts.
    instance: [u8; 2],
    /// Name of this host as peers are told it.
    pub(crate) host: HostName,
    /// Test switch: version 1 may use a RoCEv2 GID.
    pub(crate) v1_over_rocev2: bool,
    /// The highest release of version 2 to speak; a lower one than there is for tests only.
    pub(crate) v2_release: Release,
    /// All of the module is set up, and nothing of it is going away.
    open: Atomic<bool>,
}

impl Global {
    /// Creates the state. May sleep.
    pub(crate) fn new(v1_over_rocev2: bool, v2_release: Release) -> Result<Arc<Self>> {
        // Unbound items share their workers with those of software RDMA devices, and hundreds of
        // handshakes, each in need of a worker of its own, would stand in the way of the packets
        // that they wait for. So they are bound to CPUs.
        let handshakes = QueueFlags::default();
        let client_queue = new_queue(c"smc_rs_client", handshakes, MAX_HANDSHAKES)?;
        let server_queue = new_queue(c"smc_rs_server", handshakes, MAX_HANDSHAKES)?;
        let prompt = QueueFlags {
            unbound: true,
            highpri: true,
            ..QueueFlags::default()
        };
        let patient = QueueFlags {
            unbound: true,
            ..QueueFlags::default()
        };
        let [a, b, ..] = module::random_u32().to_be_bytes();
        Arc::pin_init(
            try_pin_init!(Self {
                client_queue,
                server_queue,
                listener_queue: new_queue(c"smc_rs_listen", QueueFlags::default(), 0)?,
                queues: Queues {
                    link: new_queue(c"smc_rs_link", prompt, MAX_LINK_ITEMS)?,
                    writer: new_queue(c"smc_rs_writer", patient, 0)?,
                },
                devices <- DeviceTable::new(),
                refresher: Refresher::new()?,
                groups <- GroupTable::new(),
                ueids <- EidTable::new(),
                pnet <- PnetTable::new(),
                instance: [a, b],
                host: HostName::new(trimmed(&module::host_name::<EID_LEN>())),
                v1_over_rocev2,
                v2_release,
                open: Atomic::new(false),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Whether sockets may be made.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(atomic::Acquire)
    }

    /// Waits until all work that is queued now has run. May sleep.
    pub(crate) fn flush(&self) {
        self.client_queue.flush();
        self.listener_queue.flush();
        self.server_queue.flush();
        self.queues.link.flush();
        self.queues.writer.flush();
    }

    /// Links that a link group may have.
    pub(crate) const fn max_links(&self) -> u8 {
        1
    }

    /// The ID under which peers know this host: a number and the MAC address of its first port.
    pub(crate) fn peer_id(&self) -> PeerId {
        let mac = self.devices.first_mac().unwrap_or(Mac([0; 6]));
        PeerId::new(self.instance, mac)
    }
}

fn new_queue(name: &'static CStr, flags: QueueFlags, max_active: i32) -> Result<Arc<OwnedQueue>> {
    let queue = OwnedQueue::new(name, flags, max_active)?;
    Ok(Arc::new(queue, GFP_KERNEL)?)
}

/// Lets sockets be made while it lives. A socket keeps the module from being unloaded, but not from
/// being thrown away by the kernel when a later step of loading it fails.
pub(crate) struct Open(Arc<Global>);

impl Open {
    pub(crate) fn new(global: &Arc<Global>) -> Self {
        global.open.store(true, atomic::Release);
        Self(global.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.store(false, atomic::Release);
    }
}

/// The name without the NULs behind it.
fn trimmed(name: &[u8]) -> &[u8] {
    name.split(|byte| *byte == 0).next().unwrap_or(&[])
}

/// Makes `global` reachable through [`get`] while the result lives.
pub(crate) fn install(global: &Arc<Global>) -> Result<Installed<Global>> {
    GLOBAL.install(global.clone())
}

/// The system-wide state; `None` before the module is set up and while it is torn down.
pub(crate) fn get() -> Option<Arc<Global>> {
    GLOBAL.get()
}

// SPDX-License-Identifier: GPL-2.0

//! The `AF_SMC` socket family as a kernel module.
//!
//! This file is the root of the crate: it registers everything with the kernel, in an order that
//! the fields of [`SmcRs`] undo from top to bottom.

#![deny(unsafe_code)]

mod smc;

use kernel::{
    prelude::*,
    sync::Arc, //
};
use smc_kapi::{
    abi,
    diag::ListRegistration,
    global::Installed,
    net::{
        FamilyRegistration,
        InetRegistration,
        PernetRegistration, //
    },
    params,
    proc_files::NetFileRegistration,
    rdma::ClientRegistration,
    sysctl::SettingsRegistration, //
};

use smc_proto::ids::{
    Eid,
    Release, //
};

use smc::{
    device::DeviceWatcher,
    diag::SmcSockets,
    events::EventFamily,
    global::{
        self,
        Global,
        Open, //
    },
    lgr::Ending,
    netlink::{
        pnet::PnetFamily,
        SmcFamily, //
    },
    netns::NetState,
    proc::StatusFile,
    sock::{
        ops::IPPROTO_SMC,
        SmcSocket, //
    },
    sysctl::SmcSettings, //
};

module! {
    type: SmcRs,
    name: "smc_rs",
    authors: ["smc_rs developers"],
    description: "AF_SMC socket family: SMC-R over RoCE for unmodified TCP programs",
    license: "GPL",
    alias: [
        "net-pf-43",
        "net-pf-2-proto-256-type-1",
        "net-pf-10-proto-256-type-1",
        "net-pf-16-proto-4-type-43",
        "net-pf-16-proto-16-family-SMC_GEN_NETLINK",
        "net-pf-16-proto-16-family-SMC_PNETID",
        "net-pf-16-proto-16-family-SMC_RS",
    ],
    params: {
        v1_over_rocev2: u8 {
            default: 0,
            description: "For tests only: lets version 1 use a RoCEv2 GID (0 or 1)",
        },
        v2_release: u8 {
            default: 1,
            description: "For tests only: the release of version 2 to speak (0 or 1)",
        },
    },
}

/// The registrations. Dropped in the order of the fields: first whatever lets new work in, then the
/// link groups, then what they use.
#[pin_data]
struct SmcRs {
    open: Open,
    #[pin]
    protocol: InetRegistration<SmcSocket>,
    #[pin]
    family: FamilyRegistration<SmcSocket>,
    #[pin]
    netlink: SmcFamily,
    #[pin]
    pnet: PnetFamily,
    #[pin]
    events: EventFamily,
    #[pin]
    diag: ListRegistration<SmcSockets>,
    #[pin]
    files: NetFileRegistration<StatusFile>,
    groups: GroupsEnd,
    #[pin]
    devices: ClientRegistration<DeviceWatcher>,
    #[pin]
    namespaces: PernetRegistration<NetState>,
    #[pin]
    settings: SettingsRegistration<SmcSettings>,
    installed: Installed<Global>,
    work: WorkDone,
    global: Arc<Global>,
}

impl kernel::InPlaceModule for SmcRs {
    fn init(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            global: new_global()?,
            work: WorkDone(global.clone()),
            installed: global::install(global)?,
            groups: GroupsEnd(global.clone()),
            // First of all, so that another owner of the family is what an operator is told about.
            // Until everything is ready, `socket()` fails with `ENETDOWN`.
            family <- FamilyRegistration::new(module),
            settings <- SettingsRegistration::<SmcSettings>::new(),
            namespaces <- PernetRegistration::new(),
            devices <- ClientRegistration::<DeviceWatcher>::new(),
            files <- NetFileRegistration::<StatusFile>::new(),
            netlink <- SmcFamily::new(module),
            pnet <- PnetFamily::new(module),
            events <- EventFamily::new(module),
            diag <- ListRegistration::<SmcSockets>::new(module),
            protocol <- InetRegistration::new(module, IPPROTO_SMC, c"INET_SMC"),
            open: Open::new(global),
        }? Error)
    }
}

fn new_global() -> Result<Arc<Global>> {
    abi::check()?;
    let global = Global::new(
        module_parameters::v1_over_rocev2.value() != 0,
        match module_parameters::v2_release.value() {
            0 => Release::V2_0,
            _ => Release::HIGHEST,
        },
    )?;
    set_ueids(&global);
    Ok(global)
}

/// Ends all link groups when the module goes.
struct GroupsEnd(Arc<Global>);

impl Drop for GroupsEnd {
    fn drop(&mut self) {
        self.0.groups.end_matching_now(Ending::ModuleExit, |_| true);
    }
}

/// Waits for work that still runs: it may hold the last reference to a link group, and with it one
/// to the work queue, which an item of the queue cannot destroy.
struct WorkDone(Arc<Global>);

impl Drop for WorkDone {
    fn drop(&mut self) {
        self.0.flush();
    }
}

/// Enters the enterprise IDs of the module parameter.
fn set_ueids(global: &Global) {
    for text in params::text().to_bytes().split(|byte| *byte == b',') {
        if text.is_empty() {
            continue;
        }
        match Eid::parse(text) {
            Ok(eid) => {
                if global.ueids.add(eid).is_err() {
                    pr_warn!("An enterprise ID is left out: it is there twice, or there are more than four.\n");
                }
            }
            Err(error) => pr_warn!("Module parameter ueid: {}\n", error.describe()),
        }
    }
}

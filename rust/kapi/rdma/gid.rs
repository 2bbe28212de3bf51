// SPDX-License-Identifier: GPL-2.0

//! The GID table of a port.
//!
//! C header: [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h)

use super::device::{Device, DeviceUse};
use crate::net::{Net, NetId};
use crate::sys;
use core::ops::ControlFlow;
use kernel::ffi::c_int;

/// What packets a GID stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GidKind {
    /// RoCE version 1: Ethernet only.
    RoceV1,
    /// RoCE version 2: UDP over IP.
    RoceV2,
    /// InfiniBand, or something newer.
    Other,
}

/// One GID of a port whose network device is there.
#[derive(Clone, Copy, Debug)]
pub struct GidEntry {
    /// The GID; for RoCE the IPv6 address, or the IPv4-mapped one.
    pub gid: [u8; 16],
    /// Its place in the port's table.
    pub index: u32,
    /// The packet format.
    pub kind: GidKind,
    /// The network device it belongs to.
    pub ifindex: i32,
    /// That device's MAC address.
    pub mac: [u8; 6],
    /// That device's network namespace.
    pub net: NetId,
    /// That device's VLAN.
    pub vlan: Option<u16>,
    /// That device is up and has a carrier.
    pub up: bool,
}

impl Device {
    /// Calls `f` for each GID of the port that belongs to a network device, until it breaks.
    ///
    /// Any context; `f` is called outside of locks and RCU and may sleep where the caller may.
    pub fn for_each_gid(&self, port: u8, mut f: impl FnMut(GidEntry) -> ControlFlow<()>) {
        let Ok(_use) = DeviceUse::new_ref(self) else {
            return;
        };
        // SAFETY: The device is registered; an impossible port has an empty table.
        let len = unsafe { sys::smc_rs_helper_rdma_gid_table_len(self.as_raw(), port.into()) };
        for index in 0..u32::try_from(len).unwrap_or(0) {
            if let Some(entry) = self.gid(port, index) {
                if f(entry).is_break() {
                    return;
                }
            }
        }
    }

    /// The GID at `index` of the port's table, if it is valid and belongs to a network device.
    ///
    /// Any context.
    pub fn gid(&self, port: u8, index: u32) -> Option<GidEntry> {
        let _use = DeviceUse::new_ref(self).ok()?;
        let place = c_int::try_from(index).ok()?;
        let mut raw = sys::smc_rs_gid::default();
        // SAFETY: The device is registered; impossible ports and indices are refused; `raw` is a
        // valid place for the answer.
        let ret =
            unsafe { sys::smc_rs_helper_rdma_gid(self.as_raw(), port.into(), place, &mut raw) };
        (ret == 0).then(|| GidEntry {
            gid: raw.gid,
            index,
            kind: match raw.type_ {
                sys::ib_gid_type_IB_GID_TYPE_ROCE => GidKind::RoceV1,
                sys::ib_gid_type_IB_GID_TYPE_ROCE_UDP_ENCAP => GidKind::RoceV2,
                _ => GidKind::Other,
            },
            ifindex: raw.ifindex,
            mac: raw.mac,
            net: NetId::from_cookie(raw.net_cookie),
            vlan: (raw.vlan != 0xffff).then_some(raw.vlan),
            up: raw.up,
        })
    }

    /// Whether the device may be used from the network namespace `net`. Any context.
    pub fn accessible_from(&self, net: &Net) -> bool {
        let Ok(_use) = DeviceUse::new_ref(self) else {
            return false;
        };
        // SAFETY: The device is registered and `net` is borrowed.
        unsafe { sys::rdma_dev_access_netns(self.as_raw(), net.as_ptr()) }
    }
}

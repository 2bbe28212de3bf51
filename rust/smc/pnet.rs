// SPDX-License-Identifier: GPL-2.0

//! The table that says which network and RDMA devices are on one network.
//!
//! Rows for network devices belong to a network namespace. Rows for RDMA devices belong to the
//! initial one, and hold for all.

use kernel::{
    new_mutex,
    prelude::*,
    sync::Mutex, //
};
use smc_kapi::{
    net::{
        Net,
        NetId, //
    },
    rdma::{
        Device,
        DeviceName, //
    },
};
use smc_proto::pnet::{
    is_device,
    PnetId, //
};

/// Room for the name of a network device, with a NUL.
const INTERFACE_ROOM: usize = 16;
/// Room for the name of an RDMA device, with a NUL.
const DEVICE_ROOM: usize = 64;

/// A name of a device, with zeros behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name<const N: usize>([u8; N]);

impl<const N: usize> Name<N> {
    /// `None` for an empty name and for one without room for a NUL.
    pub(crate) fn new(text: &[u8]) -> Option<Self> {
        let mut name = [0; N];
        name.get_mut(..text.len())?.copy_from_slice(text);
        (!text.is_empty() && text.len() < N).then_some(Self(name))
    }

    pub(crate) fn text(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or(&[])
    }
}

/// What a row is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A network device of a namespace.
    Interface(NetId, Name<INTERFACE_ROOM>),
    /// A port of an RDMA device.
    Port(Name<DEVICE_ROOM>, u8),
}

/// A row.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) network: PnetId,
    pub(crate) target: Target,
}

impl Row {
    /// Whether the namespace lists and removes the row.
    fn belongs_to(&self, net: &Net) -> bool {
        match self.target {
            Target::Interface(id, _) => id == net.id(),
            Target::Port(..) => net.is_initial(),
        }
    }
}

struct Inner {
    /// Number of the last row that was added.
    last: u64,
    rows: KVec<(u64, Row)>,
}

/// The table. Process context.
#[pin_data]
pub(crate) struct PnetTable {
    #[pin]
    inner: Mutex<Inner>,
}

impl PnetTable {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            inner <- new_mutex!(Inner { last: 0, rows: KVec::new() }, "smc_pnet"),
        })
    }

    /// Adds a row.
    ///
    /// # Errors
    ///
    /// `EEXIST` when there is one for the device.
    pub(crate) fn add(&self, row: Row) -> Result {
        let mut inner = self.inner.lock();
        if inner
            .rows
            .iter()
            .any(|(_, other)| other.target == row.target)
        {
            return Err(EEXIST);
        }
        inner.last += 1;
        let number = inner.last;
        inner.rows.push((number, row), GFP_KERNEL)?;
        Ok(())
    }

    /// Removes the rows of a namespace, those of one network or all of them.
    ///
    /// # Errors
    ///
    /// `ENOENT` when there is none.
    pub(crate) fn remove(&self, net: &Net, network: Option<PnetId>) -> Result {
        let mut inner = self.inner.lock();
        let before = inner.rows.len();
        inner.rows.retain(|(_, row)| {
            let named = network.is_none_or(|network| network == row.network);
            !(named && row.belongs_to(net))
        });
        if inner.rows.len() == before {
            return Err(ENOENT);
        }
        Ok(())
    }

    /// A namespace goes away, and its network devices with it.
    pub(crate) fn forget_namespace(&self, net: NetId) {
        let is_left =
            |(_, row): &(u64, Row)| !matches!(row.target, Target::Interface(id, _) if id == net);
        self.inner.lock().rows.retain(|row| is_left(row));
    }

    /// The row with the next number above `number` that belongs to a namespace, for listing.
    pub(crate) fn after(&self, net: &Net, number: u64) -> Option<(u64, Row)> {
        let inner = self.inner.lock();
        let mut later = inner.rows.iter().filter(|(other, _)| *other > number);
        later.find(|(_, row)| row.belongs_to(net)).copied()
    }

    /// The network of an interface: where devices below it have one, too, in the order of
    /// [`Layer`](smc_kapi::net::Layer).
    pub(crate) fn of_interface(&self, net: &Net, ifindex: i32) -> Option<PnetId> {
        let inner = self.inner.lock();
        let rows = inner.rows.iter().filter_map(|(_, row)| match row.target {
            Target::Interface(owner, name) => {
                let layer = net.interface_layer(ifindex, owner, name.text())?;
                Some((layer, row.network))
            }
            Target::Port(..) => None,
        });
        rows.min_by_key(|(layer, _)| *layer)
            .map(|(_, network)| network)
    }

    /// The network of a port of an RDMA device.
    pub(crate) fn of_port(&self, device: &Device, port: u8) -> Option<PnetId> {
        let (name, parent) = (device.name(), device.parent_name());
        let parent = parent.as_ref().map(DeviceName::as_str);
        let inner = self.inner.lock();
        let mut rows = inner.rows.iter();
        rows.find(|(_, row)| match &row.target {
            Target::Port(of, number) => {
                *number == port && is_device(of.text(), name.as_str(), parent)
            }
            Target::Interface(..) => false,
        })
        .map(|(_, row)| row.network)
    }
}

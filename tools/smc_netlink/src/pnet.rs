// SPDX-License-Identifier: GPL-2.0

//! The family `SMC_PNETID`: which devices are on one network.

use serde::Serialize;
use smc_proto::genl::pnet::{attr, cmd, FAMILY, NO_DEVICE, NO_PORT, VERSION};

use crate::{Attrs, Family, Result, Writer};

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PnetEntry {
    /// Name of the network.
    pub name: String,
    /// Network device, or `n/a`.
    pub interface: String,
    /// RDMA device, or `n/a`.
    pub device: String,
    /// Port of the RDMA device, 255 without one.
    pub port: u8,
}

/// What a network is given to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PnetTarget {
    /// A network device.
    pub interface: Option<String>,
    /// An RDMA device and its port.
    pub device: Option<(String, u8)>,
}

/// A connection to the kernel's table.
pub struct Pnet(Family);

impl Pnet {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// When no SMC module is loaded.
    pub fn open() -> Result<Self> {
        Family::open(FAMILY.name, VERSION).map(Self)
    }

    /// All rows.
    ///
    /// # Errors
    ///
    /// What the kernel answers, here and below.
    pub fn all(&mut self) -> Result<Vec<PnetEntry>> {
        Ok(entries(&self.0.list(cmd::GET)?))
    }

    /// The rows of a network.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn get(&mut self, name: &str) -> Result<Vec<PnetEntry>> {
        let attrs = Writer::new().text(attr::NAME, name);
        Ok(entries(&self.0.call(cmd::GET, &attrs)?))
    }

    /// Adds rows.
    ///
    /// # Errors
    ///
    /// `EEXIST` when all are there, `ENODEV` for a device that is not.
    pub fn add(&mut self, name: &str, target: &PnetTarget) -> Result<()> {
        let mut attrs = Writer::new().text(attr::NAME, name);
        if let Some(interface) = &target.interface {
            attrs = attrs.text(attr::ETHNAME, interface);
        }
        if let Some((device, port)) = &target.device {
            attrs = attrs.text(attr::IBNAME, device).put(attr::IBPORT, &[*port]);
        }
        self.0.call(cmd::ADD, &attrs).map(drop)
    }

    /// Removes the rows of a network.
    ///
    /// # Errors
    ///
    /// `ENOENT` when there is none.
    pub fn remove(&mut self, name: &str) -> Result<()> {
        let attrs = Writer::new().text(attr::NAME, name);
        self.0.call(cmd::DEL, &attrs).map(drop)
    }

    /// Removes all rows.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn flush(&mut self) -> Result<()> {
        self.0.call(cmd::FLUSH, &Writer::new()).map(drop)
    }
}

fn entries(messages: &[(u8, Attrs)]) -> Vec<PnetEntry> {
    let parse = |attrs: &Attrs| PnetEntry {
        name: attrs.text(attr::NAME).unwrap_or_default(),
        interface: attrs.text(attr::ETHNAME).unwrap_or_else(none),
        device: attrs.text(attr::IBNAME).unwrap_or_else(none),
        port: attrs.u8(attr::IBPORT).unwrap_or(NO_PORT),
    };
    messages.iter().map(|(_, attrs)| parse(attrs)).collect()
}

fn none() -> String {
    NO_DEVICE.to_owned()
}

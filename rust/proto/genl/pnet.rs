// SPDX-License-Identifier: GPL-2.0

//! The family `SMC_PNETID`: which devices are on one physical network.

use super::{attributes, named, Family};

/// The family.
pub const FAMILY: Family = Family {
    name: "SMC_PNETID",
    prefix: "SMC_PNETID_",
    commands: cmd::ALL,
    sets: &[&attr::SET],
};

/// Version of the family.
pub const VERSION: u8 = 1;

named! {
    /// Commands.
    cmd {
        GET = 1,
        ADD = 2,
        DEL = 3,
        FLUSH = 4,
    }
}

attributes! {
    /// A row of the table.
    attr, "SMC_PNETID_" {
        NAME = 1: String,
        ETHNAME = 2: String,
        IBNAME = 3: String,
        IBPORT = 4: U8,
    }
}

/// What stands for a device that a row does not have.
pub const NO_DEVICE: &str = "n/a";
/// What stands for the port of a device that a row does not have.
pub const NO_PORT: u8 = 255;

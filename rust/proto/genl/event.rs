// SPDX-License-Identifier: GPL-2.0

//! The family `SMC_RS`: what happens, as it happens. Attributes and kinds are only ever added.

use super::{attributes, named, Family};

/// The family.
pub const FAMILY: Family = Family {
    name: "SMC_RS",
    prefix: "SMC_RS_",
    commands: cmd::ALL,
    sets: &[&attr::SET],
};

/// Version of the family.
pub const VERSION: u8 = 1;

/// The group of those who listen.
pub const GROUP: &str = "events";

named! {
    /// The one kind of message.
    cmd {
        EVENT = 1,
    }
}

named! {
    /// What happened.
    kind {
        GROUP_UP = 1,
        GROUP_DOWN = 2,
        CONNECTION_UP = 3,
        CONNECTION_DOWN = 4,
        FALLBACK = 5,
        LINK_UP = 6,
        LINK_DOWN = 7,
    }
}

attributes! {
    /// An event. `SOCKET` is a `struct inet_diag_sockid` with the addresses of a connection; `SIDE` is
    /// 1 for the server's side of a fallback; `LINK` is the number of a link within its group, `PORT`
    /// that of the device's port.
    attr, "SMC_RS_" {
        KIND = 1: U8,
        GROUP = 2: U32,
        DEVICE = 3: String,
        SOCKET = 4: Binary,
        SIDE = 5: U8,
        REASON = 6: U32,
        PEER_REASON = 7: U32,
        TEXT = 8: String,
        LINK = 9: U8,
        PORT = 10: U8,
    }
}

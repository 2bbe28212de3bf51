// SPDX-License-Identifier: GPL-2.0

//! Generic netlink families with operations.
//!
//! C header: [`include/net/genetlink.h`](srctree/include/net/genetlink.h)

mod attr;
mod events;
mod family;
mod reply;

pub use attr::{
    Attrs,
    Kind,
    Policy, //
};
pub use events::EventSlot;
pub use family::{
    Dump,
    Family,
    FamilyRegistration,
    Info,
    Operation,
    ReplyList,
    DUMP_COOKIES, //
};
pub use reply::{
    Builder,
    TEXT_MAX, //
};

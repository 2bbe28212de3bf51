// SPDX-License-Identifier: GPL-2.0

//! What the kernel's SMC tells and takes, as typed messages.
//!
//! Works with every module that serves `<linux/smc.h>` and `<linux/smc_diag.h>`. Attributes that an
//! older or newer kernel leaves out or adds do no harm: fields have defaults, unknown attributes are
//! passed over.
//!
//! [`Smc`] and [`Pnet`] talk to the two generic netlink families, [`diag::sockets`] to `sock_diag`.
//! The parsing is apart from the talking, so that it can be tested with recorded bytes.

mod attrs;
mod device;
pub mod diag;
mod error;
mod event;
mod exchange;
mod family;
mod group;
mod pnet;
mod reason;
mod smc;
mod stats;
mod system;

pub use attrs::{Attrs, Writer};
pub use device::{Device, DevicePort};
pub use error::{Error, Result};
pub use event::{Event, EventKind, Events};
pub use exchange::{parse_replies, Replies, Reply, Request};
pub use family::Family;
pub use group::{Group, GroupV2, Link, PeerOs};
pub use pnet::{Pnet, PnetEntry, PnetTarget};
pub use reason::Reason;
pub use smc::Smc;
pub use stats::{Buffers, Direction, Fallback, FallbackSide, Fallbacks, Sizes, Stats, Transport};
pub use system::SystemInfo;

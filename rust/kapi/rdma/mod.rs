// SPDX-License-Identifier: GPL-2.0

//! RDMA verbs: devices, protection domains, completion queues, queue pairs, memory regions.
//!
//! Ownership follows the hardware: a queue pair keeps its completion queues and protection domain,
//! a memory region its protection domain and memory, and every one of them keeps its device
//! registered through a [`DeviceUse`]. Removal of a device waits for all of them, see [`Client`].
//! All of them are created and dropped in process context; posting and polling work in bottom
//! halves too.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

mod client;
mod cq;
mod device;
mod event;
mod gid;
mod mr;
mod pd;
mod qp;
mod qp_state;
mod reg;
mod route;
mod wr;

pub use client::{Client, ClientRegistration, ClientSlot};
pub use cq::{Completion, CompletionHandler, Cq, Opcode, WcStatus};
pub use device::{Device, DeviceName, DeviceUse, PciIdentity};
pub use event::{EventHandler, PortEvent};
pub use gid::{GidEntry, GidKind};
pub use mr::{Access, Mr};
pub use pd::Pd;
pub use qp::{Qp, QpCaps, QpEvent, QpEvents};
pub use qp_state::{QpState, RtrAttr, RtsAttr};
pub use route::{resolve_dmac, L2Route};
pub use wr::{PostError, RecvList, SendFlags, SendList, Sge};

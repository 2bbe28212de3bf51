// SPDX-License-Identifier: GPL-2.0

//! Networking: namespaces, socket families, sockets, and TCP as a kernel user.

pub mod addr;
pub mod family;
pub mod ifaddr;
pub mod msg;
pub mod ns;
pub mod poll;
pub mod sock;
pub mod sockopt;
pub mod tcp;
pub mod tcp_events;
pub mod tcp_io;
pub mod tcp_option;

mod family_ops;
mod inet_outer;
mod inet_protocol;
mod outer;
mod payer;
mod tcp_header;
mod tcp_hooks;
mod tcp_linger;
mod tcp_queue;
mod tcp_state;
mod wait;
mod wake;

pub use addr::{
    InetAddr,
    SockAddr,
    SockAddrStorage, //
};
pub use family::{
    FamilyRegistration,
    FamilySlot,
    NewSocket,
    SocketOps, //
};
pub use inet_protocol::InetRegistration;
pub use msg::{
    Msg,
    MsgDest, //
};
pub use ns::{
    Layer,
    Net,
    NetId,
    NetRef,
    PerNet,
    PernetRegistration,
    PernetSlot, //
};
pub use poll::{
    PollMask,
    PollRequest, //
};
pub use sock::{
    How,
    Sock,
    SockGuard,
    SockRef,
    Waiter, //
};
pub use sockopt::{
    OptIn,
    OptOut, //
};
pub use tcp::{
    TcpSocket,
    TcpState, //
};
pub use tcp_events::TcpEvents;
pub use tcp_option::{
    OptionHooks,
    OptionUse, //
};

// SPDX-License-Identifier: GPL-2.0

//! Ports in several hands, devices, and sockets for both versions of the internet protocol.

use super::{Script, END, SEND};
use crate::call::{Call, To};
use crate::scenario::{Step, Version};
use crate::state::State;
use libc::{
    IPPROTO_IPV6, IPV6_V6ONLY, POLLIN, POLLOUT, POLLRDHUP, SOCK_NONBLOCK, SOL_SOCKET,
    SO_BINDTODEVICE, SO_REUSEADDR, SO_REUSEPORT,
};
use Step::{
    Child, ChildClose, Close, Do, ListenerClose, Look, Peer, PeerClose, PeerWait, Rival, RivalV4,
    Sleep, Visit, Wait,
};

const ACCEPT: Step = Do(Call::Accept(SOCK_NONBLOCK));
const DEVICE: Step = Do(Call::GetText(SOL_SOCKET, SO_BINDTODEVICE, 16));

/// Binds to a device by its name.
const fn device(name: &'static str) -> Step {
    Do(Call::SetText(SOL_SOCKET, SO_BINDTODEVICE, name))
}

/// The scripts.
pub(super) const SCRIPTS: &[Script] = &[
    (
        "rebind: somebody else listens on the port, then not",
        State::Fresh,
        &[
            Do(Call::Set(SOL_SOCKET, SO_REUSEADDR, 1)),
            Do(Call::Bind(To::Own)),
            Rival(SO_REUSEADDR),
            Child(Call::Listen(4)),
            Do(Call::Listen(4)),
            Look,
            ACCEPT,
            END,
            Do(Call::Listen(4)),
            ChildClose,
            Do(Call::Listen(4)),
            Do(Call::Listen(0)),
            Do(Call::Listen(1)),
            Do(Call::Listen(8)),
            Visit(Version::V4),
            Wait(POLLIN),
            ACCEPT,
            Peer(Call::Send(5, 0)),
            Sleep(20),
            Child(Call::Recv(10, 0)),
            Look,
        ],
    ),
    (
        "rebind: SO_REUSEPORT comes too late",
        State::Fresh,
        &[
            Do(Call::Bind(To::Own)),
            Rival(SO_REUSEPORT),
            Do(Call::Set(SOL_SOCKET, SO_REUSEPORT, 1)),
            Rival(SO_REUSEPORT),
            Rival(SO_REUSEADDR),
            Do(Call::Listen(4)),
            Visit(Version::V4),
            Wait(POLLIN),
            ACCEPT,
        ],
    ),
    (
        "rebind: SO_REUSEPORT of both",
        State::Fresh,
        &[
            Do(Call::Set(SOL_SOCKET, SO_REUSEPORT, 1)),
            Do(Call::Bind(To::Own)),
            Rival(0),
            Rival(SO_REUSEADDR),
            Rival(SO_REUSEPORT),
            Child(Call::Listen(4)),
            Do(Call::Listen(4)),
            Rival(SO_REUSEPORT),
            Child(Call::Listen(4)),
            Visit(Version::V4),
        ],
    ),
    (
        "rebind: the client has closed first",
        State::Server,
        &[
            PeerClose,
            Wait(POLLRDHUP),
            Close,
            ListenerClose,
            Sleep(400),
            Do(Call::Bind(To::Server)),
            Do(Call::Listen(4)),
            Visit(Version::V4),
            ACCEPT,
        ],
    ),
    (
        "rebind: the server has closed first",
        State::Server,
        &[
            Close,
            PeerWait(POLLRDHUP),
            PeerClose,
            ListenerClose,
            Sleep(400),
            Do(Call::Bind(To::Server)),
            Do(Call::Set(SOL_SOCKET, SO_REUSEADDR, 1)),
            Do(Call::Bind(To::Server)),
            Do(Call::Listen(4)),
            Visit(Version::V4),
            ACCEPT,
        ],
    ),
    (
        "device: the one on the way",
        State::Fresh,
        &[
            DEVICE,
            device("veth0"),
            DEVICE,
            Do(Call::Connect(To::Server)),
            Wait(POLLOUT),
            END,
            DEVICE,
            SEND,
            Look,
        ],
    ),
    (
        "device: another one",
        State::Fresh,
        &[
            device("lo"),
            DEVICE,
            Do(Call::Connect(To::Server)),
            Look,
            END,
        ],
    ),
    (
        "device: unknown names, and none",
        State::Fresh,
        &[
            device("nosuch"),
            device("a name that is too long for a device"),
            DEVICE,
            device("lo"),
            Do(Call::GetText(SOL_SOCKET, SO_BINDTODEVICE, 2)),
            device(""),
            DEVICE,
            Do(Call::Connect(To::Server)),
            Wait(POLLOUT),
            END,
        ],
    ),
    (
        "device: of a listener, that clients come by",
        State::Fresh,
        &[
            device("veth0"),
            Do(Call::Bind(To::Any)),
            Do(Call::Listen(4)),
            Visit(Version::V4),
            Wait(POLLIN),
            ACCEPT,
            Child(Call::GetText(SOL_SOCKET, SO_BINDTODEVICE, 16)),
            Peer(Call::Send(5, 0)),
            Sleep(20),
            Child(Call::Recv(10, 0)),
        ],
    ),
    (
        "device: of a listener, another one",
        State::Fresh,
        &[
            device("lo"),
            Do(Call::Bind(To::Any)),
            Do(Call::Listen(4)),
            Visit(Version::V4),
            Look,
            ACCEPT,
        ],
    ),
    (
        "device: of a connection",
        State::Client,
        &[
            device("veth0"),
            DEVICE,
            SEND,
            PeerWait(POLLIN),
            Peer(Call::Drain),
            device(""),
            DEVICE,
            SEND,
            PeerWait(POLLIN),
        ],
    ),
];

const ONLY: i32 = IPV6_V6ONLY;
const NOT_ONLY: Step = Do(Call::Set(IPPROTO_IPV6, ONLY, 0));

/// Those for sockets with IPv6 addresses.
pub(super) const MAPPED: &[Script] = &[
    (
        "versions: all addresses are those of both",
        State::Fresh,
        &[
            Do(Call::Get(IPPROTO_IPV6, ONLY, 4)),
            Do(Call::Bind(To::Any)),
            Do(Call::Listen(8)),
            RivalV4,
            Visit(Version::V4),
            Wait(POLLIN),
            ACCEPT,
            Child(Call::Name),
            Child(Call::Peer),
            Child(Call::Get(IPPROTO_IPV6, ONLY, 4)),
            Peer(Call::Send(5, 0)),
            Sleep(20),
            Child(Call::Recv(10, 0)),
            Visit(Version::V6),
            Wait(POLLIN),
            ACCEPT,
            Child(Call::Name),
            Child(Call::Peer),
            Child(Call::Get(IPPROTO_IPV6, ONLY, 4)),
            Peer(Call::Send(5, 0)),
            Sleep(20),
            Child(Call::Recv(10, 0)),
            Look,
        ],
    ),
    (
        "versions: IPV6_V6ONLY keeps those of IPv4 away",
        State::Fresh,
        &[
            Do(Call::Set(IPPROTO_IPV6, ONLY, 1)),
            Do(Call::Get(IPPROTO_IPV6, ONLY, 4)),
            Do(Call::Bind(To::Own)),
            Do(Call::Bind(To::Any)),
            NOT_ONLY,
            Do(Call::Listen(8)),
            Visit(Version::V4),
            Visit(Version::V6),
            Wait(POLLIN),
            ACCEPT,
            Child(Call::Get(IPPROTO_IPV6, ONLY, 4)),
            Child(Call::Peer),
        ],
    ),
    (
        "versions: a listener of each on one port",
        State::Fresh,
        &[
            Do(Call::Set(IPPROTO_IPV6, ONLY, 1)),
            Do(Call::Bind(To::Any)),
            Do(Call::Listen(8)),
            RivalV4,
            Child(Call::Listen(8)),
            Visit(Version::V4),
            ACCEPT,
            // It may come a handshake later.
            Child(Call::Accept(SOCK_NONBLOCK)),
            Visit(Version::V6),
            Wait(POLLIN),
            ACCEPT,
        ],
    ),
    (
        "versions: IPV6_V6ONLY and an address of IPv4",
        State::Fresh,
        &[
            Do(Call::Set(IPPROTO_IPV6, ONLY, 1)),
            Do(Call::Connect(To::Server)),
            Look,
            END,
            NOT_ONLY,
            Do(Call::Connect(To::Server)),
            Wait(POLLOUT),
            END,
            Do(Call::Name),
            Do(Call::Peer),
            Do(Call::Set(IPPROTO_IPV6, ONLY, 1)),
        ],
    ),
    (
        "versions: bound to an address of IPv4",
        State::Fresh,
        &[
            Do(Call::Bind(To::Own)),
            Do(Call::Set(IPPROTO_IPV6, ONLY, 1)),
            Do(Call::Listen(8)),
            Visit(Version::V6),
            Visit(Version::V4),
            Wait(POLLIN),
            ACCEPT,
            Child(Call::Name),
            Child(Call::Peer),
        ],
    ),
    (
        "versions: data both ways",
        State::Client,
        &[
            SEND,
            PeerWait(POLLIN),
            Peer(Call::Drain),
            Peer(Call::Send(6, 0)),
            Wait(POLLIN),
            Do(Call::Drain),
            Do(Call::Name),
            Do(Call::Peer),
            Peer(Call::Name),
            Peer(Call::Peer),
        ],
    ),
];

// SPDX-License-Identifier: GPL-2.0

//! All states times all calls.

use crate::call::{Call, To};
use crate::ring::Op;
use crate::scenario::{Scenario, Step};
use crate::state::{State, ALL};
use crate::world::Addresses;
use libc::{
    MSG_DONTWAIT, MSG_ERRQUEUE, MSG_MORE, MSG_NOSIGNAL, MSG_OOB, MSG_PEEK, MSG_TRUNC, MSG_WAITALL,
    MSG_ZEROCOPY, POLLIN, POLLOUT, SHUT_RD, SHUT_RDWR, SHUT_WR, SIGPIPE, SOL_SOCKET, SO_ACCEPTCONN,
};
use testlib::opts::{SIOCATMARK, SIOCINQ, SIOCOUTQ, SIOCOUTQNSD};

/// Every call, each with what shows its side effects.
const CALLS: &[Call] = &[
    Call::Connect(To::Server),
    Call::Connect(To::Closed),
    Call::Connect(To::Silent),
    Call::Connect(To::NoRoute),
    Call::Connect(To::PortZero),
    Call::Connect(To::Multicast),
    Call::Connect(To::Unspec),
    Call::Connect(To::Unix),
    Call::Connect(To::Smc),
    Call::Connect(To::Short(1)),
    Call::Connect(To::Short(8)),
    Call::Bind(To::Own),
    Call::Bind(To::Any),
    Call::Bind(To::Foreign),
    Call::Bind(To::Group),
    Call::Bind(To::Unspec),
    Call::Bind(To::Unix),
    Call::Bind(To::Short(8)),
    Call::Listen(4),
    Call::Listen(0),
    Call::Accept(0),
    Call::Accept(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC),
    Call::Accept(1),
    Call::Send(5, 0),
    Call::Send(5, MSG_NOSIGNAL),
    Call::Send(5, MSG_MORE),
    Call::Send(1, MSG_OOB),
    Call::Send(3, MSG_OOB),
    Call::Send(0, 0),
    Call::Send(0, MSG_OOB),
    Call::Send(5, MSG_DONTWAIT | libc::MSG_EOR),
    Call::Send(5, libc::MSG_DONTROUTE),
    Call::Send(5, libc::MSG_CONFIRM),
    Call::Send(5, MSG_ZEROCOPY),
    Call::Send(5, 0x0100_0000),
    Call::SendTo(To::Server, 5, 0),
    Call::SendTo(To::Closed, 5, MSG_NOSIGNAL),
    Call::SendMsg(0),
    Call::SendMany,
    Call::SendBad,
    Call::Write(5),
    Call::Write(0),
    Call::Writev,
    Call::SendFile(2000),
    Call::SpliceTo(5),
    Call::Recv(100, 0),
    Call::Recv(4, 0),
    Call::Recv(0, 0),
    Call::Recv(100, MSG_PEEK),
    Call::Recv(4, MSG_PEEK),
    Call::Recv(100, MSG_WAITALL),
    Call::Recv(4, MSG_WAITALL),
    Call::Recv(100, MSG_TRUNC),
    Call::Recv(4, MSG_TRUNC),
    Call::Recv(4, MSG_TRUNC | MSG_PEEK),
    Call::Recv(100, MSG_OOB),
    Call::Recv(1, MSG_OOB | MSG_PEEK),
    Call::Recv(0, MSG_OOB),
    Call::Recv(100, MSG_ERRQUEUE),
    Call::Recv(100, MSG_DONTWAIT),
    Call::RecvMsg(100, 0),
    Call::RecvMsg(4, 0),
    Call::RecvMsg(100, MSG_OOB),
    Call::RecvMsg(100, MSG_TRUNC),
    Call::RecvMsg(100, MSG_ERRQUEUE),
    Call::RecvMany,
    Call::RecvBad,
    Call::Read(100),
    Call::Read(0),
    Call::Readv,
    Call::SpliceFrom(100),
    Call::Drain,
    Call::Poll,
    Call::Shutdown(SHUT_RD),
    Call::Shutdown(SHUT_WR),
    Call::Shutdown(SHUT_RDWR),
    Call::Shutdown(3),
    Call::Shutdown(-1),
    Call::Name,
    Call::Peer,
    Call::Error,
    Call::Get(SOL_SOCKET, SO_ACCEPTCONN, 4),
    Call::Ioctl(SIOCINQ),
    Call::Ioctl(SIOCOUTQ),
    Call::Ioctl(SIOCOUTQNSD),
    Call::Ioctl(SIOCATMARK),
    Call::Ioctl(TIOCGWINSZ),
    Call::Ioctl(SIOCGSTAMP),
    Call::Ioctl(SIOCGPGRP),
    Call::TcpState,
    Call::SendTo(To::Server, 5, MSG_NOSIGNAL | libc::MSG_FASTOPEN),
    Call::Dup,
    Call::Linger(0),
    Call::Linger(2),
    Call::Ring(Op::Send(5, MSG_NOSIGNAL)),
    Call::Ring(Op::Recv(100, 0)),
    Call::Ring(Op::Recv(4, MSG_WAITALL)),
    Call::Ring(Op::Accept),
    Call::Ring(Op::Connect(To::Server)),
    Call::Ring(Op::Poll(POLLIN | POLLOUT)),
    Call::Ring(Op::Shutdown(SHUT_WR)),
];

const TIOCGWINSZ: libc::c_ulong = 0x5413;
const SIOCGSTAMP: libc::c_ulong = 0x8906;
const SIOCGPGRP: libc::c_ulong = 0x8904;

/// What is looked at after each call.
const AFTER: &[Step] = &[
    Step::Look,
    Step::Do(Call::Signals(SIGPIPE)),
    Step::Do(Call::Error),
    Step::Do(Call::Drain),
    Step::Do(Call::Name),
    Step::Do(Call::Peer),
    Step::PeerLook,
    Step::Peer(Call::Error),
    Step::Peer(Call::Drain),
    Step::Look,
    Step::Do(Call::Send(7, MSG_NOSIGNAL)),
    Step::Look,
];

/// The scenarios.
pub(crate) fn scenarios() -> Vec<Scenario> {
    let mut all = Vec::new();
    for state in ALL {
        for call in CALLS {
            let mut steps = Vec::new();
            if matches!(call, Call::TcpState | Call::Ioctl(SIOCOUTQ)) {
                // A FIN is acknowledged within 0.2 s: whether it was must not be chance.
                steps.push(Step::Sleep(300));
            }
            steps.push(Step::Do(*call));
            if matches!(call, Call::Send(_, flags) if flags & MSG_MORE != 0) {
                // It is held back for 0.2 s: whether the peer has it must not be chance.
                steps.push(Step::Sleep(500));
            }
            steps.extend_from_slice(AFTER);
            all.push(Scenario::new(format!("{state:?}: {call}"), *state, steps));
        }
    }
    let names: Vec<Scenario> = all
        .iter()
        .filter(|scenario| {
            matches!(scenario.state, State::Fresh | State::Client)
                && matches!(
                    scenario.steps.first(),
                    Some(Step::Do(
                        Call::Connect(_) | Call::Bind(_) | Call::Name | Call::Peer
                    ))
                )
        })
        .cloned()
        .collect();
    for addresses in [Addresses::V6, Addresses::Mapped] {
        all.extend(names.iter().map(|one| one.clone().with(addresses)));
    }
    all
}

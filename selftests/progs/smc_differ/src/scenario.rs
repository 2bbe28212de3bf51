// SPDX-License-Identifier: GPL-2.0

//! A scenario: a state, and what is done in it.

use crate::call::{said, Call};
use crate::name;
use crate::patience::pause;
use crate::stage::{still_mask, wait_bytes, wait_mask, Stage};
use crate::state::State;
use crate::world::{Addresses, Mode, World};
use std::fmt;
use std::time::Duration;
use testlib::process::count_signal;
use testlib::sock::Sock;

/// One step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A call on the socket under test.
    Do(Call),
    /// A call on the socket at the other end.
    Peer(Call),
    /// A call on the socket that was made last, by `accept()` or `dup()`.
    Child(Call),
    /// Waits for bits of the mask of the socket under test, of the peer's.
    Wait(i16),
    PeerWait(i16),
    /// Waits until the socket under test has so many bytes to read.
    Arrived(i32),
    /// The mask once it has settled.
    Look,
    PeerLook,
    ChildLook,
    /// A call that may block is begun; what came of it after so many milliseconds.
    Start(Call),
    Join(u64),
    Sleep(u64),
    /// The socket under test is closed.
    Close,
    /// The peer closes; with zero linger.
    PeerClose,
    PeerReset,
    /// A new peer connects to the socket under test.
    NewPeer,
    /// The same, by IPv6 or by IPv4, to the port of the socket under test, whatever it is bound to;
    /// the peer blocks until it is connected.
    Visit(Version),
    /// The peer is what the listener at the other end accepts.
    PeerAccept,
    /// Another socket like the one under test, with this option of `SOL_SOCKET` set, is bound to the
    /// same address.
    Rival(i32),
    /// A socket with IPv4 addresses is bound to the same port, and all addresses.
    RivalV4,
    /// The socket under test is closed, whoever uses it at the moment.
    CloseUnder,
    /// Drops the socket made last.
    ChildClose,
    /// Drops the listener that the socket came from or is connected to.
    ListenerClose,
    /// The socket under test is watched by edge-triggered epoll; what was told since last time.
    Watch,
    Edge,
    /// `SIGIO` and `SIGURG` go to this process.
    Own,
    /// Such signals are counted anew.
    Forget(i32),
}

/// Version of the internet protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V4,
    V6,
}

/// A call before the socket is connected.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Prepare {
    Nothing,
    Do(Call),
}

/// What is done in which state.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) state: State,
    pub(crate) prepare: Prepare,
    pub(crate) steps: Vec<Step>,
    pub(crate) addresses: Addresses,
}

impl Scenario {
    pub(crate) fn new(name: String, state: State, steps: Vec<Step>) -> Scenario {
        Scenario {
            name,
            state,
            prepare: Prepare::Nothing,
            steps,
            addresses: Addresses::V4,
        }
    }

    /// The same with other addresses.
    pub(crate) fn with(self, addresses: Addresses) -> Scenario {
        let before = match addresses {
            Addresses::V4 => "",
            Addresses::V6 => "IPv6, ",
            Addresses::Mapped => "mapped, ",
        };
        Scenario {
            name: format!("{before}{}", self.name),
            addresses,
            ..self
        }
    }
}

/// What was done and what came of it.
pub(crate) type Record = Vec<(String, String)>;

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Do(call) => write!(f, "{call}"),
            Step::Peer(call) => write!(f, "peer: {call}"),
            Step::Child(call) => write!(f, "child: {call}"),
            Step::Wait(bits) => write!(f, "wait for {}", name::mask(*bits)),
            Step::Arrived(bytes) => write!(f, "wait for {bytes} bytes"),
            Step::PeerWait(bits) => write!(f, "peer: wait for {}", name::mask(*bits)),
            Step::Look => write!(f, "mask"),
            Step::PeerLook => write!(f, "peer: mask"),
            Step::ChildLook => write!(f, "child: mask"),
            Step::Start(call) => write!(f, "begin {call}"),
            Step::Join(_) => write!(f, "what was begun"),
            other => write!(f, "{}", format!("{other:?}").to_lowercase()),
        }
    }
}

/// Runs a scenario in one mode. `expected` is the record of the run on TCP.
pub(crate) fn play(
    scenario: &Scenario,
    mode: &Mode,
    world: &World,
    expected: Option<&Record>,
) -> Record {
    for signal in [libc::SIGPIPE, libc::SIGIO, libc::SIGURG] {
        if let Err(error) = count_signal(signal) {
            return vec![("signals".into(), error.to_string())];
        }
    }
    let place = crate::stage::Accepted::default();
    let prepare = |sock: &Sock| match scenario.prepare {
        Prepare::Nothing => Ok(()),
        Prepare::Do(call) => {
            let nowhere = crate::stage::Place::nowhere(mode.subject);
            match call.perform(sock, &nowhere, &place).as_str() {
                "0" => Ok(()),
                other => Err(format!("{call}: {other}")),
            }
        }
    };
    let mut record = Record::new();
    let built = scenario.state.build(mode, world.network(mode), prepare);
    let mut stage = match built {
        Ok(stage) => stage,
        Err(why) => {
            record.push(("state".into(), why));
            return record;
        }
    };
    record.push(("state".into(), "reached".into()));
    for (n, step) in scenario.steps.iter().enumerate() {
        let wanted = expected.and_then(|record| record.get(n + 1));
        let outcome = run_step(
            &mut stage,
            step,
            wanted.map(|(_, outcome)| outcome.as_str()),
        );
        record.push((step.to_string(), outcome));
    }
    record
}

fn waited(sock: &Sock, bits: i16) -> String {
    match wait_mask(sock, bits) {
        Ok(()) => "there".into(),
        Err(got) => format!("only {got}"),
    }
}

fn last_child(stage: &Stage<'_>, f: impl FnOnce(&Sock) -> String) -> String {
    // The call may make another one.
    let child = stage.more.lock().expect("no panic before").pop();
    match child {
        Some(child) => {
            let text = f(&child);
            stage.more.lock().expect("no panic before").push(child);
            text
        }
        None => "there is none".into(),
    }
}

fn run_step(stage: &mut Stage<'_>, step: &Step, expected: Option<&str>) -> String {
    match *step {
        Step::Do(call) => stage.call(&call),
        Step::Peer(call) => stage.peer_call(&call),
        Step::Child(call) => last_child(stage, |child| {
            call.perform(child, &stage.place, &stage.more)
        }),
        Step::Wait(bits) => waited(&stage.subject, bits),
        Step::Arrived(bytes) => wait_bytes(&stage.subject, bytes),
        Step::PeerWait(bits) => match &stage.peer {
            Some(peer) => waited(peer, bits),
            None => "no peer".into(),
        },
        Step::Look => still_mask(&stage.subject, expected),
        Step::PeerLook => match &stage.peer {
            Some(peer) => still_mask(peer, expected),
            None => "no peer".into(),
        },
        Step::ChildLook => last_child(stage, |child| still_mask(child, expected)),
        Step::Start(call) => {
            stage.start(call);
            String::new()
        }
        Step::Edge => stage.edges(expected),
        Step::Join(limit) => stage.join(Duration::from_millis(limit)),
        _ => shift(stage, step),
    }
}

/// Steps that change which sockets there are.
fn shift(stage: &mut Stage<'_>, step: &Step) -> String {
    match *step {
        Step::Sleep(time) => pause(Duration::from_millis(time)),
        Step::Close => return stage.close(),
        Step::PeerClose => stage.peer = None,
        Step::PeerReset => {
            let set = stage.peer_call(&Call::Linger(0));
            stage.peer = None;
            return set;
        }
        Step::ListenerClose => stage.listener = None,
        Step::ChildClose => drop(stage.more.lock().expect("no panic before").pop()),
        Step::NewPeer => return stage.new_peer(),
        Step::Visit(version) => return stage.visit(version == Version::V6),
        Step::PeerAccept => return stage.peer_accept(),
        Step::Rival(option) => return stage.rival(option),
        Step::RivalV4 => return stage.rival_v4(),
        Step::CloseUnder => return stage.close_under(),
        Step::Forget(signal) => return said(count_signal(signal), |()| String::new()),
        Step::Watch => return stage.watch(),
        Step::Own => {
            let pid = std::process::id() as i32;
            return Call::Fcntl(libc::F_SETOWN, pid).perform(
                &stage.subject,
                &stage.place,
                &stage.more,
            );
        }
        _ => return "this step is unknown".into(),
    }
    String::new()
}

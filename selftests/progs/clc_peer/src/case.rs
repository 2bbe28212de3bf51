// SPDX-License-Identifier: GPL-2.0

//! What a case is: what to send, and which answers are right.

use crate::messages::Identity;
use smc_proto::reason::DeclineReason;
use std::time::Duration;

/// One thing this peer does.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Send bytes in one call.
    Send(Vec<u8>),
    /// Send bytes and the first application data in one call.
    SendWithData(Vec<u8>),
    /// Send bytes one by one, each in a segment of its own.
    Trickle(Vec<u8>, Duration),
    /// Read one CLC message of this type from the other side.
    Await(u8),
    /// Do nothing.
    Pause(Duration),
    /// Stop sending.
    Fin,
    /// Reset the connection.
    Rst,
}

/// How the other side may end the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A Decline with any reason, after which data flows over TCP.
    AnyDecline,
    /// A Decline with this reason, after which data flows over TCP.
    Decline(DeclineReason),
    /// No Decline, but data flows over TCP.
    Data,
    /// The end of the TCP connection, orderly or by a reset.
    End,
    /// An Accept: the message was good.
    Accept,
    /// A Confirm: the message was good.
    Confirm,
}

/// One case.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) steps: fn(&Identity) -> Vec<Step>,
    pub(crate) allowed: &'static [Answer],
    /// Longest time until the answer, in seconds.
    pub(crate) within: u64,
    /// Data must flow at the end, which also is what the application must see.
    pub(crate) must_work: bool,
}

/// Type codes of the messages.
pub(crate) const ACCEPT: u8 = 2;
pub(crate) const CONFIRM: u8 = 3;
pub(crate) const DECLINE: u8 = 4;

/// Seconds for an answer to what is wrong at sight.
pub(crate) const PROMPT: u64 = 5;
/// Seconds for giving up on a peer that is silent: the time-out for CLC messages
/// is 6 s, and an emulated machine is slow.
pub(crate) const PATIENT: u64 = 11;
/// Seconds for giving up on a link that is never confirmed.
pub(crate) const LINK: u64 = 20;

/// The answers to a message that is broken.
pub(crate) const REFUSED: &[Answer] = &[Answer::AnyDecline, Answer::End];

/// A case whose bytes are no message at all: those of an application on TCP.
pub(crate) const fn foreign(name: &'static str, steps: fn(&Identity) -> Vec<Step>) -> Case {
    let allowed = &[Answer::AnyDecline, Answer::End, Answer::Data];
    Case {
        name,
        steps,
        allowed,
        within: PROMPT,
        must_work: false,
    }
}

/// A case with a broken message, answered at once.
pub(crate) const fn broken(name: &'static str, steps: fn(&Identity) -> Vec<Step>) -> Case {
    Case {
        name,
        steps,
        allowed: REFUSED,
        within: PROMPT,
        must_work: false,
    }
}

/// A case in which the other side has to wait for what never comes.
pub(crate) const fn stalled(name: &'static str, steps: fn(&Identity) -> Vec<Step>) -> Case {
    Case {
        name,
        steps,
        allowed: REFUSED,
        within: PATIENT,
        must_work: false,
    }
}

/// A case that must end on TCP with a given reason.
pub(crate) const fn declined(
    name: &'static str,
    steps: fn(&Identity) -> Vec<Step>,
    allowed: &'static [Answer],
) -> Case {
    Case {
        name,
        steps,
        allowed,
        within: PROMPT,
        must_work: true,
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Handshake messages that arrive after the fallback.
//!
//! Handshake and application share one TCP stream, and once a side fell back it no longer looks for
//! handshake messages. When both ends give up at the same moment their Declines cross, and what
//! arrives then would be handed to the application as data. Whoever sent a Decline therefore looks
//! at the head of the stream once more, until the first byte that is not such a message.

use crate::wire::clc::{Header, Kind, HEADER_LEN, TRAILER_LEN};

/// The longest Decline that is recognised, in bytes.
const MAX_DECLINE: usize = 64;

/// What every message of SMC-R starts and ends with.
const EYECATCHER: [u8; TRAILER_LEN] = [0xe2, 0xd4, 0xc3, 0xd9];

/// What is at the head of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// Too few bytes to tell: keep them back, but no longer than [`super::LATE_CLC_MS`] after the
    /// fallback.
    Wait,
    /// A late message: remove that many bytes and look again.
    Skip(usize),
    /// Application data; there is nothing more to look for.
    Clean,
}

/// Which messages of the peer may still arrive on the TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateClc {
    /// The answer that was not waited for.
    answer: Option<Kind>,
    decline: bool,
}

impl LateClc {
    /// Nothing more can arrive: the peer declined, or it never heard of SMC.
    pub const NONE: Self = Self {
        answer: None,
        decline: false,
    };

    /// This side sent a Decline and has not seen one of the peer.
    ///
    /// `awaited` is the message it was waiting for when it gave up, if it was: the peer may have sent
    /// that before it read the Decline.
    pub const fn after_decline(awaited: Option<Kind>) -> Self {
        Self {
            answer: awaited,
            decline: true,
        }
    }

    /// Whether bytes may still follow that are not for the application.
    pub const fn may_follow(&self) -> bool {
        self.decline
    }

    /// Looks at `head`, the first bytes of the stream; `at_end` says that no more will come.
    pub fn scan(&mut self, head: &[u8], at_end: bool) -> Scan {
        if !self.decline {
            return Scan::Clean;
        }
        let found = self.look(head);
        match found {
            Scan::Wait if !at_end => Scan::Wait,
            Scan::Skip(len) => Scan::Skip(len),
            _ => {
                *self = Self::NONE;
                Scan::Clean
            }
        }
    }

    fn look(&mut self, head: &[u8]) -> Scan {
        if !head.iter().zip(EYECATCHER).all(|(byte, own)| *byte == own) {
            return Scan::Clean;
        }
        let Some((header, _)) = head.split_first_chunk::<HEADER_LEN>() else {
            return Scan::Wait;
        };
        let Ok(header) = Header::parse(header) else {
            return Scan::Clean;
        };
        let is_decline = header.kind == Kind::Decline && header.length <= MAX_DECLINE;
        if !is_decline && self.answer != Some(header.kind) {
            return Scan::Clean;
        }
        let Some(message) = head.get(..header.length) else {
            return Scan::Wait;
        };
        // The trailer has to be right too before bytes are taken from the application.
        if !message.ends_with(&EYECATCHER) {
            return Scan::Clean;
        }
        if is_decline {
            *self = Self::NONE;
        } else {
            self.answer = None;
        }
        Scan::Skip(header.length)
    }
}

// SPDX-License-Identifier: GPL-2.0

//! TEST LINK: is the other side still there (RFC 7609 sections 4.5.3 and A.3.7)?

use super::{DownCause, LinkFlow, Step, Violation};
use crate::wire::llc::{Body, TestLink};

/// When the link was last heard of, and the test under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    heard: u64,
    /// When the test under way began.
    asked: Option<u64>,
    /// Number of the last test; goes out as its data.
    number: u64,
}

impl Probe {
    pub(super) const fn new(now: u64) -> Self {
        Self {
            heard: now,
            asked: None,
            number: 0,
        }
    }

    pub(super) fn on_traffic(&mut self, now: u64) {
        self.heard = self.heard.max(now);
    }

    /// When the last message arrived.
    pub(super) const fn heard(&self) -> u64 {
        self.heard
    }

    /// The data of the test under way, so that a late answer to an earlier one is noticed.
    const fn data(&self) -> [u8; 16] {
        (self.number as u128).to_be_bytes()
    }
}

impl LinkFlow {
    /// Sets how long the link may be silent before it is probed, in milliseconds; 0 for never.
    pub fn set_test_link_ms(&mut self, interval: u64) {
        self.params.test_link_ms = interval;
    }

    /// Starts a test now, for example because a connection's keepalive timer expired.
    ///
    /// `None` when one is under way or the link is not ready.
    pub fn test_link(&mut self, now: u64) -> Option<crate::wire::llc::Message<'static>> {
        if !self.is_ready() || self.probe.asked.is_some() {
            return None;
        }
        self.probe.number = self.probe.number.wrapping_add(1);
        self.probe.asked = Some(now);
        Some(self.request(Body::TestLink(TestLink {
            user_data: self.probe.data(),
        })))
    }

    pub(super) fn probe_deadline(&self) -> Option<u64> {
        if !self.is_ready() {
            return None;
        }
        match (self.probe.asked, self.params.test_link_ms) {
            (Some(asked), _) => Some(self.answer_due(asked)),
            (None, 0) => None,
            (None, interval) => Some(self.probe.heard.saturating_add(interval)),
        }
    }

    pub(super) fn on_probe_due(&mut self, now: u64) -> Step<'static> {
        if self.probe.asked.take().is_some() {
            return self.down(DownCause::Silent);
        }
        Step {
            send: self.test_link(now),
            event: None,
        }
    }

    pub(super) fn on_test_link<'m>(
        &mut self,
        response: bool,
        body: &TestLink,
    ) -> Result<Step<'m>, Violation> {
        if !response {
            return Ok(Step::send(self.response(Body::TestLink(*body))));
        }
        if self.probe.asked.is_none() {
            return Ok(Step::NOTHING);
        }
        if body.user_data != self.probe.data() {
            return Err(Violation::WrongEcho);
        }
        self.probe.asked = None;
        Ok(Step::NOTHING)
    }
}

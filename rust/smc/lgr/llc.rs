// SPDX-License-Identifier: GPL-2.0

//! LLC messages of a link group: who reads them, who waits for what.
//!
//! Messages arrive in BH context and are put into the inbox; a work item takes them out and lets
//! the protocol decide. Whoever started an exchange sleeps until its outcome is noted here.

use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        msecs_to_jiffies,
        Delta, //
    },
    workqueue::WorkItem, //
};
use smc_kapi::{
    module::now_ms,
    pr_info_ratelimited,
    pr_warn_ratelimited,
    work, //
};
use smc_proto::{
    ids::{
        LinkId,
        PathMtu, //
    },
    lgr::{
        Role,
        Rtoken,
        RtokenTable,
        MAX_RTOKENS, //
    },
    llc_flow::{
        Event,
        LinkEnd,
        LinkFlow,
        LinkParams,
        Step,
        BUSY_WAIT_MS, //
    },
    reason::DeclineReason,
    wire::{
        clc::RdmaEndpoint,
        llc::{
            DeleteLinkReason,
            Message,
            RkeyAnswer, //
        }, //
    },
};

use super::{
    Ending,
    LinkGroup, //
};
use crate::smc::link::{
    rx::RECEIVE_BYTES,
    Link, //
};

/// How long a request waits for a free send slot, in milliseconds.
pub(super) const SEND_WAIT_MS: u64 = 4_000;
/// How long an answer waits for one, in milliseconds. On a busy link acknowledgements take long, and
/// without the answer the peer takes this side for dead.
const ANSWER_WAIT_MS: u64 = BUSY_WAIT_MS;
/// How long the good-bye waits, in milliseconds: the link may be ending because it is stuck.
const GOODBYE_WAIT_MS: u64 = 50;

/// State of the LLC conversation, and outcomes that somebody waits for.
pub(super) struct Llc {
    pub(super) flow: Option<LinkFlow>,
    peer_rmbs: RtokenTable<KVec<Rtoken>>,
    first_contact: Option<Result<(), DeclineReason>>,
    pub(super) confirmed: Option<RkeyAnswer>,
    pub(super) deleted: bool,
    scratch: KVec<u8>,
    /// Where the work item writes answers: one that did not go out for want of memory would be
    /// missed by the peer.
    answer: KVec<u8>,
}

impl Llc {
    pub(super) fn new() -> Result<Self> {
        let slots = KVec::from_elem(Rtoken::default(), MAX_RTOKENS, GFP_KERNEL)?;
        Ok(Self {
            flow: None,
            peer_rmbs: RtokenTable::new(slots),
            first_contact: None,
            confirmed: None,
            deleted: false,
            scratch: KVec::from_elem(0u8, RECEIVE_BYTES, GFP_KERNEL)?,
            answer: KVec::from_elem(0u8, RECEIVE_BYTES, GFP_KERNEL)?,
        })
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Ready => self.first_contact = Some(Ok(())),
            Event::Failed(reason) => self.first_contact = Some(Err(reason)),
            Event::RkeyConfirmed { answer, .. } => self.confirmed = Some(answer),
            Event::RkeysDeleted { .. } => self.deleted = true,
            Event::LinkDown(_) | Event::GroupEnds(_) => {
                if self.first_contact.is_none() {
                    self.first_contact = Some(Err(DeclineReason::NOACTLINK));
                }
            }
        }
    }
}

impl LinkGroup {
    /// An LLC message of `len` bytes arrived; `fill` copies it out of device memory. BH context.
    pub(crate) fn queue_llc(self: &Arc<Self>, len: usize, fill: impl FnOnce(&mut [u8])) {
        self.net().stats.llc_received.inc();
        if self.inbox.lock().put(len, fill) {
            work::queue::<_, 0>(&self.queues.link, self);
        } else {
            self.message_violation("more link messages arrived than one exchange has");
        }
    }

    /// Begins the conversation on the first link; on the server with CONFIRM LINK.
    pub(crate) fn start_llc(
        self: &Arc<Self>,
        link: &Arc<Link>,
        peer: &RdmaEndpoint,
        mtu: PathMtu,
    ) -> Result {
        let params = self.link_params(link, peer, mtu)?;
        let now = now_ms();
        let first = {
            let mut llc = self.llc.lock();
            // The key that came with the handshake is known without an exchange.
            let _ = llc.peer_rmbs.add(Rtoken {
                rkey: peer.rkey,
                addr: peer.rmb_addr,
            });
            match self.role {
                Role::Server => {
                    let (flow, first) = LinkFlow::server(params, link.id, now);
                    llc.flow = Some(flow);
                    Some(first)
                }
                Role::Client => {
                    llc.flow = Some(LinkFlow::client(params, now));
                    None
                }
            }
        };
        match first {
            Some(first) => self.send_llc(link, &first, SEND_WAIT_MS),
            None => Ok(()),
        }
    }

    fn link_params(&self, link: &Link, peer: &RdmaEndpoint, mtu: PathMtu) -> Result<LinkParams> {
        Ok(LinkParams {
            version: self.terms.version,
            negotiated: self.terms.release.has_v2_1_fields(),
            role: self.role,
            local: LinkEnd {
                mac: link.mac(),
                gid: link.gid(),
                qpn: link.qpn().ok_or(EINVAL)?,
            },
            peer: LinkEnd {
                mac: peer.mac,
                gid: peer.gid,
                qpn: peer.qpn,
            },
            link_uid: link.uid,
            max_links: self.terms.max_links,
            max_conns: self.terms.max_conns,
            mtu,
            psn: link.psn,
            test_link_ms: self.net.settings.test_link_ms(),
        })
    }

    /// Waits until the first contact's exchange is over. May sleep.
    ///
    /// # Errors
    ///
    /// The reason to decline with.
    pub(crate) fn await_first_link(self: &Arc<Self>) -> Result<(), DeclineReason> {
        self.wait_llc(|llc| llc.first_contact.take())
            .unwrap_or(Err(DeclineReason::NOACTLINK))
    }

    /// Says good-bye before the link is closed. May sleep.
    pub(super) fn tell_peer_of_end(self: &Arc<Self>, link: &Arc<Link>) {
        let message = {
            let mut llc = self.llc.lock();
            let Some(flow) = llc.flow.as_mut() else {
                return;
            };
            flow.end_group(DeleteLinkReason::INACTIVITY, true)
        };
        if self.send_llc(link, &message, GOODBYE_WAIT_MS).is_ok() {
            link.wait_sent();
        }
    }

    /// Does what time demands on the link: probes it when it was silent for long.
    pub(super) fn probe(self: &Arc<Self>, now: u64) {
        let Some(link) = self.link() else {
            return;
        };
        let step = {
            let mut llc = self.llc.lock();
            let Some(flow) = llc.flow.as_mut() else {
                return;
            };
            flow.on_traffic(link.heard_at());
            let step = flow.poll(now);
            if let Some(event) = step.event {
                llc.note(event);
            }
            step
        };
        self.perform(&link, &step);
    }

    /// Sleeps until `done` finds its outcome, doing meanwhile what time demands. `None` when the
    /// group ends.
    pub(super) fn wait_llc<R>(
        self: &Arc<Self>,
        mut done: impl FnMut(&mut Llc) -> Option<R>,
    ) -> Option<R> {
        loop {
            {
                let mut llc = self.llc.lock();
                if let Some(outcome) = done(&mut llc) {
                    return Some(outcome);
                }
                if self.is_ending() {
                    return None;
                }
                let now = now_ms();
                let deadline = llc.flow.as_ref().and_then(LinkFlow::deadline);
                let left = deadline.map_or(1_000, |at| at.saturating_sub(now));
                if left > 0 {
                    // CAST: at most ten seconds.
                    let jiffies = msecs_to_jiffies(core::cmp::min(left, 1_000) as u32);
                    let _ = self.llc_news.wait_interruptible_timeout(&mut llc, jiffies);
                    continue;
                }
            }
            self.probe(now_ms());
        }
    }

    /// Takes a message out of the inbox and acts on it; false when there was none. The answer is
    /// written to `answer`.
    fn handle_next(self: &Arc<Self>, link: &Arc<Link>, answer: &mut [u8]) -> bool {
        let mut len = 0;
        let event = {
            let mut guard = self.llc.lock();
            let llc = &mut *guard;
            let Some(received) = self.inbox.lock().take(&mut llc.scratch) else {
                return false;
            };
            let frame = llc.scratch.get(..received).unwrap_or(&[]);
            let message = match Message::parse(frame) {
                Ok(message) => message,
                Err(error) => {
                    pr_warn_ratelimited!(
                        "Link group {:08x}: a link message is ignored: {}.\n",
                        self.id,
                        error.describe()
                    );
                    return true;
                }
            };
            let Some(flow) = llc.flow.as_mut() else {
                return true;
            };
            let step = match flow.handle(&message, &mut llc.peer_rmbs, now_ms()) {
                Ok(step) => step,
                Err(violation) => {
                    pr_warn_ratelimited!(
                        "Link group {:08x} ends because {}.\n",
                        self.id,
                        violation.describe()
                    );
                    drop(guard);
                    self.end(Ending::Violation);
                    return true;
                }
            };
            if let Some(message) = &step.send {
                // It may point into the frame, so it is written out under the lock.
                len = message.emit(answer).unwrap_or(0);
            }
            let event = step.event;
            if let Some(event) = event {
                llc.note(event);
            }
            event
        };
        if len > 0 {
            let _ = self.post(link, answer.get(..len).unwrap_or(&[]), ANSWER_WAIT_MS);
        }
        self.llc_news.notify_all();
        if let Some(event) = event {
            self.act_on(event);
        }
        true
    }

    /// Sends and acts on what the passing of time led to.
    fn perform(self: &Arc<Self>, link: &Arc<Link>, step: &Step<'_>) {
        if let Some(message) = &step.send {
            let _ = self.send_llc(link, message, SEND_WAIT_MS);
        }
        self.llc_news.notify_all();
        if let Some(event) = step.event {
            self.act_on(event);
        }
    }

    fn act_on(self: &Arc<Self>, event: Event) {
        match event {
            Event::LinkDown(cause) => {
                if let Some(link) = self.link() {
                    pr_info_ratelimited!(
                        "Link group {:08x}: no answer to {} in time; the peer was last heard {} ms ago, {} messages to it are under way.\n",
                        self.id,
                        cause.unanswered(),
                        now_ms().saturating_sub(link.heard_at()),
                        link.unacknowledged()
                    );
                }
                self.end(Ending::LinkFailed);
            }
            Event::GroupEnds(_) => self.end(Ending::Peer),
            Event::Ready
            | Event::Failed(_)
            | Event::RkeyConfirmed { .. }
            | Event::RkeysDeleted { .. } => {}
        }
    }

    /// Sends a message, waiting up to `wait_ms` for a slot if it must. May sleep.
    pub(super) fn send_llc(&self, link: &Arc<Link>, message: &Message<'_>, wait_ms: u64) -> Result {
        let mut buf = [0u8; RECEIVE_BYTES_SMALL];
        let len = message.emit(&mut buf).map_err(|_| EINVAL)?;
        self.post(link, buf.get(..len).unwrap_or(&[]), wait_ms)
    }

    /// Posts the bytes of a message, waiting up to `wait_ms` for a slot if it must. May sleep.
    fn post(&self, link: &Arc<Link>, bytes: &[u8], wait_ms: u64) -> Result {
        let deadline = now_ms() + wait_ms;
        loop {
            match link.post_llc(bytes) {
                Ok(()) => {
                    self.net().stats.llc_sent.inc();
                    return Ok(());
                }
                Err(error) if error == ENOBUFS && now_ms() < deadline => {
                    fsleep(Delta::from_millis(1));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Room for a message that this side makes up itself: at most an ADD LINK of version 2 without
/// keys, or a DELETE RKEY of version 1.
const RECEIVE_BYTES_SMALL: usize = 128;

impl WorkItem<0> for LinkGroup {
    type Pointer = Arc<LinkGroup>;

    fn run(this: Arc<LinkGroup>) {
        let Some(link) = this.link() else {
            return;
        };
        // The item does not run twice at a time, so the buffer is always there.
        let mut answer = core::mem::take(&mut this.llc.lock().answer);
        while this.handle_next(&link, &mut answer) {}
        this.llc.lock().answer = answer;
    }
}

/// Number of the first link of a group.
pub(super) const FIRST_LINK: LinkId = LinkId(1);

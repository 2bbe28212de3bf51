// SPDX-License-Identifier: GPL-2.0

//! This peer's end of an RDMA link: sends any bytes, sorts what arrives, and answers what a good
//! peer answers unless told otherwise.

use crate::clc::Identity;
use crate::habits::{Habits, RkeyHabit};
use crate::message::{emit, request, response, test_link};
use crate::verbs::{status_name, Done, Op, Rdma, Remote, Rights};
use smc_proto::ids::{LinkId, Version};
use smc_proto::wire::cdc::{self, CdcMessage};
use smc_proto::wire::clc::RdmaEndpoint;
use smc_proto::wire::llc::{
    AddLink, Body, ConfirmRkey, DeleteRkey, List, Message, RejectReason, RkeyAnswer,
};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Receives that are posted at any time.
const RECEIVES: usize = 64;
/// Bytes of each, more than any message of the other side has.
const RECEIVE_BYTES: usize = 1152;
/// Messages and writes that may be on their way.
const SENDS: usize = 16;
/// Bytes of each at most.
pub(crate) const SEND_BYTES: usize = 4096;
/// Where they are.
const SENDS_AT: usize = RECEIVES * RECEIVE_BYTES;

/// Bytes of a ring into which the other side writes.
pub(crate) const RING: usize = 16384;
/// Bytes of the guards around each ring. The other side could write there, and must not.
const GUARD: usize = 4096;
/// Rings of a link, where a case needs no other number.
pub(crate) const RINGS: usize = 8;
const RINGS_AT: usize = SENDS_AT + SENDS * SEND_BYTES;
const GUARD_BYTE: u8 = 0xc7;

/// Work requests of receives have this bit in their number.
const RECEIVE_ID: u64 = 1 << 32;

/// Type of TEST LINK, in the bits that are no flags of an answer or of version 2.
const TEST_LINK: u8 = 0x07;
const TYPE_BITS: u8 = 0x1f;

/// Longest time for a message to be acknowledged.
pub(crate) const SEND_LIMIT: Duration = Duration::from_secs(20);
/// How long a refusal may take.
const REFUSAL_LIMIT: Duration = Duration::from_secs(8);

/// One end of a link.
pub(crate) struct Link {
    rdma: Rdma,
    lkey: u32,
    rkey: u32,
    psn: u32,
    version: Version,
    pub(crate) rings: usize,
    pub(crate) number: LinkId,
    pub(crate) habits: Habits,
    /// CDC messages by the connection's token.
    pub(crate) cdc: HashMap<u32, VecDeque<CdcMessage>>,
    /// LLC messages that were not answered here.
    pub(crate) llc: VecDeque<Vec<u8>>,
    /// Requests for CONFIRM RKEY that arrived.
    pub(crate) rkey_requests: usize,
    late: VecDeque<(Instant, Vec<u8>)>,
    /// Receive buffers that were not posted again.
    starved: Vec<usize>,
    /// Why the queue pair does not work any more.
    broken: Option<i32>,
    next_id: u64,
    outstanding: usize,
    done: HashMap<u64, i32>,
}

impl Link {
    /// Makes a queue pair on the peer's device.
    pub(crate) fn open(id: &Identity, psn: u32) -> Result<Link, String> {
        let rings_len = id.rings * (GUARD + RING) + GUARD;
        let mut rdma = Rdma::open(id.gid().0, RINGS_AT + rings_len)?;
        let (lkey, _) = rdma.register(0, RINGS_AT + rings_len, Rights::Local)?;
        let (_, rkey) = rdma.register(RINGS_AT, rings_len, Rights::PeerWrites)?;
        rdma.memory.fill(RINGS_AT, rings_len, GUARD_BYTE);
        for n in 0..id.rings {
            rdma.memory.fill(ring_at(n), RING, 0);
        }
        let link = Link {
            rdma,
            lkey,
            rkey,
            psn,
            version: id.version,
            rings: id.rings,
            number: LinkId(1),
            habits: Habits::GOOD,
            cdc: HashMap::new(),
            llc: VecDeque::new(),
            rkey_requests: 0,
            late: VecDeque::new(),
            starved: Vec::new(),
            broken: None,
            next_id: 0,
            outstanding: 0,
            done: HashMap::new(),
        };
        for n in 0..RECEIVES {
            link.post_receive(n)?;
        }
        Ok(link)
    }

    fn post_receive(&self, n: usize) -> Result<(), String> {
        let id = RECEIVE_ID | n as u64;
        self.rdma
            .post_receive(id, n * RECEIVE_BYTES, RECEIVE_BYTES, self.lkey)
    }

    pub(crate) fn qpn(&self) -> u32 {
        self.rdma.qpn()
    }

    pub(crate) fn psn(&self) -> u32 {
        self.psn
    }

    /// The key of the rings.
    pub(crate) fn rkey(&self) -> u32 {
        self.rkey
    }

    /// Address of a ring.
    pub(crate) fn ring_address(&self, ring: usize) -> u64 {
        self.rdma.memory.address(ring_at(ring))
    }

    /// Connects to the other side's queue pair.
    pub(crate) fn connect(&self, peer: &RdmaEndpoint) -> Result<(), String> {
        let remote = Remote {
            gid: peer.gid.0,
            qpn: peer.qpn.get(),
            psn: peer.psn.get(),
            mtu: peer.mtu.map_or(3, |mtu| mtu.code().min(3)),
        };
        self.rdma.connect(&remote, self.psn)
    }

    /// Posts receives again that were not, and goes on doing so.
    pub(crate) fn feed(&mut self) -> Result<(), String> {
        self.habits.receives = true;
        for n in std::mem::take(&mut self.starved) {
            self.post_receive(n)?;
        }
        Ok(())
    }

    /// Breaks the link from this side.
    pub(crate) fn kill(&self) -> Result<(), String> {
        self.rdma.kill()
    }

    /// Why the queue pair does not work any more, if so.
    pub(crate) fn broken(&self) -> Option<i32> {
        self.broken
    }

    /// Whether the other side can send nothing more: no buffer is left to receive it.
    pub(crate) fn is_starved(&self) -> bool {
        self.starved.len() == RECEIVES
    }

    /// Takes what has arrived and what has ended.
    pub(crate) fn pump(&mut self) -> Result<(), String> {
        while let Some(done) = self.rdma.poll()? {
            if done.id & RECEIVE_ID == 0 {
                self.outstanding -= 1;
                self.done.insert(done.id, done.status);
                if done.status != 0 {
                    self.broken.get_or_insert(done.status);
                }
            } else {
                self.received(&done)?;
            }
        }
        while self
            .late
            .front()
            .is_some_and(|(at, _)| *at <= Instant::now())
        {
            if let Some((_, bytes)) = self.late.pop_front() {
                self.post_send(&bytes)?;
            }
        }
        Ok(())
    }

    /// Waits until `look` finds something.
    pub(crate) fn wait<T>(
        &mut self,
        limit: Duration,
        mut look: impl FnMut(&mut Link) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let end = Instant::now() + limit;
        loop {
            self.pump()?;
            if let Some(found) = look(self) {
                return Ok(Some(found));
            }
            if Instant::now() >= end {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_micros(300));
        }
    }

    fn received(&mut self, done: &Done) -> Result<(), String> {
        if done.status != 0 {
            self.broken.get_or_insert(done.status);
            return Ok(());
        }
        let n = (done.id & !RECEIVE_ID) as usize;
        let bytes = self.rdma.memory.read(n * RECEIVE_BYTES, done.len);
        if self.habits.receives && self.broken.is_none() {
            self.post_receive(n)?;
        } else {
            self.starved.push(n);
        }
        if bytes.first() == Some(&cdc::TYPE) {
            let message = CdcMessage::parse(&bytes)
                .map_err(|e| format!("a CDC message of the other side is wrong: {e}"))?;
            self.cdc
                .entry(message.token.0)
                .or_default()
                .push_back(message);
            return Ok(());
        }
        let message = Message::parse(&bytes)
            .map_err(|e| format!("a link message of the other side is wrong: {e}"))?;
        if message.response || !self.answer(&message)? {
            self.llc.push_back(bytes);
        }
        Ok(())
    }

    /// Answers what this peer answers by itself; false for everything else.
    fn answer(&mut self, request: &Message<'_>) -> Result<bool, String> {
        let reply = Message {
            response: true,
            ..*request
        };
        match request.body {
            Body::TestLink(_) if self.habits.answers_tests => self.post_message(&reply)?,
            Body::TestLink(_) => {}
            Body::ConfirmRkey(body) => {
                self.rkey_requests += 1;
                self.answer_rkey(body)?;
            }
            Body::DeleteRkey(body) => self.post_message(&Message {
                body: Body::DeleteRkey(DeleteRkey { errors: 0, ..body }),
                ..reply
            })?,
            Body::AddLink(body) if self.habits.refuses_links => {
                let refusal = AddLink {
                    reject: Some(RejectReason::NO_ALTERNATE_PATH),
                    ext: None,
                    ..body
                };
                self.post_message(&Message {
                    body: Body::AddLink(refusal),
                    ..reply
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn answer_rkey(&mut self, request: ConfirmRkey) -> Result<(), String> {
        let mut body = request;
        match self.habits.rkeys {
            RkeyHabit::Never => return Ok(()),
            RkeyHabit::Negative => body.answer = RkeyAnswer::Negative,
            RkeyHabit::Retry => body.answer = RkeyAnswer::Retry,
            RkeyHabit::WrongKey => body.own.rkey.0 ^= 1,
            _ => {}
        }
        let bytes = self.emit(&response(Body::ConfirmRkey(body)));
        match self.habits.rkeys {
            RkeyHabit::Late(time) => self.late.push_back((Instant::now() + time, bytes)),
            RkeyHabit::Short => drop(self.post_send(&bytes[..20])?),
            RkeyHabit::OtherType => {
                let rkeys = [request.own.rkey];
                let body = DeleteRkey {
                    rkeys: List::new(&rkeys),
                    negative: false,
                    errors: 0,
                };
                self.post_message(&response(Body::DeleteRkey(body)))?;
            }
            RkeyHabit::Twice => {
                self.post_send(&bytes)?;
                self.post_send(&bytes)?;
            }
            _ => drop(self.post_send(&bytes)?),
        }
        Ok(())
    }

    fn post_message(&mut self, message: &Message<'_>) -> Result<(), String> {
        self.post_send(&self.emit(message)).map(drop)
    }

    /// The bytes of a message: one of version 2 has the form of the link's version.
    pub(crate) fn emit(&self, message: &Message<'_>) -> Vec<u8> {
        emit(&Message {
            version: message.version.min(self.version),
            ..*message
        })
    }

    fn post(&mut self, op: Op, len: usize, bytes: Option<&[u8]>) -> Result<u64, String> {
        let end = Instant::now() + SEND_LIMIT;
        while self.outstanding >= SENDS && self.broken.is_none() {
            if Instant::now() >= end {
                return Err("messages are not acknowledged any more".into());
            }
            self.pump()?;
        }
        if let Some(status) = self.broken {
            return Err(format!("the link is broken: {}", status_name(status)));
        }
        let id = self.next_id;
        self.next_id += 1;
        let at = SENDS_AT + (id as usize % SENDS) * SEND_BYTES;
        if let Some(bytes) = bytes {
            self.rdma.memory.write(at, bytes);
        }
        self.rdma.post(id, op, at, len, self.lkey)?;
        self.outstanding += 1;
        Ok(id)
    }

    /// Posts a message of any bytes.
    pub(crate) fn post_send(&mut self, bytes: &[u8]) -> Result<u64, String> {
        self.post(Op::Send, bytes.len(), Some(bytes))
    }

    /// Posts an RDMA write of at most [`SEND_BYTES`] bytes.
    pub(crate) fn post_write(&mut self, addr: u64, rkey: u32, bytes: &[u8]) -> Result<u64, String> {
        self.post(Op::Write { addr, rkey }, bytes.len(), Some(bytes))
    }

    /// Posts an RDMA read.
    pub(crate) fn post_read(&mut self, addr: u64, rkey: u32, len: usize) -> Result<u64, String> {
        self.post(Op::Read { addr, rkey }, len, None)
    }

    /// Waits for the end of a work request and gives its status.
    pub(crate) fn finish(&mut self, id: u64) -> Result<i32, String> {
        self.finish_within(id, SEND_LIMIT)?
            .ok_or_else(|| "a message was not acknowledged in time".into())
    }

    /// Waits for the end of a work request that the other side's device must refuse. The refusal
    /// is lost when the other end of the link is gone first, so that none is no fault.
    pub(crate) fn finish_refused(&mut self, id: u64) -> Result<(), String> {
        self.finish_within(id, REFUSAL_LIMIT).map(drop)
    }

    /// As [`Link::finish`]; `None` if that takes longer.
    pub(crate) fn finish_within(
        &mut self,
        id: u64,
        limit: Duration,
    ) -> Result<Option<i32>, String> {
        self.wait(limit, |link| link.done.remove(&id))
    }

    /// Sends a message of any bytes. That it is not acknowledged shows later: a message that ends
    /// the link need not be.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.post_send(bytes)?;
        self.pump()
    }

    pub(crate) fn send_llc(&mut self, message: &Message<'_>) -> Result<(), String> {
        self.send(&self.emit(message))
    }

    /// Sends a TEST LINK and waits for its answer.
    pub(crate) fn test(&mut self, byte: u8, limit: Duration) -> Result<(), String> {
        self.send_llc(&request(test_link(byte)))?;
        self.await_llc(limit, "the answer to TEST LINK", |m| match m.body {
            Body::TestLink(body) if m.response && body.user_data == [byte; 16] => Some(()),
            _ => None,
        })
    }

    /// Waits for an LLC message that `want` accepts, and drops others before it.
    pub(crate) fn await_llc<T>(
        &mut self,
        limit: Duration,
        what: &str,
        mut want: impl FnMut(&Message<'_>) -> Option<T>,
    ) -> Result<T, String> {
        let found = self.wait(limit, |link| {
            while let Some(bytes) = link.llc.pop_front() {
                if let Some(found) = Message::parse(&bytes).ok().and_then(|m| want(&m)) {
                    return Some(found);
                }
            }
            None
        })?;
        found.ok_or_else(|| format!("{what} did not come within {} s", limit.as_secs()))
    }

    /// Waits until the other side has given up the link: it answers no link test any more.
    pub(crate) fn await_end(&mut self, limit: Duration) -> Result<(), String> {
        let end = Instant::now() + limit;
        let mut unanswered = 0;
        while Instant::now() < end {
            let sent = self.post_send(&self.emit(&request(test_link(0xdd))));
            if self.broken.is_some() || (sent.is_ok() && unanswered == 2) {
                return Ok(());
            }
            let answered = self.wait(Duration::from_millis(700), |link| {
                let before = link.llc.len();
                link.llc.retain(|bytes| bytes[0] & TYPE_BITS != TEST_LINK);
                (link.llc.len() < before || link.broken.is_some()).then_some(())
            })?;
            unanswered = if answered.is_some() {
                0
            } else {
                unanswered + 1
            };
        }
        Err(format!("the link still works after {} s", limit.as_secs()))
    }

    /// Bytes of a ring.
    pub(crate) fn ring(&self, ring: usize, offset: usize, len: usize) -> Vec<u8> {
        self.rdma.memory.read(ring_at(ring) + offset, len)
    }

    /// Whether anything was written around the rings.
    pub(crate) fn check_guards(&self) -> Result<(), String> {
        for n in 0..=self.rings {
            let at = RINGS_AT + n * (GUARD + RING);
            let guard = self.rdma.memory.read(at, GUARD);
            if let Some(wrong) = guard.iter().position(|b| *b != GUARD_BYTE) {
                return Err(format!(
                    "byte {wrong} of the guard in front of ring {n} was overwritten with {:#04x}",
                    guard[wrong]
                ));
            }
        }
        Ok(())
    }

    /// Makes a ring as new.
    pub(crate) fn clear_ring(&mut self, ring: usize) {
        self.rdma.memory.fill(ring_at(ring), RING, 0);
    }

    /// Whether a ring is as it was made.
    pub(crate) fn ring_is_untouched(&self, ring: usize) -> bool {
        self.ring(ring, 0, RING).iter().all(|b| *b == 0)
    }
}

fn ring_at(ring: usize) -> usize {
    RINGS_AT + ring * (GUARD + RING) + GUARD
}

// SPDX-License-Identifier: GPL-2.0

//! Many connections in one thread: non-blocking calls and edge-triggered epoll.
//!
//! An edge that the kernel forgets is the fault looked for here. Sockets are
//! registered once, on the connecting side before `connect`, and never again;
//! whoever waits too long is asked by `poll` what it could have done.

use crate::plan::{header, parse_header, Plan, Script, Side, HEADER_LEN};
use crate::report::{ConnReport, Progress, Results};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testlib::event::{poll_one, Epoll};
use testlib::pattern::{fill, Rng, Tally};
use testlib::sock::{Family, Sock};

const EVENTS: i32 = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
/// Nothing at all happened for this long: some wake-up is lost.
const STALL: Duration = Duration::from_secs(20);
const LISTENER: u64 = u64::MAX;

/// What is known of a connection's identity.
enum Stage {
    Connecting,
    /// Header bytes still to send (client) or received so far (server).
    Header(Vec<u8>),
    Streaming,
}

struct Conn {
    sock: Sock,
    id: u64,
    stage: Stage,
    script: Script,
    side: Side,
    rng: Rng,
    readable: bool,
    writable: bool,
    message: Vec<u8>,
    message_done: usize,
    sent: Tally,
    received: Tally,
    out_closed: bool,
    in_closed: bool,
    /// All was written, and not yet sent.
    draining: bool,
    progress: Arc<Progress>,
}

enum Step {
    Wait,
    Done,
}

fn would_block(e: &io::Error) -> bool {
    e.raw_os_error() == Some(libc::EAGAIN)
}

impl Conn {
    fn new(sock: Sock, id: u64, plan: &Plan, side: Side, stage: Stage) -> Conn {
        let script = plan.script(id);
        Conn {
            sock,
            id,
            stage,
            rng: script.rng(side),
            readable: false,
            writable: false,
            message: Vec::new(),
            message_done: 0,
            sent: Tally::new(script.out(side).key),
            received: Tally::new(script.inp(side).key),
            out_closed: false,
            in_closed: false,
            draining: false,
            progress: Arc::default(),
            script,
            side,
        }
    }

    fn adopt(&mut self, id: u64, plan: &Plan, results: &Results) {
        let script = plan.script(id);
        self.id = id;
        self.rng = script.rng(self.side);
        self.sent = Tally::new(script.out(self.side).key);
        self.received = Tally::new(script.inp(self.side).key);
        self.script = script;
        self.progress = results.opened(id);
        self.stage = Stage::Streaming;
    }

    fn on_event(&mut self, bits: i32) {
        self.readable |= bits & (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP) != 0;
        self.writable |= bits & (libc::EPOLLOUT | libc::EPOLLHUP) != 0;
        if bits & libc::EPOLLERR != 0 {
            self.readable = true;
            self.writable = true;
        }
    }

    fn advance(&mut self, plan: &Plan, results: &Results) -> Result<Step, String> {
        if matches!(self.stage, Stage::Connecting) {
            if !self.writable {
                return Ok(Step::Wait);
            }
            let error = self
                .sock
                .take_error()
                .map_err(|e| format!("SO_ERROR: {e}"))?;
            if error != 0 {
                let e = io::Error::from_raw_os_error(error);
                return Err(format!("connect failed: {e}"));
            }
            self.progress = results.opened(self.id);
            self.stage = Stage::Header(header(self.id).to_vec());
        }
        if let Stage::Header(_) = self.stage {
            if let Step::Wait = self.exchange_header(plan, results)? {
                return Ok(Step::Wait);
            }
        }
        self.write(plan)?;
        self.read()?;
        Ok(if self.out_closed && self.in_closed {
            Step::Done
        } else {
            Step::Wait
        })
    }

    fn exchange_header(&mut self, plan: &Plan, results: &Results) -> Result<Step, String> {
        let Stage::Header(bytes) = &mut self.stage else {
            return Ok(Step::Done);
        };
        if self.side == Side::Client {
            while self.writable && !bytes.is_empty() {
                match self.sock.send(bytes, libc::MSG_NOSIGNAL) {
                    Ok(n) => {
                        bytes.drain(..n);
                    }
                    Err(e) if would_block(&e) => self.writable = false,
                    Err(e) => return Err(format!("the first send failed: {e}")),
                }
            }
            if bytes.is_empty() {
                self.stage = Stage::Streaming;
                return Ok(Step::Done);
            }
            return Ok(Step::Wait);
        }
        while self.readable && bytes.len() < HEADER_LEN {
            let mut buf = [0u8; HEADER_LEN];
            let want = HEADER_LEN - bytes.len();
            match self.sock.recv(&mut buf[..want], 0) {
                Ok(0) => return Err("the connection ended before its header".into()),
                Ok(n) => bytes.extend_from_slice(&buf[..n]),
                Err(e) if would_block(&e) => self.readable = false,
                Err(e) => return Err(format!("the first recv failed: {e}")),
            }
        }
        let Ok(whole) = <[u8; HEADER_LEN]>::try_from(bytes.as_slice()) else {
            return Ok(Step::Wait);
        };
        let id = parse_header(&whole, plan.conns)?;
        self.adopt(id, plan, results);
        Ok(Step::Done)
    }

    fn write(&mut self, plan: &Plan) -> Result<(), String> {
        let out = self.script.out(self.side);
        while self.writable && !self.out_closed {
            if self.message_done == self.message.len() {
                if self.sent.count() == out.len {
                    return self.finish_writing(plan);
                }
                let left = out.len - self.sent.count();
                let size = self.rng.log_range(plan.msg_min, plan.msg_max).min(left);
                self.message.resize(size as usize, 0);
                fill(out.key, self.sent.count(), &mut self.message);
                self.message_done = 0;
            }
            match self
                .sock
                .send(&self.message[self.message_done..], libc::MSG_NOSIGNAL)
            {
                Ok(0) => return Err("send returned 0 for bytes that were there".into()),
                Ok(n) => {
                    let part = self.message.get(self.message_done..self.message_done + n);
                    self.sent
                        .take(part.ok_or("send returned more than was offered")?);
                    self.message_done += n;
                    self.progress
                        .sent
                        .store(self.sent.count(), Ordering::Relaxed);
                }
                Err(e) if would_block(&e) => self.writable = false,
                Err(e) => return Err(format!("send failed at {}: {e}", self.sent.count())),
            }
        }
        Ok(())
    }

    fn finish_writing(&mut self, plan: &Plan) -> Result<(), String> {
        if plan.own.drain {
            // Tried again at the next round.
            let unsent = self
                .sock
                .unsent()
                .map_err(|e| format!("SIOCOUTQNSD: {e}"))?;
            self.draining = unsent > 0;
            if self.draining {
                return Ok(());
            }
        }
        self.sock
            .shutdown(libc::SHUT_WR)
            .map_err(|e| format!("shutdown failed: {e}"))?;
        self.out_closed = true;
        Ok(())
    }

    fn read(&mut self) -> Result<(), String> {
        let len = self.script.inp(self.side).len;
        let mut buf = [0u8; 32 << 10];
        while self.readable && !self.in_closed {
            let size = self.rng.log_range(1, buf.len() as u64) as usize;
            match self.sock.recv(&mut buf[..size], 0) {
                Ok(0) if self.received.count() == len => self.in_closed = true,
                Ok(0) => {
                    return Err(format!("ended at byte {} of {len}", self.received.count()));
                }
                Ok(n) => {
                    self.received.verify(&buf[..n])?;
                    self.progress
                        .received
                        .store(self.received.count(), Ordering::Relaxed);
                }
                Err(e) if would_block(&e) => self.readable = false,
                Err(e) => return Err(format!("recv failed at {}: {e}", self.received.count())),
            }
        }
        Ok(())
    }

    /// What `poll` says about a connection that epoll is silent about.
    fn autopsy(&self) -> String {
        let now = poll_one(
            &self.sock,
            libc::POLLIN | libc::POLLOUT | libc::POLLRDHUP,
            0,
        )
        .unwrap_or_default();
        let can_read = !self.readable && !self.in_closed && now & libc::POLLIN != 0;
        let can_write = !self.writable && !self.out_closed && now & libc::POLLOUT != 0;
        let what = match (can_read, can_write) {
            (false, false) => "no progress",
            (true, false) => "an EPOLLIN edge was lost",
            (false, true) => "an EPOLLOUT edge was lost",
            (true, true) => "both edges were lost",
        };
        format!(
            "{what}: poll says {now:#x}, sent {} of {}, received {} of {}",
            self.sent.count(),
            self.script.out(self.side).len,
            self.received.count(),
            self.script.inp(self.side).len
        )
    }
}

struct Engine<'a> {
    plan: &'a Plan,
    results: &'a Results,
    epoll: Epoll,
    conns: BTreeMap<u64, Conn>,
}

impl Engine<'_> {
    fn step(&mut self, token: u64, bits: i32) {
        let Some(conn) = self.conns.get_mut(&token) else {
            return;
        };
        conn.on_event(bits);
        let outcome = match conn.advance(self.plan, self.results) {
            Ok(Step::Wait) => return,
            Ok(Step::Done) => Ok(()),
            Err(e) => Err(e),
        };
        if let Some(conn) = self.conns.remove(&token) {
            let report = ConnReport::new(&conn.sent, &conn.received);
            let closed = conn.sock.close().map_err(|e| format!("close failed: {e}"));
            self.results
                .done(conn.id, outcome.and(closed).map(|()| report));
        }
    }

    /// Waits for events; looks, whatever they are, at the connections that wait for an end of
    /// their output, of which epoll does not tell.
    fn wait(&mut self) -> io::Result<Vec<(u64, i32)>> {
        let draining: Vec<u64> = self
            .conns
            .iter()
            .filter_map(|(token, conn)| conn.draining.then_some(*token))
            .collect();
        let patience = if draining.is_empty() { 500 } else { 10 };
        let events = self.epoll.wait(patience)?;
        for token in draining {
            self.step(token, 0);
        }
        Ok(events)
    }

    fn give_up(&mut self) {
        for (_, conn) in std::mem::take(&mut self.conns) {
            self.results.done(conn.id, Err(conn.autopsy()));
        }
    }
}

/// Connects and drives every connection of the plan, `parallel` at a time.
///
/// # Errors
///
/// When epoll or a socket call fails outright.
pub(crate) fn client(
    plan: &Plan,
    family: Family,
    addr: SocketAddr,
    results: &Results,
) -> io::Result<()> {
    let mut engine = Engine {
        plan,
        results,
        epoll: Epoll::new()?,
        conns: BTreeMap::new(),
    };
    let mut next = 0;
    let mut last = Instant::now();
    while next < plan.conns || !engine.conns.is_empty() {
        while next < plan.conns && (engine.conns.len() as u64) < plan.parallel {
            let sock = Sock::with_flags(family, libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC)?;
            crate::client::set_buffers(&sock, plan)?;
            engine.epoll.add(&sock, EVENTS, next)?;
            match sock.connect(addr) {
                Ok(()) => {}
                Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {}
                Err(e) => return Err(e),
            }
            let conn = Conn::new(sock, next, plan, Side::Client, Stage::Connecting);
            engine.conns.insert(next, conn);
            next += 1;
        }
        let events = engine.wait()?;
        if !events.is_empty() {
            last = Instant::now();
        } else if last.elapsed() > STALL {
            engine.give_up();
            break;
        }
        for (token, bits) in events {
            engine.step(token, bits);
        }
    }
    Ok(())
}

/// Accepts and drives every connection of the plan.
///
/// # Errors
///
/// When epoll or accepting fails outright.
pub(crate) fn server(plan: &Plan, listener: &Sock, results: &Results) -> io::Result<()> {
    let mut engine = Engine {
        plan,
        results,
        epoll: Epoll::new()?,
        conns: BTreeMap::new(),
    };
    listener.set_nonblocking(true)?;
    engine
        .epoll
        .add(listener, libc::EPOLLIN | libc::EPOLLET, LISTENER)?;
    let mut accepted = 0;
    let mut last = Instant::now();
    while accepted < plan.conns || !engine.conns.is_empty() {
        let events = engine.wait()?;
        if !events.is_empty() {
            last = Instant::now();
        } else if last.elapsed() > STALL {
            if accepted < plan.conns {
                results.fail(format!("{accepted} of {} connections came in", plan.conns));
            }
            engine.give_up();
            break;
        }
        for (token, bits) in events {
            if token != LISTENER {
                engine.step(token, bits);
                continue;
            }
            loop {
                match listener.accept(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) {
                    Ok((sock, _)) => {
                        engine.epoll.add(&sock, EVENTS, accepted)?;
                        let stage = Stage::Header(Vec::new());
                        let conn = Conn::new(sock, 0, plan, Side::Server, stage);
                        engine.conns.insert(accepted, conn);
                        accepted += 1;
                    }
                    Err(e) if would_block(&e) => break,
                    Err(e) => return Err(e),
                }
            }
        }
    }
    listener.set_nonblocking(false)
}

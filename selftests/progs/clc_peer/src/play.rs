// SPDX-License-Identifier: GPL-2.0

//! Plays a case on a connected socket and says what came of it.

use crate::case::{Answer, Case, Step};
use crate::messages::{Identity, Terms, GOOD};
use smc_proto::reason::DeclineReason;
use smc_proto::wire::clc::{Header, Message, HEADER_LEN};
use std::time::{Duration, Instant};
use testlib::event::poll_one;
use testlib::sock::Sock;

/// What the client sends as an application, to see it come back.
const PING: &[u8] = b"ping over TCP 0123456789 abcdefghijklmnopqrstuvwxyz";
/// Longest time for data to come back once both sides are on TCP.
const DATA_LIMIT: Duration = Duration::from_secs(10);

/// Which side of the connection this program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It connected, and the application at the other end echoes.
    Client,
    /// It accepted, and the application at the other end expects an echo.
    Server,
}

/// What the other side did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Declined(DeclineReason),
    Accepted,
    Confirmed,
    /// Application data without a Decline before it.
    Data,
    Closed,
    Reset,
    /// A message that has no place here, or bytes that are no message.
    Nonsense(String),
    Nothing,
}

/// The end of a case.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    pub(crate) seen: Seen,
    /// Seconds from the last step to the answer.
    pub(crate) seconds: f64,
    /// Whether data went to and fro afterwards; `None` where that was not tried.
    pub(crate) data: Option<Result<(), String>>,
}

enum Input {
    More,
    End(Seen),
    Quiet,
}

struct Wire<'a> {
    sock: &'a Sock,
    role: Role,
    inbox: Vec<u8>,
    /// What this side sent, which an application that echoes may send back.
    sent: Vec<u8>,
    /// The application sent back what is no message.
    echoing: bool,
    /// Terms that the other side named.
    terms: Option<Terms>,
    /// This side ended the connection, so data cannot flow any more.
    ended: bool,
    pinged: bool,
}

impl Wire<'_> {
    /// Reads what is there, waiting at most until `end`.
    fn fill(&mut self, end: Instant) -> Input {
        let left = end
            .saturating_duration_since(Instant::now())
            .as_millis()
            .min(100) as i32;
        match poll_one(self.sock, libc::POLLIN, left) {
            Ok(0) => return Input::Quiet,
            Ok(_) => {}
            Err(e) => return Input::End(Seen::Nonsense(format!("poll failed: {e}"))),
        }
        let mut buf = [0u8; 16 << 10];
        match self.sock.recv(&mut buf, libc::MSG_DONTWAIT) {
            Ok(0) => Input::End(Seen::Closed),
            Ok(n) => {
                self.inbox.extend_from_slice(&buf[..n]);
                Input::More
            }
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => Input::Quiet,
            Err(e) if e.raw_os_error() == Some(libc::ECONNRESET) => Input::End(Seen::Reset),
            Err(e) => Input::End(Seen::Nonsense(format!("recv failed: {e}"))),
        }
    }

    /// Takes the first message out of the inbox: its type and what it was.
    fn message(&mut self) -> Option<Result<(u8, Message), Seen>> {
        let head: &[u8; HEADER_LEN] = self.inbox.first_chunk()?;
        let header = match Header::parse(head) {
            Ok(h) => h,
            Err(_) if self.role == Role::Server => return Some(Err(Seen::Data)),
            // What is no message was for the application, which sent it back.
            Err(_) if self.sent.starts_with(&self.inbox) => {
                self.inbox.clear();
                self.echoing = true;
                return Some(Err(Seen::Data));
            }
            Err(e) => {
                let text = format!("bytes that are no message: {head:02x?} ({e:?})");
                return Some(Err(Seen::Nonsense(text)));
            }
        };
        if self.inbox.len() < header.length {
            return None;
        }
        let bytes: Vec<u8> = self.inbox.drain(..header.length).collect();
        Some(match Message::parse(&bytes) {
            Ok(m) => Ok((bytes[4], m)),
            Err(e) => Err(Seen::Nonsense(format!(
                "a message that cannot be read: {e:?}"
            ))),
        })
    }

    /// Waits for the next message or for the end.
    fn next(&mut self, end: Instant) -> Result<(u8, Message), Seen> {
        loop {
            if let Some(found) = self.message() {
                return found;
            }
            // A short first piece of application data never becomes a header.
            match self.fill(end) {
                Input::More => {}
                Input::End(seen) => return Err(seen),
                Input::Quiet if Instant::now() >= end => return Err(Seen::Nothing),
                Input::Quiet => {}
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.sent.extend_from_slice(bytes);
        // The other side may have given up already; what it did is read later.
        let _ = self.sock.send_all(bytes);
    }

    /// Carries out a step; an answer that comes before its time ends the case.
    fn step(&mut self, step: &Step, patience: Duration) -> Result<(), Seen> {
        match step {
            Step::Send(bytes) => self.send(bytes),
            Step::SendWithData(bytes) => {
                self.pinged = true;
                self.send(&[bytes, PING].concat());
            }
            Step::Trickle(bytes, gap) => {
                for b in bytes {
                    self.send(std::slice::from_ref(b));
                    std::thread::sleep(*gap);
                }
            }
            Step::Await(kind) => {
                let (got, message) = self.next(Instant::now() + patience)?;
                if got != *kind {
                    return Err(name(&message));
                }
                if let Message::Accept(a) = &message {
                    self.terms = a.v2.and_then(|v| v.fce).as_ref().map(Terms::of);
                }
            }
            Step::Pause(time) => std::thread::sleep(*time),
            Step::Fin => {
                self.ended = true;
                let _ = self.sock.shutdown(libc::SHUT_WR);
            }
            Step::Rst => self.ended = true,
        }
        Ok(())
    }

    /// Application data over TCP after the handshake.
    fn data(&mut self) -> Result<(), String> {
        let end = Instant::now() + DATA_LIMIT;
        match self.role {
            Role::Client => {
                if !self.pinged {
                    self.sock
                        .send_all(PING)
                        .map_err(|e| format!("sending data failed: {e}"))?;
                }
                // The rest of what was sent back before may still be on its way.
                while !self.inbox.ends_with(PING) && self.inbox.len() < self.sent.len() + PING.len()
                {
                    match self.fill(end) {
                        Input::More => {}
                        Input::End(seen) => return Err(format!("{seen:?} instead of data")),
                        Input::Quiet if Instant::now() >= end => {
                            return Err(format!("{} bytes came back in time", self.inbox.len()))
                        }
                        Input::Quiet => {}
                    }
                }
                let rest = self.inbox.strip_suffix(PING).unwrap_or(&self.inbox);
                let own = self.echoing && self.sent.ends_with(rest);
                if !self.inbox.ends_with(PING) || !(rest.is_empty() || own) {
                    return Err(format!("other bytes came back: {:02x?}", self.inbox));
                }
                Ok(())
            }
            Role::Server => {
                let mut echoed = 0;
                loop {
                    echoed += self.inbox.len();
                    let bytes = std::mem::take(&mut self.inbox);
                    self.sock
                        .send_all(&bytes)
                        .map_err(|e| format!("sending data failed: {e}"))?;
                    match self.fill(end) {
                        Input::More => {}
                        Input::End(_) if echoed > 0 => return Ok(()),
                        Input::End(seen) => return Err(format!("{seen:?} instead of data")),
                        Input::Quiet if Instant::now() >= end => {
                            return Err(format!("{echoed} bytes came and then no end"))
                        }
                        Input::Quiet => {}
                    }
                }
            }
        }
    }
}

fn name(message: &Message) -> Seen {
    match message {
        Message::Decline(d) => Seen::Declined(d.reason),
        Message::Accept(_) => Seen::Accepted,
        Message::Confirm(_) => Seen::Confirmed,
        Message::Proposal(_) => Seen::Nonsense("a Proposal where an answer was expected".into()),
    }
}

/// Reads the Proposal that every client begins with; returns the terms that fit it.
///
/// # Errors
///
/// A sentence saying what came in its place.
pub(crate) fn proposal(sock: &Sock) -> Result<Terms, String> {
    let mut wire = Wire {
        sock,
        role: Role::Server,
        inbox: Vec::new(),
        sent: Vec::new(),
        echoing: false,
        terms: None,
        ended: false,
        pinged: false,
    };
    match wire.next(Instant::now() + DATA_LIMIT) {
        Ok((_, Message::Proposal(p))) if wire.inbox.is_empty() => {
            Ok(p.v2.as_ref().map_or(GOOD, Terms::for_offer))
        }
        Ok((_, Message::Proposal(_))) => Err("more bytes came behind the Proposal".into()),
        Ok((_, other)) => Err(format!("{:?} came in place of a Proposal", name(&other))),
        Err(seen) => Err(format!("{seen:?} came in place of a Proposal")),
    }
}

/// Plays the case and watches the other side.
pub(crate) fn play(case: &Case, id: &Identity, sock: Sock, role: Role) -> Ending {
    let mut steps = (case.steps)(id);
    let patience = Duration::from_secs(case.within);
    let mut wire = Wire {
        sock: &sock,
        role,
        inbox: Vec::new(),
        sent: Vec::new(),
        echoing: false,
        terms: None,
        ended: false,
        pinged: false,
    };
    let mut early = None;
    for i in 0..steps.len() {
        if let Err(seen) = wire.step(&steps[i], patience) {
            early = Some(seen);
            break;
        }
        if let Some(terms) = wire.terms.take() {
            // Later messages repeat what was agreed on.
            let id = Identity {
                terms,
                ..id.clone()
            };
            steps = (case.steps)(&id);
        }
    }
    if early.is_none() && steps.iter().any(|s| matches!(s, Step::Rst)) {
        // Closing with this option is what sends the reset.
        let _ = sock.set_linger(true, 0);
        return Ending {
            seen: Seen::Reset,
            seconds: 0.0,
            data: None,
        };
    }
    let start = Instant::now();
    let expects_data = case.must_work && case.allowed.contains(&Answer::Data);
    let seen = match early {
        Some(seen) => seen,
        None if expects_data && role == Role::Client => Seen::Data,
        None => match wire.next(start + patience) {
            Ok((_, message)) => name(&message),
            Err(seen) => seen,
        },
    };
    let seconds = start.elapsed().as_secs_f64();
    // A side that waits in silence may be on TCP already: data shows it.
    let waits = seen == Seen::Nothing && case.allowed.contains(&Answer::Data);
    let seen = if waits { Seen::Data } else { seen };
    let on_tcp = matches!(seen, Seen::Declined(_) | Seen::Data);
    let data = (on_tcp && !wire.ended).then(|| wire.data());
    Ending {
        seen,
        seconds,
        data,
    }
}

/// Compares the end of a case with what it allows.
///
/// # Errors
///
/// A sentence saying what was wrong.
pub(crate) fn judge(case: &Case, ending: &Ending) -> Result<(), String> {
    let allowed = case.allowed.iter().any(|a| match (a, &ending.seen) {
        (Answer::AnyDecline, Seen::Declined(_)) => true,
        (Answer::Decline(want), Seen::Declined(got)) => want == got,
        (Answer::Data, Seen::Data) => true,
        (Answer::End, Seen::Closed | Seen::Reset) => true,
        (Answer::Accept, Seen::Accepted) => true,
        (Answer::Confirm, Seen::Confirmed) => true,
        _ => false,
    });
    if !allowed {
        return Err(format!("{:?} is not among {:?}", ending.seen, case.allowed));
    }
    if ending.seconds > case.within as f64 + 0.5 {
        return Err(format!(
            "{:?} came after {:.1} s",
            ending.seen, ending.seconds
        ));
    }
    match &ending.data {
        Some(Err(e)) => Err(format!("{:?}, but then: {e}", ending.seen)),
        _ => Ok(()),
    }
}

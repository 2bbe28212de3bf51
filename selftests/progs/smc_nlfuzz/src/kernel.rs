// SPDX-License-Identifier: GPL-2.0

//! The kernel's side: sockets, and the answers that come out of them.

use std::io::{self, Read};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::message::{attribute, generic, message, nl};

const NETLINK_GENERIC: i32 = 16;
const NETLINK_SOCK_DIAG: i32 = 4;
/// Longest time for an answer, on a busy machine with a slow kernel.
const PATIENCE: Duration = Duration::from_secs(20);

/// A message from the kernel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) kind: u16,
    sequence: u32,
    body: Vec<u8>,
}

/// How the kernel took a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was done, or the list is complete.
    Done,
    /// It was refused with this error number.
    Refused(i32),
}

/// A netlink socket.
pub(crate) struct Link(Socket);

impl Link {
    pub(crate) fn generic() -> io::Result<Self> {
        Self::open(NETLINK_GENERIC)
    }

    pub(crate) fn diag() -> io::Result<Self> {
        Self::open(NETLINK_SOCK_DIAG)
    }

    fn open(protocol: i32) -> io::Result<Self> {
        let domain = Domain::from(libc::AF_NETLINK);
        let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(protocol)))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(socket))
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.send(bytes).map(drop)
    }

    /// Reads one part of an answer.
    pub(crate) fn read(&self) -> io::Result<Vec<Answer>> {
        let mut buffer = vec![0; 64 * 1024];
        let length = (&self.0).read(&mut buffer)?;
        parse(&buffer[..length])
    }

    /// Reads until the answer to a request is complete. Gives how it was taken, and what came before.
    pub(crate) fn finish(&self, sequence: u32) -> io::Result<(Verdict, Vec<Answer>)> {
        let mut all = Vec::new();
        loop {
            for answer in self.read()? {
                if answer.sequence != sequence {
                    continue;
                }
                match answer.verdict()? {
                    Some(verdict) => return Ok((verdict, all)),
                    None => all.push(answer),
                }
            }
        }
    }
}

impl Answer {
    /// Whether it ends the answer to a request.
    fn verdict(&self) -> io::Result<Option<Verdict>> {
        if !matches!(self.kind, nl::ERROR | nl::DONE) {
            return Ok(None);
        }
        // The end of a list says whether it is complete in the same way; that of a list which is the
        // answer to a request for one thing says nothing.
        let code = self.body.first_chunk::<4>().copied();
        let code = match self.kind {
            nl::DONE if self.body.is_empty() => [0; 4],
            _ => code.ok_or(broken("an end without a number"))?,
        };
        Ok(Some(match i32::from_ne_bytes(code) {
            0 => Verdict::Done,
            code => Verdict::Refused(-code),
        }))
    }
}

fn broken(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Takes apart what was read; the kernel's own messages must be whole.
fn parse(mut bytes: &[u8]) -> io::Result<Vec<Answer>> {
    let mut answers = Vec::new();
    while !bytes.is_empty() {
        let header = bytes
            .first_chunk::<{ nl::HEADER }>()
            .ok_or(broken("a message without header"))?;
        let u16_at = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let u32_at = |at: usize| {
            u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let length = u32_at(0) as usize;
        let body = bytes
            .get(nl::HEADER..length)
            .ok_or(broken("a message longer than what was read"))?;
        answers.push(Answer {
            kind: u16_at(4),
            sequence: u32_at(8),
            body: body.to_vec(),
        });
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(answers)
}

/// The number of a generic family.
pub(crate) fn family(name: &str) -> io::Result<u16> {
    const GET_FAMILY: u8 = 3;
    const FAMILY_ID: u16 = 1;
    const FAMILY_NAME: u16 = 2;
    let link = Link::generic()?;
    let mut attributes = Vec::new();
    let value = [name.as_bytes(), &[0]].concat();
    // CAST: Names are short.
    attribute(&mut attributes, FAMILY_NAME, value.len() as u16 + 4, &value);
    let body = generic(GET_FAMILY, 1, &attributes);
    link.send(&message(nl::CONTROLLER, nl::REQUEST | nl::ACK, 1, &body))?;
    let (verdict, answers) = link.finish(1)?;
    let answer = match (verdict, answers.first()) {
        (Verdict::Done, Some(answer)) => answer,
        _ => return Err(broken("the kernel does not have the family")),
    };
    let mut rest = answer.body.get(4..).unwrap_or_default();
    while let [l0, l1, t0, t1, ..] = *rest {
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = rest
            .get(4..length)
            .ok_or(broken("an attribute is too long"))?;
        if u16::from_ne_bytes([t0, t1]) == FAMILY_ID {
            if let [low, high] = *value {
                return Ok(u16::from_ne_bytes([low, high]));
            }
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Err(broken("the family has no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_apart() {
        let mut bytes = message(30, 2, 5, &[1, 2, 3, 4]);
        bytes.extend(message(nl::DONE, 2, 5, &[0; 4]));
        bytes.extend(message(nl::ERROR, 0, 6, &(-1_i32).to_ne_bytes()));
        let answers = parse(&bytes).expect("they are whole");
        let verdicts: Vec<_> = answers
            .iter()
            .map(|answer| answer.verdict().expect("it is whole"))
            .collect();
        assert_eq!(
            verdicts,
            [None, Some(Verdict::Done), Some(Verdict::Refused(1))]
        );
        let empty = parse(&message(nl::DONE, 2, 7, &[])).expect("it is whole");
        assert_eq!(empty[0].verdict().ok(), Some(Some(Verdict::Done)));
        let cut = parse(&message(nl::ERROR, 0, 8, &[])).expect("it is whole");
        assert!(cut[0].verdict().is_err());
        assert!(parse(&bytes[..bytes.len() - 1]).is_err());
        assert!(parse(&bytes[..10]).is_err());
    }

    #[test]
    fn the_controller_knows_itself() {
        assert_eq!(
            family("nlctrl").expect("the kernel answers"),
            nl::CONTROLLER
        );
        assert!(family("no_such_family").is_err());
    }
}

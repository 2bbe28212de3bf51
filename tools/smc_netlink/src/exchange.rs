// SPDX-License-Identifier: GPL-2.0

//! Requests and the answers to them.

use netlink_packet_core::{
    NetlinkBuffer, NLMSG_DONE, NLMSG_ERROR, NLMSG_NOOP, NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR,
    NLM_F_REQUEST,
};
use netlink_sys::{Socket, SocketAddr};

use crate::{Error, Result};

const HEADER: usize = 16;
/// Room for one datagram of an answer; the kernel fills up to 32 KiB at a time.
const RECEIVE: usize = 64 * 1024;
/// Lists that changed while they were sent are asked for so many times.
const TRIES: u32 = 5;

/// A request: what it is about and whether it asks for a list.
#[derive(Clone, Debug)]
pub struct Request {
    /// Number of the message type, or of the generic netlink family.
    pub kind: u16,
    /// Whether a list is asked for.
    pub list: bool,
    /// What follows the header.
    pub body: Vec<u8>,
}

impl Request {
    /// The bytes of the message.
    pub fn emit(&self, sequence: u32) -> Vec<u8> {
        let mut bytes = vec![0; HEADER + self.body.len()];
        let mut message = NetlinkBuffer::new(&mut bytes[..]);
        let mut flags = NLM_F_REQUEST;
        flags |= if self.list { NLM_F_DUMP } else { NLM_F_ACK };
        // CAST: Requests are short.
        message.set_length((HEADER + self.body.len()) as u32);
        message.set_message_type(self.kind);
        message.set_flags(flags);
        message.set_sequence_number(sequence);
        bytes[HEADER..].copy_from_slice(&self.body);
        bytes
    }
}

/// A message of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Number of the message type.
    pub kind: u16,
    /// What follows the header.
    pub body: Vec<u8>,
}

/// What a datagram of an answer contains.
#[derive(Clone, Debug, Default)]
pub struct Replies {
    /// The messages.
    pub messages: Vec<Reply>,
    /// The answer is complete; 0, or the error number.
    pub end: Option<i32>,
    /// The list changed while it was sent.
    pub interrupted: bool,
}

/// Takes a datagram apart. Messages that belong to another request are passed over.
///
/// # Errors
///
/// [`Error::Malformed`] when lengths do not fit.
pub fn parse_replies(mut bytes: &[u8], sequence: u32) -> Result<Replies> {
    let mut replies = Replies::default();
    while !bytes.is_empty() {
        let message = NetlinkBuffer::new_checked(bytes)
            .map_err(|_| Error::Malformed("a message is longer than its datagram"))?;
        let length = message.length() as usize;
        if message.sequence_number() == sequence {
            replies.interrupted |= message.flags() & NLM_F_DUMP_INTR != 0;
            match message.message_type() {
                NLMSG_NOOP => {}
                NLMSG_ERROR | NLMSG_DONE => replies.end = Some(end_code(message.payload())?),
                kind => replies.messages.push(Reply {
                    kind,
                    body: message.payload().to_vec(),
                }),
            }
        }
        let next = length.next_multiple_of(4).min(bytes.len());
        bytes = &bytes[next..];
    }
    Ok(replies)
}

/// The positive error number at the beginning of an end message.
fn end_code(payload: &[u8]) -> Result<i32> {
    let Some(code) = payload.first_chunk::<4>() else {
        // The end of an old kernel's list has no number.
        return Ok(0);
    };
    i32::from_ne_bytes(*code)
        .checked_neg()
        .ok_or(Error::Malformed("an error number is too small"))
}

/// A netlink socket for requests.
pub(crate) struct Exchange {
    socket: Socket,
    sequence: u32,
}

impl Exchange {
    /// Opens a socket for a netlink protocol.
    pub(crate) fn open(protocol: isize) -> Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// The socket, to wait for events on it.
    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Sends a request and collects the answer. A list that changed meanwhile is asked for again a
    /// few times, then taken as it is.
    pub(crate) fn call(&mut self, request: &Request) -> Result<Vec<Reply>> {
        let mut tries = 0;
        loop {
            let (messages, interrupted) = self.call_once(request)?;
            tries += 1;
            if !interrupted || tries >= TRIES {
                return Ok(messages);
            }
        }
    }

    fn call_once(&mut self, request: &Request) -> Result<(Vec<Reply>, bool)> {
        self.sequence += 1;
        self.socket.send(&request.emit(self.sequence), 0)?;
        let mut messages = Vec::new();
        let mut interrupted = false;
        let mut buffer = Vec::with_capacity(RECEIVE);
        loop {
            buffer.clear();
            self.socket.recv(&mut buffer, 0)?;
            let replies = parse_replies(&buffer, self.sequence)?;
            messages.extend(replies.messages);
            interrupted |= replies.interrupted;
            match replies.end {
                None => {}
                Some(0) => return Ok((messages, interrupted)),
                Some(errno) => return Err(Error::Kernel(errno)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&(16 + body.len() as u32).to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(&sequence.to_ne_bytes());
        bytes.extend_from_slice(&0_u32.to_ne_bytes());
        bytes.extend_from_slice(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn a_request_has_its_length_and_flags() {
        let request = Request {
            kind: 20,
            list: true,
            body: vec![43, 0, 0, 2],
        };
        assert_eq!(request.emit(7), message(20, 0x301, 7, &[43, 0, 0, 2]));
    }

    #[test]
    fn a_list_goes_on_until_its_end() {
        let mut bytes = message(30, 2, 1, &[1, 2, 3]);
        bytes.extend(message(30, 2, 9, &[4]));
        let replies = parse_replies(&bytes, 1).expect("the lengths fit");
        assert_eq!(
            replies.messages,
            [Reply {
                kind: 30,
                body: vec![1, 2, 3]
            }]
        );
        assert_eq!(replies.end, None);
        let end = message(3, 0x12, 1, &0_i32.to_ne_bytes());
        let replies = parse_replies(&end, 1).expect("the lengths fit");
        assert_eq!(replies.end, Some(0));
        assert!(replies.interrupted);
    }

    #[test]
    fn an_error_ends_the_answer() {
        let bytes = message(2, 0, 1, &(-libc::EPERM).to_ne_bytes());
        let replies = parse_replies(&bytes, 1).expect("the lengths fit");
        assert_eq!(replies.end, Some(libc::EPERM));
    }

    #[test]
    fn a_message_that_is_cut_is_an_error() {
        let bytes = message(30, 2, 1, &[1, 2, 3, 4]);
        assert!(parse_replies(&bytes[..18], 1).is_err());
        assert!(parse_replies(&bytes[..5], 1).is_err());
    }
}

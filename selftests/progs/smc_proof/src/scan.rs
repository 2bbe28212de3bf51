// SPDX-License-Identifier: GPL-2.0

//! Tells handshake bytes from payload in one direction of a TCP connection.

use std::collections::BTreeMap;

/// Every message of the handshake (CLC) begins with one of these.
const EYECATCHERS: [[u8; 4]; 2] = [[0xe2, 0xd4, 0xc3, 0xd9], [0xe2, 0xd4, 0xc3, 0xc4]];
/// Eyecatcher, type, length, flags.
const HEADER: usize = 8;
/// Message type that ends the handshake with plain TCP.
const DECLINE: u8 = 4;
/// Out-of-order data that is kept for one direction before the rest is given up.
const MAX_WAITING: usize = 4096;

/// What was seen in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of CLC messages.
    pub handshake: u64,
    /// All other bytes.
    pub payload: u64,
    /// A message that declines SMC was among them.
    pub declined: bool,
}

/// Follows one direction of a connection from its first byte.
#[derive(Debug, Default)]
pub struct Scanner {
    counts: Counts,
    state: State,
    /// Sequence number of the next byte in order; unknown before the first segment.
    next: Option<u32>,
    /// Segments that came too early, by distance from the first byte.
    waiting: BTreeMap<u32, Vec<Option<u8>>>,
}

#[derive(Debug)]
enum State {
    /// Collecting the header of a message.
    Header(Vec<u8>),
    /// Inside a message with so many bytes to come.
    Body(u64),
    /// Something else than a handshake began.
    Payload,
}

impl Default for State {
    fn default() -> Self {
        State::Header(Vec::with_capacity(HEADER))
    }
}

impl Scanner {
    /// Notes the sequence number of the SYN; the stream begins after it.
    pub fn syn(&mut self, sequence: u32) {
        if self.next.is_none() {
            self.next = Some(sequence.wrapping_add(1));
        }
    }

    /// Takes a segment of `length` bytes of which `captured` are known.
    pub fn segment(&mut self, sequence: u32, length: u32, captured: &[u8]) {
        if length == 0 {
            return;
        }
        let next = *self.next.get_or_insert(sequence);
        let bytes: Vec<Option<u8>> = captured
            .iter()
            .copied()
            .map(Some)
            .chain(std::iter::repeat(None))
            .take(length as usize)
            .collect();
        let ahead = sequence.wrapping_sub(next) as i32;
        if ahead > 0 {
            if self.waiting.len() < MAX_WAITING {
                self.waiting.insert(sequence, bytes);
            }
            return;
        }
        self.in_order(sequence, &bytes);
        self.release_waiting();
    }

    /// Takes what is new of a segment that begins at or before the next byte.
    fn in_order(&mut self, sequence: u32, bytes: &[Option<u8>]) {
        let next = self.next.unwrap_or(sequence);
        let known = next.wrapping_sub(sequence) as usize;
        let new = bytes.get(known..).unwrap_or_default();
        for &byte in new {
            self.byte(byte);
        }
        self.next = Some(next.wrapping_add(new.len() as u32));
    }

    fn release_waiting(&mut self) {
        while let Some(next) = self.next {
            let ready = |sequence: u32| sequence.wrapping_sub(next) as i32 <= 0;
            let Some(sequence) = self.waiting.keys().copied().find(|&key| ready(key)) else {
                return;
            };
            if let Some(bytes) = self.waiting.remove(&sequence) {
                self.in_order(sequence, &bytes);
            }
        }
    }

    fn byte(&mut self, byte: Option<u8>) {
        match &mut self.state {
            State::Payload => self.counts.payload += 1,
            State::Body(left) => {
                self.counts.handshake += 1;
                *left -= 1;
                if *left == 0 {
                    self.state = State::default();
                }
            }
            State::Header(header) => {
                header.extend(byte);
                let eye = &header[..header.len().min(4)];
                let is_eye = EYECATCHERS.iter().any(|catcher| catcher.starts_with(eye));
                if byte.is_none() || !is_eye {
                    // Without the byte in the capture there is no telling, so it counts against.
                    self.counts.payload += header.len() as u64 + u64::from(byte.is_none());
                    self.state = State::Payload;
                } else if header.len() == HEADER {
                    self.message();
                }
            }
        }
    }

    /// Judges a whole message header.
    fn message(&mut self) {
        let State::Header(header) = &self.state else {
            return;
        };
        let length = u64::from(header[5]) << 8 | u64::from(header[6]);
        let declined = header[4] == DECLINE;
        match length.checked_sub(HEADER as u64) {
            Some(left) if left > 0 => {
                self.counts.handshake += HEADER as u64;
                self.counts.declined |= declined;
                self.state = State::Body(left);
            }
            _ => {
                self.counts.payload += HEADER as u64;
                self.state = State::Payload;
            }
        }
    }

    /// The counts so far. What waits for missing segments or for the rest of a header is
    /// counted as payload, so that nothing is overlooked.
    pub fn counts(&self) -> Counts {
        let waiting: usize = self.waiting.values().map(Vec::len).sum();
        let begun = match &self.state {
            State::Header(header) => header.len(),
            _ => 0,
        };
        Counts {
            payload: self.counts.payload + (waiting + begun) as u64,
            ..self.counts
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of the given type and whole length.
    pub(crate) fn message(kind: u8, length: u16) -> Vec<u8> {
        let mut bytes = vec![0xe2, 0xd4, 0xc3, 0xd9, kind];
        bytes.extend(length.to_be_bytes());
        bytes.resize(usize::from(length), 0x20);
        bytes
    }

    fn scan(segments: &[(u32, &[u8])]) -> Counts {
        let mut scanner = Scanner::default();
        scanner.syn(99);
        for (offset, bytes) in segments {
            scanner.segment(100 + offset, bytes.len() as u32, bytes);
        }
        scanner.counts()
    }

    fn counts(handshake: u64, payload: u64, declined: bool) -> Counts {
        Counts {
            handshake,
            payload,
            declined,
        }
    }

    #[test]
    fn messages_alone_are_no_payload() {
        let mut stream = message(1, 92);
        stream.extend(message(3, 68));
        assert_eq!(scan(&[(0, &stream)]), counts(160, 0, false));
        let (one, two) = stream.split_at(3);
        assert_eq!(scan(&[(0, one), (3, two)]), counts(160, 0, false));
        let pieces: Vec<(u32, &[u8])> = (0u32..).zip(stream.chunks(1)).collect();
        assert_eq!(scan(&pieces), counts(160, 0, false));
    }

    #[test]
    fn data_after_the_handshake_is_payload() {
        let mut stream = message(4, 28);
        stream.extend(b"GET / HTTP/1.0");
        assert_eq!(scan(&[(0, &stream)]), counts(28, 14, true));
    }

    #[test]
    fn data_without_a_handshake_is_payload() {
        assert_eq!(scan(&[(0, b"hello")]), counts(0, 5, false));
        assert_eq!(scan(&[(0, b"\xe2\xd4hello")]), counts(0, 7, false));
        assert_eq!(scan(&[(0, b"\xe2\xd4\xc3")]), counts(0, 3, false));
        // A header whose length is impossible is none.
        assert_eq!(scan(&[(0, &message(1, 8))]), counts(0, 8, false));
        assert_eq!(scan(&[]), counts(0, 0, false));
    }

    #[test]
    fn repeated_and_disordered_segments_count_once() {
        let stream = message(2, 68);
        let (one, two) = stream.split_at(40);
        assert_eq!(
            scan(&[(0, one), (0, one), (40, two), (0, &stream)]),
            counts(68, 0, false)
        );
        assert_eq!(scan(&[(40, two), (0, one)]), counts(68, 0, false));
        assert_eq!(scan(&[(0, one), (20, &stream[20..])]), counts(68, 0, false));
        // What is still missing cannot be judged and counts against.
        assert_eq!(scan(&[(40, two)]), counts(0, 28, false));
    }

    #[test]
    fn bytes_outside_the_capture_count() {
        let mut scanner = Scanner::default();
        scanner.segment(u32::MAX - 10, 92, &message(1, 92)[..30]);
        assert_eq!(scanner.counts(), counts(92, 0, false));
        scanner.segment(81, 1000, &[]);
        assert_eq!(scanner.counts(), counts(92, 1000, false));
        let mut scanner = Scanner::default();
        scanner.segment(0, 50, &[0xe2, 0xd4]);
        assert_eq!(scanner.counts(), counts(0, 50, false));
    }
}

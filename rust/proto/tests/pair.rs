// SPDX-License-Identifier: GPL-2.0

//! Two connections joined by a queue pair that delivers in order: real bytes, random interleaving,
//! urgent data and every way of ending.

mod seeded;

use seeded::Random;
use smc_proto::conn::{Conn, ConnParams, Events, SendError};
use smc_proto::ids::AlertToken;
use smc_proto::state::ConnState;
use smc_proto::window::Mover;
use smc_proto::wire::cdc::{CdcMessage, ProdFlags};
use std::collections::VecDeque;

/// What travels on the queue pair.
enum Item {
    Write { offset: u32, bytes: Vec<u8> },
    Cdc([u8; 44]),
}

/// One end with its memory and what its application did and saw.
struct End {
    conn: Conn,
    send_ring: Vec<u8>,
    element: Vec<u8>,
    /// Posted and not completed.
    in_flight: VecDeque<u32>,
    /// Bytes of the stream as written, the urgent ones left out.
    sent: Vec<u8>,
    /// Urgent bytes, each with its position in `sent`.
    sent_urgent: Vec<(usize, u8)>,
    received: Vec<u8>,
    received_urgent: Vec<(usize, u8)>,
    cdc_sent: usize,
    freed: bool,
    closed: bool,
}

impl End {
    fn new(params: ConnParams) -> Self {
        let mut conn = Conn::new(params);
        conn.activate();
        Self {
            conn,
            send_ring: vec![0; params.send_len as usize],
            element: vec![0; params.rmbe_len as usize],
            in_flight: VecDeque::new(),
            sent: Vec::new(),
            sent_urgent: Vec::new(),
            received: Vec::new(),
            received_urgent: Vec::new(),
            cdc_sent: 0,
            freed: false,
            closed: false,
        }
    }

    fn write(&mut self, data: &[u8]) -> usize {
        if self.conn.may_send().is_err() {
            return 0;
        }
        let mut done = 0;
        for span in self.conn.reserve(data.len() as u32) {
            let (start, len) = (span.offset as usize, span.len as usize);
            self.send_ring[start..start + len].copy_from_slice(&data[done..done + len]);
            done += len;
        }
        assert_eq!(self.conn.commit(done as u32) as usize, done);
        done
    }

    fn write_plain(&mut self, random: &mut Random, max: u32) {
        let len = random.below(max).min(self.conn.send_room()) as usize;
        let data = random.bytes(len);
        let done = self.write(&data);
        self.sent.extend_from_slice(&data[..done]);
    }

    fn write_urgent(&mut self, byte: u8) {
        if self.conn.urgent_busy() || self.write(&[byte]) == 0 {
            return;
        }
        assert!(self.conn.mark_urgent());
        self.sent_urgent.push((self.sent.len(), byte));
    }

    fn pump(&mut self, wire: &mut VecDeque<Item>, max: u32) {
        if let Some(plan) = self.conn.next_write(max) {
            for chunk in plan.chunks().iter().filter(|chunk| chunk.len != 0) {
                let start = chunk.src_offset as usize;
                let bytes = self.send_ring[start..start + chunk.len as usize].to_vec();
                let offset = chunk.dst_offset;
                wire.push_back(Item::Write { offset, bytes });
            }
            let events = self.conn.posted(&plan);
            self.note(events);
            assert!(self.conn.cdc_due());
            self.in_flight.push_back(plan.len);
        }
        if self.conn.cdc_due() {
            let bytes = self.conn.next_cdc().emit();
            assert!(!self.conn.cdc_due(), "one message says it all");
            wire.push_back(Item::Cdc(bytes));
            self.cdc_sent += 1;
        }
    }

    fn complete(&mut self) {
        if let Some(len) = self.in_flight.pop_front() {
            self.conn.completed(len);
        }
    }

    fn deliver(&mut self, wire: &mut VecDeque<Item>) {
        match wire.pop_front() {
            Some(Item::Write { offset, bytes }) => {
                assert!(!self.freed, "written to after the element was free");
                let start = offset as usize;
                self.element[start..start + bytes.len()].copy_from_slice(&bytes);
            }
            Some(Item::Cdc(bytes)) => {
                let message = CdcMessage::parse(&bytes).unwrap();
                let events = self.conn.on_cdc(&message).unwrap();
                self.note(events);
            }
            None => {}
        }
    }

    fn note(&mut self, events: Events) {
        if events.contains(Events::FREE) {
            assert!(!self.freed, "freed twice");
            self.freed = true;
        }
        if events.contains(Events::URGENT_DATA) {
            let offset = self.conn.urgent_wanted().unwrap();
            let byte = self.element[offset as usize];
            self.conn.urgent_hold(byte);
        }
    }

    fn read(&mut self, max: u32) {
        let mut peeked = Vec::new();
        for span in self.conn.recv_spans(0, max) {
            let start = span.offset as usize;
            peeked.extend_from_slice(&self.element[start..start + span.len as usize]);
        }
        let readable = self.conn.readable();
        let taken = self.conn.consume(peeked.len() as u32);
        assert_eq!(taken.len as usize, peeked.len());
        assert!(taken.len <= readable);
        self.received.extend_from_slice(&peeked);
    }

    fn read_urgent(&mut self) {
        if let Ok(byte) = self.conn.read_urgent(false) {
            let position = self.conn.at_mark().then_some(self.received.len());
            self.received_urgent
                .push((position.unwrap_or(usize::MAX), byte));
        }
    }

    fn close(&mut self) {
        self.closed = true;
        let events = self.conn.close();
        self.note(events);
    }
}

struct Pair {
    ends: [End; 2],
    wires: [VecDeque<Item>; 2],
}

impl Pair {
    fn new(sizes: [u32; 4]) -> Self {
        let [send_a, rmbe_a, send_b, rmbe_b] = sizes;
        let params = |token, send_len, rmbe_len, peer_len| ConnParams {
            peer_token: AlertToken(token),
            send_len,
            peer_len,
            rmbe_len,
            mover: Mover::Adapter,
        };
        Self {
            ends: [
                End::new(params(7, send_a, rmbe_a, rmbe_b)),
                End::new(params(9, send_b, rmbe_b, rmbe_a)),
            ],
            wires: Default::default(),
        }
    }

    fn pump(&mut self, side: usize, max: u32) {
        self.ends[side].pump(&mut self.wires[side], max);
    }

    fn deliver(&mut self, side: usize) {
        self.ends[side].deliver(&mut self.wires[1 - side]);
    }

    /// Lets everything happen that can, with readers that read; panics if that never ends.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            let mut idle = true;
            for side in 0..2 {
                self.pump(side, u32::MAX);
                self.ends[side].complete();
                while !self.wires[1 - side].is_empty() {
                    self.deliver(side);
                    idle = false;
                }
                if self.ends[side].conn.readable() > 0 && !self.ends[side].closed {
                    self.ends[side].read(u32::MAX);
                    idle = false;
                }
                let conn = &self.ends[side].conn;
                idle &= conn.next_write(1).is_none() && !conn.cdc_due();
            }
            if idle && self.wires.iter().all(VecDeque::is_empty) {
                return;
            }
        }
        panic!("the pair never comes to rest");
    }
}

const SIZES: [u32; 6] = [1, 2, 16, 100, 1000, 4096];

fn random_pair(random: &mut Random) -> Pair {
    Pair::new([0; 4].map(|_| *random.pick(&SIZES)))
}

fn random_steps(random: &mut Random, pair: &mut Pair, steps: u32, urgent: bool) {
    for _ in 0..steps {
        let side = random.below(2) as usize;
        let amount = 1 + random.below(5_000);
        match random.below(8) {
            0 | 1 => pair.ends[side].write_plain(random, amount),
            2 | 3 => pair.pump(side, amount),
            4 => pair.ends[side].complete(),
            5 => pair.deliver(side),
            6 => pair.ends[side].read(amount),
            _ if urgent && random.one_in(2) => {
                let byte = random.next() as u8;
                pair.ends[side].write_urgent(byte);
            }
            _ => pair.ends[side].read_urgent(),
        }
    }
}

#[test]
fn streams_arrive_whole_in_both_directions() {
    let seed = seeded::seed();
    for case in 0..120 {
        let mut random = Random::for_case(seed, case);
        let mut pair = random_pair(&mut random);
        random_steps(&mut random, &mut pair, 1_000, false);
        pair.settle();
        let [a, b] = &pair.ends;
        assert!(a.sent == b.received, "case {case}");
        assert!(b.sent == a.received, "case {case}");
        assert!(a.conn.tx().all_acked() || a.conn.tx().unacked() <= a.conn.tx().peer_len());
        assert!(a.conn.tx().pending() == 0 && b.conn.tx().pending() == 0);
    }
}

#[test]
fn urgent_bytes_are_taken_out_of_the_stream() {
    let seed = seeded::seed();
    for case in 0..120 {
        let mut random = Random::for_case(seed, case);
        let mut pair = random_pair(&mut random);
        random_steps(&mut random, &mut pair, 1_000, true);
        pair.settle();
        for (from, to) in [(0, 1), (1, 0)] {
            let (from, to) = (&pair.ends[from], &pair.ends[to]);
            assert!(from.sent == to.received, "case {case}");
            assert!(!from.conn.urgent_busy(), "case {case}");
            // Whatever was read is an urgent byte; where the reader stood at the mark, it is the one
            // that belongs there. Bytes that nobody read in time are gone, as on TCP.
            let mut expected = from.sent_urgent.iter();
            for (position, byte) in &to.received_urgent {
                let found = expected
                    .any(|(at, sent)| sent == byte && (*position == usize::MAX || at == position));
                assert!(found, "case {case}: {byte} at {position}");
            }
        }
    }
}

#[test]
fn inline_urgent_bytes_stay_in_order() {
    let seed = seeded::seed();
    for case in 0..100 {
        let mut random = Random::for_case(seed, case);
        let mut pair = random_pair(&mut random);
        for end in &mut pair.ends {
            end.conn.set_oob_inline(true);
        }
        random_steps(&mut random, &mut pair, 1_000, true);
        pair.settle();
        for (from, to) in [(0, 1), (1, 0)] {
            let (from, to) = (&pair.ends[from], &pair.ends[to]);
            let mut whole = from.sent.clone();
            for (position, byte) in from.sent_urgent.iter().rev() {
                whole.insert(*position, *byte);
            }
            assert!(whole == to.received, "case {case}");
            assert!(to.received_urgent.is_empty());
        }
    }
}

#[test]
fn data_before_a_close_arrives() {
    let seed = seeded::seed();
    for case in 0..150 {
        let mut random = Random::for_case(seed, case);
        let mut pair = random_pair(&mut random);
        random_steps(&mut random, &mut pair, 50, false);
        // One side says it is done while data is anywhere between the two applications.
        let first = random.below(2) as usize;
        let events = pair.ends[first].conn.shutdown_write();
        pair.ends[first].note(events);
        assert_eq!(pair.ends[first].conn.may_send(), Err(SendError::Shutdown));
        random_steps(&mut random, &mut pair, 200, false);
        pair.settle();
        let second = 1 - first;
        assert!(
            pair.ends[first].sent == pair.ends[second].received,
            "case {case}"
        );
        assert!(pair.ends[second].conn.is_end_of_data());
        assert!(!pair.ends[first].conn.is_end_of_data());
        // The other direction still works.
        pair.ends[second].write_plain(&mut random, 3_000);
        pair.settle();
        assert!(
            pair.ends[second].sent == pair.ends[first].received,
            "case {case}"
        );
        pair.ends[second].close();
        pair.settle();
        assert!(pair.ends[first].conn.is_end_of_data());
        pair.ends[first].close();
        pair.settle();
        check_closed(&pair, case);
    }
}

#[test]
fn a_close_delivers_what_was_written() {
    let seed = seeded::seed();
    for case in 0..150 {
        let mut random = Random::for_case(seed, case);
        let mut pair = random_pair(&mut random);
        random_steps(&mut random, &mut pair, 50, false);
        pair.settle();
        // Data is anywhere between the two applications when one of them closes.
        for _ in 0..20 {
            pair.ends[0].write_plain(&mut random, 5_000);
            pair.pump(0, 1 + random.below(100));
            pair.deliver(1);
            pair.ends[0].complete();
        }
        pair.ends[0].close();
        pair.settle();
        assert!(pair.ends[0].sent == pair.ends[1].received, "case {case}");
        assert!(pair.ends[1].conn.is_end_of_data());
        assert_eq!(pair.ends[1].conn.error(), None);
        pair.ends[1].close();
        pair.settle();
        check_closed(&pair, case);
    }
}

#[test]
fn simultaneous_closes_end() {
    let seed = seeded::seed();
    for case in 0..500 {
        let mut random = Random::for_case(seed, case);
        let mut pair = random_pair(&mut random);
        random_steps(&mut random, &mut pair, 100, false);
        for _ in 0..2 {
            let side = random.below(2) as usize;
            match random.below(4) {
                0 => {
                    let events = pair.ends[side].conn.abort();
                    pair.ends[side].note(events);
                }
                1 => {
                    let events = pair.ends[side].conn.shutdown_write();
                    pair.ends[side].note(events);
                }
                _ => pair.ends[side].close(),
            }
            random_steps(&mut random, &mut pair, random_count(case), false);
        }
        for end in &mut pair.ends {
            if !end.closed {
                end.close();
            }
        }
        pair.settle();
        check_closed(&pair, case);
    }
}

fn random_count(case: u64) -> u32 {
    (case % 40) as u32
}

fn check_closed(pair: &Pair, case: u64) {
    for end in &pair.ends {
        assert_eq!(end.conn.state(), ConnState::Closed, "case {case}");
        assert!(end.freed && end.conn.is_finished(), "case {case}");
    }
}

#[test]
fn small_writes_share_messages() {
    let mut pair = Pair::new([4096; 4]);
    for byte in 0..100 {
        pair.ends[0].write(&[byte]);
    }
    pair.pump(0, u32::MAX);
    assert_eq!(pair.wires[0].len(), 2, "one write and one message");
    assert_eq!(pair.ends[0].cdc_sent, 1);
}

#[test]
fn a_stream_needs_few_window_updates() {
    let mut pair = Pair::new([65_536; 4]);
    let chunk = vec![7; 16_384];
    for _ in 0..256 {
        assert_eq!(pair.ends[0].write(&chunk), chunk.len());
        pair.pump(0, u32::MAX);
        pair.ends[0].complete();
        while !pair.wires[0].is_empty() {
            pair.deliver(1);
        }
        pair.ends[1].read(u32::MAX);
        pair.pump(1, u32::MAX);
        while !pair.wires[1].is_empty() {
            pair.deliver(0);
        }
    }
    assert_eq!(pair.ends[1].received.len(), 256 * chunk.len());
    assert_eq!(pair.ends[1].cdc_sent, 128, "one update per half ring");
}

#[test]
fn a_blocked_writer_says_so_and_is_told() {
    let mut pair = Pair::new([64, 16, 64, 16]);
    assert_eq!(pair.ends[0].write(&[1; 24]), 24);
    pair.pump(0, u32::MAX);
    let Some(Item::Cdc(bytes)) = pair.wires[0].back() else {
        panic!("the write is not announced");
    };
    let blocked = CdcMessage::parse(bytes).unwrap();
    assert!(blocked.prod_flags.contains(ProdFlags::WRITER_BLOCKED));
    while !pair.wires[0].is_empty() {
        pair.deliver(1);
    }
    pair.ends[1].read(1);
    assert!(pair.ends[1].conn.cdc_due(), "any consumption counts");
}

// SPDX-License-Identifier: GPL-2.0

//! The two rings of one direction against a byte queue, and hostile cursors against arithmetic on
//! absolute positions.

mod seeded;

use seeded::Random;
use smc_proto::cursor::{Cursor, CursorError, Span};
use smc_proto::rx_ring::RxRing;
use smc_proto::tx_ring::{TxRing, WritePlan};
use smc_proto::window::SenderWants;
use smc_proto::wire::cdc::RawCursor;
use std::collections::VecDeque;

const LENGTHS: [u32; 7] = [1, 2, 3, 16, 100, 1000, 4096];

/// One direction of a connection with its memory, and the bytes that are under way.
struct Model {
    tx: TxRing,
    rx: RxRing,
    send_ring: Vec<u8>,
    element: Vec<u8>,
    /// Everything written and not yet read.
    oracle: VecDeque<u8>,
    pending: u64,
    in_flight: VecDeque<u32>,
    announced: RawCursor,
    next_byte: u8,
}

impl Model {
    fn new(send_len: u32, element_len: u32) -> Self {
        Self {
            tx: TxRing::new(send_len, element_len),
            rx: RxRing::new(element_len),
            send_ring: vec![0; send_len as usize],
            element: vec![0; element_len as usize],
            oracle: VecDeque::new(),
            pending: 0,
            in_flight: VecDeque::new(),
            announced: Cursor::START.raw(),
            next_byte: 0,
        }
    }

    fn write(&mut self, max: u32) {
        let spans = self.tx.reserve(max);
        let mut copied = 0;
        for span in spans {
            for byte in slice(&mut self.send_ring, span) {
                *byte = self.next_byte;
                self.oracle.push_back(self.next_byte);
                self.next_byte = self.next_byte.wrapping_add(1);
                copied += 1;
            }
        }
        assert_eq!(copied, max.min(self.tx.room()));
        assert_eq!(self.tx.commit(copied), copied);
        self.pending += u64::from(copied);
    }

    fn post(&mut self, max: u32) {
        let Some(plan) = self.tx.next_write(max) else {
            assert!(max == 0 || self.pending == 0 || self.tx.peer_room() == 0);
            return;
        };
        check_plan(&plan);
        for chunk in plan.chunks() {
            for n in 0..chunk.len {
                let byte = self.send_ring[(chunk.src_offset + n) as usize];
                self.element[(chunk.dst_offset + n) as usize] = byte;
            }
        }
        assert!(self.tx.posted(&plan));
        self.pending -= u64::from(plan.len);
        self.in_flight.push_back(plan.len);
    }

    fn complete(&mut self) {
        if let Some(len) = self.in_flight.pop_front() {
            // The device is done with these bytes: nobody may look at them again.
            assert_eq!(self.tx.completed(len), len);
        }
    }

    fn read(&mut self, max: u32) {
        let spans = self.rx.spans(0, max);
        let mut taken = 0;
        for span in spans {
            for byte in slice(&mut self.element, span) {
                assert_eq!(Some(*byte), self.oracle.pop_front());
                *byte = !*byte;
                taken += 1;
            }
        }
        assert_eq!(taken, max.min(self.rx.readable()));
        assert_eq!(self.rx.consume(taken), taken);
    }

    fn check(&self) {
        assert_eq!(u64::from(self.tx.pending()), self.pending);
        let in_flight: u32 = self.in_flight.iter().sum();
        assert_eq!(self.tx.in_flight(), in_flight);
        assert!(self.tx.room() + self.tx.pending() + in_flight == self.tx.buf_len());
        assert!(self.rx.readable() <= self.rx.size());
        assert!(u64::from(self.rx.readable()) + self.pending <= self.oracle.len() as u64);
        assert_eq!(self.tx.all_sent(), self.pending == 0 && in_flight == 0);
    }
}

fn slice(memory: &mut [u8], span: Span) -> &mut [u8] {
    &mut memory[span.offset as usize..(span.offset + span.len) as usize]
}

/// The chunks of a plan copy what its spans describe, byte for byte.
fn check_plan(plan: &WritePlan) {
    let bytes = |spans: [Span; 2]| {
        spans
            .into_iter()
            .flat_map(|span| span.offset..span.offset + span.len)
    };
    let by_spans: Vec<(u32, u32)> = bytes(plan.src).zip(bytes(plan.dst)).collect();
    let by_chunks: Vec<(u32, u32)> = plan
        .chunks()
        .iter()
        .flat_map(|chunk| (0..chunk.len).map(|n| (chunk.src_offset + n, chunk.dst_offset + n)))
        .collect();
    assert_eq!(by_chunks, by_spans);
    assert_eq!(by_chunks.len(), plan.len as usize);
}

#[test]
fn bytes_come_out_as_they_went_in() {
    let seed = seeded::seed();
    for case in 0..400 {
        let mut random = Random::for_case(seed, case);
        let mut model = Model::new(*random.pick(&LENGTHS), *random.pick(&LENGTHS));
        let most = model.tx.buf_len().max(model.tx.peer_len()) + 2;
        for _ in 0..2_000 {
            let amount = random.below(most);
            match random.below(7) {
                0 => model.write(amount),
                1 => model.post(amount),
                2 => model.complete(),
                3 => model.announced = model.tx.prod().raw(),
                4 => {
                    model.rx.on_peer_prod(model.announced).unwrap();
                }
                5 => model.read(amount),
                _ => {
                    if model
                        .rx
                        .window_update_due(random.one_in(3), SenderWants::default())
                    {
                        model.tx.on_peer_cons(model.rx.cons().raw()).unwrap();
                        model.rx.confirm();
                    }
                }
            }
            model.check();
        }
    }
}

#[test]
fn a_full_ring_always_drains() {
    // The window rule alone must never leave a writer waiting: if the reader took everything, an
    // update is due whenever less than half of the ring is known to be free.
    for len in LENGTHS {
        for taken in 1..=len {
            let mut rx = RxRing::new(len);
            rx.on_peer_prod(RawCursor { wrap: 1, count: 0 }).unwrap();
            rx.consume(taken);
            let due = rx.window_update_due(false, SenderWants::default());
            assert_eq!(due, taken >= len / 10, "{taken} of {len}");
        }
    }
}

/// Position of a cursor on an axis that does not wrap, given one that is known.
fn absolute(raw: RawCursor, near: u64, len: u32) -> i128 {
    let turn = near / u64::from(len);
    let ahead = raw.wrap.wrapping_sub(turn as u16) as i16;
    (i128::from(turn) + i128::from(ahead)) * i128::from(len) + i128::from(raw.count)
}

fn cursor_at(position: u64, len: u32) -> RawCursor {
    RawCursor {
        wrap: (position / u64::from(len)) as u16,
        count: (position % u64::from(len)) as u32,
    }
}

/// A cursor that is mostly wrong, and wrong by little more often than by much.
fn hostile(random: &mut Random, near: u64, len: u32) -> RawCursor {
    let mut raw = cursor_at(near, len);
    match random.below(6) {
        0 => raw.count = raw.count.wrapping_add(random.below(5)).wrapping_sub(2),
        1 => raw.count = random.below(len),
        2 => raw.count = random.next() as u32,
        3 => {
            raw.wrap = raw
                .wrap
                .wrapping_add(random.below(5) as u16)
                .wrapping_sub(2)
        }
        4 => raw.wrap = random.next() as u16,
        _ => {
            raw.wrap = raw.wrap.wrapping_add(1);
            raw.count = random.below(len);
        }
    }
    raw
}

#[test]
fn hostile_producer_cursors_are_refused() {
    let seed = seeded::seed();
    for case in 0..500 {
        let mut random = Random::for_case(seed, case);
        let len = *random.pick(&LENGTHS);
        let mut rx = RxRing::new(len);
        let (mut written, mut consumed) = (0u64, 0u64);
        for _ in 0..500 {
            let raw = hostile(&mut random, written, len);
            let target = absolute(raw, written, len);
            let legal = raw.count < len
                && target >= i128::from(written)
                && target <= i128::from(consumed) + i128::from(len);
            let before = rx.readable();
            match rx.on_peer_prod(raw) {
                Ok(new_bytes) => {
                    assert!(legal, "{raw:?} accepted at {written}, {consumed} of {len}");
                    written += u64::from(new_bytes);
                    assert_eq!(i128::from(written), target);
                }
                Err(error) => {
                    assert!(!legal, "{raw:?} refused at {written}, {consumed} of {len}");
                    assert_eq!(rx.readable(), before);
                    if raw.count >= len {
                        assert!(matches!(error, CursorError::Outside { .. }));
                    }
                }
            }
            assert_eq!(u64::from(rx.readable()), written - consumed);
            assert!(rx.readable() <= len);
            consumed += u64::from(rx.consume(random.below(len + 1)));
        }
    }
}

#[test]
fn hostile_consumer_cursors_are_refused() {
    let seed = seeded::seed();
    for case in 0..500 {
        let mut random = Random::for_case(seed, case);
        let peer_len = *random.pick(&LENGTHS);
        let mut tx = TxRing::new(*random.pick(&LENGTHS), peer_len);
        let (mut written, mut acked) = (0u64, 0u64);
        for _ in 0..500 {
            tx.commit(random.below(tx.buf_len() + 1));
            if let Some(plan) = tx.next_write(random.below(peer_len + 1)) {
                assert!(tx.posted(&plan));
                written += u64::from(plan.len);
                tx.completed(plan.len);
            }
            let raw = hostile(&mut random, acked, peer_len);
            let target = absolute(raw, acked, peer_len);
            let legal = raw.count < peer_len
                && target >= i128::from(acked)
                && target <= i128::from(written);
            match tx.on_peer_cons(raw) {
                Ok(freed) => {
                    assert!(
                        legal,
                        "{raw:?} accepted at {acked}, {written} of {peer_len}"
                    );
                    acked += u64::from(freed);
                }
                Err(_) => assert!(
                    !legal,
                    "{raw:?} refused at {acked}, {written} of {peer_len}"
                ),
            }
            assert_eq!(u64::from(tx.unacked()), written - acked);
            assert_eq!(tx.peer_room(), peer_len - tx.unacked());
        }
    }
}

#[test]
fn peer_cursors_hold_across_many_wraps() {
    let len = 16;
    let mut tx = TxRing::new(len, len);
    for turn in 1..=200_000u32 {
        assert_eq!(tx.commit(len), len);
        let plan = tx.next_write(len).unwrap();
        assert!(tx.posted(&plan));
        tx.completed(len);
        let raw = RawCursor {
            wrap: turn as u16,
            count: 0,
        };
        assert_eq!(tx.on_peer_cons(raw), Ok(len));
        assert_eq!(tx.on_peer_cons(raw), Ok(0));
    }
}

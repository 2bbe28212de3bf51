// SPDX-License-Identifier: GPL-2.0

//! A blocking writer, a reader and the messages between them, in random order: nothing may wait for
//! something that does not come, and a stream needs few messages.

mod seeded;

use seeded::Random;
use smc_proto::conn::{Conn, ConnParams};
use smc_proto::ids::AlertToken;
use smc_proto::window::{Mover, MAX_UNACKED};
use smc_proto::wire::cdc::CdcMessage;
use std::collections::VecDeque;

struct Stream {
    sender: Conn,
    receiver: Conn,
    /// Bytes of the messages on their way, each to be acknowledged.
    unacked: VecDeque<u32>,
    to_receiver: VecDeque<CdcMessage>,
    to_sender: VecDeque<CdcMessage>,
    /// What the writer still has to hand over of its call, and of the calls after it.
    left: u32,
    calls: VecDeque<u32>,
    asleep: bool,
    /// The end of the data is held back until the writer had its turn.
    held: bool,
    messages: [u32; 2],
    /// Bytes that may be collected.
    cork: u32,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write,
    Acknowledge,
    Receive,
    Read,
    Update,
    LetGo,
}

const STEPS: [Step; 6] = [
    Step::Write,
    Step::Acknowledge,
    Step::Receive,
    Step::Read,
    Step::Update,
    Step::LetGo,
];

impl Stream {
    fn new(send_len: u32, rmbe_len: u32, mover: Mover, calls: &[u32]) -> Self {
        let conn = |token| {
            let mut conn = Conn::new(ConnParams {
                peer_token: AlertToken(token),
                send_len,
                peer_len: rmbe_len,
                rmbe_len,
                mover,
            });
            conn.activate();
            conn
        };
        Self {
            sender: conn(1),
            receiver: conn(2),
            unacked: VecDeque::new(),
            to_receiver: VecDeque::new(),
            to_sender: VecDeque::new(),
            left: 0,
            calls: calls.iter().copied().collect(),
            asleep: false,
            held: false,
            messages: [0; 2],
            cork: u32::MAX,
        }
    }

    fn push(&mut self) {
        while self.unacked.len() < usize::from(MAX_UNACKED) {
            let unacked = self.unacked.len() as u8;
            let plan = self.sender.next_write_behind(unacked, self.cork);
            if plan.is_none() && !self.sender.cdc_due() {
                return;
            }
            if let Some(plan) = &plan {
                self.sender.posted(plan);
            }
            self.unacked.push_back(plan.map_or(0, |plan| plan.len));
            self.to_receiver.push_back(self.sender.next_cdc());
            self.messages[0] += 1;
        }
    }

    fn write(&mut self) -> bool {
        if self.asleep && !self.sender.is_writable() {
            return false;
        }
        if self.left == 0 {
            match self.calls.pop_front() {
                Some(len) => self.left = len,
                None => return false,
            }
        }
        let spans = self
            .sender
            .reserve(self.left.min(self.sender.piece_to_send()));
        let n = spans[0].len + spans[1].len;
        self.asleep = n == 0;
        if n > 0 {
            self.left -= n;
            self.held = self.sender.written(n, self.left == 0);
            self.push();
        } else {
            self.sender.writer_sleeps();
        }
        n > 0
    }

    fn step(&mut self, step: Step) -> bool {
        match step {
            Step::Write => self.write(),
            Step::Acknowledge => match self.unacked.pop_front() {
                Some(bytes) => {
                    self.sender.completed(bytes);
                    self.push();
                    true
                }
                None => false,
            },
            Step::Receive => match self.to_receiver.pop_front() {
                Some(message) => self.receiver.on_cdc(&message).is_ok(),
                None => false,
            },
            Step::Read => {
                let n = self.receiver.readable().min(self.receiver.piece_to_read());
                self.receiver.consume(n);
                if self.receiver.cdc_due() {
                    self.to_sender.push_back(self.receiver.next_cdc());
                    self.messages[1] += 1;
                }
                n > 0
            }
            Step::Update => match self.to_sender.pop_front() {
                Some(message) => {
                    self.sender.on_cdc(&message).unwrap();
                    self.push();
                    true
                }
                None => false,
            },
            Step::LetGo => {
                let held = std::mem::replace(&mut self.held, false);
                if held {
                    self.sender.set_more_coming(false);
                    self.push();
                }
                held
            }
        }
    }

    /// Takes steps until everything was read.
    fn run(&mut self, mut order: impl FnMut(&mut [Step; 6])) {
        let mut steps = STEPS;
        loop {
            order(&mut steps);
            if !steps.iter().any(|step| self.step(*step)) {
                break;
            }
        }
        assert_eq!(self.left, 0, "the writer waits for ever");
        assert!(self.calls.is_empty());
        assert!(self.sender.tx().all_sent(), "data waits for ever");
        assert_eq!(self.receiver.rx().readable(), 0);
    }
}

#[test]
fn nothing_waits_for_ever() {
    let mut random = Random::new(seeded::seed());
    for _ in 0..2_000 {
        let len = |random: &mut Random| 16_384 << random.below(6);
        let (send, rmbe) = (len(&mut random), len(&mut random));
        let mover = [Mover::Adapter, Mover::Processor][random.below(2) as usize];
        let most = [100, 10_000, 70_000, 400_000][random.below(4) as usize];
        let calls: Vec<u32> = (0..60).map(|_| 1 + random.below(most)).collect();
        let mut stream = Stream::new(send, rmbe, mover, &calls);
        stream.cork = [0, 500, 65_536, u32::MAX][random.below(4) as usize];
        stream.run(|steps| {
            let (a, b) = (random.below(6) as usize, random.below(6) as usize);
            steps.swap(a, b);
        });
    }
}

/// The messages for 100 calls of 64 KiB behind a short one, over rings of 64 KiB, when each side
/// does what it can before the other is heard.
fn messages_of_a_stream(mover: Mover) -> [u32; 2] {
    let mut calls = vec![65_536; 101];
    calls[0] = 8;
    let mut stream = Stream::new(65_536, 65_536, mover, &calls);
    stream.run(|_| ());
    stream.messages
}

#[test]
fn a_stream_needs_few_messages() {
    let [writes, updates] = messages_of_a_stream(Mover::Adapter);
    assert!(writes <= 205 && updates <= 205, "{writes} and {updates}");
    let [writes, updates] = messages_of_a_stream(Mover::Processor);
    assert!(writes <= 105 && updates <= 105, "{writes} and {updates}");
}

/// The messages for small calls, all made before the first is acknowledged.
fn messages_of_small_calls(cork: u32) -> u32 {
    let mut stream = Stream::new(65_536, 65_536, Mover::Processor, &[100; 12]);
    stream.cork = cork;
    while stream.write() {}
    let unacked = stream.unacked.len();
    assert!(unacked <= usize::from(MAX_UNACKED));
    stream.run(|_| ());
    stream.messages[0]
}

#[test]
fn small_calls_are_collected_up_to_a_limit() {
    // Two go at once and the rest together; without a limit, as many as may be unacknowledged.
    assert_eq!(messages_of_small_calls(u32::MAX), 3);
    assert_eq!(messages_of_small_calls(0), u32::from(MAX_UNACKED) + 1);
}

/// A sender of 64 KiB rings whose first call filled its ring, when the first message was
/// acknowledged and read and the writer has handed over `last` bytes more. That message is half of
/// the ring where an adapter moves the bytes, so the other half is on its way; else it is all.
fn sender_with_the_end_of_a_stream(mover: Mover, last: u32) -> Stream {
    let mut stream = Stream::new(65_536, 65_536, mover, &[65_536, last]);
    while stream.write() {}
    for step in [Step::Receive, Step::Read, Step::Update, Step::Acknowledge] {
        assert!(stream.step(step), "{step:?}");
    }
    assert!(stream.write());
    stream
}

#[test]
fn the_end_of_a_stream_waits_for_the_writer() {
    let mut stream = sender_with_the_end_of_a_stream(Mover::Processor, 8);
    assert!(stream.held);
    assert_eq!((stream.messages[0], stream.sender.tx().pending()), (1, 8));
    // More comes at once: both go together.
    stream.calls.push_back(65_528);
    assert!(stream.write());
    assert_eq!((stream.messages[0], stream.sender.tx().pending()), (2, 0));
    assert!(!stream.held);
}

#[test]
fn the_end_of_a_stream_goes_when_the_writer_had_its_turn() {
    let mut stream = sender_with_the_end_of_a_stream(Mover::Processor, 8);
    assert!(stream.step(Step::LetGo));
    assert_eq!((stream.messages[0], stream.sender.tx().pending()), (2, 0));
}

#[test]
fn the_end_of_a_stream_waits_for_what_is_on_its_way() {
    let mut stream = sender_with_the_end_of_a_stream(Mover::Adapter, 8);
    assert!(!stream.held, "an acknowledgement will come");
    assert_eq!((stream.messages[0], stream.sender.tx().pending()), (2, 8));
    assert!(stream.step(Step::Acknowledge));
    assert_eq!((stream.messages[0], stream.sender.tx().pending()), (3, 0));
}

#[test]
fn a_writer_that_sleeps_for_something_else_is_not_waited_for() {
    let mut stream = sender_with_the_end_of_a_stream(Mover::Adapter, 8);
    stream.sender.writer_sleeps();
    assert!(stream.step(Step::Acknowledge));
    assert_eq!(stream.sender.tx().pending(), 0);
}

#[test]
fn the_end_of_a_stream_does_not_wait_when_it_is_closed() {
    let mut stream = sender_with_the_end_of_a_stream(Mover::Processor, 8);
    stream.sender.shutdown_write();
    stream.push();
    assert_eq!(stream.sender.tx().pending(), 0);
}

#[test]
fn much_does_not_wait() {
    let stream = sender_with_the_end_of_a_stream(Mover::Processor, 20_000);
    assert!(!stream.held);
    assert_eq!((stream.messages[0], stream.sender.tx().pending()), (2, 0));
}

#[test]
fn a_short_call_does_not_wait() {
    let mut stream = Stream::new(65_536, 65_536, Mover::Processor, &[8]);
    assert!(stream.write());
    assert_eq!((stream.messages[0], stream.sender.tx().pending()), (1, 0));
}

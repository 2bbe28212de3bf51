// SPDX-License-Identifier: GPL-2.0

//! Many connections that share the send slots of a link: each message is sent at last, and each
//! connection has its share.

mod seeded;

use seeded::Random;
use smc_proto::send_slots::{SendSlots, Slot, CDC_SLOTS};

struct Link {
    slots: SendSlots,
    /// Messages that each connection still has to send.
    due: Vec<u32>,
    sent: Vec<u32>,
    on_the_way: Vec<(Slot, usize)>,
}

impl Link {
    fn push(&mut self, connection: usize) {
        while self.due[connection] > 0 {
            let Some(slot) = self.slots.take_cdc(connection as u8) else {
                return;
            };
            self.due[connection] -= 1;
            self.sent[connection] += 1;
            self.on_the_way.push((slot, connection));
        }
    }

    /// The oldest message is acknowledged: who waits comes before who had the slot.
    fn acknowledge(&mut self) {
        let (slot, owner) = self.on_the_way.remove(0);
        self.slots.release(slot);
        while let Some(next) = self.slots.next_waiting() {
            self.push(next.into());
        }
        self.push(owner);
    }
}

#[test]
fn every_message_is_sent() {
    let seed = seeded::seed();
    for case in 0..500 {
        let mut random = Random::for_case(seed, case);
        let count = 1 + random.below(256) as usize;
        let mut link = Link {
            slots: SendSlots::new(),
            due: vec![0; count],
            sent: vec![0; count],
            on_the_way: Vec::new(),
        };
        let mut asked = vec![0; count];
        for _ in 0..2_000 {
            if random.one_in(2) && !link.on_the_way.is_empty() {
                link.acknowledge();
                continue;
            }
            let connection = random.below(count as u32) as usize;
            // A message can become superfluous while its connection waits.
            if random.one_in(4) {
                asked[connection] -= link.due[connection];
                link.due[connection] = 0;
            } else {
                asked[connection] += 1;
                link.due[connection] += 1;
                link.push(connection);
            }
        }
        while !link.on_the_way.is_empty() {
            link.acknowledge();
        }
        assert!(link.slots.is_idle());
        assert_eq!(link.sent, asked);
    }
}

#[test]
fn each_has_its_share() {
    const CONNECTIONS: u32 = 40;
    let mut link = Link {
        slots: SendSlots::new(),
        due: vec![u32::MAX; CONNECTIONS as usize],
        sent: vec![0; CONNECTIONS as usize],
        on_the_way: Vec::new(),
    };
    for connection in 0..CONNECTIONS as usize {
        link.push(connection);
    }
    for _ in 0..CONNECTIONS * 10 {
        link.acknowledge();
    }
    let most = 10 + u32::from(CDC_SLOTS);
    assert!(
        link.sent.iter().all(|sent| (9..=most).contains(sent)),
        "{:?}",
        link.sent
    );
}

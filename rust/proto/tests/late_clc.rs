// SPDX-License-Identifier: GPL-2.0

//! Handshake messages that arrive after the fallback never reach the application.

mod handshake_support;
mod seeded;

use handshake_support::{propose, select, Host};
use seeded::Random;
use smc_proto::handshake::{decline, LateClc, Scan};
use smc_proto::ids::{PeerId, Version};
use smc_proto::reason::DeclineReason;
use smc_proto::wire::clc::{Kind, Message, MAX_LEN};

fn decline_bytes(version: Version) -> Vec<u8> {
    let mut bytes = [0; MAX_LEN];
    let message = decline(PeerId([9; 8]), version, DeclineReason::TIMEOUT_CL);
    let len = message.emit(&mut bytes).unwrap();
    bytes[..len].to_vec()
}

fn confirm_bytes() -> Vec<u8> {
    let (client, server) = (Host::new(1), Host::new(2));
    let (waiting, proposal) = propose(&client).unwrap();
    let selected = select(&server, &proposal).unwrap();
    let (_, accept) = selected.accept(server.end(), true);
    let accepted = waiting.handle(&Message::Accept(accept)).unwrap();
    let mut bytes = [0; MAX_LEN];
    let confirm = accepted.confirm(client.end(), true);
    let len = confirm.emit(&mut bytes).unwrap();
    bytes[..len].to_vec()
}

/// Feeds a stream byte by byte, as it trickles in, and returns what the application gets.
fn filter(mut late: LateClc, stream: &[u8]) -> Vec<u8> {
    let mut held = Vec::new();
    let mut out = Vec::new();
    let mut clean = false;
    for (index, byte) in stream.iter().enumerate() {
        held.push(*byte);
        let at_end = index + 1 == stream.len();
        while !clean && !held.is_empty() {
            match late.scan(&held, at_end) {
                Scan::Wait => break,
                Scan::Skip(len) => drop(held.drain(..len)),
                Scan::Clean => clean = true,
            }
        }
        if clean {
            out.append(&mut held);
        }
    }
    out
}

#[test]
fn a_late_decline_never_reaches_the_application() {
    let data = b"\xe2\xd4\xc3\xd9 looks like one, but is not";
    for version in [Version::V1, Version::V2] {
        let decline = decline_bytes(version);
        let after = LateClc::after_decline(None);
        assert!(after.may_follow() && !LateClc::NONE.may_follow());
        let stream = [&decline[..], data].concat();
        assert_eq!(filter(after, &stream), data);
        // Only one, and only at the head.
        let stream = [&decline[..], &decline].concat();
        assert_eq!(filter(after, &stream), decline);
        let stream = [&b"x"[..], &decline].concat();
        assert_eq!(filter(after, &stream), stream);
        assert_eq!(filter(after, &decline), b"");
        assert_eq!(filter(LateClc::NONE, &decline), decline);
        // Cut off, or with a broken trailer: data.
        let cut = &decline[..decline.len() - 1];
        assert_eq!(filter(after, cut), cut);
        let mut broken = decline.clone();
        *broken.last_mut().unwrap() ^= 1;
        assert_eq!(filter(after, &broken), broken);
    }
}

#[test]
fn a_late_answer_is_removed_if_it_was_waited_for() {
    let confirm = confirm_bytes();
    let decline = decline_bytes(Version::V2);
    let stream = [&confirm[..], &decline, b"data"].concat();
    let awaited = LateClc::after_decline(Some(Kind::Confirm));
    assert_eq!(filter(awaited, &stream), b"data");
    let stream = [&confirm[..], b"data"].concat();
    assert_eq!(filter(awaited, &stream), b"data");
    let not_awaited = LateClc::after_decline(None);
    assert_eq!(filter(not_awaited, &stream), stream);
}

#[test]
fn random_streams_pass_the_late_filter_unchanged() {
    let seed = seeded::seed();
    let decline = decline_bytes(Version::V2);
    for case in 0..5_000 {
        let mut random = Random::for_case(seed, case);
        let keep = random.below(decline.len() as u32) as usize;
        let tail_len = random.below(60) as usize + 1;
        let tail = random.bytes(tail_len);
        let mut stream = decline[..keep].to_vec();
        // The first byte after the kept part differs, so that it is no Decline.
        stream.push(!decline[keep]);
        stream.extend_from_slice(&tail);
        let out = filter(LateClc::after_decline(None), &stream);
        // Reserved and informative fields may differ in a real Decline.
        let is_decline = Message::parse(&stream).is_ok();
        assert!(out == stream || is_decline, "case {case}");
    }
}

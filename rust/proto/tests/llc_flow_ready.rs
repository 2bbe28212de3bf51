// SPDX-License-Identifier: GPL-2.0

//! Keys, link tests and the end of a link that carries connections.

mod flow_support;

use flow_support::{
    bytes, first_contact, name, owned, pass, rmb, server_after_confirm, table, START, VERSIONS,
};
use smc_proto::ids::{LinkId, Rkey, Version, VirtAddr};
use smc_proto::lgr::{Role, Rtoken};
use smc_proto::llc_flow::{DownCause, Event, Step, Violation, BUSY_WAIT_MS, TEST_LINK_MS, WAIT_MS};
use smc_proto::wire::llc::{
    Body, ConfirmRkey, DeleteLink, DeleteLinkReason, LinkToken, Message, RkeyAnswer,
};

#[test]
fn keys_are_announced_and_withdrawn_in_both_directions() {
    for version in VERSIONS {
        let (mut pair, _) = first_contact(version, 1);
        // Both sides at the same time; that is no collision.
        let from_client = bytes(&pair.client.confirm_rkey(rmb(5), START).unwrap());
        let from_server = bytes(&pair.server.confirm_rkey(rmb(6), START).unwrap());
        assert!(pair.client.confirm_rkey(rmb(7), START).is_err());
        let (to_client, _) = pass(&mut pair.server, &mut pair.server_rmbs, &from_client, START);
        let (to_server, _) = pass(&mut pair.client, &mut pair.client_rmbs, &from_server, START);
        assert_eq!(pair.server_rmbs.find(Rkey(5)), Some(rmb(5)));
        assert_eq!(pair.client_rmbs.find(Rkey(6)), Some(rmb(6)));
        let confirmed = |number| {
            Some(Event::RkeyConfirmed {
                rkey: Rkey(number),
                answer: RkeyAnswer::Positive,
            })
        };
        let (_, event) = pass(
            &mut pair.client,
            &mut pair.client_rmbs,
            &to_client.unwrap(),
            START,
        );
        assert_eq!(event, confirmed(5));
        let (_, event) = pass(
            &mut pair.server,
            &mut pair.server_rmbs,
            &to_server.unwrap(),
            START,
        );
        assert_eq!(event, confirmed(6));

        for (unknown, negative) in [(false, false), (true, true)] {
            let keys = [Rkey(5), Rkey(0xdead)];
            let keys = if unknown { &keys[..] } else { &keys[..1] };
            pair.server_rmbs.add(rmb(5)).unwrap();
            let request = bytes(&pair.client.delete_rkeys(keys, START).unwrap());
            let (answer, _) = pass(&mut pair.server, &mut pair.server_rmbs, &request, START);
            assert_eq!(pair.server_rmbs.find(Rkey(5)), None);
            let answer = answer.unwrap();
            let Body::DeleteRkey(body) = Message::parse(&answer).unwrap().body else {
                panic!()
            };
            let errors = match (unknown, version) {
                (false, _) => 0,
                (true, Version::V1) => 0x40,
                (true, Version::V2) => 1,
            };
            assert_eq!((body.negative, body.errors), (negative, errors));
            let (_, event) = pass(&mut pair.client, &mut pair.client_rmbs, &answer, START);
            assert_eq!(event, Some(Event::RkeysDeleted { negative }));
        }
        assert!(pair.client.delete_rkeys(&[Rkey(1); 9], START).is_err());
        assert!(pair.client.delete_rkeys(&[], START).is_err());
    }
}

#[test]
fn a_key_with_two_addresses_is_refused() {
    let (mut pair, _) = first_contact(Version::V1, 1);
    pair.server_rmbs.add(rmb(5)).unwrap();
    let other = Rtoken {
        rkey: Rkey(5),
        addr: VirtAddr(1),
    };
    let request = bytes(&pair.client.confirm_rkey(other, START).unwrap());
    let (answer, _) = pass(&mut pair.server, &mut pair.server_rmbs, &request, START);
    let (_, event) = pass(
        &mut pair.client,
        &mut pair.client_rmbs,
        &answer.unwrap(),
        START,
    );
    let answer = RkeyAnswer::Negative;
    let rkey = Rkey(5);
    assert_eq!(event, Some(Event::RkeyConfirmed { rkey, answer }));
    assert_eq!(pair.server_rmbs.find(Rkey(5)), Some(rmb(5)));
}

#[test]
fn keys_may_not_change_while_links_do() {
    let (mut server, _) = server_after_confirm(Version::V1);
    let others = [LinkToken {
        link: LinkId(2),
        token: rmb(9),
    }];
    let request = Message {
        version: Version::V1,
        response: false,
        body: Body::ConfirmRkey(ConfirmRkey::new(rmb(8), &others).unwrap()),
    };
    let mut rmbs = table();
    let (answer, _) = pass(&mut server, &mut rmbs, &bytes(&request), START);
    let answer = answer.unwrap();
    let Body::ConfirmRkey(body) = Message::parse(&answer).unwrap().body else {
        panic!()
    };
    assert_eq!(body.answer, RkeyAnswer::Retry);
    assert!(rmbs.entries().is_empty());
    assert!(server.confirm_rkey(rmb(1), START).is_err());
}

#[test]
fn an_answer_for_another_key_is_a_violation() {
    let (mut pair, _) = first_contact(Version::V1, 1);
    pair.client.confirm_rkey(rmb(5), START).unwrap();
    let answer = Message {
        version: Version::V1,
        response: true,
        body: Body::ConfirmRkey(ConfirmRkey::new(rmb(6), &[]).unwrap()),
    };
    let outcome = pair.client.handle(&answer, &mut pair.client_rmbs, START);
    assert_eq!(outcome, Err(Violation::WrongKey));
}

#[test]
fn no_answer_about_keys_takes_the_link_down() {
    let (mut pair, _) = first_contact(Version::V1, 1);
    pair.client.confirm_rkey(rmb(5), START).unwrap();
    assert_eq!(pair.client.deadline(), Some(START + WAIT_MS));
    let event = pair.client.poll(START + WAIT_MS).event;
    assert_eq!(event, Some(Event::LinkDown(DownCause::NoAnswer)));
    assert_eq!(pair.client.deadline(), None);
    assert!(!pair.client.is_ready());
}

#[test]
fn a_late_answer_is_waited_for_while_the_peer_is_heard() {
    let (mut pair, _) = first_contact(Version::V1, 1);
    pair.client.confirm_rkey(rmb(5), START).unwrap();
    let mut now = START;
    while now + WAIT_MS < START + BUSY_WAIT_MS {
        now += WAIT_MS - 1;
        pair.client.on_traffic(now);
        assert_eq!(pair.client.poll(now), Step::default());
    }
    assert_eq!(pair.client.deadline(), Some(START + BUSY_WAIT_MS));
    let event = pair.client.poll(START + BUSY_WAIT_MS).event;
    assert_eq!(event, Some(Event::LinkDown(DownCause::NoAnswer)));
}

#[test]
fn a_test_waits_for_a_peer_that_is_heard() {
    let (mut pair, _) = first_contact(Version::V2, 1);
    let asked = START + TEST_LINK_MS;
    assert!(pair.client.poll(asked).send.is_some());
    let heard = asked + WAIT_MS - 1;
    pair.client.on_traffic(heard);
    assert_eq!(pair.client.poll(asked + WAIT_MS), Step::default());
    assert_eq!(pair.client.deadline(), Some(heard + WAIT_MS));
    let event = pair.client.poll(heard + WAIT_MS).event;
    assert_eq!(event, Some(Event::LinkDown(DownCause::Silent)));
}

#[test]
fn a_request_that_was_not_sent_is_not_waited_for() {
    let (mut pair, _) = first_contact(Version::V2, 1);
    let idle = pair.client.deadline();
    pair.client.delete_rkeys(&[rmb(5).rkey], START).unwrap();
    assert_eq!(pair.client.deadline(), Some(START + WAIT_MS));
    pair.client.withdraw_request();
    assert_eq!(pair.client.deadline(), idle);
    assert!(pair.client.confirm_rkey(rmb(5), START).is_ok());
}

#[test]
fn an_idle_link_is_probed() {
    let (mut pair, _) = first_contact(Version::V2, 1);
    let due = START + TEST_LINK_MS;
    assert_eq!(pair.client.deadline(), Some(due));
    // Traffic puts it off.
    pair.client.on_traffic(START + 10);
    assert_eq!(pair.client.poll(due), Step::default());
    let now = due + 10;
    let (probe, _) = owned(pair.client.poll(now));
    let (echo, _) = pass(
        &mut pair.server,
        &mut pair.server_rmbs,
        &probe.unwrap(),
        now,
    );
    let outcome = pass(&mut pair.client, &mut pair.client_rmbs, &echo.unwrap(), now);
    assert_eq!(outcome, (None, None));
    assert_eq!(pair.client.deadline(), Some(now + TEST_LINK_MS));
    // The next one is not answered.
    let now = now + TEST_LINK_MS;
    assert!(pair.client.poll(now).send.is_some());
    assert!(pair.client.test_link(now).is_none());
    let event = pair.client.poll(now + WAIT_MS).event;
    assert_eq!(event, Some(Event::LinkDown(DownCause::Silent)));
}

#[test]
fn probe_intervals_do_not_overflow() {
    for interval in [1, u64::MAX, u64::MAX / 2] {
        let (mut pair, _) = first_contact(Version::V2, 1);
        pair.client.set_test_link_ms(interval);
        assert_eq!(pair.client.deadline(), Some(START.saturating_add(interval)));
    }
    let (mut pair, _) = first_contact(Version::V2, 1);
    pair.client.set_test_link_ms(0);
    assert_eq!(pair.client.deadline(), None);
    assert_eq!(pair.client.poll(u64::MAX), Step::default());
}

#[test]
fn a_probe_must_come_back_unchanged() {
    let (mut pair, _) = first_contact(Version::V2, 1);
    let probe = bytes(&pair.client.test_link(START).unwrap());
    let sent = Message::parse(&probe).unwrap();
    let Body::TestLink(mut body) = sent.body else {
        panic!()
    };
    body.user_data[15] ^= 1;
    let wrong = Message {
        version: Version::V2,
        response: true,
        body: Body::TestLink(body),
    };
    let outcome = pair.client.handle(&wrong, &mut pair.client_rmbs, START);
    assert_eq!(outcome, Err(Violation::WrongEcho));
}

fn delete(all: bool, link: u8) -> DeleteLink {
    DeleteLink {
        link: LinkId(link),
        all,
        orderly: false,
        reason: DeleteLinkReason::LOST_PATH,
    }
}

#[test]
fn delete_link_ends_the_group_or_is_answered() {
    for version in VERSIONS {
        let ends = Some(Event::GroupEnds(DeleteLinkReason::LOST_PATH));
        for (role, body, reply, event) in [
            (Role::Client, delete(true, 0), None, ends),
            (
                Role::Client,
                delete(false, 1),
                Some("delete link answer"),
                ends,
            ),
            (
                Role::Client,
                delete(false, 7),
                Some("delete link answer"),
                None,
            ),
            (Role::Server, delete(true, 0), Some("delete link"), ends),
            (Role::Server, delete(false, 1), Some("delete link"), ends),
            (
                Role::Server,
                delete(false, 7),
                Some("delete link answer"),
                None,
            ),
        ] {
            let (pair, _) = first_contact(version, 1);
            let mut flow = match role {
                Role::Client => pair.client,
                Role::Server => pair.server,
            };
            let message = bytes(&Message {
                version,
                response: false,
                body: Body::DeleteLink(body),
            });
            let (sent, happened) = pass(&mut flow, &mut table(), &message, START);
            assert_eq!(sent.as_deref().map(name), reply, "{role:?} {body:?}");
            assert_eq!(happened, event, "{role:?} {body:?}");
            if body.link == LinkId(7) {
                let answer = sent.unwrap();
                let Body::DeleteLink(answer) = Message::parse(&answer).unwrap().body else {
                    panic!()
                };
                assert_eq!(answer.reason, DeleteLinkReason::UNKNOWN_LINK);
                assert!(flow.is_ready());
            } else {
                // A second one finds the group ended already.
                let outcome = pass(&mut flow, &mut table(), &message, START);
                assert_eq!(outcome, (None, None));
            }
        }
    }
}

#[test]
fn ending_the_group_from_both_sides_is_quiet() {
    let (mut pair, _) = first_contact(Version::V2, 1);
    let reason = DeleteLinkReason::INACTIVITY;
    let from_server = bytes(&pair.server.end_group(reason, true));
    let from_client = bytes(&pair.client.end_group(reason, true));
    let outcome = pass(&mut pair.client, &mut pair.client_rmbs, &from_server, START);
    assert_eq!(outcome, (None, None));
    let outcome = pass(&mut pair.server, &mut pair.server_rmbs, &from_client, START);
    assert_eq!(outcome, (None, None));
}

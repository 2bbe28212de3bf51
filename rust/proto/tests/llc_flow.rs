// SPDX-License-Identifier: GPL-2.0

//! The LLC exchanges of two ends of one link, with losses, noise and wrong answers.

mod seeded;

use seeded::Random;
use smc_proto::ids::{Gid, LinkId, LinkUid, Mac, PathMtu, Psn, Qpn, Rkey, Version, VirtAddr};
use smc_proto::lgr::{Role, Rtoken, RtokenTable};
use smc_proto::llc_flow::{
    DownCause, Event, LinkEnd, LinkFlow, LinkParams, Step, Violation, ADD_WAIT_CLIENT_MS,
    FIRST_WAIT_CLIENT_MS, FIRST_WAIT_MS, TEST_LINK_MS, WAIT_MS,
};
use smc_proto::reason::DeclineReason;
use smc_proto::wire::llc::{
    AddLink, AddLinkCont, Body, ConfirmLink, ConfirmRkey, DeleteLink, DeleteLinkReason, DeleteRkey,
    LinkToken, List, Message, RejectReason, RkeyAnswer, TestLink, MAX_LEN,
};

type Table = RtokenTable<Vec<Rtoken>>;

const START: u64 = 1_000_000;

fn table() -> Table {
    RtokenTable::new(vec![Rtoken::default(); 255])
}

fn link_end(number: u8) -> LinkEnd {
    LinkEnd {
        mac: Mac([number; 6]),
        gid: Gid::from_ipv4([10, 9, 0, number]),
        qpn: Qpn::new(u32::from(number) + 16).unwrap(),
    }
}

fn params(role: Role, version: Version, max_links: u8) -> LinkParams {
    let (local, peer) = match role {
        Role::Client => (1, 2),
        Role::Server => (2, 1),
    };
    LinkParams {
        version,
        negotiated: version == Version::V2,
        role,
        local: link_end(local),
        peer: link_end(peer),
        link_uid: LinkUid(0x100 + u32::from(local)),
        max_links,
        max_conns: 255,
        mtu: PathMtu::Mtu1024,
        psn: Psn::new(5),
        test_link_ms: TEST_LINK_MS,
    }
}

fn rmb(number: u32) -> Rtoken {
    Rtoken {
        rkey: Rkey(number),
        addr: VirtAddr(u64::from(number) << 20),
    }
}

/// The bytes of a message, as the queue pair carries them.
fn bytes(message: &Message<'_>) -> Vec<u8> {
    let mut buf = vec![0; MAX_LEN];
    let len = message.emit(&mut buf).unwrap();
    buf.truncate(len);
    buf
}

fn pass(
    flow: &mut LinkFlow,
    rmbs: &mut Table,
    message: &[u8],
    now: u64,
) -> (Option<Vec<u8>>, Option<Event>) {
    let message = Message::parse(message).unwrap();
    owned(flow.handle(&message, rmbs, now).unwrap())
}

fn owned(step: Step<'_>) -> (Option<Vec<u8>>, Option<Event>) {
    (step.send.as_ref().map(bytes), step.event)
}

/// Two ends whose first contact is over.
struct Pair {
    server: LinkFlow,
    client: LinkFlow,
    server_rmbs: Table,
    client_rmbs: Table,
}

fn first_contact(version: Version, max_links: u8) -> (Pair, Vec<&'static str>) {
    let now = START;
    let (server, first) =
        LinkFlow::server(params(Role::Server, version, max_links), LinkId(1), now);
    let client = LinkFlow::client(params(Role::Client, version, max_links), now);
    let mut pair = Pair {
        server,
        client,
        server_rmbs: table(),
        client_rmbs: table(),
    };
    let mut names = vec![name(&bytes(&first))];
    let mut to_client = Some(bytes(&first));
    let mut ready = 0;
    while let Some(message) = to_client.take() {
        let (reply, event) = pass(&mut pair.client, &mut pair.client_rmbs, &message, now);
        ready += u32::from(event == Some(Event::Ready));
        if let Some(reply) = reply {
            names.push(name(&reply));
            let (next, event) = pass(&mut pair.server, &mut pair.server_rmbs, &reply, now);
            ready += u32::from(event == Some(Event::Ready));
            names.extend(next.iter().map(|message| name(message)));
            to_client = next;
        }
    }
    assert_eq!(ready, 2, "{names:?}");
    (pair, names)
}

fn name(message: &[u8]) -> &'static str {
    let message = Message::parse(message).unwrap();
    match (message.body, message.response) {
        (Body::ConfirmLink(_), false) => "confirm link",
        (Body::ConfirmLink(_), true) => "confirm link answer",
        (Body::AddLink(_), false) => "add link",
        (Body::AddLink(_), true) => "add link answer",
        (Body::DeleteLink(_), false) => "delete link",
        (Body::DeleteLink(_), true) => "delete link answer",
        _ => "other",
    }
}

const VERSIONS: [Version; 2] = [Version::V1, Version::V2];

#[test]
fn first_contact_with_and_without_a_second_link() {
    for version in VERSIONS {
        let (pair, names) = first_contact(version, 1);
        assert_eq!(names, ["confirm link", "confirm link answer"]);
        assert_eq!(pair.client.link(), LinkId(1));
        assert_eq!(pair.client.peer_uid(), LinkUid(0x102));
        assert_eq!(pair.server.peer_uid(), LinkUid(0x101));
        let (pair, names) = first_contact(version, 2);
        let expected = [
            "confirm link",
            "confirm link answer",
            "add link",
            "add link answer",
        ];
        assert_eq!(names, expected);
        assert!(pair.client.is_ready() && pair.server.is_ready());
    }
}

fn server_after_confirm(version: Version) -> (LinkFlow, Vec<u8>) {
    let (mut server, first) = LinkFlow::server(params(Role::Server, version, 2), LinkId(1), START);
    let mut client = LinkFlow::client(params(Role::Client, version, 2), START);
    let (answer, _) = pass(&mut client, &mut table(), &bytes(&first), START);
    let (add, event) = pass(&mut server, &mut table(), &answer.unwrap(), START);
    assert_eq!(event, None);
    (server, add.unwrap())
}

#[test]
fn the_server_names_its_only_port_and_the_client_refuses() {
    for version in VERSIONS {
        let (_, add) = server_after_confirm(version);
        let add = Message::parse(&add).unwrap();
        let Body::AddLink(request) = add.body else {
            panic!()
        };
        let end = link_end(2);
        assert_eq!((request.mac, request.gid), (end.mac, end.gid));
        assert_eq!(request.link, LinkId(2));
        let (mut pair, _) = first_contact(version, 2);
        let step = pair.client.handle(&add, &mut pair.client_rmbs, START);
        let Some(Message {
            body: Body::AddLink(answer),
            response: true,
            ..
        }) = step.unwrap().send
        else {
            panic!()
        };
        assert_eq!(answer.reject, Some(RejectReason::NO_ALTERNATE_PATH));
        let bad_mtu = Message {
            body: Body::AddLink(AddLink {
                mtu: None,
                ..request
            }),
            ..add
        };
        let step = pair.client.handle(&bad_mtu, &mut pair.client_rmbs, START);
        let Some(Body::AddLink(answer)) = step.unwrap().send.map(|message| message.body) else {
            panic!()
        };
        assert_eq!(answer.reject, Some(RejectReason::BAD_MTU));
    }
}

#[test]
fn a_client_with_a_second_port_is_told_that_there_is_none() {
    for version in VERSIONS {
        let (mut server, add) = server_after_confirm(version);
        let add = Message::parse(&add).unwrap();
        let Body::AddLink(request) = add.body else {
            panic!()
        };
        let agreed = Message {
            response: true,
            body: Body::AddLink(AddLink {
                reject: None,
                mac: Mac([7; 6]),
                ..request
            }),
            ..add
        };
        let (delete, event) = pass(&mut server, &mut table(), &bytes(&agreed), START);
        assert_eq!(event, None);
        let delete = delete.unwrap();
        let Body::DeleteLink(body) = Message::parse(&delete).unwrap().body else {
            panic!()
        };
        assert_eq!((body.link, body.all), (LinkId(2), false));
        let answer = Message {
            response: true,
            version,
            body: Body::DeleteLink(body),
        };
        let (_, event) = pass(&mut server, &mut table(), &bytes(&answer), START);
        assert_eq!(event, Some(Event::Ready));
    }
}

#[test]
fn lost_messages_end_in_time() {
    for version in VERSIONS {
        let (mut server, first) =
            LinkFlow::server(params(Role::Server, version, 2), LinkId(1), START);
        assert_eq!(server.deadline(), Some(START + FIRST_WAIT_MS));
        assert_eq!(server.poll(START + FIRST_WAIT_MS - 1), Step::default());
        let event = server.poll(START + FIRST_WAIT_MS).event;
        assert_eq!(event, Some(Event::Failed(DeclineReason::TIMEOUT_CL)));
        assert_eq!(server.deadline(), None);

        let mut client = LinkFlow::client(params(Role::Client, version, 2), START);
        assert_eq!(client.deadline(), Some(START + FIRST_WAIT_CLIENT_MS));
        let (_, event) = pass(&mut client, &mut table(), &bytes(&first), START);
        assert_eq!(event, None);
        assert_eq!(client.deadline(), Some(START + ADD_WAIT_CLIENT_MS));
        let event = client.poll(START + ADD_WAIT_CLIENT_MS).event;
        assert_eq!(event, Some(Event::Failed(DeclineReason::TIMEOUT_AL)));

        // The server can do without an answer to ADD LINK.
        let (mut server, _) = server_after_confirm(version);
        assert_eq!(server.poll(START + WAIT_MS).event, Some(Event::Ready));
    }
}

#[test]
fn a_wrong_confirm_link_is_declined() {
    let good = ConfirmLink {
        mac: link_end(2).mac,
        gid: link_end(2).gid,
        qpn: link_end(2).qpn,
        link: LinkId(1),
        link_uid: LinkUid(9),
        max_links: 2,
        max_conns: 0,
        no_rmbe_eyecatcher: true,
    };
    let wrong = [
        (
            ConfirmLink {
                no_rmbe_eyecatcher: false,
                ..good
            },
            DeclineReason::RMBE_EC,
        ),
        (
            ConfirmLink {
                qpn: Qpn::new(99).unwrap(),
                ..good
            },
            DeclineReason::CNFERR,
        ),
        (
            ConfirmLink {
                gid: Gid::ZERO,
                ..good
            },
            DeclineReason::CNFERR,
        ),
        (
            ConfirmLink {
                link: LinkId(0),
                ..good
            },
            DeclineReason::CNFERR,
        ),
    ];
    for (body, reason) in wrong {
        let mut client = LinkFlow::client(params(Role::Client, Version::V1, 1), START);
        let message = Message {
            version: Version::V1,
            response: false,
            body: Body::ConfirmLink(body),
        };
        let (reply, event) = pass(&mut client, &mut table(), &bytes(&message), START);
        assert_eq!((reply, event), (None, Some(Event::Failed(reason))));
        assert!(!client.is_ready());
    }
}

/// One message of every type, as a stray.
fn strays(version: Version, response: bool) -> Vec<Vec<u8>> {
    let end = link_end(2);
    let confirm = ConfirmLink {
        mac: end.mac,
        gid: end.gid,
        qpn: end.qpn,
        link: LinkId(77),
        link_uid: LinkUid(1),
        max_links: 2,
        max_conns: 0,
        no_rmbe_eyecatcher: true,
    };
    let add = AddLink {
        mac: end.mac,
        gid: end.gid,
        qpn: Some(end.qpn),
        link: LinkId(77),
        mtu: Some(PathMtu::Mtu256),
        psn: Psn::new(1),
        reject: None,
        ext: (version == Version::V2).then_some(smc_proto::wire::llc::AddLinkExt {
            v2_direct: true,
            client_target_gid: end.gid,
            rkeys: List::EMPTY,
        }),
    };
    let delete = DeleteLink {
        link: LinkId(77),
        all: false,
        orderly: true,
        reason: DeleteLinkReason::OPERATOR,
    };
    let mut bodies = vec![
        Body::ConfirmLink(confirm),
        Body::AddLink(add),
        Body::DeleteLink(delete),
        Body::ConfirmRkey(ConfirmRkey::new(rmb(3), &[]).unwrap()),
        Body::DeleteRkey(DeleteRkey {
            rkeys: List::new(&[Rkey(3)]),
            negative: false,
            errors: 0,
        }),
        Body::TestLink(TestLink {
            user_data: [0x55; 16],
        }),
    ];
    if version == Version::V1 {
        bodies.push(Body::AddLinkCont(
            AddLinkCont::new(LinkId(77), &[]).unwrap(),
        ));
    }
    bodies
        .into_iter()
        .map(|body| {
            bytes(&Message {
                version,
                response,
                body,
            })
        })
        .collect()
}

#[test]
fn answers_that_nobody_asked_for_are_dropped() {
    for version in VERSIONS {
        for role in [Role::Client, Role::Server] {
            for ready in [true, false] {
                for stray in strays(version, true) {
                    let (pair, _) = first_contact(version, 1);
                    let mut flow = match (ready, role) {
                        (true, Role::Client) => pair.client,
                        (true, Role::Server) => pair.server,
                        (false, Role::Client) => LinkFlow::client(params(role, version, 1), START),
                        (false, Role::Server) => {
                            LinkFlow::server(params(role, version, 1), LinkId(1), START).0
                        }
                    };
                    let before = (flow.is_ready(), flow.link(), flow.deadline());
                    let outcome = pass(&mut flow, &mut table(), &stray, START);
                    assert_eq!(outcome, (None, None), "{role:?} {}", name(&stray));
                    let after = (flow.is_ready(), flow.link(), flow.deadline());
                    assert_eq!(after, before);
                }
            }
        }
    }
}

#[test]
fn a_repeated_confirm_link_changes_nothing() {
    for version in VERSIONS {
        let (mut pair, _) = first_contact(version, 1);
        let (_, first) = LinkFlow::server(params(Role::Server, version, 1), LinkId(9), START);
        let outcome = pass(
            &mut pair.client,
            &mut pair.client_rmbs,
            &bytes(&first),
            START,
        );
        assert_eq!(outcome, (None, None));
        assert_eq!(pair.client.link(), LinkId(1));
    }
}

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

#[test]
fn the_form_of_another_version_is_a_violation() {
    let (mut pair, _) = first_contact(Version::V2, 1);
    for stray in strays(Version::V1, false) {
        let message = Message::parse(&stray).unwrap();
        let outcome = pair.client.handle(&message, &mut pair.client_rmbs, START);
        assert_eq!(outcome, Err(Violation::WrongVersion));
    }
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

#[test]
fn noise_never_keeps_a_flow_waiting() {
    let seed = seeded::seed();
    for case in 0..3_000 {
        let mut random = Random::for_case(seed, case);
        let version = *random.pick(&VERSIONS);
        let max_links = 1 + random.below(2) as u8;
        let mut flow = if random.one_in(2) {
            LinkFlow::client(params(Role::Client, version, max_links), START)
        } else {
            LinkFlow::server(params(Role::Server, version, max_links), LinkId(1), START).0
        };
        flow.set_test_link_ms(0);
        let noise: Vec<Vec<u8>> = [strays(version, true), strays(version, false)].concat();
        let mut rmbs = table();
        let mut now = START;
        for _ in 0..30 {
            now += u64::from(random.below(1_000));
            let message = random.pick(&noise).clone();
            pass(&mut flow, &mut rmbs, &message, now);
            flow.poll(now);
        }
        // Silence after that: whatever was waited for ends.
        for _ in 0..5 {
            now += FIRST_WAIT_CLIENT_MS;
            flow.poll(now);
        }
        assert_eq!(flow.deadline(), None, "case {case}");
    }
}

// SPDX-License-Identifier: GPL-2.0

//! First contact on a link, with losses, noise and wrong answers.

mod flow_support;
mod seeded;

use flow_support::{
    bytes, first_contact, link_end, name, params, pass, server_after_confirm, strays, table, START,
    VERSIONS,
};
use seeded::Random;
use smc_proto::ids::{Gid, LinkId, LinkUid, Mac, Qpn, Version};
use smc_proto::lgr::Role;
use smc_proto::llc_flow::{
    Event, LinkFlow, Step, Violation, ADD_WAIT_CLIENT_MS, FIRST_REPEAT_MS, FIRST_WAIT_CLIENT_MS,
    FIRST_WAIT_MS, WAIT_MS,
};
use smc_proto::reason::DeclineReason;
use smc_proto::wire::llc::{AddLink, Body, ConfirmLink, Message, RejectReason};

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
        assert_eq!(server.deadline(), Some(START + FIRST_REPEAT_MS));
        assert_eq!(server.poll(START + FIRST_REPEAT_MS - 1), Step::default());
        assert_eq!(server.poll(START + FIRST_REPEAT_MS).send, Some(first));
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
fn a_client_that_dropped_confirm_link_gets_it_once_more() {
    for version in VERSIONS {
        let server = |max_links| {
            let (mut flow, _) =
                LinkFlow::server(params(Role::Server, version, max_links), LinkId(1), START);
            let again = flow.poll(START + FIRST_REPEAT_MS).send.unwrap();
            (flow, bytes(&again))
        };
        let (mut one, again) = server(1);
        let mut client = LinkFlow::client(params(Role::Client, version, 1), START);
        let (answer, event) = pass(&mut client, &mut table(), &again, START);
        assert_eq!(event, Some(Event::Ready));
        let answer = answer.unwrap();
        let late = START + FIRST_WAIT_MS - 1;
        let (_, event) = pass(&mut one, &mut table(), &answer, late);
        assert_eq!(event, Some(Event::Ready));
        // Had the first one only been slow, either side gets its message twice.
        assert_eq!(pass(&mut client, &mut table(), &again, late), (None, None));
        assert_eq!(pass(&mut one, &mut table(), &answer, late), (None, None));
        let (mut two, _) = server(2);
        let (add, event) = pass(&mut two, &mut table(), &answer, late);
        assert!(add.is_some() && event.is_none());
        assert_eq!(pass(&mut two, &mut table(), &answer, late), (None, None));
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
fn the_form_of_another_version_is_a_violation() {
    let (mut pair, _) = first_contact(Version::V2, 1);
    for stray in strays(Version::V1, false) {
        let message = Message::parse(&stray).unwrap();
        let outcome = pair.client.handle(&message, &mut pair.client_rmbs, START);
        assert_eq!(outcome, Err(Violation::WrongVersion));
    }
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

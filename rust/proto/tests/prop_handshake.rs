// SPDX-License-Identifier: GPL-2.0

//! Client and server handshakes against each other over real bytes, in every combination of what
//! both can do.

mod handshake_support;

use handshake_support::{eid, end, propose, run, select, v4, wire, Agreed, Host};
use smc_proto::handshake::{GroupChoice, Outcome};
use smc_proto::ids::{Eid, Ipv6Prefix, PathMtu, Release, Version};
use smc_proto::reason::DeclineReason;
use smc_proto::wire::clc::{Message, Proposal};

fn hosts() -> Vec<Host> {
    let mut hosts = Vec::new();
    for v1 in [true, false] {
        for eids in [
            None,
            Some(vec![]),
            Some(vec!["SMC-EID"]),
            Some(vec!["OTHER", "SMC-EID"]),
            Some(vec!["OTHER", "THIRD"]),
        ] {
            for (max_conns, max_links, mtu) in [
                (255, 1, PathMtu::Mtu1024),
                (16, 2, PathMtu::Mtu4096),
                (3, 9, PathMtu::Mtu256),
            ] {
                hosts.push(Host {
                    subnets: v1.then(|| vec![v4([10, 9, 0, 1], 24)]),
                    eids: eids
                        .as_ref()
                        .map(|names| names.iter().map(|name| eid(name)).collect()),
                    max_conns,
                    max_links,
                    mtu,
                    ..Host::new(0)
                });
            }
        }
    }
    hosts
}

fn expected_eid(client: &Host, server: &Host) -> Option<Eid> {
    let theirs = server.eids.as_ref()?;
    let mine = client.eids.as_ref()?;
    mine.iter().copied().find(|eid| theirs.contains(eid))
}

fn check_agreed(client: &Host, server: &Host, agreed: &Agreed, first_contact: bool) {
    let (at_client, at_server) = (&agreed.client, &agreed.server);
    let selected = &at_server.selected;
    assert_eq!(at_client.version, selected.version);
    assert_eq!(at_client.eid, expected_eid(client, server));
    assert_eq!(at_client.eid, selected.eid);
    assert_eq!(at_client.eid.is_some(), selected.version == Version::V2);
    assert_eq!(at_client.mtu, client.mtu.min(server.mtu));
    assert_eq!(at_server.mtu, at_client.mtu);
    assert_eq!(at_client.peer, server.end());
    assert_eq!(at_server.peer, client.end());
    if !first_contact {
        return;
    }
    assert_eq!(at_client.release, selected.release);
    assert_eq!(at_client.max_conns, selected.max_conns);
    assert_eq!(at_client.max_links, selected.max_links);
    if selected.version == Version::V2 {
        let conns = client.max_conns.max(16).min(server.max_conns.max(16));
        assert_eq!(selected.max_conns, conns);
        assert_eq!(
            selected.max_links,
            client.max_links.min(server.max_links).min(2)
        );
        assert_eq!(at_client.peer_host, Some(server.caps().host));
        assert_eq!(at_server.peer_host, Some(client.caps().host));
        assert!(at_client.peer_direct && at_server.peer_direct);
        assert_eq!(at_server.peer_gids.as_slice(), [client.end().gid]);
    } else {
        assert_eq!((selected.max_conns, selected.max_links), (255, 2));
    }
}

#[test]
fn every_combination_agrees_or_declines() {
    let (mut agreed, mut declined) = (0, 0);
    for client in hosts() {
        for server in hosts() {
            for first_contact in [true, false] {
                let client = Host {
                    number: 1,
                    ..client.clone()
                };
                let server = Host {
                    number: 2,
                    ..server.clone()
                };
                let common_v1 = client.subnets.is_some() && server.subnets.is_some();
                let common_v2 = expected_eid(&client, &server).is_some();
                match run(&client, &server, first_contact) {
                    Ok(both) => {
                        assert!(common_v1 || common_v2);
                        check_agreed(&client, &server, &both, first_contact);
                        agreed += 1;
                    }
                    Err(Outcome::Decline(_)) => {
                        assert!(!common_v1 && !common_v2);
                        declined += 1;
                    }
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
    }
    assert!(agreed > 100 && declined > 100);
}

#[test]
fn a_client_that_can_do_nothing_proposes_nothing() {
    let mut client = Host::new(1);
    client.eids = Some(vec![]);
    client.subnets = Some(vec![]);
    assert!(propose(&client).is_err());
    client.eids = None;
    client.subnets = None;
    assert!(propose(&client).is_err());
}

#[test]
fn a_version_that_was_not_offered_is_not_taken() {
    // No usable prefix: version 1 must not be offered, and an Accept for it is declined.
    let mut client = Host::new(1);
    client.subnets = Some(vec![]);
    let (waiting, proposal) = propose(&client).unwrap();
    let Message::Proposal(proposal) = proposal else {
        panic!()
    };
    assert!(!proposal.typev1.is_offered() && proposal.v1.is_none());
    let other = Host {
        eids: None,
        ..Host::new(3)
    };
    let (_, v1_proposal) = propose(&other).unwrap();
    let v1_only = select(&Host::new(2), &v1_proposal).unwrap();
    assert_eq!(v1_only.version, Version::V1);
    let (_, accept) = v1_only.accept(end(2, Some(PathMtu::Mtu1024)), true);
    let outcome = waiting.handle(&Message::Accept(accept)).unwrap_err();
    assert_eq!(outcome, Outcome::Decline(DeclineReason::MODEUNSUPP));
}

#[test]
fn subnets_decide_about_version_1() {
    let v1_only = |number, addr, len| Host {
        subnets: Some(vec![v4(addr, len)]),
        eids: None,
        ..Host::new(number)
    };
    let client = v1_only(1, [10, 9, 0, 1], 24);
    for (addr, len, matches) in [
        ([10, 9, 0, 77], 24, true),
        ([10, 9, 1, 77], 24, false),
        ([10, 9, 0, 77], 25, false),
        ([10, 9, 0, 77], 16, false),
    ] {
        let result = run(&client, &v1_only(2, addr, len), true);
        match result {
            Ok(_) => assert!(matches, "{addr:?}/{len}"),
            Err(outcome) => {
                assert!(!matches, "{addr:?}/{len}");
                assert_eq!(outcome, Outcome::Decline(DeclineReason::DIFFPREFIX));
            }
        }
    }
    let v6_only = |number, last| Host {
        subnets: Some(vec![]),
        v6: (1..=8)
            .map(|n| Ipv6Prefix::new([0xfd, last, n, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 64))
            .map(Option::unwrap)
            .collect(),
        eids: None,
        ..Host::new(number)
    };
    assert!(run(&v6_only(1, 5), &v6_only(2, 5), true).is_ok());
    assert!(run(&v6_only(1, 5), &v6_only(2, 6), true).is_err());
}

#[test]
fn the_server_takes_the_lower_release_and_checks_the_limits() {
    for (release, max_conns, max_links, expected) in [
        (0, 0, 0, Ok((Release::V2_0, 255, 2))),
        (1, 16, 1, Ok((Release::V2_1, 16, 1))),
        (1, 255, 255, Ok((Release::V2_1, 255, 2))),
        (2, 64, 2, Ok((Release::V2_1, 64, 2))),
        (15, 255, 1, Ok((Release::V2_1, 255, 1))),
        (1, 15, 1, Err(DeclineReason::MAXCONNERR)),
        (1, 0, 1, Err(DeclineReason::MAXCONNERR)),
        (1, 255, 0, Err(DeclineReason::MAXLINKERR)),
    ] {
        let (_, proposal) = propose(&Host::new(1)).unwrap();
        let Message::Proposal(mut proposal) = proposal else {
            panic!()
        };
        let mut offer = proposal.v2.unwrap();
        offer.release = Release::new(release).unwrap();
        offer.max_conns = max_conns;
        offer.max_links = max_links;
        offer.features = 0xffff;
        proposal.v2 = Some(offer);
        let server = Host {
            max_links: 2,
            ..Host::new(2)
        };
        let result = select(&server, &wire(Message::Proposal(proposal)));
        match (result, expected) {
            (Ok(selected), Ok((release, conns, links))) => {
                assert_eq!(selected.release, Some(release));
                assert_eq!((selected.max_conns, selected.max_links), (conns, links));
                let (_, accept) = selected.accept(server.end(), true);
                let ext = accept.v2.unwrap().fce.unwrap();
                assert_eq!(ext.v21.is_some(), release == Release::V2_1);
                assert_eq!(ext.v21.map_or(0, |limits| limits.features), 0);
            }
            (Err(Outcome::Decline(reason)), Err(expected)) => assert_eq!(reason, expected),
            (result, expected) => panic!("{result:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn hosts_of_different_releases_speak_the_lower_one() {
    for (client, server) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let host = |number, release| Host {
            release: Release::new(release).unwrap(),
            max_conns: 16,
            ..Host::new(number)
        };
        let agreed = run(&host(1, client), &host(2, server), true).unwrap();
        let lower = Release::new(client.min(server)).unwrap();
        assert_eq!(agreed.client.release, Some(lower));
        assert_eq!(agreed.server.selected.release, Some(lower));
        // Release 2.0 has no limits to agree on.
        let (conns, links) = if client.min(server) == 0 {
            (255, 2)
        } else {
            (16, 1)
        };
        let selected = agreed.server.selected;
        assert_eq!((selected.max_conns, selected.max_links), (conns, links));
        assert_eq!(
            (agreed.client.max_conns, agreed.client.max_links),
            (conns, links)
        );
    }
}

#[test]
fn a_client_of_release_2_0_refuses_2_1() {
    let client = Host {
        release: Release::V2_0,
        ..Host::new(1)
    };
    let server = Host::new(2);
    let (waiting, _) = propose(&client).unwrap();
    let (_, proposal) = propose(&Host::new(1)).unwrap();
    let (_, accept) = select(&server, &proposal)
        .unwrap()
        .accept(server.end(), true);
    let outcome = waiting.handle(&Message::Accept(accept)).unwrap_err();
    assert_eq!(outcome, Outcome::Decline(DeclineReason::RELEASEERR));
}

#[test]
fn proposals_that_cannot_be_taken_are_declined_with_the_reason() {
    let (_, message) = propose(&Host::new(1)).unwrap();
    let Message::Proposal(good) = message else {
        panic!()
    };
    let with = |change: &dyn Fn(&mut Proposal)| {
        let mut changed = good;
        change(&mut changed);
        Message::Proposal(changed)
    };
    let v2_server = Host {
        subnets: None,
        ..Host::new(2)
    };
    let reason = |message: &Message, server: &Host| match select(server, message) {
        Err(Outcome::Decline(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let no_ext = with(&|proposal| proposal.v2 = None);
    assert_eq!(reason(&no_ext, &v2_server), DeclineReason::NOV2EXT);
    let mut stranger = Host::new(1);
    stranger.eids = Some(vec![eid("STRANGER")]);
    let (_, unknown_eid) = propose(&stranger).unwrap();
    assert_eq!(reason(&unknown_eid, &v2_server), DeclineReason::NOUEID);
    // Version 1 takes over where version 2 is not possible.
    assert_eq!(select(&Host::new(2), &no_ext).unwrap().version, Version::V1);
    assert_eq!(
        select(&Host::new(2), &unknown_eid).unwrap().version,
        Version::V1
    );
    let future = with(&|proposal| proposal.version = 9);
    assert_eq!(select(&Host::new(2), &future).unwrap().version, Version::V2);
}

#[test]
fn the_client_notices_a_link_group_that_is_gone() {
    assert_eq!(GroupChoice::decide(true, true), GroupChoice::Create);
    assert_eq!(GroupChoice::decide(true, false), GroupChoice::Create);
    assert_eq!(GroupChoice::decide(false, true), GroupChoice::Join);
    assert_eq!(GroupChoice::decide(false, false), GroupChoice::OutOfSync);
}

// SPDX-License-Identifier: GPL-2.0

//! Client and server handshakes against each other over real bytes, in every combination of what
//! both can do, and against peers that answer wrongly.

mod seeded;

use seeded::Random;
use smc_proto::handshake::{
    decline, Accepted, AwaitAccept, AwaitProposal, Caps, Client, Confirmed, Fault, GroupChoice,
    LateClc, Outcome, Scan, Selected, V1Caps, V2Caps,
};
use smc_proto::ids::{
    AlertToken, BufSize, Eid, Gid, HostName, Ipv4Prefix, Ipv6Prefix, Mac, PathMtu, PeerId, Psn,
    Qpn, Release, Rkey, RmbeIndex, Version, VirtAddr,
};
use smc_proto::reason::DeclineReason;
use smc_proto::wire::clc::{Endpoint, IsmEndpoint, Kind, Message, RdmaEndpoint, MAX_LEN};
use smc_proto::wire::Error;

fn eid(name: &str) -> Eid {
    Eid::parse(name.as_bytes()).unwrap()
}

fn v4(addr: [u8; 4], len: u8) -> Ipv4Prefix {
    Ipv4Prefix::new(addr, len).unwrap()
}

fn end(number: u8, mtu: Option<PathMtu>) -> RdmaEndpoint {
    RdmaEndpoint {
        peer_id: PeerId([number; 8]),
        gid: Gid::from_ipv4([10, 9, 0, number]),
        mac: Mac([number; 6]),
        qpn: Qpn::new(0x100 + u32::from(number)).unwrap(),
        rkey: Rkey(0x1000 + u32::from(number)),
        rmbe_index: RmbeIndex::FIRST,
        token: AlertToken(u32::from(number)),
        buf_size: BufSize::MIN,
        mtu,
        rmb_addr: VirtAddr(0xffff_8000_0000_0000),
        psn: Psn::new(u32::from(number)),
    }
}

/// What one host can do, with its own storage.
#[derive(Clone)]
struct Host {
    number: u8,
    subnets: Option<Vec<Ipv4Prefix>>,
    v6: Vec<Ipv6Prefix>,
    eids: Option<Vec<Eid>>,
    max_conns: u8,
    max_links: u8,
    mtu: PathMtu,
}

impl Host {
    fn new(number: u8) -> Self {
        Self {
            number,
            subnets: Some(vec![v4([10, 9, 0, number], 24)]),
            v6: Vec::new(),
            eids: Some(vec![eid("SMC-EID")]),
            max_conns: 255,
            max_links: 1,
            mtu: PathMtu::Mtu1024,
        }
    }

    fn caps(&self) -> Caps<'_> {
        Caps {
            peer_id: PeerId([self.number; 8]),
            v1: self.subnets.as_ref().map(|subnets| V1Caps {
                gid: Gid::from_ipv4([10, 9, 0, self.number]),
                mac: Mac([self.number; 6]),
                subnets,
                v6: &self.v6,
            }),
            v2: self.eids.as_ref().map(|eids| V2Caps {
                gid: Gid::from_ipv4([10, 9, 0, self.number]),
                eids,
            }),
            host: HostName::new(&[b'h', b'0' + self.number]),
            max_conns: self.max_conns,
            max_links: self.max_links,
            mtu: self.mtu,
        }
    }

    fn end(&self) -> RdmaEndpoint {
        end(self.number, Some(self.mtu))
    }
}

/// Sends a message as bytes.
fn wire(message: Message) -> Message {
    let mut bytes = [0; MAX_LEN];
    let len = message.emit(&mut bytes).unwrap();
    let read = Message::parse(&bytes[..len]).unwrap();
    assert_eq!(read, message);
    read
}

/// Both ends' views of a handshake that succeeded.
struct Agreed {
    client: Accepted,
    server: Confirmed,
}

fn propose(client: &Host) -> Result<(AwaitAccept, Message), DeclineReason> {
    let (waiting, proposal) = Client::start(&client.caps())?;
    Ok((waiting, wire(Message::Proposal(proposal))))
}

fn select(server: &Host, proposal: &Message) -> Result<Selected, Outcome> {
    AwaitProposal.handle(proposal, &server.caps())
}

fn run(client: &Host, server: &Host, first_contact: bool) -> Result<Agreed, Outcome> {
    let (waiting, proposal) = propose(client).map_err(Outcome::Decline)?;
    let selected = select(server, &proposal)?;
    let (server_waiting, accept) = selected.accept(server.end(), first_contact);
    let accepted = waiting.handle(&wire(Message::Accept(accept)))?;
    assert_eq!(accepted.first_contact, first_contact);
    let confirm = accepted.confirm(client.end(), first_contact);
    let confirmed = server_waiting.handle(&wire(Message::Confirm(confirm)))?;
    Ok(Agreed {
        client: accepted,
        server: confirmed,
    })
}

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
fn proposals_that_cannot_be_taken_are_declined_with_the_reason() {
    let (_, message) = propose(&Host::new(1)).unwrap();
    let Message::Proposal(good) = message else {
        panic!()
    };
    let with = |change: &dyn Fn(&mut smc_proto::wire::clc::Proposal)| {
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
fn a_client_refuses_what_it_did_not_offer() {
    let client = Host {
        max_conns: 100,
        ..Host::new(1)
    };
    let server = Host::new(2);
    let (waiting, proposal) = propose(&client).unwrap();
    let (_, good) = select(&server, &proposal)
        .unwrap()
        .accept(server.end(), true);
    assert!(waiting.handle(&Message::Accept(good)).is_ok());
    let check = |expected, change: &dyn Fn(&mut smc_proto::wire::clc::Accept)| {
        let mut accept = good;
        change(&mut accept);
        let outcome = waiting.handle(&Message::Accept(accept)).unwrap_err();
        assert_eq!(outcome, Outcome::Decline(expected));
    };
    check(DeclineReason::NOUEID, &|accept| {
        accept.v2.as_mut().unwrap().eid = eid("NOT-OFFERED");
    });
    check(DeclineReason::RELEASEERR, &|accept| {
        let ext = accept.v2.as_mut().unwrap().fce.as_mut().unwrap();
        ext.release = Release::new(2).unwrap();
    });
    for conns in [0, 15, 101, 255] {
        check(DeclineReason::MAXCONNERR, &|accept| {
            let ext = accept.v2.as_mut().unwrap().fce.as_mut().unwrap();
            ext.v21.as_mut().unwrap().max_conns = conns;
        });
    }
    for links in [0, 2, 3, 255] {
        check(DeclineReason::MAXLINKERR, &|accept| {
            let ext = accept.v2.as_mut().unwrap().fce.as_mut().unwrap();
            ext.v21.as_mut().unwrap().max_links = links;
        });
    }
    check(DeclineReason::CNFERR, &|accept| {
        let ext = accept.v2.as_mut().unwrap().fce.as_mut().unwrap();
        ext.v21.as_mut().unwrap().features = 2;
    });
    check(DeclineReason::CNFERR, &|accept| {
        accept.v2.as_mut().unwrap().fce = None;
    });
    check(DeclineReason::CNFERR, &|accept| {
        accept.endpoint = Endpoint::Rdma(end(2, None));
    });
    check(DeclineReason::MODEUNSUPP, &|accept| {
        accept.endpoint = Endpoint::Ism(IsmEndpoint {
            gid: 1,
            token: 2,
            index: 0,
            buf_size: BufSize::MIN,
            link_uid: smc_proto::ids::LinkUid(3),
            chid: 0,
            gid_ext: 0,
        });
    });
    check(DeclineReason::MODEUNSUPP, &|accept| {
        accept.version = Version::V1;
        accept.v2 = None;
        accept.endpoint = Endpoint::Ism(IsmEndpoint {
            gid: 1,
            token: 2,
            index: 0,
            buf_size: BufSize::MIN,
            link_uid: smc_proto::ids::LinkUid(3),
            chid: 0,
            gid_ext: 0,
        });
    });
}

#[test]
fn a_reserved_mtu_matters_on_first_contact_only() {
    let (client, server) = (Host::new(1), Host::new(2));
    let (waiting, proposal) = propose(&client).unwrap();
    let (_, accept) = select(&server, &proposal)
        .unwrap()
        .accept(end(2, None), false);
    assert!(waiting.handle(&wire(Message::Accept(accept))).is_ok());
}

#[test]
fn a_server_refuses_a_confirm_that_changes_the_terms() {
    let (client, server) = (Host::new(1), Host::new(2));
    for first_contact in [true, false] {
        let (waiting, proposal) = propose(&client).unwrap();
        let (server_waiting, accept) = select(&server, &proposal)
            .unwrap()
            .accept(server.end(), first_contact);
        let good = waiting
            .handle(&Message::Accept(accept))
            .unwrap()
            .confirm(client.end(), first_contact);
        let refused = |reason| {
            if first_contact {
                Outcome::Decline(reason)
            } else {
                // Too late for a Decline.
                Outcome::Abort(Fault::Mismatch(reason))
            }
        };
        let mut other_eid = good;
        other_eid.v2.as_mut().unwrap().eid = eid("OTHER");
        let outcome = server_waiting.handle(&Message::Confirm(other_eid));
        assert_eq!(outcome.unwrap_err(), refused(DeclineReason::NOUEID));
        let mut other_version = good;
        other_version.version = Version::V1;
        other_version.v2 = None;
        let outcome = server_waiting.handle(&Message::Confirm(other_version));
        assert_eq!(outcome.unwrap_err(), refused(DeclineReason::VERSMISMAT));
        let unreadable = Error::BadField {
            field: "QP number",
            value: 0,
        };
        let outcome = server_waiting.unreadable(unreadable);
        assert_eq!(outcome, refused(DeclineReason::CNFERR));
        if !first_contact {
            continue;
        }
        for (reason, release, conns, links, features) in [
            (DeclineReason::RELEASEERR, 0, 255, 1, 0),
            (DeclineReason::MAXCONNERR, 1, 254, 1, 0),
            (DeclineReason::MAXLINKERR, 1, 255, 2, 0),
            (DeclineReason::CNFERR, 1, 255, 1, 1),
        ] {
            let mut changed = good;
            let ext = changed.v2.as_mut().unwrap().fce.as_mut().unwrap();
            ext.release = Release::new(release).unwrap();
            let limits = ext.v21.as_mut().unwrap();
            (limits.max_conns, limits.max_links) = (conns, links);
            limits.features = features;
            let outcome = server_waiting.handle(&Message::Confirm(changed));
            assert_eq!(outcome.unwrap_err(), Outcome::Decline(reason));
        }
        let mut without = good;
        without.v2.as_mut().unwrap().fce = None;
        let outcome = server_waiting.handle(&Message::Confirm(without));
        assert_eq!(
            outcome.unwrap_err(),
            Outcome::Decline(DeclineReason::CNFERR)
        );
    }
}

#[test]
fn a_decline_is_in_order_at_any_time_and_nothing_else_is() {
    let (client, server) = (Host::new(1), Host::new(2));
    let (waiting, proposal) = propose(&client).unwrap();
    let selected = select(&server, &proposal).unwrap();
    let (server_waiting, accept) = selected.accept(server.end(), true);
    let accept = Message::Accept(accept);
    let confirm = waiting.handle(&accept).unwrap().confirm(client.end(), true);
    let confirm = Message::Confirm(confirm);
    let declined = decline(PeerId([2; 8]), Version::V2, DeclineReason::SYNCERR);
    assert!(declined.out_of_sync);
    let expected = Outcome::PeerDeclined {
        reason: DeclineReason::SYNCERR,
        out_of_sync: true,
    };
    let decline = wire(Message::Decline(declined));
    assert_eq!(waiting.handle(&decline).unwrap_err(), expected);
    assert_eq!(select(&server, &decline).unwrap_err(), expected);
    assert_eq!(server_waiting.handle(&decline).unwrap_err(), expected);

    let unexpected = |kind| Outcome::Abort(Fault::Unexpected(kind));
    assert_eq!(
        waiting.handle(&proposal).unwrap_err(),
        unexpected(Kind::Proposal)
    );
    assert_eq!(
        waiting.handle(&confirm).unwrap_err(),
        unexpected(Kind::Confirm)
    );
    assert_eq!(
        select(&server, &accept).unwrap_err(),
        unexpected(Kind::Accept)
    );
    assert_eq!(
        select(&server, &confirm).unwrap_err(),
        unexpected(Kind::Confirm)
    );
    assert_eq!(
        server_waiting.handle(&proposal).unwrap_err(),
        unexpected(Kind::Proposal)
    );
    assert_eq!(
        server_waiting.handle(&accept).unwrap_err(),
        unexpected(Kind::Accept)
    );
}

#[test]
fn framing_errors_end_the_connection_and_values_do_not() {
    assert!(matches!(
        Outcome::from(Error::BadEyecatcher),
        Outcome::Abort(_)
    ));
    assert!(matches!(
        Outcome::from(Error::BadLength { length: 3 }),
        Outcome::Abort(_)
    ));
    assert!(matches!(Outcome::TIMED_OUT, Outcome::Abort(_)));
    let version = Outcome::from(Error::BadVersion(0));
    assert_eq!(version, Outcome::Decline(DeclineReason::VERSMISMAT));
}

#[test]
fn the_client_notices_a_link_group_that_is_gone() {
    assert_eq!(GroupChoice::decide(true, true), GroupChoice::Create);
    assert_eq!(GroupChoice::decide(true, false), GroupChoice::Create);
    assert_eq!(GroupChoice::decide(false, true), GroupChoice::Join);
    assert_eq!(GroupChoice::decide(false, false), GroupChoice::OutOfSync);
}

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

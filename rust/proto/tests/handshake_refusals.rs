// SPDX-License-Identifier: GPL-2.0

//! Answers that change the terms, come out of turn or cannot be read.

mod handshake_support;

use handshake_support::{eid, end, propose, select, wire, Host};
use smc_proto::handshake::{decline, Fault, Outcome};
use smc_proto::ids::{BufSize, LinkUid, PeerId, Release, Version};
use smc_proto::reason::DeclineReason;
use smc_proto::wire::clc::{Accept, Endpoint, IsmEndpoint, Kind, Message};
use smc_proto::wire::Error;

/// An end in shared memory, which nobody here offers.
fn ism() -> Endpoint {
    Endpoint::Ism(IsmEndpoint {
        gid: 1,
        token: 2,
        index: 0,
        buf_size: BufSize::MIN,
        link_uid: LinkUid(3),
        chid: 0,
        gid_ext: 0,
    })
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
    let check = |expected, change: &dyn Fn(&mut Accept)| {
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
        accept.v2.as_mut().unwrap().fce = None;
    });
    check(DeclineReason::CNFERR, &|accept| {
        accept.endpoint = Endpoint::Rdma(end(2, None));
    });
    check(DeclineReason::MODEUNSUPP, &|accept| {
        accept.endpoint = ism();
    });
    check(DeclineReason::MODEUNSUPP, &|accept| {
        accept.version = Version::V1;
        accept.v2 = None;
        accept.endpoint = ism();
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
fn features_of_the_server_that_were_not_offered_are_left_out_of_the_confirm() {
    let (client, server) = (Host::new(1), Host::new(2));
    let (waiting, proposal) = propose(&client).unwrap();
    let selected = select(&server, &proposal).unwrap();
    let (_, mut accept) = selected.accept(server.end(), true);
    let ext = accept.v2.as_mut().unwrap().fce.as_mut().unwrap();
    // What Linux 7.3 sends, whatever was offered to it.
    ext.v21.as_mut().unwrap().features = 1;
    let accepted = waiting.handle(&Message::Accept(accept)).unwrap();
    let confirm = accepted.confirm(client.end(), true);
    let ext = confirm.v2.unwrap().fce.unwrap();
    assert_eq!(ext.v21.unwrap().features, 0);
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

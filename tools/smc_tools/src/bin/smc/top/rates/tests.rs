// SPDX-License-Identifier: GPL-2.0

//! Rates worked out by hand.

use std::time::{Duration, Instant};

use smc_netlink::diag::{Connection, LinkInfo, State};
use smc_netlink::{FallbackSide, GroupV2, Link, Reason, Transport};

use super::*;
use crate::top::sample::cursors;

/// Rates as a host may have them, for the tests of what shows them.
pub(in crate::top) fn example() -> Rates {
    let row = |local: u16, peer: u16, mode| ConnectionRate {
        local: format!("10.9.0.2:{local}"),
        peer: format!("10.9.0.1:{peer}"),
        mode,
        device: String::new(),
        sent: 0,
        received: 0,
        unread: 0,
        unsent: 0,
    };
    let over = |local, peer| ConnectionRate {
        device: "rxe1".to_owned(),
        ..row(local, peer, Mode::Rdma)
    };
    let reason = |side, code, count| Fallback {
        side,
        reason: Reason(code),
        count,
    };
    Rates {
        seconds: 1.0,
        sent: 204_800,
        received: 1500,
        smcr: 2,
        smcd: 0,
        tcp: 1,
        fallbacks: Some(Fallbacks {
            server: 1,
            client: 3,
            reasons: vec![
                reason(FallbackSide::Server, 0x0302_0000, 1),
                reason(FallbackSide::Client, 0x0301_0000, 3),
            ],
        }),
        connections: vec![
            ConnectionRate {
                sent: 204_800,
                unsent: 65_536,
                ..over(51404, 7400)
            },
            ConnectionRate {
                received: 1500,
                unread: 300,
                ..over(51406, 7401)
            },
            row(51500, 7002, Mode::Tcp),
        ],
        links: vec![
            LinkRate {
                groups: vec![0x300, 0x400],
                link: 1,
                device: "rxe1".to_owned(),
                port: 1,
                peer: "nodea".to_owned(),
                connections: 2,
                sent: 204_800,
                received: 1500,
            },
            LinkRate {
                link: 1,
                device: "rxe2".to_owned(),
                port: 1,
                peer: "10.9.1.1".to_owned(),
                ..LinkRate::default()
            },
        ],
    }
}

const GID: &str = "0000:0000:0000:0000:0000:ffff:0a09:0002";
const PEER_GID: &str = "0000:0000:0000:0000:0000:ffff:0a09:0001";

/// A socket that has sent and received so much in rings of 1000 bytes.
fn socket(cookie: u64, sent: u32, received: u32) -> Socket {
    let at = |bytes: u32| Cursor {
        wrap: u16::try_from(bytes / 1000).expect("few"),
        count: bytes % 1000,
    };
    Socket {
        state: State(1),
        mode: Mode::Rdma,
        local: "10.9.0.2:51404".parse().expect("an address"),
        peer: "10.9.0.1:7400".parse().expect("an address"),
        interface: 0,
        cookie,
        uid: 0,
        inode: 0,
        shutdown: 0,
        fallback: Reason(0),
        peer_diagnosis: Reason(0),
        connection: Some(Connection {
            sndbuf_size: 1000,
            rmbe_size: 1000,
            tx_sent: at(sent),
            tx_prep: at(sent + 7),
            rx_prod: at(received),
            tx_cons: at(received),
            ..Connection::default()
        }),
        link: Some(LinkInfo {
            link_id: 1,
            device: "rxe1".to_owned(),
            port: 1,
            gid: GID.to_owned(),
            peer_gid: PEER_GID.to_owned(),
            server: false,
        }),
        shared_memory: None,
    }
}

fn look(at: Instant, sockets: Vec<Socket>) -> Look {
    Look {
        at,
        cursors: cursors(&sockets),
        sockets,
        groups: Vec::new(),
        stats: None,
        fallbacks: None,
    }
}

fn group(id: u32, host: &str) -> Group {
    let link = |id, device: &str| Link {
        id,
        device: device.to_owned(),
        port: 1,
        gid: GID.to_owned(),
        peer_gid: PEER_GID.to_owned(),
        connections: 3,
        ..Link::default()
    };
    Group {
        id,
        v2: Some(GroupV2 {
            peer_host: host.to_owned(),
            ..GroupV2::default()
        }),
        links: vec![link(1, "rxe1"), link(2, "rxe9")],
        ..Group::default()
    }
}

#[test]
fn rings_go_round() {
    let at = |wrap, count| Cursor { wrap, count };
    assert_eq!(between(at(0, 10), at(0, 30), 100), 20);
    assert_eq!(between(at(0, 90), at(1, 10), 100), 20);
    assert_eq!(between(at(65535, 90), at(0, 10), 100), 20);
    assert_eq!(between(at(2, 0), at(5, 50), 100), 350);
    // A look in the middle of a change.
    assert_eq!(between(at(0, 30), at(0, 10), 100), 0);
}

#[test]
fn the_busiest_come_first_and_are_added_up() {
    let start = Instant::now();
    let last = look(start, vec![socket(1, 0, 900), socket(2, 500, 0)]);
    let now = look(
        start + Duration::from_secs(2),
        // The third is new: it has no rate yet.
        vec![socket(1, 100, 1300), socket(2, 4500, 0), socket(3, 800, 0)],
    );
    let rates = Rates::between(&last, &now);
    let seen: Vec<(u64, u64)> = rates
        .connections
        .iter()
        .map(|row| (row.sent, row.received))
        .collect();
    assert_eq!(seen, [(2000, 0), (50, 200), (0, 0)]);
    assert_eq!((rates.sent, rates.received), (2050, 200));
    assert_eq!(rates.connections[0].unsent, 7);
    assert_eq!((rates.smcr, rates.smcd, rates.tcp), (3, 0, 0));
    assert_eq!(rates.fallbacks, None);
    // No groups are listed: the link is known from its connections.
    let [link] = rates.links.as_slice() else {
        panic!("{:?}", rates.links)
    };
    assert!(link.groups.is_empty());
    assert_eq!((link.peer.as_str(), link.connections), ("10.9.0.1", 3));
    assert_eq!((link.sent, link.received), (2050, 200));
}

#[test]
fn a_link_has_the_sum_of_its_connections() {
    let start = Instant::now();
    let last = look(start, vec![socket(1, 0, 0), socket(2, 0, 0)]);
    let mut now = look(
        start + Duration::from_secs(1),
        vec![socket(1, 100, 20), socket(2, 200, 30)],
    );
    now.groups = vec![group(0x300, "nodea")];
    let links = Rates::between(&last, &now).links;
    assert_eq!(links.len(), 2);
    let first = LinkRate {
        groups: vec![0x300],
        link: 1,
        device: "rxe1".to_owned(),
        port: 1,
        peer: "nodea".to_owned(),
        connections: 3,
        sent: 300,
        received: 50,
    };
    assert_eq!(links[0], first);
    assert_eq!((links[1].device.as_str(), links[1].sent), ("rxe9", 0));
    // Two groups between the same devices cannot be told apart in the list of sockets.
    now.groups.push(group(0x400, ""));
    let links = Rates::between(&last, &now).links;
    assert_eq!(links.len(), 2);
    assert_eq!(links[0].groups, [0x300, 0x400]);
    assert_eq!((links[0].connections, links[0].sent), (6, 300));
}

#[test]
fn counters_count_connections_that_are_over_too() {
    let start = Instant::now();
    let stats = |sent, received| {
        let mut smcr = Transport::default();
        smcr.tx.bytes = sent;
        smcr.rx.bytes = received;
        Some(Stats {
            smcr,
            ..Stats::default()
        })
    };
    let mut last = look(start, vec![socket(1, 0, 0)]);
    let mut now = look(start + Duration::from_secs(4), Vec::new());
    (last.stats, now.stats) = (stats(1000, 8000), stats(5000, 8000));
    let rates = Rates::between(&last, &now);
    assert_eq!((rates.sent, rates.received), (1000, 0));
}

#[test]
fn fallbacks_are_those_of_the_interval() {
    let reason = |side, code, count| Fallback {
        side,
        reason: Reason(code),
        count,
    };
    let client = FallbackSide::Client;
    let last = Fallbacks {
        server: 5,
        client: 7,
        reasons: vec![reason(client, 0x0301_0000, 7)],
    };
    let now = Fallbacks {
        server: 6,
        client: 7,
        reasons: vec![
            reason(client, 0x0301_0000, 7),
            reason(FallbackSide::Server, 0x0301_0000, 1),
        ],
    };
    let new = fallbacks(&last, &now);
    assert_eq!((new.server, new.client), (1, 0));
    assert_eq!(new.reasons, [reason(FallbackSide::Server, 0x0301_0000, 1)]);
}

#[test]
fn json_has_the_keys_that_scripts_read() {
    let json = serde_json::to_value(example()).expect("it is plain data");
    let row = &json["connections"][0];
    assert_eq!(row["local"], "10.9.0.2:51404");
    assert_eq!(row["peer"], "10.9.0.1:7400");
    assert_eq!(row["mode"], "SMCR");
    assert_eq!(row["sent"], 204_800);
    assert_eq!(row["unsent"], 65_536);
    assert_eq!(json["links"][0]["groups"][0], 0x300);
    assert_eq!(json["fallbacks"]["client"], 3);
    assert_eq!(json["sent"], 204_800);
}

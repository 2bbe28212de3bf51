// SPDX-License-Identifier: GPL-2.0

//! Two ends of one link and the messages between them.

#![allow(dead_code, reason = "each test program uses a part of it")]

use smc_proto::ids::{Gid, LinkId, LinkUid, Mac, PathMtu, Psn, Qpn, Rkey, Version, VirtAddr};
use smc_proto::lgr::{Role, Rtoken, RtokenTable};
use smc_proto::llc_flow::{Event, LinkEnd, LinkFlow, LinkParams, Step, TEST_LINK_MS};
use smc_proto::wire::llc::{
    AddLink, AddLinkCont, AddLinkExt, Body, ConfirmLink, ConfirmRkey, DeleteLink, DeleteLinkReason,
    DeleteRkey, List, Message, TestLink, MAX_LEN,
};

pub(crate) type Table = RtokenTable<Vec<Rtoken>>;

pub(crate) const START: u64 = 1_000_000;

/// Two ends whose first contact is over.
pub(crate) struct Pair {
    pub(crate) server: LinkFlow,
    pub(crate) client: LinkFlow,
    pub(crate) server_rmbs: Table,
    pub(crate) client_rmbs: Table,
}

pub(crate) const VERSIONS: [Version; 2] = [Version::V1, Version::V2];

pub(crate) fn table() -> Table {
    RtokenTable::new(vec![Rtoken::default(); 255])
}

pub(crate) fn link_end(number: u8) -> LinkEnd {
    LinkEnd {
        mac: Mac([number; 6]),
        gid: Gid::from_ipv4([10, 9, 0, number]),
        qpn: Qpn::new(u32::from(number) + 16).unwrap(),
    }
}

pub(crate) fn params(role: Role, version: Version, max_links: u8) -> LinkParams {
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

pub(crate) fn rmb(number: u32) -> Rtoken {
    Rtoken {
        rkey: Rkey(number),
        addr: VirtAddr(u64::from(number) << 20),
    }
}

/// The bytes of a message, as the queue pair carries them.
pub(crate) fn bytes(message: &Message<'_>) -> Vec<u8> {
    let mut buf = vec![0; MAX_LEN];
    let len = message.emit(&mut buf).unwrap();
    buf.truncate(len);
    buf
}

pub(crate) fn pass(
    flow: &mut LinkFlow,
    rmbs: &mut Table,
    message: &[u8],
    now: u64,
) -> (Option<Vec<u8>>, Option<Event>) {
    let message = Message::parse(message).unwrap();
    owned(flow.handle(&message, rmbs, now).unwrap())
}

pub(crate) fn owned(step: Step<'_>) -> (Option<Vec<u8>>, Option<Event>) {
    (step.send.as_ref().map(bytes), step.event)
}

pub(crate) fn first_contact(version: Version, max_links: u8) -> (Pair, Vec<&'static str>) {
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

pub(crate) fn name(message: &[u8]) -> &'static str {
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

/// One message of every type, as a stray.
pub(crate) fn strays(version: Version, response: bool) -> Vec<Vec<u8>> {
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
        ext: (version == Version::V2).then_some(AddLinkExt {
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

pub(crate) fn server_after_confirm(version: Version) -> (LinkFlow, Vec<u8>) {
    let (mut server, first) = LinkFlow::server(params(Role::Server, version, 2), LinkId(1), START);
    let mut client = LinkFlow::client(params(Role::Client, version, 2), START);
    let (answer, _) = pass(&mut client, &mut table(), &bytes(&first), START);
    let (add, event) = pass(&mut server, &mut table(), &answer.unwrap(), START);
    assert_eq!(event, None);
    (server, add.unwrap())
}

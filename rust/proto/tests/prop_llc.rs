// SPDX-License-Identifier: GPL-2.0

//! Properties of LLC messages over generated values: what is written is read back
//! unchanged.

use proptest::array::{uniform16, uniform6};
use proptest::collection::vec;
use proptest::prelude::*;
use smc_proto::ids::*;
use smc_proto::wire::llc::{self, *};

prop_compose! {
    fn qpn()(number in 1_u32..0x00ff_ffff) -> Qpn {
        Qpn::new(number).unwrap()
    }
}

prop_compose! {
    fn gid()(bytes in uniform16(any::<u8>())) -> Gid {
        Gid(bytes)
    }
}

prop_compose! {
    fn mac()(bytes in uniform6(any::<u8>())) -> Mac {
        Mac(bytes)
    }
}

fn mtu() -> impl Strategy<Value = Option<PathMtu>> {
    (0_u8..6).prop_map(PathMtu::from_code)
}

/// Lists that messages of a test case borrow from.
#[derive(Clone, Debug)]
struct Lists {
    mappings: Vec<RkeyMapping>,
    rkeys: Vec<Rkey>,
    gids: Vec<Gid>,
    links: Vec<LinkToken>,
}

prop_compose! {
    fn token()((rkey, addr) in any::<(u32, u64)>()) -> Token {
        Token { rkey: Rkey(rkey), addr: VirtAddr(addr) }
    }
}

prop_compose! {
    fn lists()(
        mappings in vec(any::<(u32, u32, u64)>(), 0..=255),
        rkeys in vec(any::<u32>(), 0..=255),
        gids in vec(gid(), 0..=255),
        links in vec((any::<u8>(), token()), 0..=8),
    ) -> Lists {
        let mapping = |&(known, new, addr): &(u32, u32, u64)| RkeyMapping {
            known: Rkey(known),
            new: Rkey(new),
            addr: VirtAddr(addr),
        };
        let link = |&(link, token): &(u8, Token)| LinkToken { link: LinkId(link), token };
        Lists {
            mappings: mappings.iter().map(mapping).collect(),
            rkeys: rkeys.iter().copied().map(Rkey).collect(),
            gids,
            links: links.iter().map(link).collect(),
        }
    }
}

/// Numbers from which the fields of all LLC messages are taken.
type Numbers = ((u8, u8, u8, u32, u32), (bool, bool, bool), [u8; 16]);

fn link_bodies<'a>(
    lists: &'a Lists,
    (mac, gid, qpn, mtu): (Mac, Gid, Qpn, Option<PathMtu>),
    ((a, b, c, number, psn), (x, y, z), user_data): Numbers,
) -> Vec<(Version, llc::Body<'a>)> {
    let confirm_link = ConfirmLink {
        mac,
        gid,
        qpn,
        link: LinkId(a),
        link_uid: LinkUid(number),
        max_links: b,
        max_conns: 0,
        no_rmbe_eyecatcher: x,
    };
    let add_link = AddLink {
        mac,
        gid,
        qpn: Some(qpn).filter(|_| y),
        link: LinkId(a),
        mtu,
        psn: Psn::new(psn),
        reject: Some(RejectReason::BAD_MTU).filter(|_| z),
        ext: None,
    };
    let ext = AddLinkExt {
        v2_direct: x,
        client_target_gid: Gid(user_data),
        rkeys: List::new(&lists.mappings),
    };
    let delete_link = DeleteLink {
        link: LinkId(a),
        all: x,
        orderly: y,
        reason: DeleteLinkReason(number),
    };
    vec![
        (Version::V1, Body::ConfirmLink(confirm_link)),
        (
            Version::V2,
            Body::ConfirmLink(ConfirmLink {
                max_conns: c,
                ..confirm_link
            }),
        ),
        (Version::V1, Body::AddLink(add_link)),
        (Version::V2, Body::AddLink(add_link)),
        (
            Version::V2,
            Body::AddLink(AddLink {
                reject: None,
                ext: Some(ext),
                ..add_link
            }),
        ),
        (Version::V1, Body::DeleteLink(delete_link)),
        (Version::V2, Body::DeleteLink(delete_link)),
        (Version::V1, Body::TestLink(TestLink { user_data })),
        (Version::V2, Body::TestLink(TestLink { user_data })),
        (
            Version::V2,
            Body::RequestAddLink(RequestAddLink {
                gids: List::new(&lists.gids),
            }),
        ),
    ]
}

fn rkey_bodies<'a>(
    lists: &'a Lists,
    own: Token,
    ((a, b, ..), (x, ..), _): Numbers,
) -> Vec<(Version, llc::Body<'a>)> {
    let answer = match a % 3 {
        0 => RkeyAnswer::Positive,
        1 => RkeyAnswer::Negative,
        _ => RkeyAnswer::Retry,
    };
    let confirm = ConfirmRkey {
        answer,
        ..ConfirmRkey::new(own, &lists.links).unwrap()
    };
    let cont = ConfirmRkeyCont {
        answer,
        ..ConfirmRkeyCont::new(&lists.links).unwrap()
    };
    let delete = |count: usize| DeleteRkey {
        rkeys: List::new(&lists.rkeys[..lists.rkeys.len().min(count)]),
        negative: x,
        errors: b,
    };
    let add_cont = AddLinkCont::new(LinkId(a), &lists.mappings).unwrap();
    vec![
        (Version::V1, Body::ConfirmRkey(confirm)),
        (Version::V2, Body::ConfirmRkey(confirm)),
        (Version::V1, Body::ConfirmRkeyCont(cont)),
        (Version::V1, Body::DeleteRkey(delete(8))),
        (Version::V2, Body::DeleteRkey(delete(255))),
        (Version::V1, Body::AddLinkCont(add_cont)),
    ]
}

proptest! {
    #[test]
    fn llc_round_trip(
        lists in lists(),
        ids in (mac(), gid(), qpn(), mtu()),
        own in token(),
        numbers: Numbers,
        response: bool,
    ) {
        let mut bodies = link_bodies(&lists, ids, numbers);
        bodies.extend(rkey_bodies(&lists, own, numbers));
        let mut buf = [0; llc::MAX_LEN];
        for (version, body) in bodies {
            let message = llc::Message { version, response, body };
            let len = message.emit(&mut buf).expect("every message fits");
            prop_assert!(len >= llc::LEN && (version == Version::V2 || len == llc::LEN));
            prop_assert_eq!(llc::Message::parse(&buf[..len]), Ok(message));
            prop_assert!(llc::Message::parse(&buf[..llc::LEN - 1]).is_err());
        }
    }
}

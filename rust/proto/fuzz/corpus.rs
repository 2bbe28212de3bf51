// SPDX-License-Identifier: GPL-2.0

//! Good inputs to begin with: one of every message and form.

use smc_proto::ids::*;
use smc_proto::reason::DeclineReason;
use smc_proto::wire::cdc::{CdcMessage, ConnFlags, ProdFlags, RawCursor};
use smc_proto::wire::clc::{self, *};
use smc_proto::wire::llc::{self, *};
use smc_proto::wire::tcp_opt;

fn gids() -> GidList {
    let mut gids = GidList::EMPTY;
    gids.push(Gid::from_ipv4([10, 9, 0, 1])).unwrap();
    gids.push(Gid::from_ipv4([10, 9, 0, 2])).unwrap();
    gids
}

fn proposals() -> Vec<clc::Message> {
    let mut v1 = V1Offer {
        subnet: Ipv4Prefix::new([10, 9, 0, 0], 24),
        ..V1Offer::EMPTY
    };
    v1.v6
        .push(Ipv6Prefix::new([0xfd; 16], 64).unwrap())
        .unwrap();
    let mut v2 = V2Offer {
        release: Release::V2_1,
        max_conns: 255,
        max_links: 2,
        ..V2Offer::EMPTY
    };
    v2.eids.push(Eid([b'A'; 32])).unwrap();
    v2.eids.push(Eid([b'B'; 32])).unwrap();
    let mut with_ism = v2;
    with_ism.seid = Some(Eid([b'S'; 32]));
    with_ism.ism.push(IsmId { gid: 1, chid: 2 }).unwrap();
    let everything = Proposal {
        version: 2,
        typev1: PathType::Both,
        typev2: PathType::Both,
        peer_id: PeerId([7; 8]),
        v1: Some(v1),
        smcd_v1: Some((3, 4)),
        v2: Some(with_ism),
    };
    let only_v1 = Proposal {
        typev1: PathType::Rdma,
        typev2: PathType::None,
        smcd_v1: None,
        v2: None,
        ..everything
    };
    let only_v2 = Proposal {
        typev1: PathType::None,
        typev2: PathType::Rdma,
        v1: None,
        smcd_v1: None,
        v2: Some(v2),
        ..everything
    };
    [everything, only_v1, only_v2]
        .map(clc::Message::Proposal)
        .to_vec()
}

fn endpoints() -> [Endpoint; 2] {
    let rdma = RdmaEndpoint {
        peer_id: PeerId([7; 8]),
        gid: Gid::from_ipv4([10, 9, 0, 1]),
        mac: Mac([2; 6]),
        qpn: Qpn::new(0x11).unwrap(),
        rkey: Rkey(0x1234),
        rmbe_index: RmbeIndex::FIRST,
        token: AlertToken(0x5678),
        buf_size: BufSize::MIN,
        mtu: Some(PathMtu::Mtu1024),
        rmb_addr: VirtAddr(0x9abc),
        psn: Psn::new(0xdef),
    };
    let ism = IsmEndpoint {
        gid: 1,
        token: 2,
        index: 0,
        buf_size: BufSize::MIN,
        link_uid: LinkUid(3),
        chid: 0,
        gid_ext: 0,
    };
    [Endpoint::Rdma(rdma), Endpoint::Ism(ism)]
}

fn answers() -> Vec<clc::Message> {
    let mut messages = Vec::new();
    for endpoint in endpoints() {
        for fce_release in [None, Some(Release::V2_0), Some(Release::V2_1)] {
            let fce = fce_release.map(|release| FirstContactExt {
                v2_direct: true,
                os_type: OS_TYPE_LINUX,
                release,
                host: HostName::new(b"host"),
                v21: release.has_v2_1_fields().then_some(V21Limits {
                    max_conns: 16,
                    max_links: 1,
                    features: 0,
                }),
            });
            let has_gids = fce.is_some() && matches!(endpoint, Endpoint::Rdma(_));
            let accept = Accept {
                version: Version::V2,
                first_contact: fce.is_some(),
                endpoint,
                v2: Some(V2Fields {
                    eid: Eid([b'A'; 32]),
                    fce,
                    gids: GidList::EMPTY,
                }),
            };
            messages.push(clc::Message::Accept(accept));
            messages.push(clc::Message::Confirm(Confirm {
                version: Version::V2,
                first_contact: fce.is_some(),
                endpoint,
                v2: accept.v2.map(|v2| V2Fields {
                    gids: if has_gids { gids() } else { GidList::EMPTY },
                    ..v2
                }),
            }));
        }
        messages.push(clc::Message::Accept(Accept {
            version: Version::V1,
            first_contact: true,
            endpoint,
            v2: None,
        }));
    }
    messages
}

fn declines() -> [clc::Message; 2] {
    [Version::V1, Version::V2].map(|version| {
        clc::Message::Decline(Decline {
            version,
            reason: DeclineReason::SYNCERR,
            peer_id: PeerId([7; 8]),
            out_of_sync: true,
            os_type: OS_TYPE_LINUX,
        })
    })
}

/// Every CLC message.
pub(crate) fn clc() -> Vec<Vec<u8>> {
    let mut messages = proposals();
    messages.extend(answers());
    messages.extend(declines());
    let emit = |message: &clc::Message| {
        let mut buf = vec![0; clc::MAX_LEN];
        let len = message.emit(&mut buf).unwrap();
        buf.truncate(len);
        buf
    };
    messages.iter().map(emit).collect()
}

/// Every LLC message in every version it has.
pub(crate) fn llc() -> Vec<Vec<u8>> {
    let token = Token {
        rkey: Rkey(1),
        addr: VirtAddr(2),
    };
    let links = [LinkToken {
        link: LinkId(2),
        token,
    }; 3];
    let mappings = [RkeyMapping::default(); 3];
    let add_link = AddLink {
        mac: Mac([2; 6]),
        gid: Gid::from_ipv4([10, 9, 0, 1]),
        qpn: Qpn::new(0x11),
        link: LinkId(2),
        mtu: Some(PathMtu::Mtu4096),
        psn: Psn::new(1),
        reject: None,
        ext: None,
    };
    let ext = AddLinkExt {
        v2_direct: true,
        client_target_gid: Gid::ZERO,
        rkeys: List::new(&mappings),
    };
    let bodies = [
        Body::ConfirmLink(ConfirmLink {
            mac: Mac([2; 6]),
            gid: Gid::from_ipv4([10, 9, 0, 1]),
            qpn: Qpn::new(0x11).unwrap(),
            link: LinkId(1),
            link_uid: LinkUid(0x101),
            max_links: 2,
            max_conns: 255,
            no_rmbe_eyecatcher: true,
        }),
        Body::AddLink(add_link),
        Body::AddLink(AddLink {
            reject: Some(RejectReason::NO_ALTERNATE_PATH),
            ..add_link
        }),
        Body::AddLink(AddLink {
            ext: Some(ext),
            ..add_link
        }),
        Body::AddLinkCont(AddLinkCont::new(LinkId(2), &mappings).unwrap()),
        Body::DeleteLink(DeleteLink {
            link: LinkId(0),
            all: true,
            orderly: true,
            reason: DeleteLinkReason::OPERATOR,
        }),
        Body::RequestAddLink(RequestAddLink {
            gids: List::new(&[Gid::ZERO; 2]),
        }),
        Body::ConfirmRkey(ConfirmRkey::new(token, &links).unwrap()),
        Body::ConfirmRkeyCont(ConfirmRkeyCont::new(&links).unwrap()),
        Body::DeleteRkey(DeleteRkey {
            rkeys: List::new(&[Rkey(1), Rkey(2)]),
            negative: true,
            errors: 0x40,
        }),
        Body::TestLink(TestLink { user_data: [5; 16] }),
    ];
    let mut inputs = Vec::new();
    for version in [Version::V1, Version::V2] {
        for body in bodies {
            let message = llc::Message {
                version,
                response: false,
                body,
            };
            let mut buf = vec![0; llc::MAX_LEN];
            // Not every message exists in both versions.
            if let Ok(len) = message.emit(&mut buf) {
                buf.truncate(len);
                inputs.push(buf);
            }
        }
    }
    assert_eq!(inputs.len(), 18);
    inputs
}

/// CDC messages.
pub(crate) fn cdc() -> Vec<Vec<u8>> {
    let message = CdcMessage {
        seq: 1,
        token: AlertToken(0x5678),
        prod: RawCursor {
            wrap: 0,
            count: 100,
        },
        cons: RawCursor { wrap: 1, count: 5 },
        prod_flags: ProdFlags::WRITER_BLOCKED,
        conn_flags: ConnFlags::NONE,
    };
    vec![message.emit().to_vec()]
}

/// Options of a SYN, with the SMC option among them.
pub(crate) fn tcp_option() -> Vec<Vec<u8>> {
    let mut full = vec![
        2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7,
    ];
    full.extend_from_slice(&tcp_opt::OPTION);
    full.extend_from_slice(&[254, 4, 0xf9, 0x89]);
    vec![full, tcp_opt::OPTION.to_vec()]
}

/// Enterprise IDs as users and netlink write them.
pub(crate) fn eid() -> Vec<Vec<u8>> {
    let texts: [&[u8]; 3] = [b"A", b"RACK-1.BLUE", b"0123456789ABCDEF0123456789ABCDEF\0"];
    texts.map(<[u8]>::to_vec).to_vec()
}

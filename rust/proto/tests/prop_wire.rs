// SPDX-License-Identifier: GPL-2.0

//! Properties of the wire formats over generated values: what is written is read
//! back unchanged, fills exactly the length it says, and no input makes a parser
//! panic or read beyond its end.

use proptest::array::{uniform16, uniform32, uniform4, uniform6, uniform8};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use smc_proto::ids::*;
use smc_proto::list::ArrayList;
use smc_proto::reason::DeclineReason;
use smc_proto::wire::cdc::{CdcMessage, ConnFlags, ProdFlags, RawCursor};
use smc_proto::wire::clc::{self, *};

fn fill<T: Copy + PartialEq, const N: usize>(
    mut list: ArrayList<T, N>,
    items: &[T],
) -> ArrayList<T, N> {
    list.extend_from_slice(items)
        .expect("the list is long enough");
    list
}

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

prop_compose! {
    fn eid()(bytes in uniform32(any::<u8>())) -> Eid {
        Eid(bytes)
    }
}

prop_compose! {
    fn peer_id()(bytes in uniform8(any::<u8>())) -> PeerId {
        PeerId(bytes)
    }
}

prop_compose! {
    fn release()(number in 0_u8..16) -> Release {
        Release::new(number).unwrap()
    }
}

prop_compose! {
    fn buf_size()(code in 0_u8..16) -> BufSize {
        BufSize::from_code(code).unwrap()
    }
}

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V1), Just(Version::V2)]
}

fn mtu() -> impl Strategy<Value = Option<PathMtu>> {
    (0_u8..6).prop_map(PathMtu::from_code)
}

prop_compose! {
    fn v1_offer()(
        gid in gid(),
        mac in mac(),
        subnet in option::of((uniform4(any::<u8>()), 1_u8..=32)),
        v6 in vec((uniform16(any::<u8>()), 1_u8..=128), 0..=8),
    ) -> V1Offer {
        let v6: Vec<_> = v6
            .iter()
            .map(|&(addr, len)| Ipv6Prefix::new(addr, len).unwrap())
            .collect();
        V1Offer {
            gid,
            mac,
            subnet: subnet.map(|(addr, len)| Ipv4Prefix::new(addr, len).unwrap()),
            v6: fill(Ipv6PrefixList::EMPTY, &v6),
        }
    }
}

prop_compose! {
    fn v2_offer(has_ism: bool)(
        release in release(),
        eids in vec(eid(), 0..=8),
        roce_gid in gid(),
        max_conns: u8,
        max_links: u8,
        features: u16,
        seid in option::of(eid()),
        ism in vec((any::<u64>(), any::<u16>()), 0..=8),
    ) -> V2Offer {
        let ism: Vec<_> = ism.iter().map(|&(gid, chid)| IsmId { gid, chid }).collect();
        V2Offer {
            release,
            eids: fill(EidList::EMPTY, &eids),
            roce_gid,
            max_conns,
            max_links,
            features,
            seid: seid.filter(|_| has_ism),
            ism: if has_ism { fill(IsmList::EMPTY, &ism) } else { IsmList::EMPTY },
        }
    }
}

fn path_type() -> impl Strategy<Value = PathType> {
    any::<(bool, bool)>().prop_map(|(rdma, ism)| PathType::of(rdma, ism))
}

fn proposal() -> impl Strategy<Value = clc::Message> {
    (2_u8..16, path_type(), path_type()).prop_flat_map(|(version, typev1, typev2)| {
        let v2 = option::weighted(0.9, v2_offer(typev2.has_ism()));
        let rest = (peer_id(), v1_offer(), any::<(u64, u16)>(), v2);
        rest.prop_map(move |(peer_id, v1, smcd_v1, v2)| {
            clc::Message::Proposal(Proposal {
                version,
                typev1,
                typev2,
                peer_id,
                v1: Some(v1).filter(|_| typev1.is_offered()),
                smcd_v1: Some(smcd_v1).filter(|_| typev1.has_ism()),
                v2: v2.filter(|_| typev2.is_offered()),
            })
        })
    })
}

prop_compose! {
    fn rdma_endpoint()(
        (peer_id, gid, mac, qpn) in (peer_id(), gid(), mac(), qpn()),
        index in 1_u8..=255,
        (rkey, token, rmb_addr, psn) in any::<(u32, u32, u64, u32)>(),
        buf_size in buf_size(),
        mtu in mtu(),
    ) -> RdmaEndpoint {
        RdmaEndpoint {
            peer_id,
            gid,
            mac,
            qpn,
            rkey: Rkey(rkey),
            rmbe_index: RmbeIndex::new(index).unwrap(),
            token: AlertToken(token),
            buf_size,
            mtu,
            rmb_addr: VirtAddr(rmb_addr),
            psn: Psn::new(psn),
        }
    }
}

prop_compose! {
    fn ism_endpoint(version: Version)(
        (gid, token, index, uid) in any::<(u64, u64, u8, u32)>(),
        (chid, gid_ext) in any::<(u16, u64)>(),
        buf_size in buf_size(),
    ) -> IsmEndpoint {
        let v2 = version == Version::V2;
        IsmEndpoint {
            gid,
            token,
            index,
            buf_size,
            link_uid: LinkUid(uid),
            chid: if v2 { chid } else { 0 },
            gid_ext: if v2 { gid_ext } else { 0 },
        }
    }
}

fn endpoint(version: Version) -> impl Strategy<Value = Endpoint> {
    prop_oneof![
        rdma_endpoint().prop_map(Endpoint::Rdma),
        ism_endpoint(version).prop_map(Endpoint::Ism),
    ]
}

prop_compose! {
    fn first_contact_ext()(
        v2_direct: bool,
        os_type in 0_u8..16,
        release in release(),
        host in uniform32(any::<u8>()),
        (max_conns, max_links, features) in any::<(u8, u8, u16)>(),
    ) -> FirstContactExt {
        let limits = V21Limits { max_conns, max_links, features };
        FirstContactExt {
            v2_direct,
            os_type,
            release,
            host: HostName(host),
            v21: release.has_v2_1_fields().then_some(limits),
        }
    }
}

fn accept_or_confirm() -> impl Strategy<Value = clc::Message> {
    (version(), any::<bool>(), any::<bool>()).prop_flat_map(|(version, first_contact, confirm)| {
        let rest = (
            endpoint(version),
            eid(),
            first_contact_ext(),
            vec(gid(), 0..=8),
        );
        rest.prop_map(move |(endpoint, eid, fce, gids)| {
            let has_gids = confirm && first_contact && matches!(endpoint, Endpoint::Rdma(_));
            let v2 = (version == Version::V2).then_some(V2Fields {
                eid,
                fce: first_contact.then_some(fce),
                gids: fill(GidList::EMPTY, if has_gids { &gids } else { &[] }),
            });
            if confirm {
                clc::Message::Confirm(Confirm {
                    version,
                    first_contact,
                    endpoint,
                    v2,
                })
            } else {
                clc::Message::Accept(Accept {
                    version,
                    first_contact,
                    endpoint,
                    v2,
                })
            }
        })
    })
}

prop_compose! {
    fn decline()(
        version in version(),
        reason: u32,
        peer_id in peer_id(),
        out_of_sync: bool,
        os_type in 0_u8..16,
    ) -> clc::Message {
        clc::Message::Decline(Decline {
            version,
            reason: DeclineReason(reason),
            peer_id,
            out_of_sync,
            os_type,
        })
    }
}

fn clc_message() -> impl Strategy<Value = clc::Message> {
    prop_oneof![proposal(), accept_or_confirm(), decline()]
}

proptest! {
    #[test]
    fn clc_round_trip(message in clc_message(), garbage in vec(any::<u8>(), 0..40)) {
        let mut buf = [0; clc::MAX_LEN];
        let len = message.emit(&mut buf).expect("every message fits");
        let header = Header::parse(buf.first_chunk().unwrap()).unwrap();
        prop_assert_eq!(header.length, len);
        prop_assert_eq!(header.remaining(), len - clc::HEADER_LEN);
        let mut stream = buf[..len].to_vec();
        stream.extend_from_slice(&garbage);
        prop_assert_eq!(clc::Message::parse(&stream), Ok(message));
    }

    #[test]
    fn clc_cut_short(message in clc_message(), at in any::<prop::sample::Index>()) {
        let mut buf = [0; clc::MAX_LEN];
        let len = message.emit(&mut buf).expect("every message fits");
        let cut = at.index(len);
        prop_assert!(clc::Message::parse(&buf[..cut]).is_err());
        prop_assert!(message.emit(&mut vec![0; cut]).is_err());
    }

    #[test]
    fn cdc_round_trip(
        (seq, token) in any::<(u16, u32)>(),
        prod in any::<(u16, u32)>(),
        cons in any::<(u16, u32)>(),
        flags in any::<(u8, u8)>(),
    ) {
        let message = CdcMessage {
            seq,
            token: AlertToken(token),
            prod: RawCursor { wrap: prod.0, count: prod.1 },
            cons: RawCursor { wrap: cons.0, count: cons.1 },
            prod_flags: ProdFlags::from_bits(flags.0),
            conn_flags: ConnFlags::from_bits(flags.1),
        };
        prop_assert_eq!(CdcMessage::parse(&message.emit()), Ok(message));
    }

    /// What a parser accepts from arbitrary bytes does not depend on anything
    /// behind the length that the message gives.
    #[test]
    fn clc_from_bytes(bytes in vec(any::<u8>(), 0..800), code in 1_u8..5, length in 0_u16..800) {
        let mut bytes = bytes;
        let length_bytes = length.to_be_bytes();
        let head = [0xe2, 0xd4, 0xc3, 0xd9, code, length_bytes[0], length_bytes[1]];
        for (to, from) in bytes.iter_mut().zip(head) {
            *to = from;
        }
        let length = usize::from(length);
        if let Some(trailer) = length.checked_sub(4).and_then(|at| bytes.get_mut(at..length)) {
            trailer.copy_from_slice(&head[..4]);
        }
        if let Ok(message) = clc::Message::parse(&bytes) {
            prop_assert!(length <= bytes.len());
            prop_assert_eq!(clc::Message::parse(&bytes[..length]), Ok(message));
        }
    }

    #[test]
    fn eid_text(text in "[A-Z0-9][A-Z0-9.-]{0,31}", blanks in 0_usize..3) {
        let padded = format!("{text}{}", " ".repeat(blanks));
        let eid = Eid::parse(padded.as_bytes()).unwrap();
        prop_assert_eq!(eid.text(), text.as_bytes());
        prop_assert_eq!(Eid::parse(&eid.0), Ok(eid));
    }

    #[test]
    fn eid_from_bytes(bytes in vec(any::<u8>(), 0..40)) {
        if let Ok(eid) = Eid::parse(&bytes) {
            prop_assert!(bytes.starts_with(eid.text()));
            prop_assert!(!eid.text().is_empty());
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Proposal messages against bytes worked out by hand from the field tables.

mod wire_support;

use smc_proto::ids::*;
use smc_proto::reason::DeclineReason;
use smc_proto::wire::clc::{IsmId, Message, PathType, Proposal, V1Offer, V2Offer, MAX_LEN};
use smc_proto::wire::Error;
use wire_support::*;

const PEER: PeerId = PeerId([0x12, 0x34, 0x02, 0x00, 0x5e, 0x00, 0x00, 0x01]);
const MAC: Mac = Mac([0x02, 0x00, 0x5e, 0x00, 0x00, 0x01]);
const GID: Gid = Gid([
    0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x00, 0x5e, 0xff, 0xfe, 0x00, 0x00, 0x01,
]);

fn v1_offer() -> V1Offer {
    V1Offer {
        gid: GID,
        mac: MAC,
        subnet: Ipv4Prefix::new([10, 9, 0, 0], 24),
        ..V1Offer::EMPTY
    }
}

fn v2_only() -> Proposal {
    let mut v2 = V2Offer {
        release: Release::V2_1,
        roce_gid: Gid::from_ipv4([10, 9, 0, 1]),
        max_conns: 255,
        max_links: 2,
        features: 0x0102,
        ..V2Offer::EMPTY
    };
    v2.eids.push(eid("RACK-1.BLUE")).unwrap();
    Proposal {
        version: 2,
        typev1: PathType::None,
        typev2: PathType::Rdma,
        peer_id: PEER,
        v1: None,
        smcd_v1: None,
        v2: Some(v2),
    }
}

/// 8 header + 32 fixed + 40 growth area + 40 extension + 32 enterprise ID + 4.
fn v2_only_bytes() -> Vec<u8> {
    hex("e2d4c3d9 01 009c 22
         1234 02005e000001
         00000000 00000000 00000000 00000000  000000000000 0000
         0000000000000000 0000 001c 000000 0000000000
         00000000 00000000 00000000 00000000 00000000
         01 00 00 10 0000 0000
         00000000 00000000 0000ffff 0a090001  ff 02 0102
         00000000 00000000 00000000
         5241434b 2d312e42 4c554520 20202020 20202020 20202020 20202020 20202020
         e2d4c3d9")
}

/// The minimum for IPv4 in version 1: 92 bytes. The second path type says that
/// version 2 is not offered: 2 << 2.
#[test]
fn version_1_over_ipv4() {
    let message = Message::Proposal(Proposal {
        version: 2,
        typev1: PathType::Rdma,
        typev2: PathType::None,
        peer_id: PEER,
        v1: Some(v1_offer()),
        smcd_v1: None,
        v2: None,
    });
    let bytes = hex("e2d4c3d9 01 005c 28
         1234 02005e000001
         fe800000 00000000 00005eff fe000001  02005e000001 0028
         0000000000000000 0000 0000 000000 0000000000
         00000000 00000000 00000000 00000000 00000000
         0a090000 18 0000 00
         e2d4c3d9");
    assert_eq!(bytes.len(), 92);
    check_clc(&message, &bytes);
}

/// RFC 7609 figure 27: no growth area, IP area at offset 0, 52 bytes; and 17 more
/// for an IPv6 prefix.
#[test]
fn short_form_of_rfc_7609() {
    let bytes = hex("e2d4c3d9 01 0034 10
         1234 02005e000001
         fe800000 00000000 00005eff fe000001  02005e000001 0000
         0a090000 18 0000 00
         e2d4c3d9");
    let expected = Proposal {
        version: 1,
        typev1: PathType::Rdma,
        typev2: PathType::None,
        peer_id: PEER,
        v1: Some(v1_offer()),
        smcd_v1: None,
        v2: None,
    };
    assert_eq!(Message::parse(&bytes), Ok(Message::Proposal(expected)));

    let bytes = hex("e2d4c3d9 01 0045 10
         1234 02005e000001
         fe800000 00000000 00005eff fe000001  02005e000001 0000
         00000000 00 0000 01
         fd090000 00000000 00000000 00000000 40
         e2d4c3d9");
    let mut v1 = V1Offer {
        subnet: None,
        ..v1_offer()
    };
    let prefix = [0xfd, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    v1.v6.push(Ipv6Prefix::new(prefix, 64).unwrap()).unwrap();
    let expected = Proposal {
        v1: Some(v1),
        ..expected
    };
    assert_eq!(Message::parse(&bytes), Ok(Message::Proposal(expected)));
}

#[test]
fn version_2_only() {
    let bytes = v2_only_bytes();
    assert_eq!(bytes.len(), 124 + 32);
    check_clc(&Message::Proposal(v2_only()), &bytes);

    let mut without_eids = v2_only();
    without_eids.v2.as_mut().unwrap().eids = EidList::EMPTY;
    let mut buf = [0; MAX_LEN];
    assert_eq!(without_eids.emit(&mut buf), Ok(124));
}

/// Both versions and both transports: path types 3 and 3 give flags 1111; the IP
/// area has one IPv6 prefix, so the extension is at 28 + 8 + 17 = 53 = 0x35, and
/// the SMC-D part behind one enterprise ID at 32 + 32 = 64 = 0x40.
#[test]
fn everything_at_once() {
    let mut message = v2_only();
    message.typev1 = PathType::Both;
    message.typev2 = PathType::Both;
    message.smcd_v1 = Some((0x0102_0304_0506_0708, 0xa0b0));
    let mut v1 = v1_offer();
    let prefix = [0xfd, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    v1.v6.push(Ipv6Prefix::new(prefix, 64).unwrap()).unwrap();
    message.v1 = Some(v1);
    let v2 = message.v2.as_mut().unwrap();
    v2.seid = Some(Eid(*b"IBM-SYSZ-ISMSEID0000000012345678"));
    let ism = IsmId {
        gid: 0x1112_1314_1516_1718,
        chid: 0xfff0,
    };
    v2.ism.push(ism).unwrap();
    let bytes = hex("e2d4c3d9 01 00ef 2f
         1234 02005e000001
         fe800000 00000000 00005eff fe000001  02005e000001 0028
         0102030405060708 a0b0 0035 000000 0000000000
         00000000 00000000 00000000 00000000 00000000
         0a090000 18 0000 01
         fd090000 00000000 00000000 00000000 40
         01 01 00 11 0000 0040
         00000000 00000000 0000ffff 0a090001  ff 02 0102
         00000000 00000000 00000000
         5241434b 2d312e42 4c554520 20202020 20202020 20202020 20202020 20202020
         49424d2d 5359535a 2d49534d 53454944 30303030 30303030 31323334 35363738
         00000000 00000000 00000000 00000000
         1112131415161718 fff0
         e2d4c3d9");
    assert_eq!(bytes.len(), 80 + 25 + 40 + 32 + 48 + 10 + 4);
    check_clc(&Message::Proposal(message), &bytes);
}

/// Eight of everything makes the longest message.
#[test]
fn longest_message() {
    let mut message = v2_only();
    message.typev1 = PathType::Both;
    message.typev2 = PathType::Both;
    message.smcd_v1 = Some((1, 2));
    let mut v1 = v1_offer();
    let v2 = message.v2.as_mut().unwrap();
    v2.eids = EidList::EMPTY;
    for number in 0..8 {
        v1.v6
            .push(Ipv6Prefix::new([number; 16], 128).unwrap())
            .unwrap();
        v2.eids.push(Eid([b'A' + number; 32])).unwrap();
        let ism = IsmId {
            gid: 1,
            chid: number.into(),
        };
        v2.ism.push(ism).unwrap();
    }
    assert!(v2.eids.push(eid("ONE-TOO-MANY")).is_err());
    message.v1 = Some(v1);
    let mut buf = [0; MAX_LEN];
    assert_eq!(message.emit(&mut buf), Ok(MAX_LEN));
    assert_eq!(Message::parse(&buf), Ok(Message::Proposal(message)));
}

#[test]
fn contradictions_are_not_sent() {
    let mut buf = [0; MAX_LEN];
    let good = v2_only();
    assert!(good.emit(&mut buf).is_ok());
    let mut bad = [good; 6];
    bad[0].version = 16;
    bad[1].typev1 = PathType::Rdma;
    bad[2].smcd_v1 = Some((1, 1));
    bad[3].version = 1;
    bad[4].typev2 = PathType::None;
    bad[5].v2.as_mut().unwrap().seid = Some(eid("S"));
    for (number, message) in bad.iter().enumerate() {
        let error = message.emit(&mut buf).expect_err("a contradiction");
        assert_ne!(error, Error::NoSpace, "case {number}");
    }
}

/// A peer of a later version: known fields are found, what lies between them and
/// the trailer is skipped, and only the message's own length is used.
#[test]
fn growth_is_tolerated() {
    for version in 3..=15_u8 {
        let mut bytes = grown(&v2_only_bytes(), &[0x5a; 200]);
        bytes[7] = version << 4 | 0x02;
        bytes.extend_from_slice(b"the next message");
        let expected = Proposal {
            version,
            ..v2_only()
        };
        assert_eq!(Message::parse(&bytes), Ok(Message::Proposal(expected)));
        assert_eq!(Version::common(version), Some(Version::V2));
    }
}

/// Unknown bytes between the growth area and the extension.
#[test]
fn later_offsets_are_followed() {
    let mut bytes = v2_only_bytes();
    bytes.splice(80..80, [0x77; 40]);
    bytes[5..7].copy_from_slice(&196_u16.to_be_bytes());
    bytes[50..52].copy_from_slice(&68_u16.to_be_bytes());
    assert_eq!(Message::parse(&bytes), Ok(Message::Proposal(v2_only())));
}

#[test]
fn ip_area_out_of_range() {
    let mut message = v2_only();
    message.typev1 = PathType::Rdma;
    message.typev2 = PathType::None;
    message.v1 = Some(v1_offer());
    message.v2 = None;
    let mut buf = [0; MAX_LEN];
    let len = message.emit(&mut buf).unwrap();
    let good = &buf[..len];
    // The last offset that leaves room for the area is 40.
    for offset in [41_u16, 48, 0x7fff, 0xfff0, 0xffff] {
        let bad = patched(good, 38, &offset.to_be_bytes());
        assert_eq!(declined(&bad), DeclineReason::CNFERR, "offset {offset}");
    }
    for count in [1, 8, 9, 255] {
        let bad = patched(good, 87, &[count]);
        assert_eq!(declined(&bad), DeclineReason::CNFERR, "{count} prefixes");
    }
    assert_eq!(declined(&patched(good, 84, &[33])), DeclineReason::CNFERR);
    // Nine prefixes that are really there are still one too many.
    let nine = grown(&patched(good, 87, &[9]), &[0x20; 9 * 17]);
    assert_eq!(declined(&nine), DeclineReason::CNFERR);
    let eight = grown(&patched(good, 87, &[8]), &[0x20; 8 * 17]);
    assert!(Message::parse(&eight).is_ok());
}

#[test]
fn version_2_extension_out_of_range() {
    let good = v2_only_bytes();
    // 0 means that there is none; below 28 it would lie in the growth area; above
    // 60 it does not fit.
    match Message::parse(&patched(&good, 50, &[0, 0])) {
        Ok(Message::Proposal(proposal)) => {
            assert_eq!(proposal.v2, None);
            assert!(proposal.typev2.is_offered());
        }
        other => panic!("{other:?}"),
    }
    for offset in [1_u16, 27, 61, 172, 0x7fff, 0xffff] {
        let bad = patched(&good, 50, &offset.to_be_bytes());
        assert_eq!(declined(&bad), DeclineReason::CNFERR, "offset {offset}");
    }
    for count in [2, 8, 9, 255] {
        let bad = patched(&good, 80, &[count]);
        assert_eq!(
            declined(&bad),
            DeclineReason::CNFERR,
            "{count} enterprise IDs"
        );
    }
    let nine = grown(&patched(&good, 80, &[9]), &[b'A'; 8 * 32]);
    assert_eq!(declined(&nine), DeclineReason::CNFERR);
    let eight = grown(&patched(&good, 80, &[8]), &[b'A'; 7 * 32]);
    assert!(Message::parse(&eight).is_ok());
    for count in [9, 255] {
        let bad = patched(&good, 81, &[count]);
        assert_eq!(declined(&bad), DeclineReason::CNFERR, "{count} ISM devices");
    }
}

#[test]
fn smc_d_extension_out_of_range() {
    // Shared memory is offered in version 2, but the extension is not there.
    let bare = patched(&v2_only_bytes(), 7, &[0x26]);
    match Message::parse(&bare) {
        Ok(Message::Proposal(proposal)) => {
            let v2 = proposal.v2.expect("version 2 is offered");
            assert_eq!((v2.seid, v2.ism.len()), (None, 0));
        }
        other => panic!("{other:?}"),
    }
    let good = grown(&patched(&bare, 86, &64_u16.to_be_bytes()), &[0x11; 48]);
    assert!(Message::parse(&good).is_ok());
    for offset in [1_u16, 31, 65, 0xffff] {
        let bad = patched(&good, 86, &offset.to_be_bytes());
        assert_eq!(declined(&bad), DeclineReason::CNFERR, "offset {offset}");
    }
    for count in [1, 8, 9, 255] {
        let bad = patched(&good, 81, &[count]);
        assert_eq!(declined(&bad), DeclineReason::CNFERR, "{count} devices");
    }
}

/// Where the end of the message is not sure, the connection cannot go on.
#[test]
fn framing_errors_are_fatal() {
    let good = v2_only_bytes();
    for at in [0, 3, good.len() - 4, good.len() - 1] {
        let bad = patched(&good, at, &[0xc4 ^ at as u8]);
        assert_eq!(fatal(&bad), Error::BadEyecatcher, "byte {at}");
    }
    for kind in [0, 5, 255] {
        assert_eq!(fatal(&patched(&good, 4, &[kind])), Error::BadType(kind));
    }
    for length in [0_u16, 8, 51, 2049, 0xffff] {
        let bad = patched(&good, 5, &length.to_be_bytes());
        let length = length.into();
        assert_eq!(fatal(&bad), Error::BadLength { length });
    }
    assert_eq!(
        declined(&patched(&good, 7, &[0x02])),
        DeclineReason::VERSMISMAT
    );
    // An SMC-D eyecatcher belongs to Accept and Confirm only.
    let smcd = patched(
        &patched(&good, 0, &hex("e2d4c3c4")),
        good.len() - 4,
        &hex("e2d4c3c4"),
    );
    assert_eq!(fatal(&smcd), Error::BadEyecatcher);
}

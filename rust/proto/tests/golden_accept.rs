// SPDX-License-Identifier: GPL-2.0

//! Accept, Confirm and Decline messages against bytes worked out by hand from the
//! field tables.

mod wire_support;

use smc_proto::ids::*;
use smc_proto::reason::DeclineReason;
use smc_proto::wire::clc::{
    Accept, Confirm, Decline, Endpoint, FirstContactExt, IsmEndpoint, Message, RdmaEndpoint,
    V21Limits, V2Fields,
};
use smc_proto::wire::Error;
use wire_support::*;

fn rdma() -> RdmaEndpoint {
    RdmaEndpoint {
        peer_id: PeerId([0xab, 0xcd, 0x02, 0x00, 0x5e, 0x00, 0x00, 0x02]),
        gid: Gid::from_ipv4([10, 9, 0, 2]),
        mac: Mac([0x02, 0x00, 0x5e, 0x00, 0x00, 0x02]),
        qpn: Qpn::new(0x01_02_03).unwrap(),
        rkey: Rkey(0x1020_3040),
        rmbe_index: RmbeIndex::new(7).unwrap(),
        token: AlertToken(0xdead_0001),
        buf_size: BufSize::from_code(2).unwrap(),
        mtu: Some(PathMtu::Mtu1024),
        rmb_addr: VirtAddr(0xffff_8880_1234_5678),
        psn: Psn::new(0x00a1_b2c3),
    }
}

fn ism() -> IsmEndpoint {
    IsmEndpoint {
        gid: 0x2122_2324_2526_2728,
        token: 0x3132_3334_3536_3738,
        index: 0,
        buf_size: BufSize::from_code(6).unwrap(),
        link_uid: LinkUid(0x4142_4344),
        chid: 0,
        gid_ext: 0,
    }
}

const RDMA_BODY: &str = "abcd 02005e000002
     00000000 00000000 0000ffff 0a090002  02005e000002
     010203 10203040 07 dead0001 23 00 ffff888012345678 00 a1b2c3";

const ISM_BODY: &str = "2122232425262728 3132333435363738 00 60 0000 41424344";

const EID: &str = "53414c45 532d3220 20202020 20202020 20202020 20202020 20202020 20202020";

/// Direct (0x80), Linux (2) and a release, host name "ab" with blanks.
fn extension(release: u8) -> String {
    format!(
        "80 2{release} 0000
         61622020 20202020 20202020 20202020 20202020 20202020 20202020 20202020"
    )
}

const LIMITS: &str = "20 02 0001 00000000 0000000000000000";

fn fce(release: Release) -> FirstContactExt {
    FirstContactExt {
        v2_direct: true,
        os_type: OS_TYPE_LINUX,
        release,
        host: HostName::new(b"ab"),
        v21: release.has_v2_1_fields().then_some(V21Limits {
            max_conns: 32,
            max_links: 2,
            features: 1,
        }),
    }
}

fn v2(fce: Option<FirstContactExt>) -> Option<V2Fields> {
    Some(V2Fields {
        eid: eid("SALES-2"),
        fce,
        gids: GidList::EMPTY,
    })
}

/// 68 bytes; version 1 with F is 0x18.
#[test]
fn accept_version_1() {
    let accept = Accept {
        version: Version::V1,
        first_contact: true,
        endpoint: Endpoint::Rdma(rdma()),
        v2: None,
    };
    let bytes = hex(&format!("e2d4c3d9 02 0044 18 {RDMA_BODY} e2d4c3d9"));
    check_clc(&Message::Accept(accept), &bytes);

    let again = Accept {
        first_contact: false,
        ..accept
    };
    check_clc(&Message::Accept(again), &patched(&bytes, 7, &[0x10]));
}

#[test]
fn confirm_version_1() {
    let confirm = Confirm {
        version: Version::V1,
        first_contact: false,
        endpoint: Endpoint::Rdma(rdma()),
        v2: None,
    };
    let bytes = hex(&format!("e2d4c3d9 03 0044 10 {RDMA_BODY} e2d4c3d9"));
    check_clc(&Message::Confirm(confirm), &bytes);
}

/// 108 bytes without the extension.
#[test]
fn accept_version_2_on_a_known_link_group() {
    let accept = Accept {
        version: Version::V2,
        first_contact: false,
        endpoint: Endpoint::Rdma(rdma()),
        v2: v2(None),
    };
    let bytes = hex(&format!(
        "e2d4c3d9 02 006c 20 {RDMA_BODY} {EID} 0000000000000000 e2d4c3d9"
    ));
    check_clc(&Message::Accept(accept), &bytes);
}

/// 108 + 36 = 144 bytes in release 2.0.
#[test]
fn accept_version_2_0_first_contact() {
    let accept = Accept {
        version: Version::V2,
        first_contact: true,
        endpoint: Endpoint::Rdma(rdma()),
        v2: v2(Some(fce(Release::V2_0))),
    };
    let bytes = hex(&format!(
        "e2d4c3d9 02 0090 28 {RDMA_BODY} {EID} 0000000000000000 {} e2d4c3d9",
        extension(0)
    ));
    check_clc(&Message::Accept(accept), &bytes);
}

/// 108 + 52 = 160 bytes in release 2.1.
fn accept_2_1() -> (Accept, Vec<u8>) {
    let accept = Accept {
        version: Version::V2,
        first_contact: true,
        endpoint: Endpoint::Rdma(rdma()),
        v2: v2(Some(fce(Release::V2_1))),
    };
    let bytes = hex(&format!(
        "e2d4c3d9 02 00a0 28 {RDMA_BODY} {EID} 0000000000000000 {} {LIMITS} e2d4c3d9",
        extension(1)
    ));
    (accept, bytes)
}

#[test]
fn accept_version_2_1_first_contact() {
    let (accept, bytes) = accept_2_1();
    check_clc(&Message::Accept(accept), &bytes);
}

/// 160 + 4 + 2 * 16 = 196 bytes with two GIDs.
fn confirm_2_1() -> (Confirm, Vec<u8>) {
    let mut fields = v2(Some(fce(Release::V2_1))).unwrap();
    fields.gids.push(Gid::from_ipv4([10, 9, 0, 1])).unwrap();
    fields.gids.push(Gid::from_ipv4([10, 9, 1, 1])).unwrap();
    let confirm = Confirm {
        version: Version::V2,
        first_contact: true,
        endpoint: Endpoint::Rdma(rdma()),
        v2: Some(fields),
    };
    let bytes = hex(&format!(
        "e2d4c3d9 03 00c4 28 {RDMA_BODY} {EID} 0000000000000000 {} {LIMITS}
         02 000000
         00000000 00000000 0000ffff 0a090001
         00000000 00000000 0000ffff 0a090101
         e2d4c3d9",
        extension(1)
    ));
    (confirm, bytes)
}

#[test]
fn confirm_version_2_1_first_contact() {
    let (confirm, bytes) = confirm_2_1();
    check_clc(&Message::Confirm(confirm), &bytes);
}

/// 48 bytes over shared memory in version 1, 78 in version 2, 130 with the
/// extension of release 2.1. The eyecatcher ends in C4.
#[test]
fn shared_memory() {
    let accept = Accept {
        version: Version::V1,
        first_contact: false,
        endpoint: Endpoint::Ism(ism()),
        v2: None,
    };
    let bytes = hex(&format!(
        "e2d4c3c4 02 0030 11 {ISM_BODY} 00000000 00000000 00000000 e2d4c3c4"
    ));
    check_clc(&Message::Accept(accept), &bytes);

    let confirm = Confirm {
        version: Version::V2,
        first_contact: false,
        endpoint: Endpoint::Ism(IsmEndpoint {
            chid: 0x5152,
            gid_ext: 0x6162_6364_6566_6768,
            ..ism()
        }),
        v2: v2(None),
    };
    let bytes = hex(&format!(
        "e2d4c3c4 03 004e 21 {ISM_BODY} 5152 {EID} 6162636465666768 e2d4c3c4"
    ));
    check_clc(&Message::Confirm(confirm), &bytes);

    let confirm = Confirm {
        first_contact: true,
        v2: v2(Some(fce(Release::V2_1))),
        ..confirm
    };
    let bytes = hex(&format!(
        "e2d4c3c4 03 0082 29 {ISM_BODY} 5152 {EID} 6162636465666768 {} {LIMITS} e2d4c3c4",
        extension(1)
    ));
    check_clc(&Message::Confirm(confirm), &bytes);
}

/// 28 bytes in version 1, 44 in version 2; S is 0x08.
#[test]
fn decline() {
    let decline = Decline {
        version: Version::V1,
        reason: DeclineReason::NOSMCRDEV,
        peer_id: PeerId([0xab, 0xcd, 0x02, 0x00, 0x5e, 0x00, 0x00, 0x02]),
        out_of_sync: false,
        os_type: OS_TYPE_LINUX,
    };
    let bytes = hex("e2d4c3d9 04 001c 10 abcd02005e000002 03030002 20 000000 e2d4c3d9");
    check_clc(&Message::Decline(decline), &bytes);

    let decline = Decline {
        version: Version::V2,
        reason: DeclineReason::SYNCERR,
        out_of_sync: true,
        ..decline
    };
    let bytes = hex("e2d4c3d9 04 002c 28 abcd02005e000002 04000000 20 000000
         00000000 00000000 00000000 00000000 e2d4c3d9");
    check_clc(&Message::Decline(decline), &bytes);

    // The short form with version 2, and the long form of some later version.
    let short = hex("e2d4c3d9 04 001c 28 abcd02005e000002 04000000 20 000000 e2d4c3d9");
    assert_eq!(Message::parse(&short), Ok(Message::Decline(decline)));
    let later = grown(&patched(&bytes, 7, &[0x78]), &[0xff; 16]);
    assert_eq!(Message::parse(&later), Ok(Message::Decline(decline)));
}

#[test]
fn versions_that_are_not_spoken() {
    let (_, bytes) = accept_2_1();
    for version in [3_u8, 9, 15] {
        let bad = patched(&bytes, 7, &[version << 4 | 0x08]);
        assert_eq!(declined(&bad), DeclineReason::VERSMISMAT);
    }
}

/// The queue pair must exist and the element index counts from 1. A reserved MTU
/// is left to the handshake, which may look at it on first contact only.
#[test]
fn illegal_endpoint_values() {
    let (_, bytes) = accept_2_1();
    for qpn in [[0; 3], [0xff; 3]] {
        assert_eq!(declined(&patched(&bytes, 38, &qpn)), DeclineReason::CNFERR);
    }
    assert_eq!(declined(&patched(&bytes, 45, &[0])), DeclineReason::CNFERR);
    for mtu in [0, 6, 7, 15] {
        let reserved = patched(&bytes, 50, &[0x20 | mtu]);
        match Message::parse(&reserved) {
            Ok(Message::Accept(Accept {
                endpoint: Endpoint::Rdma(end),
                ..
            })) => assert_eq!((end.mtu, end.buf_size.bytes()), (None, 65536)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn transport_must_be_one() {
    let (_, bytes) = accept_2_1();
    for path in [2_u8, 3] {
        let bad = patched(&bytes, 7, &[0x28 | path]);
        assert_eq!(declined(&bad), DeclineReason::CNFERR);
    }
    // Shared memory under the eyecatcher of RDMA, and the other way round.
    assert_eq!(fatal(&patched(&bytes, 7, &[0x29])), Error::BadEyecatcher);
    let smcd = patched(&bytes, 0, &hex("e2d4c3c4"));
    assert_eq!(fatal(&smcd), Error::BadEyecatcher);
    let smcd = patched(&smcd, bytes.len() - 4, &hex("e2d4c3c4"));
    assert_eq!(fatal(&smcd), Error::BadEyecatcher);
}

/// Version 1 has exactly one length, version 2 a smallest one.
#[test]
fn impossible_lengths() {
    let v1 = hex(&format!("e2d4c3d9 02 0044 18 {RDMA_BODY} e2d4c3d9"));
    for bad in [
        shrunk(&v1, 1),
        shrunk(&v1, 20),
        grown(&v1, &[0]),
        grown(&v1, &[0; 40]),
    ] {
        assert!(matches!(fatal(&bad), Error::BadLength { .. }));
    }
    let v2 = hex(&format!(
        "e2d4c3d9 02 006c 20 {RDMA_BODY} {EID} 0000000000000000 e2d4c3d9"
    ));
    for less in [1, 8, 40, 60] {
        let error = fatal(&shrunk(&v2, less));
        assert_eq!(error, Error::BadLength { length: 108 - less });
    }
}

/// F says that the extension is there; bytes without F, or F without bytes, are
/// refused.
#[test]
fn first_contact_flag_and_extension_belong_together() {
    let (_, bytes) = accept_2_1();
    let without_flag = patched(&bytes, 7, &[0x20]);
    assert_eq!(declined(&without_flag), DeclineReason::CNFERR);
    for missing in [52, 51, 36, 16, 1] {
        let cut = shrunk(&bytes, missing);
        assert_eq!(declined(&cut), DeclineReason::CNFERR, "{missing} missing");
    }
    // Later releases have at least the fields of 2.1.
    for release in [1_u8, 2, 15] {
        let later = patched(&bytes, 105, &[0x20 | release]);
        match Message::parse(&later) {
            Ok(Message::Accept(Accept { v2: Some(v2), .. })) => {
                let fce = v2.fce.unwrap();
                assert_eq!(fce.release.number(), release);
                assert_eq!(fce.v21, self::fce(Release::V2_1).v21);
            }
            other => panic!("{other:?}"),
        }
        let cut = shrunk(&later, 16);
        assert_eq!(declined(&cut), DeclineReason::CNFERR);
    }
    // What follows the extension is for later releases.
    let (accept, bytes) = accept_2_1();
    let later = grown(&bytes, &[0x99; 24]);
    assert_eq!(Message::parse(&later), Ok(Message::Accept(accept)));
}

#[test]
fn gid_list_of_confirm() {
    let (confirm, bytes) = confirm_2_1();
    let count_at = 104 + 52;
    for count in [3, 8, 9, 255] {
        let bad = patched(&bytes, count_at, &[count]);
        assert_eq!(declined(&bad), DeclineReason::CNFERR, "{count} GIDs");
    }
    for missing in [1, 15, 17, 33, 35] {
        let cut = shrunk(&bytes, missing);
        assert_eq!(declined(&cut), DeclineReason::CNFERR, "{missing} missing");
    }
    let nine = grown(&patched(&bytes, count_at, &[9]), &[1; 7 * 16]);
    assert_eq!(declined(&nine), DeclineReason::CNFERR);
    let eight = grown(&patched(&bytes, count_at, &[8]), &[1; 6 * 16]);
    assert!(Message::parse(&eight).is_ok());
    // No list at all is an empty one.
    match Message::parse(&shrunk(&bytes, 36)) {
        Ok(Message::Confirm(Confirm { v2: Some(v2), .. })) => assert!(v2.gids.is_empty()),
        other => panic!("{other:?}"),
    }
    let later = grown(&bytes, &[0x99; 24]);
    assert_eq!(Message::parse(&later), Ok(Message::Confirm(confirm)));
}

#[test]
fn contradictions_are_not_sent() {
    let mut buf = [0; 700];
    let (good, _) = accept_2_1();
    let mut bad = [good; 5];
    bad[0].version = Version::V1;
    bad[1].v2 = None;
    bad[2].first_contact = false;
    bad[3].v2.as_mut().unwrap().gids.push(Gid::ZERO).unwrap();
    let fce = bad[4].v2.as_mut().unwrap().fce.as_mut().unwrap();
    fce.release = Release::V2_0;
    for (number, message) in bad.iter().enumerate() {
        let error = message.emit(&mut buf).expect_err("a contradiction");
        assert!(matches!(error, Error::BadField { .. }), "case {number}");
    }
}

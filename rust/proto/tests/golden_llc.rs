// SPDX-License-Identifier: GPL-2.0

//! LLC messages about links against bytes worked out by hand from RFC 7609 A.3 and the field
//! tables of version 2.

mod llc_support;
mod wire_support;

use llc_support::*;
use smc_proto::ids::*;
use smc_proto::wire::llc::*;
use smc_proto::wire::Error;
use wire_support::{hex, patched};

const MAC: Mac = Mac([0x02, 0x00, 0x5e, 0x00, 0x00, 0x03]);
const GID: Gid = Gid([
    0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x03,
]);
const GID_HEX: &str = "20010db8 00000000 00000000 00000003";

fn confirm_link() -> ConfirmLink {
    ConfirmLink {
        mac: MAC,
        gid: GID,
        qpn: Qpn::new(0x00aabb).unwrap(),
        link: LinkId(1),
        link_uid: LinkUid(0x0102_0301),
        max_links: 2,
        max_conns: 0,
        no_rmbe_eyecatcher: true,
    }
}

#[test]
fn confirm_link_in_both_versions() {
    let body = Body::ConfirmLink(confirm_link());
    let bytes = hex(&format!(
        "01 2c 00 03 02005e000003 {GID_HEX} 00aabb 01 01020301 02 00
         00000000 00000000"
    ));
    check(&v1(false, body), &bytes);
    check(&v1(true, body), &patched(&bytes, 3, &[0x83]));

    let with_eyecatcher = Body::ConfirmLink(ConfirmLink {
        no_rmbe_eyecatcher: false,
        ..confirm_link()
    });
    check(&v1(true, with_eyecatcher), &patched(&bytes, 3, &[0x80]));

    let body = Body::ConfirmLink(ConfirmLink {
        max_conns: 255,
        ..confirm_link()
    });
    let bytes = hex(&format!(
        "21 {} 03 02005e000003 {GID_HEX} 00aabb 01 01020301 02 ff
         00000000 00000000",
        native(44)
    ));
    check(&v2(false, body), &bytes);
    assert_eq!(field_error(&patched(&bytes, 26, &[0; 3])), ("QP number", 0));
}

fn add_link() -> AddLink<'static> {
    AddLink {
        mac: MAC,
        gid: GID,
        qpn: Qpn::new(0x00aabb),
        link: LinkId(2),
        mtu: Some(PathMtu::Mtu4096),
        psn: Psn::new(0x112233),
        reject: None,
        ext: None,
    }
}

/// Peers put two reserved bytes after the MAC address.
#[test]
fn add_link_version_1() {
    let bytes = hex(&format!(
        "02 2c 00 00 02005e000003 0000 {GID_HEX} 00aabb 02 05 112233
         00000000 00000000"
    ));
    check(&v1(false, Body::AddLink(add_link())), &bytes);
    check(
        &v1(true, Body::AddLink(add_link())),
        &patched(&bytes, 3, &[0x80]),
    );

    let reserved = Body::AddLink(AddLink {
        mtu: None,
        ..add_link()
    });
    for code in [0, 6, 15] {
        let bytes = patched(&bytes, 32, &[code]);
        assert_eq!(Message::parse(&bytes), Ok(v1(false, reserved)));
    }
}

/// A refusal has flag 0x40 and its reason in the low half of byte 2.
#[test]
fn add_link_refused() {
    let refusal = AddLink {
        mac: Mac([0; 6]),
        gid: Gid::ZERO,
        qpn: None,
        link: LinkId(0),
        mtu: None,
        psn: Psn::new(0),
        reject: Some(RejectReason::NO_ALTERNATE_PATH),
        ext: None,
    };
    let mut bytes = hex("02 2c 01 c0");
    bytes.resize(44, 0);
    check(&v1(true, Body::AddLink(refusal)), &bytes);

    let bad_mtu = AddLink {
        reject: Some(RejectReason::BAD_MTU),
        ..refusal
    };
    bytes[2] = 2;
    check(&v1(true, Body::AddLink(bad_mtu)), &bytes);

    // In version 2 the reason covers four bits of the length.
    let [first, second] = 44_u16.to_ne_bytes();
    bytes[..4].copy_from_slice(&[0x22, first, second & 0xf0 | 1, 0xc0]);
    check(&v2(true, Body::AddLink(refusal)), &bytes);
}

fn mappings() -> [RkeyMapping; 3] {
    [1, 2, 3].map(|number| RkeyMapping {
        known: Rkey(0x1000_0000 + number),
        new: Rkey(0x2000_0000 + number),
        addr: VirtAddr(0x0001_0203_0405_0600 + u64::from(number)),
    })
}

/// 44 + 28 + 2 * 16 = 104 bytes.
fn add_link_v2_bytes() -> Vec<u8> {
    hex(&format!(
        "22 {} 00 02005e000003 0000 {GID_HEX} 00aabb 02 05 112233
         00000000 00000000
         80 00 00000000 00000000 0000ffff 0a090001 0000000000000000 {}
         10000001 20000001 0001020304050601
         10000002 20000002 0001020304050602",
        native(104),
        native(2)
    ))
}

#[test]
fn add_link_version_2() {
    let mappings = mappings();
    let ext = AddLinkExt {
        v2_direct: true,
        client_target_gid: Gid::from_ipv4([10, 9, 0, 1]),
        rkeys: List::new(&mappings[..2]),
    };
    let body = AddLink {
        ext: Some(ext),
        ..add_link()
    };
    let bytes = add_link_v2_bytes();
    check(&v2(false, Body::AddLink(body)), &bytes);

    // A peer with the other byte order writes length and count its own way.
    let other = |number: u16| number.swap_bytes().to_ne_bytes();
    let swapped = patched(&patched(&bytes, 70, &other(2)), 1, &other(104));
    assert_eq!(Message::parse(&swapped), Ok(v2(false, Body::AddLink(body))));

    for count in [3, 255, 0x0102, 0x0303, 0xffff_u16] {
        let bad = patched(&bytes, 70, &count.to_ne_bytes());
        assert_eq!(field_error(&bad), ("number of keys", count.into()));
    }
    // The extension must be whole.
    for len in [45_u16, 60, 71] {
        let bad = patched(&bytes, 1, &len.to_ne_bytes());
        assert!(Message::parse(&bad).is_err());
    }

    let many = [mappings[0]; 256];
    let mut buf = [0; MAX_LEN];
    let with = |rkeys| AddLink {
        ext: Some(AddLinkExt { rkeys, ..ext }),
        ..body
    };
    let longest = v2(false, Body::AddLink(with(List::new(&many[..255]))));
    assert_eq!(longest.emit(&mut buf), Ok(44 + 28 + 255 * 16));
    assert_eq!(Message::parse(&buf[..44 + 28 + 255 * 16]), Ok(longest));
    let too_long = v2(false, Body::AddLink(with(List::new(&many))));
    assert!(too_long.emit(&mut buf).is_err());
}

/// The count is that of the keys still to come, with those in the message.
#[test]
fn add_link_continuation() {
    let mappings = mappings();
    let body = AddLinkCont::new(LinkId(2), &mappings).unwrap();
    let bytes = hex("03 2c 00 00 02 03 0000
         10000001 20000001 0001020304050601
         10000002 20000002 0001020304050602
         00000000");
    check(&v1(false, Body::AddLinkCont(body)), &bytes);

    let body = AddLinkCont::new(LinkId(2), &mappings[2..]).unwrap();
    let bytes = hex("03 2c 00 80 02 01 0000
         10000003 20000003 0001020304050603
         00000000 00000000 0000000000000000
         00000000");
    check(&v1(true, Body::AddLinkCont(body)), &bytes);

    let body = AddLinkCont::new(LinkId(2), &[]).unwrap();
    let bytes = patched(&[0; 44], 0, &hex("03 2c 00 80 02"));
    check(&v1(true, Body::AddLinkCont(body)), &bytes);

    let mut buf = [0; 44];
    let wrong = v2(false, Body::AddLinkCont(body));
    assert_eq!(wrong.emit(&mut buf), Err(Error::BadVersion(2)));
}

#[test]
fn delete_link() {
    let body = Body::DeleteLink(DeleteLink {
        link: LinkId(3),
        all: false,
        orderly: true,
        reason: DeleteLinkReason::OPERATOR,
    });
    let bytes = patched(&[0; 44], 0, &hex("04 2c 00 20 03 00020000"));
    check(&v1(false, body), &bytes);
    let bytes = patched(&bytes, 0, &hex(&format!("24 {} a0", native(44))));
    check(&v2(true, body), &bytes);

    let body = Body::DeleteLink(DeleteLink {
        link: LinkId(0),
        all: true,
        orderly: false,
        reason: DeleteLinkReason::LLC_VIOLATION,
    });
    let bytes = patched(&[0; 44], 0, &hex("04 2c 00 40 00 00040000"));
    check(&v1(false, body), &bytes);
}

/// 28 + 2 * 16 = 60 bytes; one GID fits into 44 bytes.
#[test]
fn request_add_link() {
    let gids = [GID, Gid::from_ipv4([10, 9, 0, 1])];
    let body = Body::RequestAddLink(RequestAddLink {
        gids: List::new(&gids),
    });
    let bytes = hex(&format!(
        "25 {} 00 00000000 00000000 00000000 00000000 00000000 02 000000
         {GID_HEX} 00000000 00000000 0000ffff 0a090001",
        native(60)
    ));
    check(&v2(false, body), &bytes);
    assert_eq!(
        field_error(&patched(&bytes, 24, &[3])),
        ("number of GIDs", 3)
    );

    let body = Body::RequestAddLink(RequestAddLink {
        gids: List::new(&gids[..1]),
    });
    let bytes = patched(&bytes[..44], 1, &hex(&native(44)));
    check(&v2(false, body), &patched(&bytes, 24, &[1]));
    let mut buf = [0; 64];
    assert_eq!(v1(false, body).emit(&mut buf), Err(Error::BadVersion(1)));
}

#[test]
fn test_link() {
    let body = Body::TestLink(TestLink {
        user_data: *b"0123456789abcdef",
    });
    let bytes = patched(
        &[0; 44],
        0,
        &hex("07 2c 00 00 30313233 34353637 38396162 63646566"),
    );
    check(&v1(false, body), &bytes);
    let bytes = patched(&bytes, 0, &hex(&format!("27 {} 80", native(44))));
    check(&v2(true, body), &bytes);
}

/// RFC 7609 A.3: 10 in the high bits means that the message may be dropped.
#[test]
fn unknown_types() {
    for code in 0..=255_u8 {
        let bytes = patched(&[0; 44], 0, &[code, 44]);
        let known = matches!(code, 0x01..=0x04 | 0x06..=0x09)
            || matches!(code, 0x21 | 0x22 | 0x24..=0x27 | 0x29);
        match Message::parse(&bytes) {
            Err(Error::Ignorable(seen)) => {
                assert_eq!((seen, code & 0xc0), (code, 0x80));
            }
            Err(Error::BadType(seen)) => {
                assert!(!known && code & 0xc0 != 0x80);
                assert_eq!(seen, code);
            }
            _ => assert!(known, "type {code:#04x} is taken for a known one"),
        }
    }
    // Even if the message is shorter than any that is known.
    assert_eq!(Message::parse(&[0x85; 4]), Err(Error::Ignorable(0x85)));
}

#[test]
fn lengths() {
    let body = Body::TestLink(TestLink { user_data: [0; 16] });
    let good = patched(&[0; 44], 0, &[7, 44]);
    assert_eq!(Message::parse(&good), Ok(v1(false, body)));
    for length in [0, 43, 45, 255] {
        let bad = patched(&good, 1, &[length]);
        let length = length.into();
        assert_eq!(Message::parse(&bad), Err(Error::BadLength { length }));
    }
    // Bytes of the receive buffer behind the message do not count.
    let mut long = good.clone();
    long.extend_from_slice(&[0xff; 4]);
    assert_eq!(Message::parse(&long), Ok(v1(false, body)));

    let good = patched(&good, 0, &hex(&format!("27 {}", native(44))));
    assert_eq!(Message::parse(&good), Ok(v2(false, body)));
    for length in [0_u16, 43, 45, 8192, 0xffff] {
        let bad = patched(&good, 1, &length.to_ne_bytes());
        let length = length.into();
        assert_eq!(Message::parse(&bad), Err(Error::BadLength { length }));
    }
}

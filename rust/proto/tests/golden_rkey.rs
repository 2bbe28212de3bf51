// SPDX-License-Identifier: GPL-2.0

//! LLC messages about keys against bytes worked out by hand from RFC 7609 A.3 and
//! the field tables of version 2.

mod llc_support;
mod wire_support;

use llc_support::*;
use smc_proto::ids::*;
use smc_proto::wire::llc::*;
use wire_support::{hex, patched};

fn link_tokens() -> Vec<LinkToken> {
    (2..=10)
        .map(|link| LinkToken {
            link: LinkId(link),
            token: Token {
                rkey: Rkey(0x3000_0000 + u32::from(link)),
                addr: VirtAddr(0x1011_1213_1415_1600 + u64::from(link)),
            },
        })
        .collect()
}

/// The count excludes the link that the message is sent over.
#[test]
fn confirm_rkey() {
    let own = Token {
        rkey: Rkey(0x3000_0001),
        addr: VirtAddr(0x1011_1213_1415_1601),
    };
    let mut body = ConfirmRkey::new(own, &[]).unwrap();
    let bytes = patched(
        &[0; 44],
        0,
        &hex("06 2c 00 00 00 30000001 1011121314151601"),
    );
    check(&v1(false, Body::ConfirmRkey(body)), &bytes);
    body.answer = RkeyAnswer::Negative;
    check(
        &v1(true, Body::ConfirmRkey(body)),
        &patched(&bytes, 3, &[0xa0]),
    );
    body.answer = RkeyAnswer::Retry;
    check(
        &v1(true, Body::ConfirmRkey(body)),
        &patched(&bytes, 3, &[0xb0]),
    );

    let links = link_tokens();
    let body = ConfirmRkey::new(own, &links[..2]).unwrap();
    let bytes = hex(&format!(
        "26 {} 00 02 30000001 1011121314151601
         02 30000002 1011121314151602
         03 30000003 1011121314151603 00",
        native(44)
    ));
    check(&v2(false, Body::ConfirmRkey(body)), &bytes);

    // More links: the rest is for continuations.
    let body = ConfirmRkey::new(own, &links[..8]).unwrap();
    check(
        &v2(false, Body::ConfirmRkey(body)),
        &patched(&bytes, 4, &[8]),
    );
    for count in [9, 255] {
        let bad = patched(&bytes, 4, &[count]);
        assert_eq!(field_error(&bad), ("number of links", count.into()));
    }
    assert!(ConfirmRkey::new(own, &links).is_err());
}

#[test]
fn confirm_rkey_continuation() {
    let links = link_tokens();
    let body = ConfirmRkeyCont::new(&links[..4]).unwrap();
    let bytes = hex("08 2c 00 00 04
         02 30000002 1011121314151602
         03 30000003 1011121314151603
         04 30000004 1011121314151604");
    check(&v1(false, Body::ConfirmRkeyCont(body)), &bytes);

    let mut body = ConfirmRkeyCont::new(&links[3..4]).unwrap();
    body.answer = RkeyAnswer::Negative;
    let bytes = patched(
        &[0; 44],
        0,
        &hex("08 2c 00 a0 01 05 30000005 1011121314151605"),
    );
    check(&v1(true, Body::ConfirmRkeyCont(body)), &bytes);
    let bad = patched(&bytes, 4, &[9]);
    assert_eq!(field_error(&bad), ("number of links", 9));
}

#[test]
fn delete_rkey_version_1() {
    let rkeys = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|number| Rkey(0x5000_0000 + number));
    let body = DeleteRkey {
        rkeys: List::new(&rkeys[..2]),
        negative: false,
        errors: 0,
    };
    let bytes = patched(
        &[0; 44],
        0,
        &hex("09 2c 00 00 02 00 0000 50000001 50000002"),
    );
    check(&v1(false, Body::DeleteRkey(body)), &bytes);

    // The second of two keys was not known: 01000000.
    let body = DeleteRkey {
        negative: true,
        errors: 0x40,
        ..body
    };
    let bytes = patched(&bytes, 3, &hex("a0 02 40"));
    check(&v1(true, Body::DeleteRkey(body)), &bytes);

    let eight = hex("09 2c 00 00 08 00 0000 50000001 50000002 50000003 50000004
         50000005 50000006 50000007 50000008 00000000");
    let body = DeleteRkey {
        rkeys: List::new(&rkeys[..8]),
        negative: false,
        errors: 0,
    };
    check(&v1(false, Body::DeleteRkey(body)), &eight);
    for count in [9, 255] {
        let bad = patched(&eight, 4, &[count]);
        assert_eq!(field_error(&bad), ("number of keys", count.into()));
    }
    let body = DeleteRkey {
        rkeys: List::new(&rkeys),
        ..body
    };
    assert!(v1(false, Body::DeleteRkey(body))
        .emit(&mut [0; 64])
        .is_err());
}

/// 8 + 10 * 4 = 48 bytes.
#[test]
fn delete_rkey_version_2() {
    let rkeys = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(|number| Rkey(0x5000_0000 + number));
    let body = DeleteRkey {
        rkeys: List::new(&rkeys),
        negative: false,
        errors: 0,
    };
    let bytes = hex(&format!(
        "29 {} 00 0a 00 0000 50000001 50000002 50000003 50000004 50000005
         50000006 50000007 50000008 50000009 5000000a",
        native(48)
    ));
    check(&v2(false, Body::DeleteRkey(body)), &bytes);
    let bad = patched(&bytes, 4, &[11]);
    assert_eq!(field_error(&bad), ("number of keys", 11));

    // The answer of Linux to a long request: the count, no keys, 44 bytes.
    let answer = hex(&format!("29 {} a0 ff 03 0000", native(44)));
    let answer = patched(&[0; 44], 0, &answer);
    let expected = DeleteRkey {
        rkeys: List::EMPTY,
        negative: true,
        errors: 3,
    };
    assert_eq!(
        Message::parse(&answer),
        Ok(v2(true, Body::DeleteRkey(expected)))
    );
}

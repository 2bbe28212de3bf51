// SPDX-License-Identifier: GPL-2.0

//! CDC messages and the TCP option against bytes worked out by hand from RFC 7609
//! A.1 and A.4, and the values that several messages share.

mod wire_support;

use smc_proto::ids::*;
use smc_proto::reason::DeclineReason;
use smc_proto::wire::cdc::{CdcMessage, ConnFlags, ProdFlags, RawCursor};
use smc_proto::wire::{tcp_opt, Error};
use wire_support::{hex, hex_dump, patched};

fn message() -> CdcMessage {
    CdcMessage {
        seq: 0xfffe,
        token: AlertToken(0x0a0b_0c0d),
        prod: RawCursor {
            wrap: 0x0102,
            count: 0x0003_0405,
        },
        cons: RawCursor {
            wrap: 0x0607,
            count: 0x0008_090a,
        },
        prod_flags: ProdFlags::WRITER_BLOCKED.with(ProdFlags::CONS_UPDATE_REQUESTED),
        conn_flags: ConnFlags::SENDING_DONE,
    }
}

fn bytes() -> Vec<u8> {
    hex("fe 2c fffe 0a0b0c0d
         0000 0102 00030405
         0000 0607 0008090a
         90 80 0000 00000000 00000000 00000000 00000000")
}

#[test]
fn cdc_message() {
    let bytes = bytes();
    assert_eq!(hex_dump(&message().emit()), hex_dump(&bytes));
    assert_eq!(CdcMessage::parse(&bytes), Ok(message()));
    for end in 0..bytes.len() {
        let expected = Error::Truncated {
            needed: 44,
            available: end,
        };
        assert_eq!(CdcMessage::parse(&bytes[..end]), Err(expected));
    }
    // A receive buffer may be longer than the message.
    let mut long = bytes.clone();
    long.extend_from_slice(&[0xff; 4]);
    assert_eq!(CdcMessage::parse(&long), Ok(message()));
}

#[test]
fn cdc_flags() {
    let prod = [
        (0x80, ProdFlags::WRITER_BLOCKED),
        (0x40, ProdFlags::URGENT_PENDING),
        (0x20, ProdFlags::URGENT_PRESENT),
        (0x10, ProdFlags::CONS_UPDATE_REQUESTED),
        (0x08, ProdFlags::FAILOVER_VALIDATION),
    ];
    for (bit, flag) in prod {
        let parsed = CdcMessage::parse(&patched(&bytes(), 24, &[bit])).unwrap();
        assert_eq!(parsed.prod_flags, flag);
        assert_eq!(parsed.emit()[24], bit);
    }
    let conn = [
        (0x80, ConnFlags::SENDING_DONE),
        (0x40, ConnFlags::CLOSED),
        (0x20, ConnFlags::ABORT),
    ];
    for (bit, flag) in conn {
        let parsed = CdcMessage::parse(&patched(&bytes(), 25, &[bit])).unwrap();
        assert_eq!(parsed.conn_flags, flag);
        assert_eq!(parsed.emit()[25], bit);
    }
    // Reserved bits are neither kept nor repeated.
    let parsed = CdcMessage::parse(&patched(&bytes(), 24, &[0xff, 0xff])).unwrap();
    assert_eq!(parsed.emit()[24..26], [0xf8, 0xe0]);
    assert!(parsed.prod_flags.contains(ProdFlags::URGENT_PRESENT));
    assert!(!ProdFlags::NONE.contains(ProdFlags::URGENT_PRESENT));
    assert!(ConnFlags::NONE.is_empty() && !ConnFlags::ABORT.is_empty());
}

#[test]
fn cdc_type_and_length() {
    for kind in [0x00, 0x01, 0x7e, 0xbe, 0xff] {
        let bad = patched(&bytes(), 0, &[kind]);
        assert_eq!(CdcMessage::parse(&bad), Err(Error::BadType(kind)));
    }
    for length in [0, 43, 45, 255] {
        let bad = patched(&bytes(), 1, &[length]);
        let length = length.into();
        assert_eq!(CdcMessage::parse(&bad), Err(Error::BadLength { length }));
    }
}

#[test]
fn tcp_option_is_found() {
    let syn_of_linux = hex("020405b4 0402080a 01020304 00000000 01030307 0101 fe06e2d4c3d9");
    assert!(tcp_opt::find(&syn_of_linux));
    assert!(tcp_opt::find(&tcp_opt::OPTION));
    assert_eq!(tcp_opt::OPTION[..], hex("0101fe06e2d4c3d9")[..]);
    // Unaligned, and a longer one of even length.
    assert!(tcp_opt::find(&hex("fe06e2d4c3d9")));
    assert!(tcp_opt::find(&hex("01fe08e2d4c3d90102")));
    // Behind another experimental option.
    assert!(tcp_opt::find(&hex("fe04f989 fe06e2d4c3d9")));
}

#[test]
fn tcp_option_is_not_imagined() {
    let none = [
        "",
        "01",
        "00",
        "fe",
        "fe06",
        "fe06e2d4c3",
        "fe06e2d4c3d8",
        "fe04e2d4",
        "fe05e2d4c3",
        "fe07e2d4c3d900",
        "fd06e2d4c3d9",
        // After the end of the options.
        "00fe06e2d4c3d9",
        // Behind options whose length leads nowhere.
        "0200fe06e2d4c3d9",
        "0201fe06e2d4c3d9",
        "02fffe06e2d4c3d9",
        // Inside another option.
        "0808fe06e2d4c3d9",
    ];
    for text in none {
        assert!(!tcp_opt::find(&hex(text)), "{text}");
    }
    // Every start of a header with the option at its end.
    let full = hex("020405b4 0402080a 01020304 00000000 01030307 0101 fe06e2d4c3d9");
    for end in 0..full.len() {
        assert!(!tcp_opt::find(&full[..end]), "{end} bytes");
    }
}

#[test]
fn buffer_sizes() {
    let expected = [(0, 16 << 10), (5, 512 << 10), (6, 1 << 20), (15, 512 << 20)];
    for (code, bytes) in expected {
        let size = BufSize::from_code(code).unwrap();
        assert_eq!((size.bytes(), size.code()), (bytes, code));
        assert_eq!(BufSize::from_bytes_ceil(bytes), size);
        assert_eq!(BufSize::from_bytes_ceil(bytes - 1), size);
    }
    assert_eq!(BufSize::from_code(16), None);
    assert_eq!(BufSize::from_bytes_ceil(0), BufSize::MIN);
    assert_eq!(BufSize::from_bytes_ceil(16385).bytes(), 32768);
    assert_eq!(BufSize::from_bytes_ceil(u32::MAX), BufSize::MAX);
    assert_eq!(BufSize::MIN.smaller(), None);
    assert_eq!(BufSize::MAX.smaller(), BufSize::from_code(14));
}

#[test]
fn path_mtu_codes() {
    let expected = [(1, 256), (2, 512), (3, 1024), (4, 2048), (5, 4096)];
    for (code, bytes) in expected {
        let mtu = PathMtu::from_code(code).unwrap();
        assert_eq!((mtu.bytes(), mtu.code()), (bytes, code));
    }
    for code in (6..=255).chain([0]) {
        assert_eq!(PathMtu::from_code(code), None);
    }
    assert!(PathMtu::Mtu256 < PathMtu::Mtu4096);
}

#[test]
fn enterprise_ids() {
    let padded = Eid::parse(b"RACK-1.BLUE").unwrap();
    assert_eq!(&padded.0, b"RACK-1.BLUE                     ");
    assert_eq!(padded.text(), b"RACK-1.BLUE");
    assert_eq!(Eid::parse(&padded.0), Ok(padded));
    // As it comes through netlink: 33 bytes with a NUL.
    assert_eq!(
        Eid::parse(b"RACK-1.BLUE                     \0"),
        Ok(padded)
    );
    assert_eq!(Eid::parse(b"RACK-1.BLUE\0garbage"), Ok(padded));
    let longest = [b'Z'; 32];
    assert_eq!(Eid::parse(&longest), Ok(Eid(longest)));

    assert_eq!(Eid::parse(&[b'Z'; 33]), Err(EidError::TooLong));
    for empty in [&b""[..], b"    ", b"\0", b"  \0A"] {
        assert_eq!(Eid::parse(empty), Err(EidError::Empty));
    }
    for (text, first) in [(b".A", b'.'), (b"-A", b'-'), (b" A", b' '), (b"aA", b'a')] {
        assert_eq!(Eid::parse(text), Err(EidError::BadStart(first)));
    }
    for (text, bad) in [
        (b"A B", b' '),
        (b"Aa1", b'a'),
        (b"A_B", b'_'),
        (b"A\xc4B", 0xc4),
    ] {
        assert_eq!(Eid::parse(text), Err(EidError::BadCharacter(bad)));
    }
}

#[test]
fn host_names() {
    assert_eq!(
        &HostName::new(b"web1").0,
        b"web1                            "
    );
    assert_eq!(HostName::new(b"web1").text(), b"web1");
    assert_eq!(HostName::new(&[b'x'; 64]).text(), [b'x'; 32]);
    assert_eq!(HostName::new(b""), HostName::EMPTY);
}

#[test]
fn queue_pair_numbers() {
    for none in [0, 0x00ff_ffff, 0x0100_0000, u32::MAX] {
        assert_eq!(Qpn::new(none), None);
    }
    for number in [1, 0x11, 0x00ff_fffe] {
        assert_eq!(Qpn::new(number).map(Qpn::get), Some(number));
    }
    assert_eq!(Psn::new(0xff12_3456).get(), 0x0012_3456);
}

#[test]
fn subnets() {
    let net = |d, len| Ipv4Prefix::new([10, 9, 0, d], len).unwrap();
    assert!(net(1, 24).same_subnet(&net(200, 24)));
    assert!(!net(1, 25).same_subnet(&net(200, 25)));
    assert!(!net(1, 24).same_subnet(&net(1, 25)));
    assert!(net(1, 32).same_subnet(&net(1, 32)));
    assert!(!net(1, 32).same_subnet(&net(0, 32)));
    assert_eq!(Ipv4Prefix::new([0; 4], 0), None);
    assert_eq!(Ipv4Prefix::new([0; 4], 33), None);

    let net = |last, len| {
        let mut addr = [0xfd; 16];
        addr[15] = last;
        Ipv6Prefix::new(addr, len).unwrap()
    };
    assert!(net(1, 64).same_subnet(&net(2, 64)));
    assert!(!net(1, 128).same_subnet(&net(0, 128)));
    assert!(net(1, 128).same_subnet(&net(1, 128)));
    assert_eq!(Ipv6Prefix::new([0; 16], 0), None);
    assert_eq!(Ipv6Prefix::new([0; 16], 129), None);
}

/// Spot checks of the code table, and that every code has words of its own.
#[test]
fn decline_reasons() {
    assert_eq!(DeclineReason::MEM.0, 0x0101_0000);
    assert_eq!(DeclineReason::NOUEID.0, 0x0303_0008);
    assert_eq!(DeclineReason::MAXLINKERR.0, 0x0303_000b);
    assert_eq!(DeclineReason::NOINDIRECT.0, 0x030f_0000);
    assert_eq!(DeclineReason::ERR_REGBUF.0, 0x0999_0003);
    let mut seen = std::collections::HashSet::new();
    for reason in DeclineReason::ALL {
        assert!(seen.insert(reason.0), "{reason:?} is listed twice");
        assert_ne!(reason.name(), "UNKNOWN");
        assert!(!reason.describe().ends_with('.'), "{reason:?}");
        assert!(reason.hint().ends_with('.'), "{reason:?}");
        assert_eq!(reason.is_out_of_sync(), *reason == DeclineReason::SYNCERR);
    }
    assert_eq!(seen.len(), 36);
    assert_eq!(DeclineReason(0x7777_0000).name(), "UNKNOWN");
}

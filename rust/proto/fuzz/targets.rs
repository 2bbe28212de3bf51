// SPDX-License-Identifier: GPL-2.0

//! Fuzz targets: functions that take any bytes, feed them to a parser and panic if
//! something that must always hold does not. A fuzzing engine can call them as
//! they are.
//!
//! Each says whether the bytes were accepted, so that a driver can see whether it
//! gets past the first checks.

use smc_proto::ids::Eid;
use smc_proto::wire::cdc::CdcMessage;
use smc_proto::wire::{clc, llc, tcp_opt, Error};

/// A fuzz target.
pub(crate) type Target = fn(&[u8]) -> bool;

/// CLC messages: an accepted message depends only on the bytes within its length,
/// and what is written from it is read back as the same.
pub(crate) fn clc(bytes: &[u8]) -> bool {
    let header = bytes.first_chunk().map(clc::Header::parse);
    let message = match clc::Message::parse(bytes) {
        Ok(message) => message,
        Err(error) => {
            assert!(!error.describe().is_empty());
            assert!(error.to_string().starts_with(error.describe()));
            return false;
        }
    };
    let header = header.unwrap().expect("the header of an accepted message");
    assert!(header.length <= bytes.len() && header.length <= clc::MAX_RECEIVE_LEN);
    assert_eq!(clc::Message::parse(&bytes[..header.length]), Ok(message));
    let mut buf = [0; clc::MAX_LEN];
    match message.emit(&mut buf) {
        Ok(len) => assert_eq!(clc::Message::parse(&buf[..len]), Ok(message)),
        // A peer may send combinations that are never sent from here.
        Err(error) => assert!(matches!(error, Error::BadField { .. }), "{error}"),
    }
    true
}

/// LLC messages: an accepted message is at least 44 bytes long, and what is
/// written from it is read back as the same.
pub(crate) fn llc(bytes: &[u8]) -> bool {
    let Ok(message) = llc::Message::parse(bytes) else {
        return false;
    };
    assert!(bytes.len() >= llc::LEN);
    let mut buf = [0; llc::MAX_LEN];
    match message.emit(&mut buf) {
        Ok(len) => {
            assert!(len <= bytes.len(), "an answer longer than its cause");
            assert_eq!(llc::Message::parse(&buf[..len]), Ok(message));
        }
        Err(error) => assert!(matches!(error, Error::BadField { .. }), "{error}"),
    }
    true
}

/// CDC messages: only reserved bits get lost.
pub(crate) fn cdc(bytes: &[u8]) -> bool {
    let Ok(message) = CdcMessage::parse(bytes) else {
        return false;
    };
    let written = message.emit();
    assert_eq!(CdcMessage::parse(&written), Ok(message));
    assert_eq!(written[..8], bytes[..8]);
    assert_eq!(written[10..16], bytes[10..16]);
    assert_eq!(written[18..24], bytes[18..24]);
    assert_eq!(written[24], bytes[24] & 0xf8);
    assert_eq!(written[25], bytes[25] & 0xe0);
    true
}

/// The TCP option: the answer is that of a plain walk with an index.
pub(crate) fn tcp_option(bytes: &[u8]) -> bool {
    let found = tcp_opt::find(bytes);
    assert_eq!(found, walk(bytes));
    found
}

fn walk(bytes: &[u8]) -> bool {
    let mut at = 0;
    while at < bytes.len() && bytes[at] != 0 {
        if bytes[at] == 1 {
            at += 1;
            continue;
        }
        let len = bytes.get(at + 1).copied().unwrap_or(0) as usize;
        if len < 2 || at + len > bytes.len() {
            return false;
        }
        let magic = bytes.get(at + 2..at + 6);
        if bytes[at] == 254 && len >= 6 && len % 2 == 0 && magic == Some(&[0xe2, 0xd4, 0xc3, 0xd9])
        {
            return true;
        }
        at += len;
    }
    false
}

/// Enterprise IDs: what is accepted is legal, and is its own image.
pub(crate) fn eid(bytes: &[u8]) -> bool {
    let Ok(eid) = Eid::parse(bytes) else {
        return false;
    };
    assert!(eid.0[0].is_ascii_uppercase() || eid.0[0].is_ascii_digit());
    assert_eq!(Eid::parse(&eid.0), Ok(eid));
    assert!(bytes.starts_with(eid.text()));
    true
}

// SPDX-License-Identifier: GPL-2.0

//! Helpers of the golden vector tests of LLC messages.

use crate::wire_support::hex_dump;
use smc_proto::ids::Version;
use smc_proto::wire::llc::{Body, Message};
use smc_proto::wire::Error;

/// Writes a 16-bit number as Linux does in version 2: in the host's byte order.
pub(crate) fn native(number: u16) -> String {
    let [first, second] = number.to_ne_bytes();
    format!("{first:02x}{second:02x}")
}

pub(crate) fn v1(response: bool, body: Body<'_>) -> Message<'_> {
    Message {
        version: Version::V1,
        response,
        body,
    }
}

pub(crate) fn v2(response: bool, body: Body<'_>) -> Message<'_> {
    Message {
        version: Version::V2,
        response,
        body,
    }
}

/// Asserts that a message and its bytes are each other's image, and that no part
/// of the bytes can be left away.
pub(crate) fn check(message: &Message<'_>, bytes: &[u8]) {
    let mut buf = [0xaa; 600];
    let len = message.emit(&mut buf).expect("the message can be written");
    assert_eq!(hex_dump(&buf[..len]), hex_dump(bytes));
    assert_eq!(buf[len], 0xaa, "written beyond the end");
    assert_eq!(Message::parse(bytes).as_ref(), Ok(message));
    for end in 0..bytes.len() {
        assert!(Message::parse(&bytes[..end]).is_err(), "{end} bytes");
        assert_eq!(message.emit(&mut buf[..end]), Err(Error::NoSpace));
    }
}

pub(crate) fn field_error(bytes: &[u8]) -> (&'static str, u32) {
    match Message::parse(bytes) {
        Err(Error::BadField { field, value }) => (field, value),
        other => panic!("{other:?}"),
    }
}

// SPDX-License-Identifier: GPL-2.0

//! LLC messages of this peer.

use crate::link::SEND_BYTES;
use smc_proto::ids::{Mac, Version};
use smc_proto::wire::llc::{Body, Message, TestLink};

/// A version 2 request.
pub(crate) const fn request(body: Body<'_>) -> Message<'_> {
    Message {
        version: Version::V2,
        response: false,
        body,
    }
}

/// A version 2 response.
pub(crate) const fn response(body: Body<'_>) -> Message<'_> {
    Message {
        version: Version::V2,
        response: true,
        body,
    }
}

pub(crate) const fn test_link<'a>(byte: u8) -> Body<'a> {
    Body::TestLink(TestLink {
        user_data: [byte; 16],
    })
}

/// The bytes of a message.
pub(crate) fn emit(message: &Message<'_>) -> Vec<u8> {
    let mut buf = vec![0; SEND_BYTES];
    match message.emit(&mut buf) {
        Ok(len) => {
            buf.truncate(len);
            buf
        }
        Err(e) => unreachable!("a message of this program cannot be written: {e}"),
    }
}

/// MAC address by which this peer is told from others.
pub(crate) const fn mac_of(number: u16) -> Mac {
    let [high, low] = number.to_be_bytes();
    Mac([0x02, 0x5e, 0x5e, 0x00, high, low])
}

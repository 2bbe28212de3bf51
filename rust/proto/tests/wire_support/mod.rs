// SPDX-License-Identifier: GPL-2.0

//! Helpers of the golden vector tests.

#![allow(dead_code, reason = "not every test binary uses every helper")]

use smc_proto::eid::Eid;
use smc_proto::wire::clc::Message;
use smc_proto::wire::Error;

/// The bytes written as hexadecimal digits; blanks and line ends are for the eye.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| (byte as char).to_digit(16).expect("a hexadecimal digit") as u8)
        .collect();
    assert_eq!(digits.len() % 2, 0, "half a byte");
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// An enterprise ID that is known to be right.
pub(crate) fn eid(text: &str) -> Eid {
    Eid::parse(text.as_bytes()).expect("a legal enterprise ID")
}

/// Asserts that a CLC message and its bytes are each other's image, and that no
/// part of the bytes can be left away.
pub(crate) fn check_clc(message: &Message, bytes: &[u8]) {
    let mut buf = [0xaa; 700];
    let len = message.emit(&mut buf).expect("the message can be written");
    assert_eq!(hex_dump(&buf[..len]), hex_dump(bytes));
    assert_eq!(buf[len], 0xaa, "written beyond the end");
    assert_eq!(Message::parse(bytes).as_ref(), Ok(message));
    for end in 0..bytes.len() {
        assert!(
            matches!(Message::parse(&bytes[..end]), Err(Error::Truncated { .. })),
            "{end} bytes were taken for a whole message"
        );
        assert_eq!(message.emit(&mut buf[..end]), Err(Error::NoSpace));
    }
}

/// Bytes in rows of 16, to make differences readable.
pub(crate) fn hex_dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (row, chunk) in bytes.chunks(16).enumerate() {
        text += &format!("\n{:04}:", row * 16);
        for byte in chunk {
            text += &format!(" {byte:02x}");
        }
    }
    text
}

/// `bytes` with `patch` written over it from `at` on.
pub(crate) fn patched(bytes: &[u8], at: usize, patch: &[u8]) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    copy[at..at + patch.len()].copy_from_slice(patch);
    copy
}

/// `bytes`, a CLC message, with `extra` put in before its trailer and the length
/// in its header made to fit.
pub(crate) fn grown(bytes: &[u8], extra: &[u8]) -> Vec<u8> {
    let split = bytes.len() - 4;
    let mut copy = bytes[..split].to_vec();
    copy.extend_from_slice(extra);
    copy.extend_from_slice(&bytes[split..]);
    let len = u16::try_from(copy.len()).expect("a short message");
    copy[5..7].copy_from_slice(&len.to_be_bytes());
    copy
}

/// `bytes`, a CLC message, without the last `count` bytes before its trailer.
pub(crate) fn shrunk(bytes: &[u8], count: usize) -> Vec<u8> {
    let split = bytes.len() - 4;
    let mut copy = bytes[..split - count].to_vec();
    copy.extend_from_slice(&bytes[split..]);
    let len = u16::try_from(copy.len()).expect("a short message");
    copy[5..7].copy_from_slice(&len.to_be_bytes());
    copy
}

/// Reads a CLC message that must be refused with a Decline.
pub(crate) fn declined(bytes: &[u8]) -> smc_proto::reason::DeclineReason {
    let error = Message::parse(bytes).expect_err("the message is refused");
    error.decline_reason().expect("a reason to decline with")
}

/// Reads a CLC message after which the stream can no longer be followed.
pub(crate) fn fatal(bytes: &[u8]) -> Error {
    let error = Message::parse(bytes).expect_err("the message is refused");
    assert_eq!(error.decline_reason(), None, "{error}");
    error
}

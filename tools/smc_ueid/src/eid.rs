// SPDX-License-Identifier: GPL-2.0

//! The text form of an enterprise identifier.

use std::str::FromStr;

/// Longest identifier in bytes.
const MAX_LENGTH: usize = 32;

/// A well-formed enterprise identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Eid(String);

impl Eid {
    /// The form that the kernel takes: padded with blanks to 32 bytes and ended by a NUL.
    pub(crate) fn attribute(&self) -> [u8; MAX_LENGTH + 1] {
        let mut bytes = [b' '; MAX_LENGTH + 1];
        bytes[..self.0.len()].copy_from_slice(self.0.as_bytes());
        bytes[MAX_LENGTH] = 0;
        bytes
    }

    /// The text without padding.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Eid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim_end_matches(' ');
        let is_upper_or_digit = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        if text.is_empty() || text.len() > MAX_LENGTH {
            return Err(format!("an identifier has 1 to {MAX_LENGTH} characters"));
        }
        if !text.bytes().next().is_some_and(is_upper_or_digit) {
            return Err("an identifier begins with A-Z or 0-9".to_owned());
        }
        let is_allowed = |byte: u8| is_upper_or_digit(byte) || byte == b'.' || byte == b'-';
        if !text.bytes().all(is_allowed) {
            return Err("an identifier consists of A-Z, 0-9, dot and hyphen".to_owned());
        }
        Ok(Eid(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attribute_is_padded_and_ended() {
        let eid: Eid = "SMC-RS.1".parse().expect("the identifier is good");
        let attribute = eid.attribute();
        assert_eq!(&attribute[..8], b"SMC-RS.1");
        assert!(attribute[8..32].iter().all(|&byte| byte == b' '));
        assert_eq!(attribute[32], 0);
        let longest = "A".repeat(32);
        let eid: Eid = longest.parse().expect("32 characters are allowed");
        assert_eq!(&eid.attribute()[..32], longest.as_bytes());
    }

    #[test]
    fn padding_is_no_part_of_the_identifier() {
        assert_eq!("LAB  ".parse::<Eid>(), "LAB".parse::<Eid>());
    }

    #[test]
    fn bad_identifiers_are_refused() {
        for bad in [
            "",
            "   ",
            " A",
            ".A",
            "-A",
            "a",
            "Ab",
            "A B",
            "A_B",
            "Ä",
            &"A".repeat(33),
        ] {
            assert!(bad.parse::<Eid>().is_err(), "{bad:?}");
        }
        for good in ["A", "0", "A.", "A-", "9-.-A"] {
            assert!(good.parse::<Eid>().is_ok(), "{good:?}");
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! The text form of an enterprise identifier.

/// Longest identifier in bytes.
pub const MAX_LENGTH: usize = 32;

/// Checks an identifier as the kernel does; gives it without blanks behind it.
///
/// # Errors
///
/// What is wrong with it, without a full stop.
pub fn parse(text: &str) -> Result<String, String> {
    let text = text.trim_end_matches(' ');
    let is_upper_or_digit = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    let is_allowed = |byte: u8| is_upper_or_digit(byte) || byte == b'.' || byte == b'-';
    if text.is_empty() || text.len() > MAX_LENGTH {
        return Err(format!("an identifier has 1 to {MAX_LENGTH} characters"));
    }
    if !text.bytes().next().is_some_and(is_upper_or_digit) {
        return Err("an identifier begins with A-Z or 0-9".to_owned());
    }
    if !text.bytes().all(is_allowed) {
        return Err("an identifier consists of A-Z, 0-9, dot and hyphen".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_no_part_of_the_identifier() {
        assert_eq!(parse("LAB  "), Ok("LAB".to_owned()));
    }

    #[test]
    fn bad_identifiers_are_refused() {
        let long = "A".repeat(33);
        for bad in [
            "", "   ", " A", ".A", "-A", "a", "Ab", "A B", "A_B", "Ä", &long,
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        for good in ["A", "0", "A.", "A-", "9-.-A", &long[1..]] {
            assert!(parse(good).is_ok(), "{good:?}");
        }
    }
}

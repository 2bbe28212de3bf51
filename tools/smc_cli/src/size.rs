// SPDX-License-Identifier: GPL-2.0

//! Buffer sizes as the user writes them.

/// Largest size that the kernel accepts: it doubles the value and keeps it in an `int`.
const MAX_BYTES: u64 = (i32::MAX / 2) as u64;

/// Parses digits with an optional `k`, `K`, `m` or `M` (times 1024, times 1024²) into bytes.
///
/// # Errors
///
/// A sentence for the user when the text is no size, is zero, or is more than 1 GiB.
pub fn parse(text: &str) -> Result<u32, String> {
    let (digits, unit) = match text.chars().last() {
        Some('k' | 'K') => (&text[..text.len() - 1], 1024),
        Some('m' | 'M') => (&text[..text.len() - 1], 1024 * 1024),
        _ => (text, 1),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("a size is digits with an optional k or m, as in 128k".to_owned());
    }
    let bytes = digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(unit))
        .filter(|&bytes| bytes <= MAX_BYTES)
        .ok_or_else(|| format!("a size can be {MAX_BYTES} bytes at most"))?;
    if bytes == 0 {
        return Err("a size must be more than zero".to_owned());
    }
    Ok(bytes as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        assert_eq!(parse("1"), Ok(1));
        assert_eq!(parse("65536"), Ok(65_536));
        assert_eq!(parse("16k"), Ok(16_384));
        assert_eq!(parse("16K"), Ok(16_384));
        assert_eq!(parse("2m"), Ok(2_097_152));
        assert_eq!(parse("2M"), Ok(2_097_152));
        assert_eq!(parse("007"), Ok(7));
    }

    #[test]
    fn the_limit_is_half_an_int() {
        assert_eq!(parse("1073741823"), Ok(1_073_741_823));
        assert_eq!(parse("1023m"), Ok(1_072_693_248));
        assert!(parse("1073741824").is_err());
        assert!(parse("1024m").is_err());
    }

    #[test]
    fn anything_else_is_refused() {
        for bad in [
            "",
            "k",
            "M",
            "0",
            "0k",
            "-1",
            "+1",
            "1.5m",
            "12kb",
            "k12",
            "1 k",
            "0x10",
            "1g",
            "é",
            "18446744073709551616",
            "99999999999999999999k",
            "18014398509481985k",
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}

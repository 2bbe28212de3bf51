// SPDX-License-Identifier: GPL-2.0

//! Numbers that fit a column.

/// Width of the digits of an abbreviated number.
const WIDTH: usize = 5;
/// Thousands, millions and so on.
const UNITS: [char; 6] = ['K', 'M', 'G', 'T', 'P', 'E'];

/// A number of at most six characters: as it is below a thousand, else four digits of it with a
/// unit.
pub fn abbreviated(number: u64) -> String {
    let plain = number.to_string();
    if plain.len() < 4 {
        return plain;
    }
    let group = (plain.len() - 1) / 3;
    let places = 3 - (plain.len() - 1) % 3;
    let scale = 1000_f64.powi(i32::try_from(group).unwrap_or(0));
    // CAST: Four digits are shown, and a float has fifteen.
    let value = number as f64 / scale;
    let mut digits = format!("{value:.places$}");
    if digits.len() > WIDTH {
        // It was rounded up to one more digit before the point.
        digits = format!("{value:.*}", places - 1);
    }
    format!("{digits:>WIDTH$}{}", UNITS[group - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_their_column() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1.000K"),
            (9999, "9.999K"),
            (12_500, "12.50K"),
            (99_996, "100.0K"),
            (204_800, "204.8K"),
            (131_072, "131.1K"),
            (999_999, " 1000K"),
            (1_000_000, "1.000M"),
            (123_456_789_012, "123.5G"),
            (u64::MAX, "18.45E"),
        ] {
            assert_eq!(abbreviated(number), text);
        }
    }
}

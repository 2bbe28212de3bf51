// SPDX-License-Identifier: GPL-2.0

//! Names of networks: devices with the same name can reach each other.

/// Longest name in bytes.
pub const PNETID_LEN: usize = 16;

/// The name of a network: letters and digits, the letters in upper case, padded with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PnetId([u8; PNETID_LEN]);

impl PnetId {
    /// Reads a name. White space around it does not count; lower case becomes upper case.
    ///
    /// `None` unless it has 1 to 16 letters and digits.
    pub fn parse(text: &[u8]) -> Option<PnetId> {
        let text = text.trim_ascii();
        let usable = !text.is_empty()
            && text.len() <= PNETID_LEN
            && text.iter().all(u8::is_ascii_alphanumeric);
        let mut name = [0; PNETID_LEN];
        for (to, from) in name.iter_mut().zip(text) {
            *to = from.to_ascii_uppercase();
        }
        usable.then_some(PnetId(name))
    }

    /// The name without padding.
    pub fn text(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or(&[])
    }
}

/// Whether a row for an RDMA device means this one: by its name, or by that of its parent, which of
/// a PCI function is its address.
pub fn is_device(row: &[u8], name: &str, parent: Option<&str>) -> bool {
    row == name.as_bytes() || parent.is_some_and(|parent| row == parent.as_bytes())
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(smc_pnet))]
mod tests {
    use super::*;

    #[test]
    fn names_are_upper_case_without_white_space() {
        let name = PnetId::parse(b" \track12 ");
        assert!(name.is_some_and(|name| name.text() == b"RACK12"));
        let longest = PnetId::parse(b"abcdefghijklmnop");
        assert!(longest.is_some_and(|name| name.text() == b"ABCDEFGHIJKLMNOP"));
        assert_eq!(PnetId::parse(b"net1"), PnetId::parse(b"NET1"));
    }

    #[test]
    fn a_device_has_its_name_and_its_parents() {
        let is = |row| is_device(row, "mlx5_0", Some("0000:01:00.0"));
        assert!(is(b"mlx5_0") && is(b"0000:01:00.0"));
        assert!(!is(b"mlx5_1") && !is(b"0000:01:00.1") && !is(b""));
        assert!(is_device(b"rxe0", "rxe0", None) && !is_device(b"", "rxe0", None));
    }

    #[test]
    fn other_names_are_refused() {
        for bad in [
            &b""[..],
            b"   ",
            b"A B",
            b"A-B",
            b"abcdefghijklmnopq",
            b"\xc3\xa4",
            b"A\0",
        ] {
            assert_eq!(PnetId::parse(bad), None);
        }
    }
}

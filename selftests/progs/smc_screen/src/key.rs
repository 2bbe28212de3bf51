// SPDX-License-Identifier: GPL-2.0

//! Keys, and what a terminal sends for them.

/// What the key of this name sends: `None` when there is no such key.
pub(crate) fn bytes(name: &str) -> Option<Vec<u8>> {
    let sequence = match name {
        "Tab" => "\t",
        "Esc" => "\x1b",
        "Up" => "\x1b[A",
        "Down" => "\x1b[B",
        "Home" => "\x1b[H",
        "End" => "\x1b[F",
        "PageUp" => "\x1b[5~",
        "PageDown" => "\x1b[6~",
        "Ctrl-C" => "\x03",
        letter if letter.chars().count() == 1 => letter,
        _ => return None,
    };
    Some(sequence.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_names() {
        assert_eq!(bytes("q").as_deref(), Some(&b"q"[..]));
        assert_eq!(bytes("Down").as_deref(), Some(&b"\x1b[B"[..]));
        assert_eq!(bytes("Dwon"), None);
    }
}

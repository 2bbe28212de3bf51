// SPDX-License-Identifier: GPL-2.0

//! One line of text built on the stack.

use core::fmt;

/// Longest line that is reported whole.
const CAPACITY: usize = 256;

/// A line under construction; what does not fit is cut off.
pub(crate) struct Line {
    bytes: [u8; CAPACITY],
    used: usize,
}

impl Line {
    /// Formats `arguments` and ends the line.
    pub(crate) fn new(arguments: fmt::Arguments<'_>) -> Self {
        let mut line = Line {
            bytes: [0; CAPACITY],
            used: 0,
        };
        // The writer below never fails.
        let _ = fmt::write(&mut line, arguments);
        line.used = line.used.min(CAPACITY - 1);
        line.bytes[line.used] = b'\n';
        line.used += 1;
        line
    }

    /// The finished line with its newline.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.used..];
        let count = text.len().min(room.len());
        room[..count].copy_from_slice(&text.as_bytes()[..count]);
        self.used += count;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_with_a_newline() {
        let line = Line::new(format_args!("socket {}", 7));
        assert_eq!(line.as_bytes(), b"socket 7\n");
    }

    #[test]
    fn a_long_line_is_cut_and_still_ends() {
        let text = "x".repeat(1000);
        let line = Line::new(format_args!("{text}{text}"));
        assert_eq!(line.as_bytes().len(), CAPACITY);
        assert_eq!(line.as_bytes().last(), Some(&b'\n'));
    }
}

// SPDX-License-Identifier: GPL-2.0

//! One-line JSON objects for reports.

use std::fmt::{Display, Write};

/// An object under construction.
#[derive(Default)]
pub struct Object(String);

impl Object {
    /// An object without members.
    pub fn new() -> Object {
        Object::default()
    }

    fn key(&mut self, name: &str) {
        if !self.0.is_empty() {
            self.0.push_str(", ");
        }
        quote(&mut self.0, name);
        self.0.push_str(": ");
    }

    /// Adds a number or a boolean.
    pub fn raw(mut self, name: &str, value: impl Display) -> Object {
        self.key(name);
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{value}");
        self
    }

    /// Adds a string.
    pub fn text(mut self, name: &str, value: &str) -> Object {
        self.key(name);
        quote(&mut self.0, value);
        self
    }

    /// Adds a list of strings.
    pub fn list(mut self, name: &str, values: &[String]) -> Object {
        self.key(name);
        self.0.push('[');
        for (i, v) in values.iter().enumerate() {
            if i > 0 {
                self.0.push_str(", ");
            }
            quote(&mut self.0, v);
        }
        self.0.push(']');
        self
    }

    /// The object as one line of text.
    pub fn finish(self) -> String {
        format!("{{{}}}", self.0)
    }
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if u32::from(c) < 0x20 => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_separated_and_escaped() {
        let text = Object::new()
            .raw("n", 5)
            .text("s", "a\"b\\c\n")
            .list("l", &["x".into(), "y".into()])
            .finish();
        assert_eq!(text, r#"{"n": 5, "s": "a\"b\\c\u000a", "l": ["x", "y"]}"#);
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Colours, where a person looks at the output.

use std::io::IsTerminal;

/// How to mark text; all marks are empty where colours are not wanted.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    colour: bool,
}

impl Style {
    /// Colours on a terminal or with `FORCE_COLOR`, none with `NO_COLOR`.
    pub fn of_stdout() -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let wanted = std::io::stdout().is_terminal() && !is_set("NO_COLOR");
        Style {
            colour: is_set("FORCE_COLOR") || wanted,
        }
    }

    /// No colours.
    pub fn plain() -> Self {
        Style { colour: false }
    }

    /// Text that tells of success.
    pub fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Text that tells of failure.
    pub fn bad(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    /// A heading.
    pub fn heading(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

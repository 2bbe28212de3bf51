// SPDX-License-Identifier: GPL-2.0

//! A terminal: a pair of pseudo terminals, and what would be seen on the screen.

use std::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};

use rustix::pty::{self, OpenptFlags};
use rustix::termios::{self, Termios, Winsize};

use crate::key;

/// What is said of a terminal that a program gave back as it got it.
pub(crate) const AS_IT_WAS: &str = "left the terminal as it was";

pub(crate) struct Terminal {
    /// The end that a person or a window is at.
    controller: File,
    /// The end that the program is at. It stays open, so that what the program wrote last can be read.
    program: OwnedFd,
    before: Termios,
    parser: vt100::Parser,
    /// The screen when it was last asked for.
    seen: Option<String>,
}

impl Terminal {
    pub(crate) fn open(rows: u16, columns: u16) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let controller = pty::openpt(flags)?;
        pty::grantpt(&controller)?;
        pty::unlockpt(&controller)?;
        let program = pty::ioctl_tiocgptpeer(&controller, flags)?;
        termios::tcsetwinsize(&controller, size(rows, columns))?;
        Ok(Self {
            before: termios::tcgetattr(&program)?,
            controller: File::from(controller),
            program,
            parser: vt100::Parser::new(rows, columns, 0),
            seen: None,
        })
    }

    /// Starts a program for which this is the terminal that it is controlled by. Shells have what they
    /// start in the background ignore some keys' signals; on a terminal a program gets them.
    pub(crate) fn start(&self, command: &[OsString]) -> io::Result<Child> {
        Command::new("setsid")
            .args(["--ctty", "env", "--default-signal=INT,QUIT"])
            .args(command)
            .env("TERM", "xterm-256color")
            .stdin(self.program.try_clone()?)
            .stdout(self.program.try_clone()?)
            .stderr(self.program.try_clone()?)
            .spawn()
    }

    /// For reading what is written to the screen.
    pub(crate) fn controller(&self) -> io::Result<File> {
        self.controller.try_clone()
    }

    /// Takes what was written to the screen.
    pub(crate) fn show(&mut self, output: &[u8]) {
        self.parser.process(output);
    }

    /// Does what a line of keys says.
    pub(crate) fn press(&mut self, line: &str) -> Result<(), Box<dyn Error>> {
        if let Some(words) = line.strip_prefix("resize ") {
            let (rows, columns) = words.split_once(' ').ok_or("resize ROWS COLUMNS")?;
            let (rows, columns) = (rows.parse()?, columns.parse()?);
            self.parser.set_size(rows, columns);
            termios::tcsetwinsize(&self.controller, size(rows, columns))?;
            return Ok(());
        }
        let bytes = key::bytes(line).ok_or_else(|| format!("there is no key {line}"))?;
        Ok(self.controller.write_all(&bytes)?)
    }

    /// The screen, if it is not as it was when this was asked last.
    pub(crate) fn changed(&mut self) -> Option<String> {
        let screen = self.parser.screen();
        let (_, columns) = screen.size();
        let rows = screen.rows(0, columns);
        let text: String = rows.map(|row| row.trim_end().to_owned() + "\n").collect();
        if self.seen.as_ref() == Some(&text) {
            return None;
        }
        self.seen = Some(text.clone());
        Some(text)
    }

    /// How the program left the terminal.
    pub(crate) fn left_as(&self) -> &'static str {
        let screen = self.parser.screen();
        let modes = |of: &Termios| (of.input_modes, of.output_modes, of.local_modes);
        if screen.alternate_screen() {
            "left the terminal with its second screen"
        } else if screen.hide_cursor() {
            "left the terminal without cursor"
        } else if termios::tcgetattr(&self.program)
            .map(|now| modes(&now))
            .ok()
            != Some(modes(&self.before))
        {
            "left the terminal in another mode"
        } else {
            AS_IT_WAS
        }
    }
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// What a shell's command leaves on a screen, and how it leaves the terminal.
    fn after(command: &str) -> (String, &'static str) {
        const BELL: u8 = 7;
        let mut terminal = Terminal::open(4, 20).expect("a terminal");
        // Output comes in pieces, and the last of them is not marked by an end of file.
        let command = format!(r"{command}; printf '\a'");
        let words = ["sh", "-c", &command].map(OsString::from);
        let mut child = terminal.start(&words).expect("a shell");
        child.wait().expect("it ends");
        let mut buffer = [0; 4096];
        let mut controller = terminal.controller().expect("the other end");
        let mut ended = false;
        while !ended {
            let length = controller.read(&mut buffer).expect("its output");
            terminal.show(&buffer[..length]);
            ended = buffer[..length].contains(&BELL);
        }
        let text = terminal.changed().expect("the first screen");
        assert_eq!(terminal.changed(), None);
        (text, terminal.left_as())
    }

    #[test]
    fn a_screen_is_text() {
        let (text, left) = after(r"printf '\033[2;3H\033[1mbold\033[0m here'; tty >&2");
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(""));
        let line = lines.next().expect("there are four lines");
        assert!(line.starts_with("  bold here/dev/pts"), "{text}");
        assert_eq!(left, AS_IT_WAS);
    }

    #[test]
    fn what_is_not_put_back_is_told() {
        for (command, left) in [
            (
                r"printf '\033[?1049h'",
                "left the terminal with its second screen",
            ),
            (r"printf '\033[?25l'", "left the terminal without cursor"),
            ("echo; stty raw", "left the terminal in another mode"),
            (r"printf '\033[?1049h\033[?1049l'", AS_IT_WAS),
        ] {
            assert_eq!(after(command).1, left, "{command}");
        }
    }

    #[test]
    fn the_size_is_the_programs() {
        let (text, _) = after("stty size");
        assert!(text.starts_with("4 20\n"), "{text}");
    }
}

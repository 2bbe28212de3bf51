// SPDX-License-Identifier: GPL-2.0

//! The live view: the terminal, its keys, and the time between two looks.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{process, thread};

use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::widgets::TableState;
use ratatui::DefaultTerminal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use smc_tools::output::Outcome;

use super::history::History;
use super::rates::Rates;
use super::sample::{Look, Sampler};
use super::view::{self, Picture, Position, Shown};

/// How long a signal waits at most.
const PATIENCE: Duration = Duration::from_millis(200);

/// Rows that a page has.
const PAGE: u16 = 10;

/// Shows the view until a key or a signal ends it.
pub(super) fn run(mut sampler: Sampler, interval: Duration) -> Outcome {
    // What fails here is said on the terminal as it was.
    let first = sampler.look()?;
    let mut terminal = Terminal::take()?;
    // Only now: in the background, taking the terminal stops the process, and then a signal must
    // end it.
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(words)?;
    }
    end_with_terminal().map_err(words)?;
    show(&mut terminal.0, sampler, first, interval, &stop)
}

/// The terminal, which is given back as it was, also after an error; the library's hook does so
/// before the message of a panic.
struct Terminal(DefaultTerminal);

impl Terminal {
    fn take() -> Result<Self, String> {
        ratatui::try_init().map(Self).map_err(|error| {
            // Some of it may have been done.
            let _ = ratatui::try_restore();
            words(error)
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // There may be no terminal any more.
        let _ = ratatui::try_restore();
    }
}

/// Has the process end when the terminal hangs up, whatever it does then: what the library reads keys
/// with tries for ever to read a terminal that is gone.
fn end_with_terminal() -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP])?;
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            // The signal can also come from a process, and then there is a terminal to give back.
            let _ = ratatui::try_restore();
            let _ = execute!(io::stdout(), Show);
            process::exit(0);
        }
    });
    Ok(())
}

fn words(error: io::Error) -> String {
    format!("the terminal cannot be used, try \"smc top -n 1\": {error}.")
}

fn show(
    terminal: &mut DefaultTerminal,
    mut sampler: Sampler,
    first: Look,
    interval: Duration,
    stop: &AtomicBool,
) -> Outcome {
    let mut history = History::default();
    let mut position = Position::default();
    let mut rates = Rates::between(&first, &first);
    let mut last = first;
    // Some terminals have no second screen.
    terminal.clear().map_err(words)?;
    while !stop.load(Ordering::Relaxed) {
        let picture = Picture {
            rates: &rates,
            history: &history,
            interval,
        };
        let drawn = terminal.draw(|frame| view::draw(frame, &picture, &mut position));
        drawn.map_err(words)?;
        if !keys(&mut position, last.at + interval, stop)? {
            break;
        }
        if last.at.elapsed() >= interval {
            let now = sampler.look()?;
            rates = Rates::between(&last, &now);
            history.push(&rates);
            last = now;
        }
    }
    Ok(())
}

/// Waits for something that changes the screen, until `end` at most; false for an end of the view.
fn keys(position: &mut Position, end: Instant, stop: &AtomicBool) -> Result<bool, String> {
    while !stop.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if event::poll(left.min(PATIENCE)).map_err(words)? {
            return match event::read().map_err(words)? {
                Event::Key(key) if key.kind != KeyEventKind::Release => Ok(pressed(position, key)),
                _ => Ok(true),
            };
        }
        if left.is_zero() {
            break;
        }
    }
    Ok(true)
}

/// Does what a key means; false for an end of the view.
fn pressed(position: &mut Position, key: KeyEvent) -> bool {
    let table = &mut position.table;
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Up => table.select_previous(),
        KeyCode::Down => table.select_next(),
        KeyCode::PageUp => table.scroll_up_by(PAGE),
        KeyCode::PageDown => table.scroll_down_by(PAGE),
        KeyCode::Home => table.select_first(),
        KeyCode::End => table.select_last(),
        KeyCode::Char('l') => turn(position, Shown::Links),
        KeyCode::Char('c') => turn(position, Shown::Connections),
        KeyCode::Tab | KeyCode::BackTab => {
            let other = match position.shown {
                Shown::Links => Shown::Connections,
                Shown::Connections => Shown::Links,
            };
            turn(position, other);
        }
        _ => {}
    }
    true
}

/// Shows another table from its beginning.
fn turn(position: &mut Position, shown: Shown) {
    if position.shown != shown {
        *position = Position {
            shown,
            table: TableState::default(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(position: &mut Position, code: KeyCode) -> bool {
        pressed(position, KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn keys_end_the_view() {
        let mut position = Position::default();
        assert!(!press(&mut position, KeyCode::Char('q')));
        assert!(!press(&mut position, KeyCode::Esc));
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(!pressed(&mut position, control_c));
        assert!(press(&mut position, KeyCode::Char('x')));
    }

    #[test]
    fn keys_choose_the_table_and_scroll_it() {
        let mut position = Position::default();
        let mut shown = |code, expected, selected| {
            assert!(press(&mut position, code));
            let seen = (position.shown, position.table.selected());
            assert_eq!(seen, (expected, selected), "after {code:?}");
        };
        shown(KeyCode::Char('c'), Shown::Connections, None);
        shown(KeyCode::Down, Shown::Connections, Some(0));
        shown(KeyCode::Down, Shown::Connections, Some(1));
        shown(KeyCode::Char('c'), Shown::Connections, Some(1));
        shown(KeyCode::PageDown, Shown::Connections, Some(11));
        shown(KeyCode::Up, Shown::Connections, Some(10));
        shown(KeyCode::Home, Shown::Connections, Some(0));
        shown(KeyCode::Tab, Shown::Links, None);
        shown(KeyCode::Tab, Shown::Connections, None);
        shown(KeyCode::Char('l'), Shown::Links, None);
    }
}

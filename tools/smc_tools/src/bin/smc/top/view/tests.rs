// SPDX-License-Identifier: GPL-2.0

//! Screens as text.

use ratatui::backend::TestBackend;
use ratatui::Terminal;

use super::*;
use crate::top::rates::example;

/// The screen, line by line, less the blanks at their ends.
fn screen(width: u16, height: u16, picture: &Picture, position: &mut Position) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("there is memory");
    terminal
        .draw(|frame| draw(frame, picture, position))
        .expect("there is memory");
    let buffer = terminal.backend().buffer();
    let lines = buffer.content.chunks(usize::from(width));
    lines
        .map(|cells| {
            let line: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
            line.trim_end().to_owned()
        })
        .collect()
}

/// Sixteen intervals: more is sent each time, and something is received and falls back in some.
fn history() -> History {
    let mut history = History::default();
    for number in 1..=16 {
        let mut rates = example();
        rates.sent = number * 1000;
        rates.received = if number % 4 == 0 { 500 } else { 0 };
        if let Some(fallbacks) = &mut rates.fallbacks {
            (fallbacks.server, fallbacks.client) = (0, number / 8);
        }
        history.push(&rates);
    }
    history
}

fn assert_screen(seen: &[String], expected: &str) {
    let expected: Vec<&str> = expected.lines().collect();
    assert_eq!(seen, expected, "\n{}", seen.join("\n"));
}

#[test]
fn the_screen_has_sums_pictures_and_links() {
    let (rates, history) = (example(), history());
    let picture = Picture {
        rates: &rates,
        history: &history,
        interval: Duration::from_secs(1),
    };
    let seen = screen(80, 20, &picture, &mut Position::default());
    assert_screen(
        &seen,
        r" Sent 204.8K/s  Received 1.500K/s  Connections: 2 over SMC-R, 1 on TCP
 Fallbacks in 1 s: 4 (3 client PEERNOSMC, 1 server IPSEC)
 Sent 204.8K bytes/s ─────────────────────────────────── highest 16.00K bytes/s
                                                                           ▂▃▅▆█
                                                                     ▁▂▄▅▇██████
                                                                ▁▃▄▆▇███████████
 Received 1.500K bytes/s ────────────────────────────────── highest 500 bytes/s
                                                                   █   █   █   █
                                                                   █   █   █   █
                                                                   █   █   █   █
 Fallbacks ─────────────────────────────────────────────────── highest 2 in 1 s
                                                                               █
                                                                       █████████
 Links: 2 ──────────────────────────────────────────────────────────────────────
Group      Link Device         Peer                      Conns   Sent/s   Recv/s
00000300+1    1 rxe1/1         nodea                         2   204.8K   1.500K
-             1 rxe2/1         10.9.1.1                      0        0        0


 q quit  Tab, l links, c connections  Up, Down, PgUp, PgDn, Home, End scroll
",
    );
}

#[test]
fn connections_can_be_scrolled() {
    let (rates, history) = (example(), history());
    let picture = Picture {
        rates: &rates,
        history: &history,
        interval: Duration::from_millis(500),
    };
    let mut position = Position {
        shown: Shown::Connections,
        table: TableState::default().with_selected(99),
    };
    // Two rows have room.
    let seen = screen(80, 7, &picture, &mut position);
    assert_screen(
        &seen,
        r" Sent 204.8K/s  Received 1.500K/s  Connections: 2 over SMC-R, 1 on TCP
 Fallbacks in 0.5 s: 4 (3 client PEERNOSMC, 1 server IPSEC)
 Connections: 3 of 3 ───────────────────────────────────────────────────────────
Local             Peer             Mode Device      Sent/s  Recv/s Unread Unsent
10.9.0.2:51406    10.9.0.1:7401    SMCR rxe1             0  1.500K    300      0
10.9.0.2:51500    10.9.0.1:7002    TCP                   -       -      -      -
 q quit  Tab, l links, c connections  Up, Down, PgUp, PgDn, Home, End scroll
",
    );
    assert_eq!(position.table.selected(), Some(2));
}

#[test]
fn what_the_kernel_does_not_tell_is_left_out() {
    let picture = Picture {
        rates: &Rates::default(),
        history: &History::default(),
        interval: Duration::from_secs(1),
    };
    let seen = screen(60, 16, &picture, &mut Position::default());
    assert_screen(
        &seen,
        r" Sent 0/s  Received 0/s  Connections: 0 over SMC-R, 0 on TCP

 Sent 0 bytes/s ───────────────────────── highest 0 bytes/s

 Received 0 bytes/s ───────────────────── highest 0 bytes/s

 Links: 0 ──────────────────────────────────────────────────
Group      Link Device         Peer  Conns   Sent/s   Recv/s







 q quit  Tab, l links, c connections  Up, Down, PgUp, PgDn,
",
    );
}

#[test]
fn every_size_can_be_drawn() {
    let (rates, history) = (example(), history());
    let picture = Picture {
        rates: &rates,
        history: &history,
        interval: Duration::from_secs(1),
    };
    for width in [1, 2, 10, 300] {
        for height in [1, 2, 5, 13, 14, 20, 36, 100] {
            let seen = screen(width, height, &picture, &mut Position::default());
            assert_eq!(seen.len(), usize::from(height));
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! The screen of the live view.

use std::time::Duration;

use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{
    Block, Borders, Paragraph, RenderDirection, Row, Sparkline, SparklineBar, Table, TableState,
};
use ratatui::Frame;

use super::history::History;
use super::rates::Rates;
use super::text::{self, short};

/// Which table is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Shown {
    #[default]
    Links,
    Connections,
}

/// What is to be seen.
pub(super) struct Picture<'a> {
    pub(super) rates: &'a Rates,
    pub(super) history: &'a History,
    pub(super) interval: Duration,
}

/// Which part of it.
#[derive(Debug, Default)]
pub(super) struct Position {
    pub(super) shown: Shown,
    /// The row that is marked, in the table that is shown.
    pub(super) table: TableState,
}

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame, picture: &Picture, position: &mut Position) {
    let graph = graph_rows(frame.area().height);
    let counted = picture.rates.fallbacks.is_some();
    let third = if counted {
        graph.saturating_sub(1).max(graph.min(1))
    } else {
        0
    };
    let block = |rows: u16| Constraint::Length(if rows == 0 { 0 } else { rows + 1 });
    let [head, sent, received, fallbacks, table, foot] = Layout::vertical([
        Constraint::Length(2),
        block(graph),
        block(graph),
        block(third),
        Constraint::Min(2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    header(frame, head, picture);
    let rates = picture.rates;
    let per_second = |number: u64| format!("{} bytes/s", short(number));
    let width = usize::from(sent.width);
    let values = picture
        .history
        .newest(width, |interval| Some(interval.sent));
    let title = format!("Sent {}", per_second(rates.sent));
    graph_of(frame, sent, &title, &values, &per_second, Color::Cyan);
    let values = picture
        .history
        .newest(width, |interval| Some(interval.received));
    let title = format!("Received {}", per_second(rates.received));
    graph_of(frame, received, &title, &values, &per_second, Color::Green);
    let values = picture.history.newest(width, |interval| interval.fallbacks);
    let in_one = |number: u64| format!("{number} in {}", seconds(picture.interval));
    graph_of(frame, fallbacks, "Fallbacks", &values, &in_one, Color::Red);
    match position.shown {
        Shown::Links => links(frame, table, rates, &mut position.table),
        Shown::Connections => connections(frame, table, rates, &mut position.table),
    }
    let keys = " q quit  Tab, l links, c connections  Up, Down, PgUp, PgDn, Home, End scroll";
    frame.render_widget(Paragraph::new(keys).style(Modifier::DIM), foot);
}

/// Rows of the bars: the table has to have some, too.
fn graph_rows(height: u16) -> u16 {
    match height {
        0..=13 => 0,
        14..=19 => 1,
        20..=35 => 3,
        _ => 6,
    }
}

fn seconds(interval: Duration) -> String {
    format!("{} s", interval.as_secs_f64())
}

fn header(frame: &mut Frame, area: Rect, picture: &Picture) {
    let rates = picture.rates;
    let sums = format!(
        " Sent {}/s  Received {}/s  Connections: {}",
        short(rates.sent),
        short(rates.received),
        text::connections(rates)
    );
    let new = match &rates.fallbacks {
        Some(new) => format!(
            " Fallbacks in {}: {}",
            seconds(picture.interval),
            text::fallbacks(new)
        ),
        None => String::new(),
    };
    let lines = vec![Line::from(sums).style(Modifier::BOLD), Line::from(new)];
    frame.render_widget(Paragraph::new(lines), area);
}

/// Bars, the newest at the right, under a line that says what they are and how high the highest is.
fn graph_of(
    frame: &mut Frame,
    area: Rect,
    title: &str,
    values: &[Option<u64>],
    words: &dyn Fn(u64) -> String,
    color: Color,
) {
    let highest = values.iter().flatten().max().copied().unwrap_or(0);
    let peak = format!(" highest {} ", words(highest));
    let block = Block::new()
        .borders(Borders::TOP)
        .title(format!(" {title} "))
        .title(Line::from(peak).alignment(Alignment::Right));
    let bars = values.iter().map(|value| SparklineBar::from(*value));
    let graph = Sparkline::default()
        .block(block)
        .data(bars)
        .max(highest.max(1))
        .direction(RenderDirection::RightToLeft)
        .style(color);
    frame.render_widget(graph, area);
}

fn links(frame: &mut Frame, area: Rect, rates: &Rates, state: &mut TableState) {
    let rows = rates.links.iter().map(text::link).map(Vec::from).collect();
    let widths = [
        Constraint::Length(10),
        Constraint::Length(4),
        Constraint::Length(14),
        Constraint::Fill(1),
        Constraint::Length(5),
        Constraint::Length(8),
        Constraint::Length(8),
    ];
    table(frame, area, "Links", &text::LINK, rows, &widths, state);
}

fn connections(frame: &mut Frame, area: Rect, rates: &Rates, state: &mut TableState) {
    let rows = rates.connections.iter().map(text::connection);
    let rows = rows.map(Vec::from).collect();
    let widths = [
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Length(4),
        Constraint::Max(10),
        Constraint::Length(7),
        Constraint::Length(7),
        Constraint::Length(6),
        Constraint::Length(6),
    ];
    let name = "Connections";
    table(frame, area, name, &text::CONNECTION, rows, &widths, state);
}

fn table(
    frame: &mut Frame,
    area: Rect,
    name: &str,
    head: &[&str],
    rows: Vec<Vec<String>>,
    widths: &[Constraint],
    state: &mut TableState,
) {
    // What is after the words are numbers: they end below each other.
    let cell = |column: usize, text: String| {
        let number = head[column].ends_with("/s")
            || head[column].starts_with("Un")
            || matches!(head[column], "Conns" | "Link");
        let line = Line::from(text);
        line.alignment(if number {
            Alignment::Right
        } else {
            Alignment::Left
        })
    };
    let row = |cells: Vec<String>| {
        let cells = cells.into_iter().enumerate();
        Row::new(
            cells
                .map(|(column, text)| cell(column, text))
                .collect::<Vec<_>>(),
        )
    };
    let count = rows.len();
    let title = match state.selected() {
        Some(at) if count > 0 => format!(" {name}: {} of {count} ", at.min(count - 1) + 1),
        _ => format!(" {name}: {count} "),
    };
    let head = row(head.iter().map(ToString::to_string).collect()).style(Modifier::BOLD);
    let table = Table::new(rows.into_iter().map(row), widths)
        .header(head)
        .block(Block::new().borders(Borders::TOP).title(title))
        .row_highlight_style(Style::from(Modifier::REVERSED));
    frame.render_stateful_widget(table, area, state);
}

#[cfg(test)]
mod tests;

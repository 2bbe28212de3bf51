// SPDX-License-Identifier: GPL-2.0

//! The close state table, cell by cell, and properties of every walk through it.

mod seeded;

use seeded::Random;
use smc_proto::conn::{CloseActions, CloseError, CloseEvent, CloseState};
use smc_proto::state::ConnState;
use smc_proto::wire::cdc::ConnFlags;

use CloseEvent::{AppAbort, AppShutdownWr, LinkDown, PeerAbort, PeerClosed, PeerDone, WaitTimeout};

const CLOSE: CloseEvent = CloseEvent::AppClose { unread: false };
const CLOSE_UNREAD: CloseEvent = CloseEvent::AppClose { unread: true };

/// How each row of the table is reached from an active connection.
///
/// `/d` and `/c` tell the rows of one state apart: by what this side sent in the PCW rows, by what it
/// received in the ACW rows.
const ROWS: [(&str, &[CloseEvent]); 13] = [
    ("ACTIVE", &[]),
    ("PCW1/d", &[AppShutdownWr]),
    ("PCW1/c", &[CLOSE]),
    ("PCW2/d", &[AppShutdownWr, PeerDone]),
    ("PCW2/c", &[CLOSE, PeerDone]),
    ("ACW1/d", &[PeerDone]),
    ("ACW1/c", &[PeerClosed]),
    ("ACW2/d", &[PeerDone, AppShutdownWr]),
    ("ACW2/c", &[PeerClosed, AppShutdownWr]),
    ("AFCW", &[AppShutdownWr, PeerClosed]),
    ("PFCW", &[PeerDone, CLOSE]),
    ("PAW", &[AppAbort]),
    ("PA", &[PeerAbort]),
];

/// One line per row. A cell is the next state, then what is done: D, C, A flags sent; w wake, f free,
/// q quarantine, r reset of the TCP connection,
/// e error for the application.
#[rustfmt::skip]
const TABLE: &str = "
row    | shutdown | close      | unread       | abort        | peer D | peer C    | peer A    | link down   | timeout
INIT   | INIT     | CLOSED.wf  | CLOSED.wf    | CLOSED.wf    | ACW1.w | ACW1.w    | PA.Awe    | CLOSED.wfre | INIT
LISTEN | LISTEN   | CLOSED.wf  | CLOSED.wf    | CLOSED.wf    | LISTEN | LISTEN    | LISTEN    | LISTEN      | LISTEN
ACTIVE | PCW1.D   | PCW1.C     | PAW.Awre     | PAW.Awre     | ACW1.w | ACW1.w    | PA.Awe    | CLOSED.wfre | ACTIVE
PCW1/d | PCW1     | PCW1.C     | PAW.Awre     | PAW.Awre     | PCW2.w | AFCW.w    | PA.Awe    | CLOSED.wfre | PCW1
PCW1/c | PCW1     | PCW1       | PCW1         | PAW.r        | PCW2.w | CLOSED.wf | CLOSED.wf | CLOSED.wfre | CLOSED.wfqre
PCW2/d | PCW2     | PCW2.C     | PAW.Awr      | PAW.Awr      | PCW2   | AFCW.w    | PA.Aw     | CLOSED.wfre | PCW2
PCW2/c | PCW2     | PCW2       | PCW2         | PAW.r        | PCW2   | CLOSED.wf | CLOSED.wf | CLOSED.wfre | CLOSED.wfqre
ACW1/d | ACW2.D   | PFCW.C     | PAW.Awre     | PAW.Awre     | ACW1   | ACW1.w    | PA.Awe    | CLOSED.wfre | ACW1
ACW1/c | ACW2.D   | CLOSED.Cwf | CLOSED.Awfre | CLOSED.Awfre | ACW1   | ACW1.w    | PA.we     | CLOSED.wfre | ACW1
ACW2/d | ACW2     | PFCW.C     | PAW.Awr      | PAW.Awr      | ACW2   | ACW2.w    | PA.Aw     | CLOSED.wfre | ACW2
ACW2/c | ACW2     | CLOSED.Cwf | CLOSED.Awfr  | CLOSED.Awfr  | ACW2   | ACW2.w    | PA.w      | CLOSED.wfre | ACW2
AFCW   | AFCW     | CLOSED.Cwf | CLOSED.Awfr  | CLOSED.Awfr  | AFCW   | AFCW      | PA.w      | CLOSED.wfre | AFCW
PFCW   | PFCW     | PFCW       | PFCW         | PAW.r        | PFCW   | CLOSED.wf | CLOSED.wf | CLOSED.wfre | CLOSED.wfqre
PAW    | PAW      | PAW        | PAW          | PAW          | PAW    | CLOSED.wf | CLOSED.wf | CLOSED.wfre | CLOSED.wfqre
PA     | PA       | CLOSED.wf  | CLOSED.wf    | CLOSED.wf    | PA     | PA        | PA        | CLOSED.wfre | PA
CLOSED | CLOSED   | CLOSED     | CLOSED       | CLOSED       | CLOSED | CLOSED    | CLOSED    | CLOSED      | CLOSED
";

const COLUMNS: [CloseEvent; 9] = [
    AppShutdownWr,
    CLOSE,
    CLOSE_UNREAD,
    AppAbort,
    PeerDone,
    PeerClosed,
    PeerAbort,
    LinkDown,
    WaitTimeout,
];

fn short(state: ConnState) -> &'static str {
    match state {
        ConnState::PeerCloseWait1 => "PCW1",
        ConnState::PeerCloseWait2 => "PCW2",
        ConnState::AppCloseWait1 => "ACW1",
        ConnState::AppCloseWait2 => "ACW2",
        ConnState::AppFinCloseWait => "AFCW",
        ConnState::PeerFinCloseWait => "PFCW",
        ConnState::PeerAbortWait => "PAW",
        ConnState::ProcessAbort => "PA",
        other => other.name(),
    }
}

fn active() -> CloseState {
    let mut close = CloseState::new();
    close.activate();
    close
}

fn row(name: &str) -> CloseState {
    match name {
        "INIT" => CloseState::new(),
        "LISTEN" => CloseState::listening(),
        "CLOSED" => {
            let mut close = active();
            close.on(LinkDown);
            close
        }
        _ => {
            let (_, path) = ROWS.iter().find(|(row, _)| *row == name).expect(name);
            let mut close = active();
            for event in *path {
                close.on(*event);
            }
            close
        }
    }
}

fn cell(state: ConnState, actions: CloseActions) -> String {
    let mut done = String::new();
    for (flag, letter) in [
        (ConnFlags::SENDING_DONE, 'D'),
        (ConnFlags::CLOSED, 'C'),
        (ConnFlags::ABORT, 'A'),
    ] {
        if actions.send.contains(flag) {
            done.push(letter);
        }
    }
    for (set, letter) in [
        (actions.wake, 'w'),
        (actions.free, 'f'),
        (actions.quarantine, 'q'),
        (actions.reset_tcp, 'r'),
        (actions.error.is_some(), 'e'),
    ] {
        if set {
            done.push(letter);
        }
    }
    if done.is_empty() {
        short(state).into()
    } else {
        format!("{}.{done}", short(state))
    }
}

#[test]
fn full_matrix() {
    let mut cells = 0;
    for line in TABLE.trim().lines().skip(1) {
        let mut fields = line.split('|').map(str::trim);
        let name = fields.next().unwrap();
        let start = row(name);
        assert_eq!(short(start.state()), name.split('/').next().unwrap());
        for (event, expected) in COLUMNS.iter().zip(fields) {
            let mut close = start;
            let actions = close.on(*event);
            assert_eq!(cell(close.state(), actions), expected, "{name}, {event:?}");
            cells += 1;
        }
    }
    assert_eq!(cells, 16 * CloseEvent::ALL.len());
}

#[test]
fn a_reset_means_what_it_means_on_tcp() {
    let nobody_reads = Some(CloseError::NobodyReads);
    for (names, by_peer, by_us) in [
        (
            &["ACTIVE", "PCW1/d"][..],
            Some(CloseError::PeerAborted),
            Some(CloseError::Aborted),
        ),
        (&["ACW1/d", "ACW1/c"], nobody_reads, nobody_reads),
        (&["PCW2/d", "ACW2/d", "AFCW"], None, None),
    ] {
        for name in names {
            assert_eq!(row(name).on(PeerAbort).error, by_peer, "{name}");
            assert_eq!(row(name).on(AppAbort).error, by_us, "{name}");
        }
    }
}

#[test]
fn rows_cover_every_reachable_configuration() {
    let known: Vec<CloseState> = TABLE
        .trim()
        .lines()
        .skip(1)
        .map(|line| row(line.split('|').next().unwrap().trim()))
        .collect();
    let same = |a: &CloseState, b: &CloseState| {
        (a.state(), a.left(), a.peer_left()) == (b.state(), b.left(), b.peer_left())
    };
    let mut seen = vec![CloseState::new(), active(), CloseState::listening()];
    let mut next = 0;
    while next < seen.len() {
        let close = seen[next];
        next += 1;
        let left_matters = !matches!(close.state(), ConnState::Closed | ConnState::ProcessAbort);
        let is_known = known.iter().any(|row| same(row, &close));
        assert!(is_known || !left_matters, "{close:?} is not in the table");
        for event in CloseEvent::ALL {
            let mut after = close;
            after.on(event);
            if !seen.contains(&after) {
                seen.push(after);
            }
        }
    }
    for state in ConnState::ALL {
        assert!(seen.iter().any(|close| close.state() == state), "{state:?}");
    }
}

#[test]
fn random_walks_keep_the_rules() {
    let seed = seeded::seed();
    for case in 0..20_000 {
        let mut random = Random::for_case(seed, case);
        let mut close = active();
        let mut freed = 0;
        for _ in 0..random.below(12) {
            let before = close;
            let actions = close.on(*random.pick(&CloseEvent::ALL));
            if before.left() {
                assert!(actions.send.is_empty(), "sent after leaving: {before:?}");
            }
            assert!(!before.sent().contains(actions.send) || actions.send.is_empty());
            if before.state() == ConnState::Closed {
                assert_eq!(close.state(), ConnState::Closed);
                assert_eq!(actions, CloseActions::default());
            }
            freed += u32::from(actions.free);
            assert_eq!(freed > 0, close.state() == ConnState::Closed);
        }
        assert!(freed <= 1);
        // Whatever happened, the application's close and the peer's leaving end it.
        close.on(CLOSE);
        close.on(PeerClosed);
        close.on(CLOSE);
        assert_eq!(close.state(), ConnState::Closed);
    }
}

#[test]
fn both_ends_close_whatever_crosses() {
    let seed = seeded::seed();
    for case in 0..20_000 {
        let mut random = Random::for_case(seed, case);
        let mut ends = [active(), active()];
        // What each end has sent and the other has not seen yet.
        let mut wire: [Vec<ConnFlags>; 2] = Default::default();
        let app = [AppShutdownWr, CLOSE, CLOSE_UNREAD, AppAbort];
        for _ in 0..200 {
            let side = random.below(2) as usize;
            if random.one_in(2) {
                let event = *random.pick(&app);
                let sent = ends[side].on(event).send;
                wire[side].push(sent);
            } else if !wire[1 - side].is_empty() {
                let flags = wire[1 - side].remove(0);
                for (flag, event) in [
                    (ConnFlags::SENDING_DONE, PeerDone),
                    (ConnFlags::CLOSED, PeerClosed),
                    (ConnFlags::ABORT, PeerAbort),
                ] {
                    if flags.contains(flag) {
                        let sent = ends[side].on(event).send;
                        wire[side].push(sent);
                    }
                }
            }
        }
        let states = ends.map(|end| end.state());
        assert_eq!(states, [ConnState::Closed; 2], "case {case}");
    }
}

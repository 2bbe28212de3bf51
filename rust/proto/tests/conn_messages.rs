// SPDX-License-Identifier: GPL-2.0

//! Single CDC messages that a connection must take, refuse or ignore.

use smc_proto::conn::{CloseError, Conn, ConnParams, Early, Events, SendError, Violation};
use smc_proto::ids::AlertToken;
use smc_proto::state::ConnState;
use smc_proto::window::Mover;
use smc_proto::wire::cdc::{CdcMessage, ConnFlags, ProdFlags, RawCursor};

/// A connection whose peer is the test itself.
fn victim() -> Conn {
    let mut conn = Conn::new(ConnParams {
        peer_token: AlertToken(1),
        send_len: 64,
        peer_len: 64,
        rmbe_len: 64,
        mover: Mover::Adapter,
    });
    conn.activate();
    conn
}

fn message(seq: u16, prod: u32) -> CdcMessage {
    CdcMessage {
        seq,
        token: AlertToken(2),
        prod: RawCursor {
            wrap: 0,
            count: prod,
        },
        cons: RawCursor::default(),
        prod_flags: ProdFlags::NONE,
        conn_flags: ConnFlags::NONE,
    }
}

#[test]
fn old_messages_change_nothing() {
    let mut conn = victim();
    conn.on_cdc(&message(5, 10)).unwrap();
    let mut old = message(4, 63);
    old.conn_flags = ConnFlags::ABORT;
    assert_eq!(conn.on_cdc(&old), Ok(Events::NONE));
    assert_eq!((conn.readable(), conn.state()), (10, ConnState::Active));
    conn.on_cdc(&message(0x8004, 11)).unwrap();
    assert_eq!(conn.readable(), 11);
    conn.on_cdc(&message(3, 12)).unwrap();
    assert_eq!(conn.readable(), 12, "0x8004 to 3 is forwards");
}

#[test]
fn impossible_cursors_are_violations() {
    let mut conn = victim();
    assert!(matches!(
        conn.on_cdc(&message(1, 64)),
        Err(Violation::Producer(_))
    ));
    let mut acks_unsent = message(2, 0);
    acks_unsent.cons.count = 1;
    assert!(matches!(
        conn.on_cdc(&acks_unsent),
        Err(Violation::Consumer(_))
    ));
    let events = conn.abort();
    assert!(events.contains(Events::RESET_TCP));
    assert!(conn.cdc_due());
    assert_eq!(conn.next_cdc().conn_flags, ConnFlags::ABORT);
    assert!(conn.may_send().is_err());
}

#[test]
fn failover_validation_compares_sequence_numbers() {
    let mut conn = victim();
    conn.on_cdc(&message(5, 10)).unwrap();
    let mut check = message(5, 0);
    check.prod_flags = ProdFlags::FAILOVER_VALIDATION;
    assert_eq!(conn.on_cdc(&check), Ok(Events::NONE));
    check.seq = 6;
    assert_eq!(conn.on_cdc(&check), Err(Violation::DataLost));
    assert_eq!(conn.readable(), 10);
}

#[test]
fn sequence_numbers_start_at_one_and_wrap_to_zero() {
    let mut conn = victim();
    assert_eq!(conn.next_cdc().seq, 1);
    for _ in 2..=0xffff {
        conn.next_cdc();
    }
    assert_eq!(conn.next_cdc().seq, 0);
}

#[test]
fn a_few_bytes_of_room_are_not_worth_waking_a_writer() {
    let mut conn = victim();
    conn.commit(64);
    let plan = conn.next_write(64).unwrap();
    conn.posted(&plan);
    for room in 1..=64 {
        let events = conn.completed(1);
        let worth = room > 21;
        assert_eq!(conn.send_room(), room);
        assert_eq!(conn.is_writable(), worth, "{room} bytes");
        assert_eq!(events.contains(Events::WRITABLE), worth, "{room} bytes");
    }
}

#[test]
fn data_for_a_peer_that_closed_is_an_error() {
    let mut conn = victim();
    conn.commit(64);
    let mut closed = message(1, 5);
    closed.conn_flags = ConnFlags::CLOSED;
    let events = conn.on_cdc(&closed).unwrap();
    assert!(events.contains(Events::PEER_CLOSED));
    assert_eq!(conn.tx().pending(), 0);
    assert!(matches!(conn.may_send(), Err(SendError::Ended(_))));
    // What the peer had sent can still be read.
    assert_eq!(conn.readable(), 5);
}

#[test]
fn data_that_crosses_a_close_is_answered_by_an_error() {
    for (consumed, expected) in [(40, None), (39, Some(CloseError::NobodyReads))] {
        let mut conn = victim();
        conn.commit(40);
        let plan = conn.next_write(40).unwrap();
        conn.posted(&plan);
        let mut closed = message(1, 5);
        closed.conn_flags = ConnFlags::CLOSED;
        closed.cons.count = consumed;
        conn.on_cdc(&closed).unwrap();
        assert_eq!(conn.error(), expected, "{consumed} bytes consumed");
    }
}

#[test]
fn one_send_to_a_peer_that_closed_is_in_vain() {
    let mut conn = victim();
    let mut closed = message(1, 5);
    closed.conn_flags = ConnFlags::CLOSED;
    conn.on_cdc(&closed).unwrap();
    assert_eq!(conn.may_send(), Err(SendError::PeerClosed));
    let events = conn.sent_in_vain();
    assert!(events.contains(Events::READABLE.with(Events::WRITABLE)));
    let ended = SendError::Ended(CloseError::NobodyReads);
    assert_eq!(conn.may_send(), Err(ended));
    assert_eq!(conn.readable(), 5);
    assert!(conn.stream_has_ended());

    // Whoever has shut writing down learns only that.
    let mut conn = victim();
    conn.shutdown_write();
    conn.on_cdc(&closed).unwrap();
    assert_eq!(conn.may_send(), Err(SendError::Shutdown));
}

#[test]
fn a_reset_of_tcp_adds_nothing_to_an_abort() {
    let mut conn = victim();
    let mut aborted = message(1, 5);
    aborted.conn_flags = ConnFlags::ABORT;
    conn.on_cdc(&aborted).unwrap();
    let before = *conn.close_state();
    assert!(conn.tcp_reset(false).is_empty());
    assert!(conn.tcp_reset(true).is_empty());
    assert_eq!(*conn.close_state(), before);
    assert_eq!(conn.readable(), 5);
    assert!(!conn.stream_has_ended());
}

#[test]
fn the_end_is_announced_after_the_data() {
    for (end, flag) in [
        (
            Conn::shutdown_write as fn(&mut Conn) -> Events,
            ConnFlags::SENDING_DONE,
        ),
        (Conn::close, ConnFlags::CLOSED),
    ] {
        let mut conn = victim();
        conn.commit(64);
        let first = conn.next_write(40).unwrap();
        conn.posted(&first);
        end(&mut conn);
        assert!(conn.is_closing());
        assert_eq!(conn.may_send(), Err(SendError::Shutdown));
        let early = conn.next_cdc();
        assert_eq!((early.prod.count, early.conn_flags), (40, ConnFlags::NONE));
        let rest = conn.next_write(u32::MAX).unwrap();
        assert_eq!(rest.len, 24);
        conn.posted(&rest);
        let last = conn.next_cdc();
        assert_eq!((last.prod.wrap, last.prod.count), (1, 0));
        assert_eq!(last.conn_flags, flag);
        assert!(!conn.is_closing() && !conn.cdc_due());
    }
}

#[test]
fn bytes_that_nobody_reads_have_to_be_cleared_too() {
    let mut conn = victim();
    conn.on_cdc(&message(1, 10)).unwrap();
    conn.consume(10);
    conn.close();
    conn.next_cdc();
    let mut last = message(2, 40);
    last.conn_flags = ConnFlags::SENDING_DONE.with(ConnFlags::CLOSED);
    conn.on_cdc(&last).unwrap();
    assert_eq!(conn.state(), ConnState::Closed);
    assert_eq!(conn.touched(), 40);
}

#[test]
fn after_a_reset_all_of_the_element_has_to_be_cleared() {
    let mut conn = victim();
    conn.on_cdc(&message(1, 10)).unwrap();
    assert_eq!(conn.touched(), 10);
    conn.abort();
    conn.next_cdc();
    // The peer has written more before it heard of the reset.
    let mut last = message(2, 50);
    last.conn_flags = ConnFlags::ABORT;
    conn.on_cdc(&last).unwrap();
    assert_eq!(conn.state(), ConnState::Closed);
    assert_eq!(conn.touched(), 64);
}

#[test]
fn a_peer_that_went_without_a_word_is_a_reset() {
    let mut conn = victim();
    conn.on_cdc(&message(1, 10)).unwrap();
    let events = conn.peer_vanished();
    assert!(events.contains(Events::READABLE.with(Events::WRITABLE)));
    assert!(events.contains(Events::RESET_TCP));
    assert!(matches!(conn.may_send(), Err(SendError::Ended(_))));
    // It may live after all.
    assert_eq!(conn.next_cdc().conn_flags, ConnFlags::ABORT);
    // What it had sent can still be read.
    assert_eq!(conn.readable(), 10);
}

#[test]
fn a_peer_whose_tcp_connection_ended_first_has_not_vanished() {
    // It waits for room, and says afterwards that it is gone.
    let mut conn = victim();
    let mut full = message(1, 0);
    full.prod.wrap = 1;
    conn.on_cdc(&full).unwrap();
    assert_eq!(conn.peer_vanished(), Events::NONE);
    conn.consume(40);
    assert_eq!(conn.peer_vanished(), Events::NONE, "it does not know yet");
    conn.next_cdc();
    assert_ne!(conn.peer_vanished(), Events::NONE);
    for flag in [ConnFlags::SENDING_DONE, ConnFlags::CLOSED] {
        // It said so, and this side may go on sending or has yet to close.
        let mut conn = victim();
        let mut last = message(1, 10);
        last.conn_flags = flag;
        conn.on_cdc(&last).unwrap();
        assert_eq!(conn.peer_vanished(), Events::NONE);
    }
    // Nobody is left here either: that end has its own clock.
    let mut conn = victim();
    conn.close();
    assert_eq!(conn.peer_vanished(), Events::NONE);
}

#[test]
fn a_peer_that_waits_behind_its_urgent_byte_has_not_vanished() {
    for inline in [false, true] {
        let mut conn = victim();
        conn.set_oob_inline(inline);
        let mut urgent = message(1, 4);
        urgent.prod_flags = ProdFlags::URGENT_PENDING.with(ProdFlags::URGENT_PRESENT);
        conn.on_cdc(&urgent).unwrap();
        assert!(conn.urgent_announced());
        conn.urgent_hold(b'!');
        assert_eq!(conn.peer_vanished(), Events::NONE, "the byte is ahead");
        conn.consume(3);
        conn.consume(1);
        assert_eq!(conn.peer_vanished(), Events::NONE, "it does not know yet");
        conn.next_cdc();
        assert_ne!(conn.peer_vanished(), Events::NONE);
    }
}

#[test]
fn an_urgent_byte_before_the_end_of_the_stream_stays_urgent() {
    let urgent = ProdFlags::URGENT_PENDING.with(ProdFlags::URGENT_PRESENT);
    let with = |seq, prod, prod_flags| CdcMessage {
        prod_flags,
        ..message(seq, prod)
    };
    let mut early = Early::NONE;
    early.note(&with(1, 3, ProdFlags::URGENT_PENDING));
    early.note(&with(2, 4, urgent));
    early.note(&CdcMessage {
        conn_flags: ConnFlags::SENDING_DONE,
        ..message(3, 4)
    });
    let mut conn = victim();
    let events = conn.on_cdc(&early.message().unwrap()).unwrap();
    assert!(events.contains(Events::URGENT.with(Events::PEER_DONE)));
    assert_eq!(conn.urgent_wanted(), Some(3));
    assert_eq!(conn.readable(), 3);
}

// SPDX-License-Identifier: GPL-2.0

//! Messages of a peer that is faster than the end of the handshake here.

use super::seq_before;
use crate::wire::cdc::{CdcMessage, ProdFlags};

/// What the messages said that came before the connection could take any. A later one says all that
/// an earlier one did about cursors, but shows each flag only while that is news.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Early(Option<CdcMessage>);

impl Early {
    /// None came.
    pub const NONE: Self = Self(None);

    /// Takes one more message.
    pub fn note(&mut self, message: &CdcMessage) {
        self.0 = Some(match &self.0 {
            Some(earlier) => join(earlier, message),
            None => *message,
        });
    }

    /// One message that says what all of them did.
    pub const fn message(&self) -> Option<CdcMessage> {
        self.0
    }
}

fn join(earlier: &CdcMessage, message: &CdcMessage) -> CdcMessage {
    let behind = seq_before(earlier.seq, message.seq);
    if message.prod_flags.contains(ProdFlags::FAILOVER_VALIDATION) {
        // It says nothing of its own unless messages were lost.
        return if behind { *message } else { *earlier };
    }
    if !behind {
        return *earlier;
    }
    let had = |flag| earlier.prod_flags.contains(flag);
    // The sender stops behind the urgent byte, so that is where the cursor still is.
    let at_mark = had(ProdFlags::URGENT_PRESENT) && earlier.prod == message.prod;
    let prod_flags = message
        .prod_flags
        .with_if(had(ProdFlags::URGENT_PENDING), ProdFlags::URGENT_PENDING)
        .with_if(at_mark, ProdFlags::URGENT_PRESENT)
        .with_if(
            had(ProdFlags::CONS_UPDATE_REQUESTED),
            ProdFlags::CONS_UPDATE_REQUESTED,
        );
    CdcMessage {
        prod_flags,
        conn_flags: earlier.conn_flags.with(message.conn_flags),
        ..*message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::AlertToken;
    use crate::wire::cdc::{ConnFlags, RawCursor};

    fn message(seq: u16, count: u32, prod_flags: ProdFlags) -> CdcMessage {
        CdcMessage {
            seq,
            token: AlertToken(2),
            prod: RawCursor { wrap: 0, count },
            cons: RawCursor::default(),
            prod_flags,
            conn_flags: ConnFlags::NONE,
        }
    }

    const URGENT: ProdFlags = ProdFlags::URGENT_PENDING.with(ProdFlags::URGENT_PRESENT);

    #[test]
    fn a_mark_does_not_move_to_a_byte_behind_it() {
        let mut early = Early::NONE;
        early.note(&message(1, 4, URGENT));
        early.note(&message(2, 9, ProdFlags::NONE));
        let flags = early.message().unwrap().prod_flags;
        assert_eq!(flags, ProdFlags::URGENT_PENDING);
    }

    #[test]
    fn old_messages_and_validations_change_nothing() {
        let mut early = Early::NONE;
        assert_eq!(early.message(), None);
        let newest = message(7, 4, ProdFlags::WRITER_BLOCKED);
        early.note(&newest);
        early.note(&message(6, 2, ProdFlags::NONE));
        early.note(&message(7, 0, ProdFlags::FAILOVER_VALIDATION));
        assert_eq!(early.message(), Some(newest));
        let lost = message(8, 0, ProdFlags::FAILOVER_VALIDATION);
        early.note(&lost);
        assert_eq!(early.message(), Some(lost));
    }
}

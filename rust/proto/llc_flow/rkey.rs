// SPDX-License-Identifier: GPL-2.0

//! CONFIRM RKEY and DELETE RKEY, which each side may start at any time for its own RMBs
//! (RFC 7609 sections 3.5.5.2 and 3.5.5.3).

use super::{Busy, Event, LinkFlow, Step, Violation};
use crate::ids::{Rkey, Version};
use crate::lgr::{Rtoken, RtokenTable};
use crate::wire::llc::{Body, ConfirmRkey, ConfirmRkeyCont, DeleteRkey, List, Message, RkeyAnswer};
use core::ops::{Deref, DerefMut};

/// The most keys in one DELETE RKEY of version 1.
pub const MAX_DELETE_V1: usize = 8;

/// The exchange this side has started, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Local {
    Idle,
    Confirm { rkey: Rkey, asked: u64 },
    Delete { asked: u64 },
}

impl LinkFlow {
    /// Whether [`LinkFlow::confirm_rkey`] or [`LinkFlow::delete_rkeys`] can be called.
    pub const fn may_change_rkeys(&self) -> bool {
        self.is_ready() && matches!(self.local, Local::Idle)
    }

    /// Announces an RMB of this side. No connection may use it before
    /// [`Event::RkeyConfirmed`] said so.
    ///
    /// # Errors
    ///
    /// [`Busy`] when another exchange is under way; it is to be tried again afterwards.
    pub fn confirm_rkey(&mut self, rmb: Rtoken, now: u64) -> Result<Message<'static>, Busy> {
        if !self.may_change_rkeys() {
            return Err(Busy);
        }
        let request = ConfirmRkey::new(rmb, &[]).map_err(|_| Busy)?;
        self.local = Local::Confirm {
            rkey: rmb.rkey,
            asked: now,
        };
        Ok(self.request(Body::ConfirmRkey(request)))
    }

    /// Withdraws RMBs of this side, at most [`MAX_DELETE_V1`] at once. They may be freed after
    /// [`Event::RkeysDeleted`].
    ///
    /// # Errors
    ///
    /// [`Busy`] when another exchange is under way or the keys are none or too many.
    pub fn delete_rkeys<'a>(&mut self, rkeys: &'a [Rkey], now: u64) -> Result<Message<'a>, Busy> {
        if !self.may_change_rkeys() || !(1..=MAX_DELETE_V1).contains(&rkeys.len()) {
            return Err(Busy);
        }
        self.local = Local::Delete { asked: now };
        Ok(self.request(Body::DeleteRkey(DeleteRkey {
            rkeys: List::new(rkeys),
            negative: false,
            errors: 0,
        })))
    }

    /// The request of this side could not be sent: no answer will come.
    pub fn withdraw_request(&mut self) {
        self.local = Local::Idle;
    }

    /// When the answer to this side's request is given up.
    pub(super) fn local_deadline(&self) -> Option<u64> {
        match self.local {
            Local::Idle => None,
            Local::Confirm { asked, .. } | Local::Delete { asked } => Some(self.answer_due(asked)),
        }
    }

    pub(super) fn on_rkey_confirmed<'m>(
        &mut self,
        body: &ConfirmRkey,
    ) -> Result<Step<'m>, Violation> {
        let Local::Confirm { rkey, .. } = self.local else {
            return Ok(Step::NOTHING);
        };
        if body.own.rkey != rkey {
            return Err(Violation::WrongKey);
        }
        self.local = Local::Idle;
        Ok(Step::event(Event::RkeyConfirmed {
            rkey,
            answer: body.answer,
        }))
    }

    pub(super) fn on_rkeys_deleted<'m>(&mut self, body: &DeleteRkey<'_>) -> Step<'m> {
        if !matches!(self.local, Local::Delete { .. }) {
            return Step::NOTHING;
        }
        self.local = Local::Idle;
        Step::event(Event::RkeysDeleted {
            negative: body.negative,
        })
    }

    /// The peer announces an RMB; the answer repeats the message.
    pub(super) fn on_confirm_rkey<'m, S>(
        &mut self,
        body: &ConfirmRkey,
        rmbs: &mut RtokenTable<S>,
    ) -> Step<'m>
    where
        S: Deref<Target = [Rtoken]> + DerefMut,
    {
        let answer = if self.setup.changes_links() {
            RkeyAnswer::Retry
        } else if rmbs.add(body.own).is_ok() {
            RkeyAnswer::Positive
        } else {
            RkeyAnswer::Negative
        };
        Step::send(self.response(Body::ConfirmRkey(ConfirmRkey { answer, ..*body })))
    }

    /// Keys on links that this side does not have: taken note of by repeating them.
    pub(super) fn on_more_rkeys<'m>(&mut self, body: &ConfirmRkeyCont) -> Step<'m> {
        Step::send(self.response(Body::ConfirmRkeyCont(*body)))
    }

    /// The peer withdraws RMBs; the answer tells which of them were not known.
    pub(super) fn on_delete_rkey<'m, S>(
        &mut self,
        body: &DeleteRkey<'m>,
        rmbs: &mut RtokenTable<S>,
    ) -> Step<'m>
    where
        S: Deref<Target = [Rtoken]> + DerefMut,
    {
        let mut unknown = 0u8;
        let mut mask = 0u8;
        let bits = (0u32..8)
            .map(|n| 0x80u8.wrapping_shr(n))
            .chain(core::iter::repeat(0));
        for (rkey, bit) in body.rkeys.iter().zip(bits) {
            if !rmbs.remove(rkey) {
                unknown = unknown.saturating_add(1);
                mask |= bit;
            }
        }
        Step::send(self.response(Body::DeleteRkey(DeleteRkey {
            rkeys: body.rkeys,
            negative: unknown > 0,
            errors: match self.params.version {
                Version::V1 => mask,
                Version::V2 => unknown,
            },
        })))
    }
}

// SPDX-License-Identifier: GPL-2.0

//! What this side tells the peer about the keys of its RMBs. One exchange is under way at a time.

use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    },
};
use smc_kapi::module::now_ms;
use smc_proto::{
    ids::{
        Rkey,
        VirtAddr, //
    },
    lgr::Rtoken,
    llc_flow::LinkFlow,
    wire::llc::{
        Message,
        RkeyAnswer, //
    },
};

use super::{
    llc::SEND_WAIT_MS,
    LinkGroup, //
};
use crate::smc::link::Link;

/// How long to try an exchange that the peer asks to repeat, or that waits for its turn, in
/// milliseconds: the client of a handshake that needs the key waits twice as long for its answer.
const TRY_MS: u64 = 5_000;
/// Milliseconds between two tries.
const PAUSE_MS: i64 = 20;

impl LinkGroup {
    /// Tells the peer the key of an RMB and waits for its consent. May sleep.
    ///
    /// # Errors
    ///
    /// `EREMOTEIO` when the peer refuses the key, `EBUSY` when it cannot be told now, `ENOLINK` when
    /// the group ends.
    pub(super) fn confirm_rkey(
        self: &Arc<Self>,
        link: &Arc<Link>,
        rkey: Rkey,
        addr: VirtAddr,
    ) -> Result {
        let deadline = now_ms() + TRY_MS;
        while now_ms() < deadline {
            self.llc.lock().confirmed = None;
            let started = self.exchange(link, |flow, now| {
                flow.confirm_rkey(Rtoken { rkey, addr }, now).ok()
            })?;
            if started {
                match self.wait_llc(|llc| llc.confirmed.take()) {
                    Some(RkeyAnswer::Positive) => return Ok(()),
                    Some(RkeyAnswer::Retry) => {}
                    Some(RkeyAnswer::Negative) => return Err(EREMOTEIO),
                    None => return Err(ENOLINK),
                }
            }
            self.pause_before_retry()?;
        }
        Err(EBUSY)
    }

    /// Withdraws the keys of RMBs, at most [`smc_proto::llc_flow::MAX_DELETE_V1`] at once, and waits
    /// until the peer knows. May sleep.
    ///
    /// # Errors
    ///
    /// `EBUSY` when the peer cannot be told now, `ENOLINK` when the group ends.
    pub(super) fn delete_rkeys(self: &Arc<Self>, link: &Arc<Link>, rkeys: &[Rkey]) -> Result {
        let deadline = now_ms() + TRY_MS;
        while now_ms() < deadline {
            self.llc.lock().deleted = false;
            if self.exchange(link, |flow, now| flow.delete_rkeys(rkeys, now).ok())? {
                return self
                    .wait_llc(|llc| llc.deleted.then_some(()))
                    .ok_or(ENOLINK);
            }
            self.pause_before_retry()?;
        }
        Err(EBUSY)
    }

    /// Starts an exchange unless another one is under way; says whether it did. One whose request
    /// cannot be posted is over.
    ///
    /// # Errors
    ///
    /// `EBUSY` when no send slot is free for long, `ENOLINK` when the group ends.
    fn exchange<'m>(
        &self,
        link: &Arc<Link>,
        start: impl FnOnce(&mut LinkFlow, u64) -> Option<Message<'m>>,
    ) -> Result<bool> {
        let request = {
            let mut llc = self.llc.lock();
            start(llc.flow.as_mut().ok_or(ENOLINK)?, now_ms())
        };
        let Some(request) = request else {
            return Ok(false);
        };
        let posted = self.send_llc(link, &request, SEND_WAIT_MS);
        posted.map(|()| true).map_err(|error| {
            if let Some(flow) = self.llc.lock().flow.as_mut() {
                flow.withdraw_request();
            }
            if error == ENOBUFS {
                EBUSY
            } else {
                ENOLINK
            }
        })
    }

    /// Sleeps before an exchange is tried again that another one was in the way of.
    ///
    /// # Errors
    ///
    /// `ENOLINK` when the group ends: what was in the way will not be answered any more.
    fn pause_before_retry(&self) -> Result {
        if self.is_ending() {
            return Err(ENOLINK);
        }
        fsleep(Delta::from_millis(PAUSE_MS));
        Ok(())
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Registration of memory regions through a queue pair.
//!
//! The device reads the region's C object when it comes to the work request, so a region must not
//! go away before: the queue pair keeps a reference until the completion, or until its own end.

use super::cq::Completion;
use super::mr::{Access, Mr};
use super::wr::RESERVED_WR_ID;
use crate::sync::SpinLockBh;
use crate::sys;
use kernel::bindings;
use kernel::error::to_result;
use kernel::ffi::c_int;
use kernel::new_mutex;
use kernel::prelude::*;
use kernel::sync::atomic::{Atomic, Relaxed};
use kernel::sync::{Arc, Mutex};
use kernel::task::might_sleep;
use kernel::time::{msecs_to_jiffies, Msecs};
use kernel::types::Opaque;

static NEXT: Atomic<u64> = Atomic::new(0);

/// The one registration that a queue pair can have outstanding.
#[pin_data]
pub(super) struct Registrar {
    /// Held for the whole of a registration.
    #[pin]
    turn: Mutex<()>,
    #[pin]
    outstanding: SpinLockBh<Outstanding>,
    #[pin]
    done: Opaque<bindings::completion>,
}

struct Outstanding {
    /// The region of an outstanding work request.
    mr: Option<Arc<Mr>>,
    /// The number of that work request.
    wr_id: u64,
    /// The outcome, once it is there.
    outcome: Option<bool>,
}

// SAFETY: A completion may be used from any thread; the other parts are `Send`.
unsafe impl Send for Registrar {}
// SAFETY: Completions synchronise by themselves; the other parts are `Sync`.
unsafe impl Sync for Registrar {}

impl Registrar {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            turn <- new_mutex!((), "rdma_reg_turn"),
            outstanding <- crate::new_spinlock_bh!(
                Outstanding { mr: None, wr_id: 0, outcome: None },
                "rdma_reg_outstanding"
            ),
            done <- Opaque::ffi_init(|slot: *mut bindings::completion| {
                // SAFETY: `slot` is a valid place for a completion.
                unsafe { bindings::init_completion(slot) };
            }),
        })
    }

    /// Posts the registration of `mr` and waits for it.
    ///
    /// # Safety
    ///
    /// `qp` must be a live queue pair, which is destroyed before `self` goes away.
    pub(super) unsafe fn register(
        &self,
        qp: *mut sys::ib_qp,
        mr: &Arc<Mr>,
        access: Access,
        timeout_ms: Msecs,
    ) -> Result {
        might_sleep();
        let _turn = self.turn.lock();
        let wr_id = self.begin(mr.clone())?;
        let mut wr = sys::ib_reg_wr::default();
        wr.wr.__bindgen_anon_1.wr_id = wr_id;
        wr.wr.opcode = sys::ib_wr_opcode_IB_WR_REG_MR;
        wr.wr.send_flags = sys::ib_send_flags_IB_SEND_SIGNALED as c_int;
        wr.mr = mr.as_raw();
        wr.key = mr.rkey();
        wr.access = access.as_raw();
        let mut bad = core::ptr::null();
        // SAFETY: The queue pair is live; the request is valid for the duration of the call; the
        // region it points to is kept by `outstanding`.
        let ret = unsafe { sys::smc_rs_helper_rdma_post_send(qp, &wr.wr, &mut bad) };
        if let Err(error) = to_result(ret) {
            drop(self.take());
            return Err(error);
        }
        // SAFETY: The completion is initialised.
        let left = unsafe {
            bindings::wait_for_completion_timeout(self.done.get(), msecs_to_jiffies(timeout_ms))
        };
        if left == 0 && self.outstanding.lock().outcome.is_none() {
            return Err(ETIMEDOUT);
        }
        match self.take() {
            (_mr, Some(true)) => Ok(()),
            _ => Err(EIO),
        }
    }

    /// Makes `mr` the outstanding one; an earlier registration that nobody waits for is cleared away.
    /// Returns a number for its work request which no other one has or had.
    fn begin(&self, mr: Arc<Mr>) -> Result<u64> {
        let mut now = self.outstanding.lock();
        if now.mr.is_some() && now.outcome.is_none() {
            drop(now);
            return Err(EBUSY);
        }
        now.outcome = None;
        now.wr_id = RESERVED_WR_ID | NEXT.fetch_add(1u64, Relaxed);
        let wr_id = now.wr_id;
        let old = now.mr.replace(mr);
        // SAFETY: The completion is initialised, and nobody waits for it or signals it: the turn is
        // ours and the request is not posted yet.
        unsafe { (*self.done.get()).done = 0 };
        drop(now);
        // Its last reference may be this one, and freeing it may sleep.
        drop(old);
        Ok(wr_id)
    }

    fn take(&self) -> (Option<Arc<Mr>>, Option<bool>) {
        let mut now = self.outstanding.lock();
        (now.mr.take(), now.outcome.take())
    }

    /// Notes the completion of a registration; false when `completion` is not of one.
    pub(super) fn complete(&self, completion: &Completion) -> bool {
        if completion.number & RESERVED_WR_ID == 0 {
            return false;
        }
        let mut now = self.outstanding.lock();
        if completion.number != now.wr_id || now.mr.is_none() {
            // A late one of a queue pair that is gone.
            return true;
        }
        now.outcome = Some(completion.ok());
        // SAFETY: The completion is initialised.
        unsafe { bindings::complete(self.done.get()) };
        true
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Reliably connected queue pairs.

use super::cq::{AnyCq, Completion, CompletionHandler, Cq};
use super::mr::{Access, Mr};
use super::pd::Pd;
use super::qp_state::{Attributes, QpState, RtrAttr, RtsAttr};
use super::reg::Registrar;
use super::wr::{PostError, RecvList, SendList, Sge};
use crate::sync::SpinLockBh;
use crate::sys;
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::ffi::c_void;
use kernel::new_mutex;
use kernel::prelude::*;
use kernel::sync::{Arc, Mutex};
use kernel::task::might_sleep;
use kernel::time::Msecs;

/// The sizes of a queue pair.
#[derive(Clone, Copy, Debug)]
pub struct QpCaps {
    /// Outstanding send work requests.
    pub send_wr: u32,
    /// Outstanding receive work requests.
    pub recv_wr: u32,
    /// Stretches of memory in one send work request.
    pub send_sge: u32,
    /// Stretches of memory in one receive work request.
    pub recv_sge: u32,
    /// Bytes of inline data in one send work request.
    pub inline: u32,
}

/// What happened to a queue pair outside of its work requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QpEvent {
    /// It is in the error state now: nothing more can be sent or received.
    Fatal,
    /// The first packet of the peer arrived.
    Established,
    /// Another event; its C number.
    Other(u32),
}

/// A receiver of queue pair events.
pub trait QpEvents: Send + Sync + 'static {
    /// Called by the driver, usually in a kernel worker: must not sleep and must not drop the last
    /// reference to the queue pair.
    fn qp_event(&self, event: QpEvent);
}

/// A reliably connected queue pair.
///
/// Create and drop in process context; posting works in any context that may take spin locks.
/// Dropping it destroys the C object, after which the device touches none of the memory that its
/// work requests named; their completions may still be on the completion queues.
///
/// # Invariants
///
/// `raw` is a queue pair with this value as its context; it lives until the drop.
#[pin_data(PinnedDrop)]
pub struct Qp {
    raw: NonNull<sys::ib_qp>,
    caps: QpCaps,
    #[pin]
    attributes: Mutex<Attributes>,
    #[pin]
    events: SpinLockBh<Option<Arc<dyn QpEvents>>>,
    #[pin]
    registrar: Registrar,
    // Dropped after `raw` is destroyed, queues before the domain.
    _send_cq: Arc<dyn AnyCq>,
    _recv_cq: Arc<dyn AnyCq>,
    pd: Arc<Pd>,
}

// SAFETY: Queue pairs may be used and destroyed from any thread.
unsafe impl Send for Qp {}
// SAFETY: All operations through a shared reference are thread-safe.
unsafe impl Sync for Qp {}

impl Qp {
    /// Creates a queue pair in the state [`QpState::Reset`]. `events` may be `None` because a fatal
    /// event also flushes all work requests. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the completion queues belong to another device, `ENODEV` when the device is
    /// being removed, `ENOMEM`, or what the device answers.
    pub fn new<S: CompletionHandler, R: CompletionHandler>(
        pd: &Arc<Pd>,
        send_cq: &Arc<Cq<S>>,
        recv_cq: &Arc<Cq<R>>,
        caps: QpCaps,
        events: Option<Arc<dyn QpEvents>>,
    ) -> Result<Arc<Self>> {
        might_sleep();
        let same = |device| Arc::ptr_eq(device, pd.device());
        if !same(send_cq.device()) || !same(recv_cq.device()) {
            return Err(EINVAL);
        }
        let mut caps = caps;
        let queues = (send_cq.as_raw(), recv_cq.as_raw());
        Arc::try_pin_init(
            try_pin_init!(&this in Self {
                attributes <- new_mutex!(Attributes::new()?, "rdma_qp_attributes"),
                events <- crate::new_spinlock_bh!(events, "rdma_qp_events"),
                registrar <- Registrar::new(),
                _send_cq: send_cq.clone() as Arc<dyn AnyCq>,
                _recv_cq: recv_cq.clone() as Arc<dyn AnyCq>,
                pd: pd.clone(),
                // INVARIANT: `this` is pinned and destroys the queue pair before it goes away.
                raw: Self::create(pd, queues, &mut caps, this.as_ptr().cast())?,
                caps,
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Creates the C object and updates `caps` to what the device gave.
    fn create(
        pd: &Pd,
        (send_cq, recv_cq): (*mut sys::ib_cq, *mut sys::ib_cq),
        caps: &mut QpCaps,
        context: *mut c_void,
    ) -> Result<NonNull<sys::ib_qp>> {
        let mut attr = KBox::<sys::ib_qp_init_attr>::zeroed(GFP_KERNEL)?;
        attr.event_handler = Some(Self::event);
        attr.qp_context = context;
        attr.send_cq = send_cq;
        attr.recv_cq = recv_cq;
        attr.sq_sig_type = sys::ib_sig_type_IB_SIGNAL_REQ_WR;
        attr.qp_type = sys::ib_qp_type_IB_QPT_RC;
        attr.cap.max_send_wr = caps.send_wr;
        attr.cap.max_recv_wr = caps.recv_wr;
        attr.cap.max_send_sge = caps.send_sge;
        attr.cap.max_recv_sge = caps.recv_sge;
        attr.cap.max_inline_data = caps.inline;
        // SAFETY: Domain and queues are live and are kept by the value that `context` points to.
        let raw = unsafe { sys::smc_rs_helper_rdma_create_qp(pd.as_raw(), &mut *attr) };
        let raw = NonNull::new(from_err_ptr(raw)?).ok_or(ENOMEM)?;
        *caps = QpCaps {
            send_wr: attr.cap.max_send_wr,
            recv_wr: attr.cap.max_recv_wr,
            send_sge: attr.cap.max_send_sge,
            recv_sge: attr.cap.max_recv_sge,
            inline: attr.cap.max_inline_data,
        };
        Ok(raw)
    }

    /// The number by which the peer addresses the queue pair (24 bits).
    #[inline]
    pub fn qpn(&self) -> u32 {
        // SAFETY: The queue pair is live; the field is constant.
        unsafe { (*self.raw.as_ptr()).qp_num }
    }

    /// What the device gave, at least what was asked for.
    #[inline]
    pub fn caps(&self) -> &QpCaps {
        &self.caps
    }

    /// The protection domain of the queue pair.
    #[inline]
    pub fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// The state it was last brought to; the device may have put it into the error state since.
    /// Process context.
    pub fn state(&self) -> QpState {
        self.attributes.lock().state()
    }

    /// Brings it from "reset" to "initialised": receive work requests can be posted. `access` says
    /// what the peer may do with registered memory. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` in another state, or what the device answers.
    pub fn to_init(&self, port: u8, access: Access) -> Result {
        let mut attributes = self.attributes.lock();
        // SAFETY: The queue pair is live and these are its attributes.
        unsafe { attributes.init(self.raw.as_ptr(), port, access) }
    }

    /// Brings it from "initialised" to "ready to receive". Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` in another state or for impossible attributes, or what the device answers.
    pub fn to_rtr(&self, attr: &RtrAttr) -> Result {
        if !(1..=5).contains(&attr.mtu) || attr.dest_qpn > 0xff_ffff {
            return Err(EINVAL);
        }
        let mut attributes = self.attributes.lock();
        // SAFETY: The queue pair is live and these are its attributes.
        unsafe { attributes.rtr(self.raw.as_ptr(), attr) }
    }

    /// Brings it from "ready to receive" to "ready to send". Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` in another state, or what the device answers.
    pub fn to_rts(&self, attr: &RtsAttr) -> Result {
        let mut attributes = self.attributes.lock();
        // SAFETY: The queue pair is live and these are its attributes.
        unsafe { attributes.rts(self.raw.as_ptr(), attr) }
    }

    /// Brings it from any state to "error": all outstanding work requests are flushed. Does nothing
    /// when it is there. Process context.
    ///
    /// # Errors
    ///
    /// What the device answers.
    pub fn to_error(&self) -> Result {
        let mut attributes = self.attributes.lock();
        // SAFETY: The queue pair is live and these are its attributes.
        unsafe { attributes.error(self.raw.as_ptr()) }
    }

    /// Posts a list of send work requests. Any context that may take spin locks; no allocation.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when the queue is full, `EINVAL` when the state does not allow it, or what the
    /// device answers, with the number of requests that were posted before.
    #[inline]
    pub fn post_send<const N: usize>(&self, list: &mut SendList<'_, N>) -> Result<(), PostError> {
        // SAFETY: The queue pair is live.
        unsafe { list.post(self.raw.as_ptr()) }
    }

    /// Posts one receive work request. Any context that may take spin locks; no allocation.
    ///
    /// # Errors
    ///
    /// As for [`post_send`](Self::post_send).
    #[inline]
    pub fn post_recv(&self, to: Sge, wr_id: u64) -> Result {
        let mut list = RecvList::<1>::new();
        list.push(to, wr_id)?;
        Ok(self.post_recv_list(&mut list)?)
    }

    /// Posts a list of receive work requests. Any context that may take spin locks; no allocation.
    ///
    /// # Errors
    ///
    /// As for [`post_send`](Self::post_send).
    #[inline]
    pub fn post_recv_list<const N: usize>(&self, list: &mut RecvList<N>) -> Result<(), PostError> {
        // SAFETY: The queue pair is live.
        unsafe { list.post(self.raw.as_ptr()) }
    }

    /// Registers a memory region: when this returns, its keys open the memory. The queue pair must
    /// be ready to send. One registration is carried out at a time; process context.
    ///
    /// It takes one send work request, and its completion reaches the handler of the send
    /// completion queue, which must pass it to
    /// [`complete_registration`](Self::complete_registration).
    ///
    /// # Errors
    ///
    /// `EINVAL` when the region belongs to another domain, `ETIMEDOUT`, `EIO` when the device
    /// refuses it or the queue pair is in error, `EBUSY` while one that timed out is outstanding.
    pub fn register(&self, mr: &Arc<Mr>, access: Access, timeout_ms: Msecs) -> Result {
        if !Arc::ptr_eq(mr.pd(), &self.pd) {
            return Err(EINVAL);
        }
        // SAFETY: The queue pair is live, and destroyed before the registrar is dropped.
        unsafe {
            self.registrar
                .register(self.raw.as_ptr(), mr, access, timeout_ms)
        }
    }

    /// Takes note of the completion of a registration; false when `completion` is not of one.
    /// Any context.
    #[inline]
    pub fn complete_registration(&self, completion: &Completion) -> bool {
        self.registrar.complete(completion)
    }

    /// Lets go of the receiver of events. A call of it may still be running.
    pub fn detach_events(&self) {
        let events = self.events.lock().take();
        drop(events);
    }

    /// # Safety
    ///
    /// Called by the driver with a valid event, for a live queue pair whose context is a `Qp`.
    unsafe extern "C" fn event(event: *mut sys::ib_event, context: *mut c_void) {
        // SAFETY: The context is the value that owns the queue pair, as given to `create`.
        let this = unsafe { &*context.cast::<Self>() };
        // SAFETY: The event is valid for the duration of the call.
        let event = match unsafe { (*event).event } {
            sys::ib_event_type_IB_EVENT_QP_FATAL
            | sys::ib_event_type_IB_EVENT_QP_REQ_ERR
            | sys::ib_event_type_IB_EVENT_QP_ACCESS_ERR => QpEvent::Fatal,
            sys::ib_event_type_IB_EVENT_COMM_EST => QpEvent::Established,
            other => QpEvent::Other(other),
        };
        let events = this.events.lock().clone();
        if let Some(events) = events {
            events.qp_event(event);
        }
    }
}

#[pinned_drop]
impl PinnedDrop for Qp {
    fn drop(self: Pin<&mut Self>) {
        might_sleep();
        // SAFETY: Live by the type invariant; nobody can post to it any more.
        let ret = unsafe { sys::ib_destroy_qp_user(self.raw.as_ptr(), core::ptr::null_mut()) };
        kernel::warn_on!(ret != 0);
    }
}

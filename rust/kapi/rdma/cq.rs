// SPDX-License-Identifier: GPL-2.0

//! Completion queues.
//!
//! A completion event may come in hard interrupt context. It queues a bottom half work item,
//! which takes completions off the queue in batches and hands each to the queue's handler. A busy
//! poller in process context can do the same; whoever polls excludes all others without a lock, so
//! handlers run one at a time, with bottom halves disabled and no lock of this module held.

use super::device::{Device, DeviceUse};
use crate::sync::BhDisabled;
use crate::sys;
use core::cell::UnsafeCell;
use core::ptr::NonNull;
use kernel::bindings;
use kernel::error::from_err_ptr;
use kernel::ffi::{c_int, c_void};
use kernel::prelude::*;
use kernel::static_lock_class;
use kernel::sync::atomic::{Atomic, Full, Relaxed};
use kernel::sync::Arc;
use kernel::task::might_sleep;
use kernel::time::delay::fsleep;
use kernel::time::Delta;
use kernel::types::Opaque;

/// How many completions are taken off at a time.
const BATCH: usize = 16;
/// How many completions one run of the work item handles before others get their turn.
const BUDGET: usize = 256;

/// Nobody polls.
const IDLE: i32 = 0;
/// Somebody polls.
const BUSY: i32 = 1;
/// Somebody polls, and somebody else wanted to: poll again afterwards.
const BUSY_AGAIN: i32 = 2;
/// Nobody polls any more.
const DETACHED: i32 = 3;

/// What kind of work request completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opcode {
    /// A message was sent.
    Send,
    /// The peer's memory was written.
    Write,
    /// A message was received.
    Recv,
    /// A memory region was registered.
    RegMr,
    /// A key was invalidated.
    LocalInv,
    /// Something else; its C number.
    Other(u32),
}

/// The outcome of a work request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WcStatus(u32);

impl WcStatus {
    /// It was carried out.
    pub const SUCCESS: Self = Self(sys::ib_wc_status_IB_WC_SUCCESS);
    /// It was given up because its queue pair is in the error state.
    pub const FLUSHED: Self = Self(sys::ib_wc_status_IB_WC_WR_FLUSH_ERR);
    /// The peer did not answer.
    pub const RETRY_EXCEEDED: Self = Self(sys::ib_wc_status_IB_WC_RETRY_EXC_ERR);
    /// The peer had no receive work request.
    pub const RNR_RETRY_EXCEEDED: Self = Self(sys::ib_wc_status_IB_WC_RNR_RETRY_EXC_ERR);

    /// The C number.
    pub fn as_raw(self) -> u32 {
        self.0
    }
}

/// One completed work request. There is one value for each completion, which only its handler sees.
#[derive(Debug)]
#[non_exhaustive]
pub struct Completion {
    /// The number given when it was posted.
    pub wr_id: u64,
    /// The outcome.
    pub status: WcStatus,
    /// What it was; says nothing unless the request succeeded.
    pub opcode: Opcode,
    /// The length of a received message in bytes.
    pub byte_len: u32,
    /// The device's own error number.
    pub vendor_err: u32,
    /// The number of the work request again, for what must not be forged.
    pub(super) number: u64,
}

impl Completion {
    /// Whether the request was carried out.
    #[inline]
    pub fn ok(&self) -> bool {
        self.status == WcStatus::SUCCESS
    }

    /// The outcome in words.
    pub fn status_text(&self) -> &'static str {
        // SAFETY: Knows all numbers and returns a string that lives for ever.
        let text = unsafe { CStr::from_char_ptr(sys::ib_wc_status_msg(self.status.0)) };
        text.to_str().unwrap_or("unknown")
    }

    fn from_raw(wc: &sys::ib_wc) -> Self {
        // SAFETY: Work requests of this module carry a number, never a pointer.
        let number = unsafe { wc.__bindgen_anon_1.wr_id };
        Self {
            wr_id: number,
            number,
            status: WcStatus(wc.status),
            opcode: match wc.opcode {
                sys::ib_wc_opcode_IB_WC_SEND => Opcode::Send,
                sys::ib_wc_opcode_IB_WC_RDMA_WRITE => Opcode::Write,
                sys::ib_wc_opcode_IB_WC_RECV => Opcode::Recv,
                sys::ib_wc_opcode_IB_WC_REG_MR => Opcode::RegMr,
                sys::ib_wc_opcode_IB_WC_LOCAL_INV => Opcode::LocalInv,
                other => Opcode::Other(other),
            },
            byte_len: wc.byte_len,
            vendor_err: wc.vendor_err,
        }
    }
}

/// A receiver of completions.
pub trait CompletionHandler: Send + Sync + 'static {
    /// A work request has completed. Bottom half context or process context with bottom halves
    /// disabled: must not sleep. Never called twice at once for one queue.
    fn complete(&self, completion: &Completion);

    /// The completions at hand have been delivered; the place to wake up whom they concern. Same
    /// context as [`complete`](Self::complete).
    fn batch_done(&self) {}
}

/// A completion queue.
///
/// It delivers nothing until [`attach`](Self::attach) is called. A handler that owns the queue, or
/// a queue pair that uses it, makes a cycle: [`detach`](Self::detach) breaks it. Create and drop in
/// process context.
///
/// # Invariants
///
/// * `raw` is a completion queue with this value as its context; it lives until the drop.
/// * `handler` and `batch` belong to whoever changed `state` from `IDLE` to another value.
#[pin_data(PinnedDrop)]
pub struct Cq<H: CompletionHandler> {
    raw: NonNull<sys::ib_cq>,
    #[pin]
    work: Opaque<bindings::work_struct>,
    state: Atomic<i32>,
    handler: UnsafeCell<Option<Arc<H>>>,
    batch: UnsafeCell<KVec<sys::ib_wc>>,
    device: DeviceUse,
}

// SAFETY: Completion queues may be used and destroyed from any thread; the handler is `Send` and
// `Sync`.
unsafe impl<H: CompletionHandler> Send for Cq<H> {}
// SAFETY: What a shared reference changes is guarded by `state`.
unsafe impl<H: CompletionHandler> Sync for Cq<H> {}

impl<H: CompletionHandler> Cq<H> {
    /// Creates a queue for `entries` completions. It must have room for all work requests that can
    /// be outstanding on its queue pairs. `vector` chooses the interrupt, modulo
    /// [`Device::completion_vectors`]. Process context.
    ///
    /// # Errors
    ///
    /// `ENODEV` when the device is being removed, `ENOMEM`, or what the device answers.
    pub fn new(device: &Arc<Device>, entries: u32, vector: u32) -> Result<Arc<Self>> {
        might_sleep();
        let device = DeviceUse::new(device)?;
        let mut batch = KVec::with_capacity(BATCH, GFP_KERNEL)?;
        for _ in 0..BATCH {
            batch.push(pin_init::zeroed(), GFP_KERNEL)?;
        }
        Arc::try_pin_init(
            try_pin_init!(&this in Self {
                work <- Opaque::ffi_init(Self::init_work),
                state: Atomic::new(IDLE),
                handler: UnsafeCell::new(None),
                batch: UnsafeCell::new(batch),
                // INVARIANT: `this` is pinned and destroys the queue before it goes away.
                raw: Self::create(device.as_raw(), this.as_ptr().cast(), entries, vector)?,
                device,
            }? Error),
            GFP_KERNEL,
        )
    }

    fn create(
        dev: *mut sys::ib_device,
        context: *mut c_void,
        entries: u32,
        vector: u32,
    ) -> Result<NonNull<sys::ib_cq>> {
        // SAFETY: The caller keeps the device registered. No event comes before the queue is
        // armed by `attach`.
        let raw = from_err_ptr(unsafe {
            sys::smc_rs_helper_rdma_create_cq(dev, Some(Self::event), context, entries, vector)
        })?;
        NonNull::new(raw).ok_or(ENOMEM)
    }

    fn init_work(slot: *mut bindings::work_struct) {
        let name = kernel::c_str!("rdma_cq_poll").as_char_ptr();
        let key = static_lock_class!().as_ptr();
        // SAFETY: `slot` is a valid place for a work item; name and key live for ever.
        unsafe { bindings::init_work_with_key(slot, Some(Self::run), false, name, key) };
    }

    /// The C object.
    pub(super) fn as_raw(&self) -> *mut sys::ib_cq {
        self.raw.as_ptr()
    }

    /// The device of the queue.
    pub fn device(&self) -> &Arc<Device> {
        self.device.device()
    }

    /// Begins to deliver completions, those that wait included, to `handler`. Process context.
    ///
    /// # Errors
    ///
    /// `EBUSY` when the queue has a handler or had one.
    pub fn attach(&self, handler: Arc<H>) -> Result {
        might_sleep();
        while let Err(state) = self.state.cmpxchg(IDLE, BUSY, Full) {
            if state == DETACHED {
                return Err(EBUSY);
            }
            fsleep(Delta::from_micros(50));
        }
        // SAFETY: `state` was changed from `IDLE` above, so the handler is ours.
        let place = unsafe { &mut *self.handler.get() };
        let fresh = place.is_none();
        if fresh {
            *place = Some(handler);
        }
        self.release();
        if !fresh {
            return Err(EBUSY);
        }
        // Polls once, which arms the queue when nothing is left on it.
        self.kick();
        Ok(())
    }

    /// Ends delivery and lets go of the handler: when this returns, no call of it runs or will
    /// run. Process context, not from the handler.
    pub fn detach(&self) {
        might_sleep();
        while let Err(state) = self.state.cmpxchg(IDLE, DETACHED, Full) {
            if state == DETACHED {
                return;
            }
            fsleep(Delta::from_micros(50));
        }
        // SAFETY: `state` was changed from `IDLE` above and stays as it is, so the handler is
        // ours for ever.
        let handler = unsafe { (*self.handler.get()).take() };
        drop(handler);
    }

    /// Takes up to `budget` completions off the queue and delivers them, unless somebody else does
    /// so now; returns how many. For busy polling in process context, also for bottom halves.
    pub fn poll_now(&self, budget: usize) -> usize {
        let _bh = BhDisabled::new();
        if !self.claim() {
            return 0;
        }
        let done = self.drain(budget);
        if self.release() {
            self.kick();
        }
        done
    }

    /// Queues the work item on this CPU. Any context, also hard interrupts.
    fn kick(&self) {
        // SAFETY: The work item is initialised; it is disabled before it goes away.
        unsafe { sys::smc_rs_helper_queue_bh_work(self.work.get()) };
    }

    /// Tries to become the one who polls. If somebody polls already, that one will again.
    fn claim(&self) -> bool {
        let mut seen = self.state.load(Relaxed);
        loop {
            let next = match seen {
                IDLE => BUSY,
                BUSY => BUSY_AGAIN,
                _ => return false,
            };
            match self.state.cmpxchg(seen, next, Full) {
                Ok(_) => return next == BUSY,
                Err(now) => seen = now,
            }
        }
    }

    /// Ends what `claim` began; true when somebody else wanted to poll meanwhile.
    fn release(&self) -> bool {
        self.state.xchg(IDLE, Full) == BUSY_AGAIN
    }

    /// Delivers up to `budget` completions. The caller has claimed the queue.
    fn drain(&self, budget: usize) -> usize {
        // SAFETY: The caller has claimed the queue.
        let Some(handler) = (unsafe { &*self.handler.get() }) else {
            return 0;
        };
        // SAFETY: As above.
        let batch = unsafe { &mut *self.batch.get() };
        let mut done = 0;
        while done < budget {
            let want = budget.saturating_sub(done).min(batch.len());
            // SAFETY: The queue is live, and `batch` has room for `want` entries.
            let got = unsafe {
                sys::smc_rs_helper_rdma_poll_cq(self.as_raw(), want as c_int, batch.as_mut_ptr())
            };
            let got = usize::try_from(got).unwrap_or(0);
            for wc in batch.iter().take(got) {
                handler.complete(&Completion::from_raw(wc));
            }
            done = done.saturating_add(got);
            if got < want {
                break;
            }
        }
        if done > 0 {
            handler.batch_done();
        }
        done
    }

    /// # Safety
    ///
    /// Called by the work queue with the item embedded in a live `Cq`.
    unsafe extern "C" fn run(work: *mut bindings::work_struct) {
        let work: *mut Opaque<bindings::work_struct> = work.cast();
        // SAFETY: The item is the `work` field of a queue, which waits for it before it goes away.
        let this = unsafe { &*kernel::container_of!(work, Self, work) };
        if !this.claim() {
            return;
        }
        let more = this.drain(BUDGET) >= BUDGET;
        // SAFETY: The queue is live.
        let missed = !more && unsafe { sys::smc_rs_helper_rdma_arm_cq(this.as_raw()) } > 0;
        if this.release() || more || missed {
            this.kick();
        }
    }

    /// # Safety
    ///
    /// Called by the device driver, in any context, for a live queue whose context is a `Cq`.
    unsafe extern "C" fn event(_raw: *mut sys::ib_cq, context: *mut c_void) {
        let this = context.cast::<Self>();
        // The rest of the value may not be initialised yet, so there is no reference to all of it.
        // SAFETY: The context is the value that owns the queue, as given to `create`; its work item
        // was initialised before.
        let work = unsafe { &raw const (*this).work };
        // SAFETY: As above, and the item is disabled before it goes away.
        unsafe { sys::smc_rs_helper_queue_bh_work(Opaque::cast_into(work)) };
    }
}

#[pinned_drop]
impl<H: CompletionHandler> PinnedDrop for Cq<H> {
    fn drop(self: Pin<&mut Self>) {
        might_sleep();
        // Events may still come until the queue is destroyed: they find the item disabled.
        // SAFETY: The work item is initialised.
        unsafe { bindings::disable_work_sync(self.work.get()) };
        // SAFETY: Live by the type invariant; queue pairs that use it keep a reference.
        let ret = unsafe { sys::ib_destroy_cq_user(self.as_raw(), core::ptr::null_mut()) };
        kernel::warn_on!(ret != 0);
    }
}

/// A completion queue of any handler, as queue pairs keep it.
pub(super) trait AnyCq: Send + Sync {}

impl<H: CompletionHandler> AnyCq for Cq<H> {}

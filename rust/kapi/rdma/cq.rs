// SPDX-License-Identifier: GPL-2.0

//! Completion queues.
//!
//! A completion event may come in hard interrupt context. It puts the queue on the list of a softirq,
//! as the RDMA core does for its own queues, which takes completions off it in batches and hands each
//! to the queue's handler. Whoever does so excludes all others without a lock, so handlers run one at a
//! time, with bottom halves disabled and no lock of this module held.
//!
//! C header: [`include/linux/irq_poll.h`](srctree/include/linux/irq_poll.h)

use super::device::{Device, DeviceUse};
use crate::sync::BhDisabled;
use crate::sys;
use core::cell::UnsafeCell;
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::ffi::{c_int, c_void};
use kernel::prelude::*;
use kernel::sync::atomic::{Acquire, Atomic, Full, Release};
use kernel::sync::Arc;
use kernel::task::might_sleep;
use kernel::time::delay::fsleep;
use kernel::time::Delta;
use kernel::types::Opaque;

/// How many completions are taken off at a time.
const BATCH: usize = 16;
/// How many completions are handled before other queues get their turn.
const BUDGET: c_int = 64;

/// Nobody polls.
const IDLE: i32 = 0;
/// Somebody polls.
const BUSY: i32 = 1;
/// Nobody polls any more.
const DETACHED: i32 = 2;

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
/// * Who polls does not touch this value after changing `state` from `BUSY`, unless the softirq still
///   has the queue on its list.
#[pin_data(PinnedDrop)]
pub struct Cq<H: CompletionHandler> {
    raw: NonNull<sys::ib_cq>,
    #[pin]
    poll: Opaque<sys::irq_poll>,
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
                poll <- Opaque::ffi_init(Self::init_poll),
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

    fn init_poll(slot: *mut sys::irq_poll) {
        // SAFETY: `slot` is a valid place.
        unsafe { sys::irq_poll_init(slot, BUDGET, Some(Self::run)) };
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
        let fresh = {
            // The softirq spins while the queue is taken.
            let _bh = BhDisabled::new();
            match self.state.cmpxchg(IDLE, BUSY, Full) {
                Ok(_) => {
                    // SAFETY: `state` was changed from `IDLE` above, so the handler is ours.
                    let place = unsafe { &mut *self.handler.get() };
                    let fresh = place.is_none();
                    if fresh {
                        *place = Some(handler);
                    }
                    self.state.store(IDLE, Release);
                    fresh
                }
                // The softirq polls for the handler that is there.
                Err(_) => false,
            }
        };
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

    /// Lets the softirq poll, on this CPU. Any context, also hard interrupts.
    fn kick(&self) {
        // SAFETY: `poll` is initialised; it is disabled before it goes away.
        unsafe { sys::irq_poll_sched(self.poll.get()) };
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

    /// One turn: delivers up to `budget` completions, and arms the queue when there were less. Returns
    /// `budget` to get another turn.
    ///
    /// # Safety
    ///
    /// Called by the softirq with the `poll` embedded in a live `Cq`.
    unsafe extern "C" fn run(poll: *mut sys::irq_poll, budget: c_int) -> c_int {
        let place: *mut Opaque<sys::irq_poll> = poll.cast();
        // SAFETY: It is the `poll` field of a queue, which waits for turns before it goes away.
        let this = unsafe { &*kernel::container_of!(place, Self, poll) };
        match this.state.cmpxchg(IDLE, BUSY, Full) {
            Ok(_) => {}
            Err(DETACHED) => {
                // SAFETY: The softirq has the queue on its list.
                unsafe { sys::irq_poll_complete(poll) };
                return 0;
            }
            // Another CPU is about to end its turn.
            Err(_) => return budget,
        }
        let most = usize::try_from(budget).unwrap_or(0);
        if this.drain(most) >= most {
            this.state.store(IDLE, Release);
            return budget;
        }
        // From here on an event puts the queue on a list again, so none is lost between the two.
        // SAFETY: The softirq has the queue on its list.
        unsafe { sys::irq_poll_complete(poll) };
        // SAFETY: The queue is live.
        let missed = unsafe { sys::smc_rs_helper_rdma_arm_cq(this.as_raw()) } > 0;
        if missed {
            this.kick();
        }
        this.state.store(IDLE, Release);
        0
    }

    /// # Safety
    ///
    /// Called by the device driver, in any context, for a live queue whose context is a `Cq`.
    unsafe extern "C" fn event(_raw: *mut sys::ib_cq, context: *mut c_void) {
        let this = context.cast::<Self>();
        // The rest of the value may not be initialised yet, so there is no reference to all of it.
        // SAFETY: The context is the value that owns the queue, as given to `create`; its `poll` was
        // initialised before.
        let poll = unsafe { &raw const (*this).poll };
        // SAFETY: As above, and it is disabled before it goes away.
        unsafe { sys::irq_poll_sched(Opaque::cast_into(poll)) };
    }
}

#[pinned_drop]
impl<H: CompletionHandler> PinnedDrop for Cq<H> {
    fn drop(self: Pin<&mut Self>) {
        might_sleep();
        // Events may still come until the queue is destroyed: they find the softirq's part disabled.
        // SAFETY: It is initialised.
        unsafe { sys::irq_poll_disable(self.poll.get()) };
        // A turn that was over for the softirq may not be for the queue.
        while self.state.load(Acquire) == BUSY {
            fsleep(Delta::from_micros(50));
        }
        // SAFETY: Live by the type invariant; queue pairs that use it keep a reference.
        let ret = unsafe { sys::ib_destroy_cq_user(self.as_raw(), core::ptr::null_mut()) };
        kernel::warn_on!(ret != 0);
    }
}

/// A completion queue of any handler, as queue pairs keep it.
pub(super) trait AnyCq: Send + Sync {}

impl<H: CompletionHandler> AnyCq for Cq<H> {}

// SPDX-License-Identifier: GPL-2.0

//! Owned work queues, cancelling, and delayed work that can be re-armed.
//!
//! The `kernel` crate can put work on queues that live for ever. A module also needs a queue it
//! can drain before its text goes away, and it needs to take work back. The functions here work
//! on the [`Work`](kernel::workqueue::Work) and [`DelayedWork`](kernel::workqueue::DelayedWork)
//! fields of types held in an [`Arc`]: a queued item owns one reference, and cancelling gives that
//! reference back.
//!
//! A type with several items tells them apart by the `ID` parameter:
//! `work::queue::<_, 1>(&queue, &this)`.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use crate::sys;
use core::ops::Deref;
use core::ptr::NonNull;
use kernel::bindings;
use kernel::ffi::c_int;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::time::{msecs_to_jiffies, Msecs};
use kernel::workqueue::{HasDelayedWork, HasWork, Queue, Work, WorkItem};

/// How an [`OwnedQueue`] runs its items.
#[derive(Clone, Copy, Default)]
pub struct QueueFlags {
    /// Items run on any CPU, not on the one that queued them.
    pub unbound: bool,
    /// Items run at high priority.
    pub highpri: bool,
    /// The queue makes progress when memory is short.
    pub mem_reclaim: bool,
}

impl QueueFlags {
    fn as_raw(self) -> u32 {
        let placement = if self.unbound {
            sys::wq_flags_WQ_UNBOUND
        } else {
            sys::wq_flags_WQ_PERCPU
        };
        let highpri = if self.highpri {
            sys::wq_flags_WQ_HIGHPRI
        } else {
            0
        };
        let reclaim = if self.mem_reclaim {
            sys::wq_flags_WQ_MEM_RECLAIM
        } else {
            0
        };
        placement | highpri | reclaim
    }
}

/// A work queue that belongs to its creator.
///
/// Dropping it waits for all items that are queued. Process context only; dropped elsewhere it is
/// leaked with a warning, and an item that runs on it must not drop the last reference to it.
///
/// # Delayed work
///
/// An armed delayed item is not on the queue yet, so dropping the queue does not wait for it: all
/// delayed items that name the queue must have been cancelled before.
///
/// # Invariants
///
/// The pointer is a work queue that lives until the value is dropped.
pub struct OwnedQueue(NonNull<bindings::workqueue_struct>);

// SAFETY: Work queues may be used and destroyed from any thread.
unsafe impl Send for OwnedQueue {}
// SAFETY: All operations through a shared reference are thread-safe.
unsafe impl Sync for OwnedQueue {}

impl OwnedQueue {
    /// Creates a queue. At most `max_active` items run at once (per CPU for a bound queue, in the
    /// system for an unbound one); 0 means the kernel's default, 1 on an unbound queue means in
    /// order. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when it cannot be allocated.
    pub fn new(name: &'static CStr, flags: QueueFlags, max_active: i32) -> Result<Self> {
        // SAFETY: `name` is a string that lives for ever; the function copies it.
        let raw = unsafe {
            sys::smc_rs_helper_alloc_workqueue(name.as_char_ptr(), flags.as_raw(), max_active)
        };
        // CAST: Both bindings describe the kernel's `struct workqueue_struct`.
        // INVARIANT: The queue was just created and only `drop` destroys it.
        NonNull::new(raw.cast()).map(Self).ok_or(ENOMEM)
    }

    /// Waits until every item that is on the queue now has run. Process context, and not from an
    /// item of this queue.
    pub fn flush(&self) {
        // SAFETY: The queue is valid by the type invariant.
        unsafe { sys::smc_rs_helper_flush_workqueue(self.0.as_ptr().cast()) };
    }
}

impl Deref for OwnedQueue {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        // SAFETY: The queue is valid for as long as `self` is, by the type invariant.
        unsafe { Queue::from_raw(self.0.as_ptr()) }
    }
}

impl Drop for OwnedQueue {
    fn drop(&mut self) {
        // SAFETY: Only reads the context counter of the current CPU.
        if !unsafe { sys::smc_rs_helper_in_task() } {
            kernel::warn_on!(true);
            return;
        }
        // SAFETY: The queue is valid by the type invariant and nobody can use it any more.
        unsafe { bindings::destroy_workqueue(self.0.as_ptr()) };
    }
}

fn queue_ptr(queue: &Queue) -> *mut bindings::workqueue_struct {
    // CAST: `Queue` is a transparent wrapper of the C structure.
    core::ptr::from_ref(queue).cast_mut().cast()
}

/// The C work item embedded in `*this`.
fn raw_work<T, const ID: u64>(this: *mut T) -> *mut bindings::work_struct
where
    T: HasWork<T, ID>,
{
    // SAFETY: Callers pass a pointer obtained from an `Arc` they hold.
    let work = unsafe { T::raw_get_work(this) };
    // SAFETY: `work` points at a live `Work` field.
    unsafe { Work::raw_get(work) }
}

/// The C delayed work item embedded in `*this`.
fn raw_delayed<T, const ID: u64>(this: *mut T) -> *mut bindings::delayed_work
where
    T: HasDelayedWork<T, ID>,
{
    let work = raw_work::<T, ID>(this);
    // SAFETY: `HasDelayedWork` promises that the item is the `work` field of a `delayed_work`.
    unsafe { kernel::container_of!(work, bindings::delayed_work, work) }
}

/// Queues the item `ID` of `this`; `false` when it was queued already.
///
/// Any context. The queue holds a reference to `this` until the item runs.
pub fn queue<T, const ID: u64>(queue: &Queue, this: &Arc<T>) -> bool
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasWork<T, ID> + Send + Sync + 'static,
{
    queue.enqueue::<Arc<T>, ID>(this.clone()).is_ok()
}

/// Takes the item `ID` of `this` off its queue and gives back the reference that the queue held.
///
/// Any context. `None` when it was not queued; it may then be running.
pub fn try_cancel<T, const ID: u64>(this: &Arc<T>) -> Option<Arc<T>>
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasWork<T, ID>,
{
    let ptr = Arc::as_ptr(this).cast_mut();
    // SAFETY: The work item was initialised with its owner and `this` keeps it alive.
    let was_queued = unsafe { bindings::cancel_work(raw_work::<T, ID>(ptr)) };
    // SAFETY: The item was queued, so a reference made by `Arc::into_raw` belongs to the queue;
    // as it was taken off, nobody else will consume that reference.
    was_queued.then(|| unsafe { Arc::from_raw(ptr) })
}

/// As [`try_cancel`], and waits until the item is not running either.
///
/// Process context; not from the item itself nor while holding a lock it takes. Nothing stops the
/// item from being queued again.
pub fn cancel_sync<T, const ID: u64>(this: &Arc<T>) -> Option<Arc<T>>
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasWork<T, ID>,
{
    let ptr = Arc::as_ptr(this).cast_mut();
    // SAFETY: The work item was initialised with its owner and `this` keeps it alive.
    let was_queued = unsafe { bindings::cancel_work_sync(raw_work::<T, ID>(ptr)) };
    // SAFETY: As in `try_cancel`.
    was_queued.then(|| unsafe { Arc::from_raw(ptr) })
}

/// Queues the delayed item `ID` of `this` in `delay_ms` milliseconds unless it is armed or queued
/// already; `false` in that case.
///
/// Any context. See [`OwnedQueue`] about delayed items and the end of a queue.
pub fn schedule<T, const ID: u64>(queue: &Queue, this: &Arc<T>, delay_ms: Msecs) -> bool
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID> + Send + Sync + 'static,
{
    queue
        .enqueue_delayed::<Arc<T>, ID>(this.clone(), msecs_to_jiffies(delay_ms))
        .is_ok()
}

/// Lets the delayed item `ID` of `this` run `delay_ms` milliseconds from now, whether it is armed
/// or not. Returns whether it was armed or queued before.
///
/// Any context. See [`OwnedQueue`] about delayed items and the end of a queue.
pub fn reschedule<T, const ID: u64>(queue: &Queue, this: &Arc<T>, delay_ms: Msecs) -> bool
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID> + Send + Sync + 'static,
{
    let ptr = Arc::into_raw(this.clone()).cast_mut();
    // SAFETY: The delayed work was initialised with its owner, which `this` and the queue's
    // reference keep alive; the work queue is valid as `queue` is borrowed. Nothing in this module
    // disables an item, so one that was not pending is queued now.
    let was_pending = unsafe {
        bindings::mod_delayed_work_on(
            bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int,
            queue_ptr(queue),
            raw_delayed::<T, ID>(ptr),
            msecs_to_jiffies(delay_ms),
        )
    };
    if was_pending {
        // SAFETY: The item keeps the reference it had, so the one made above is ours again.
        drop(unsafe { Arc::from_raw(ptr) });
    }
    was_pending
}

/// Disarms the delayed item `ID` of `this` and gives back the reference that it held.
///
/// Any context. `None` when it was neither armed nor queued; it may then be running.
pub fn try_cancel_delayed<T, const ID: u64>(this: &Arc<T>) -> Option<Arc<T>>
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    let ptr = Arc::as_ptr(this).cast_mut();
    // SAFETY: The delayed work was initialised with its owner and `this` keeps it alive.
    let was_pending = unsafe { bindings::cancel_delayed_work(raw_delayed::<T, ID>(ptr)) };
    // SAFETY: As in `try_cancel`.
    was_pending.then(|| unsafe { Arc::from_raw(ptr) })
}

/// Disarms the delayed item `ID` of `this` and waits until it is not running either.
///
/// Process context; not from the item itself nor while holding a lock it takes. Nothing stops the
/// item from being armed again: one that arms itself for ever is waited for as long.
pub fn cancel_delayed_sync<T, const ID: u64>(this: &Arc<T>)
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    // The kernel's `cancel_delayed_work_sync()` disables the item while it waits. What
    // `mod_delayed_work()` returns for a disabled item is what it returns for one that it queued, so
    // `reschedule()` could not tell whether its reference was taken.
    loop {
        let cancelled = try_cancel_delayed(this).is_some();
        let ptr = Arc::as_ptr(this).cast_mut();
        // SAFETY: The item was initialised with its owner and `this` keeps it alive.
        let waited = unsafe { bindings::flush_work(raw_work::<T, ID>(ptr)) };
        if !cancelled && !waited {
            return;
        }
    }
}

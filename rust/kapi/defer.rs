// SPDX-License-Identifier: GPL-2.0

//! Values whose destructor sleeps, owned where sleeping is not allowed.

use crate::work::OwnedQueue;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::pin::Pin;
use kernel::alloc::Flags;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::workqueue::{impl_has_work, new_work, Work, WorkItem};

/// Owns a `T` and lets its destructor run in a work item.
///
/// The value itself may be dropped in any context, also in softirq and under a spin lock: it is
/// then handed to the queue named when it was made, without an allocation. Flushing the queue
/// waits for the destructors of everything dropped before.
///
/// The owner of the queue must keep its own reference until all `DeferDrop` values are gone,
/// because a work queue can only be destroyed in process context.
pub struct DeferDrop<T: Send + 'static> {
    inner: ManuallyDrop<Pin<KBox<Inner<T>>>>,
    queue: Arc<OwnedQueue>,
}

#[pin_data]
struct Inner<T> {
    #[pin]
    work: Work<Inner<T>>,
    #[pin]
    value: T,
}

impl_has_work! {
    impl{T} HasWork<Self> for Inner<T> { self.work }
}

impl<T: Send + 'static> WorkItem for Inner<T> {
    type Pointer = Pin<KBox<Self>>;

    fn run(this: Pin<KBox<Self>>) {
        drop(this);
    }
}

impl<T: Send + 'static> DeferDrop<T> {
    /// Makes the value in its final place. `value` may be a `T` or an initialiser of one.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what the initialiser reports.
    pub fn new<E>(
        value: impl PinInit<T, E>,
        flags: Flags,
        queue: &Arc<OwnedQueue>,
    ) -> Result<Self, Error>
    where
        Error: From<E>,
    {
        let inner = KBox::try_pin_init(
            try_pin_init!(Inner {
                work <- new_work!("DeferDrop"),
                value <- value,
            }? Error),
            flags,
        )?;
        Ok(Self {
            inner: ManuallyDrop::new(inner),
            queue: queue.clone(),
        })
    }
}

impl<T: Send + 'static> Deref for DeferDrop<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner.value
    }
}

impl<T: Send + 'static> Drop for DeferDrop<T> {
    fn drop(&mut self) {
        // SAFETY: The value is being dropped, so nobody looks at `inner` again.
        let inner = unsafe { ManuallyDrop::take(&mut self.inner) };
        self.queue.enqueue(inner);
    }
}

// SPDX-License-Identifier: GPL-2.0

//! State that a module has once, found from callbacks that carry no context.

use core::{
    marker::PhantomData,
    ptr,
    sync::atomic::{
        AtomicPtr,
        Ordering, //
    },
};
use kernel::{
    prelude::*,
    sync::{
        rcu,
        Arc,
        ArcBorrow, //
    },
};

/// A place for one reference-counted value, to be a `static`.
///
/// # Invariants
///
/// `value` is null, or came from [`Arc::into_raw`] and stands for a reference that is dropped only
/// a grace period after the pointer was cleared.
pub struct Global<T: Send + Sync + 'static> {
    value: AtomicPtr<T>,
    _owns: PhantomData<Arc<T>>,
}

// SAFETY: The value may be shared between threads, and its last reference dropped on any of them.
unsafe impl<T: Send + Sync + 'static> Sync for Global<T> {}

impl<T: Send + Sync + 'static> Global<T> {
    /// An empty place.
    pub const fn new() -> Self {
        Self {
            value: AtomicPtr::new(ptr::null_mut()),
            _owns: PhantomData,
        }
    }

    /// Puts `value` in place for as long as the result lives. May sleep.
    ///
    /// # Errors
    ///
    /// `EBUSY` when the place is taken.
    pub fn install(&'static self, value: Arc<T>) -> Result<Installed<T>> {
        let raw = Arc::into_raw(value).cast_mut();
        match self
            .value
            .compare_exchange(ptr::null_mut(), raw, Ordering::AcqRel, Ordering::Relaxed)
        {
            Ok(_) => Ok(Installed(self)),
            Err(_) => {
                // SAFETY: `raw` came from `Arc::into_raw` above and nobody else has it.
                drop(unsafe { Arc::from_raw(raw) });
                Err(EBUSY)
            }
        }
    }

    /// The value, if there is one. Any context.
    pub fn get(&self) -> Option<Arc<T>> {
        let guard = rcu::read_lock();
        let raw = self.value.load(Ordering::Acquire);
        if raw.is_null() {
            return None;
        }
        // SAFETY: By the type invariant the reference behind `raw` is kept until a grace period
        // after the pointer was cleared, and `guard` holds that off.
        let found: Arc<T> = unsafe { ArcBorrow::from_raw(raw) }.into();
        drop(guard);
        Some(found)
    }
}

impl<T: Send + Sync + 'static> Default for Global<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Keeps a value in its place. Dropping it takes the value out and may sleep.
pub struct Installed<T: Send + Sync + 'static>(&'static Global<T>);

impl<T: Send + Sync + 'static> Drop for Installed<T> {
    fn drop(&mut self) {
        let raw = self.0.value.swap(ptr::null_mut(), Ordering::AcqRel);
        rcu::synchronize_rcu();
        // SAFETY: `raw` came from `Arc::into_raw` in `install`; the grace period is over.
        drop(unsafe { Arc::from_raw(raw) });
    }
}

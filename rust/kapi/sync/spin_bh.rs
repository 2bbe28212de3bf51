// SPDX-License-Identifier: GPL-2.0

//! A spin lock that keeps bottom halves off the CPU while it is held.
//!
//! For data shared between process context and bottom halves (softirq, BH work queues, timers).
//! It must not be taken in hard interrupt context.
//!
//! C header: [`include/linux/spinlock.h`](srctree/include/linux/spinlock.h)

use crate::sys;
use kernel::bindings;
use kernel::ffi::c_char;
use kernel::sync::lock::{Backend, Guard, Lock};

/// A lock for process and bottom half context.
///
/// Make one with [`new_spinlock_bh!`](crate::new_spinlock_bh), which asks for a name.
pub type SpinLockBh<T> = Lock<T, BhBackend>;

/// The guard of a [`SpinLockBh`]. Nothing may sleep while it lives.
pub type SpinLockBhGuard<'a, T> = Guard<'a, T, BhBackend>;

/// Creates an initialiser of a [`SpinLockBh`] with the given name and a new lock class.
#[macro_export]
macro_rules! new_spinlock_bh {
    ($inner:expr, $name:literal $(,)?) => {
        $crate::sync::SpinLockBh::new(
            $inner,
            ::kernel::c_str!($name),
            ::kernel::static_lock_class!(),
        )
    };
}

/// The backend of [`SpinLockBh`]: `spinlock_t` with bottom halves disabled.
pub struct BhBackend;

// SAFETY: `spinlock_t` ensures mutual exclusion. `relock` is the default, which locks the same way.
unsafe impl Backend for BhBackend {
    type State = bindings::spinlock_t;
    type GuardState = ();

    #[inline]
    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut bindings::lock_class_key) {
        // SAFETY: The caller promises that `ptr` is valid for writes and that `name` and `key`
        // live for ever.
        unsafe { bindings::__spin_lock_init(ptr, name, key) }
    }

    #[inline]
    unsafe fn lock(ptr: *mut Self::State) {
        // CAST: Both bindings describe the kernel's `spinlock_t`.
        // SAFETY: The caller promises that `ptr` points to an initialised lock.
        unsafe { sys::smc_rs_helper_spin_lock_bh(ptr.cast()) }
    }

    #[inline]
    unsafe fn try_lock(ptr: *mut Self::State) -> Option<()> {
        // CAST: Both bindings describe the kernel's `spinlock_t`.
        // SAFETY: The caller promises that `ptr` points to an initialised lock.
        let taken = unsafe { sys::smc_rs_helper_spin_trylock_bh(ptr.cast()) };
        (taken != 0).then_some(())
    }

    #[inline]
    unsafe fn unlock(ptr: *mut Self::State, _guard_state: &()) {
        // CAST: Both bindings describe the kernel's `spinlock_t`.
        // SAFETY: The caller promises that `ptr` is valid and that it owns the lock.
        unsafe { sys::smc_rs_helper_spin_unlock_bh(ptr.cast()) }
    }

    #[inline]
    unsafe fn assert_is_held(ptr: *mut Self::State) {
        // SAFETY: The caller promises that `ptr` points to an initialised lock.
        unsafe { bindings::spin_assert_is_held(ptr) }
    }
}

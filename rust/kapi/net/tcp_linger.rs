// SPDX-License-Identifier: GPL-2.0

//! Hooks that stay registered for a while after their last use.
//!
//! Registering and unregistering netfilter hooks patches the running kernel's code, which takes
//! far longer than making a socket does. A program that makes one connection after the other would
//! do it for each of them, so hooks are taken out [`LINGER_MS`] after the last use, if there was no
//! other by then.
//!
//! Hooks that linger do not keep their namespace alive. They are taken out when it goes away, by
//! every [`PernetRegistration`](super::PernetRegistration); hooks linger only while there is one.
//!
//! Locking: one mutex guards the list and is held while lingering hooks are unregistered. It is
//! taken inside the lock of the users of [`OptionHooks`].

use super::{
    ns::{
        Net,
        NetId, //
    },
    tcp_option::OptionHooks, //
};
use crate::{
    module::now_ms,
    sys, //
};
use core::{
    cell::UnsafeCell,
    mem, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// How long unused hooks stay, in milliseconds.
const LINGER_MS: u64 = 10_000;

/// Hooks without user.
struct Entry {
    hooks: Arc<OptionHooks>,
    /// Alive: an entry is taken off the list before its namespace is gone.
    net: *mut sys::net,
    id: NetId,
    /// When they are to be taken out.
    until: u64,
}

/// What the mutex guards.
struct State {
    entries: KVec<Entry>,
    /// Number of registrations that report namespaces which go away.
    watchers: usize,
}

struct Guarded(UnsafeCell<State>);

// SAFETY: The state is only reached through `Locked`, which holds the mutex; namespaces and hooks
// may be used by any thread.
unsafe impl Sync for Guarded {}

static STATE: Guarded = Guarded(UnsafeCell::new(State {
    entries: KVec::new(),
    watchers: 0,
}));

/// The mutex is held.
struct Locked(());

impl Locked {
    fn new() -> Self {
        // SAFETY: The mutex is a static of the shims.
        unsafe { sys::smc_rs_helper_linger_lock() };
        Self(())
    }

    fn state(&mut self) -> &mut State {
        // SAFETY: The mutex is held, and the borrow of the guard makes the reference unique.
        unsafe { &mut *STATE.0.get() }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: Taken in `new`.
        unsafe { sys::smc_rs_helper_linger_unlock() };
    }
}

/// Keeps `hooks`, registered in `net` and without user, for a while. Returns `false` if they
/// cannot be kept. May sleep.
pub(crate) fn keep(hooks: &Arc<OptionHooks>, net: &Net) -> bool {
    let mut locked = Locked::new();
    let state = locked.state();
    let entry = Entry {
        hooks: hooks.clone(),
        net: net.as_ptr(),
        id: net.id(),
        until: now_ms() + LINGER_MS,
    };
    if state.watchers == 0 || state.entries.push(entry, GFP_KERNEL).is_err() {
        return false;
    }
    // SAFETY: The work item is a static of the shims, and is cancelled when the last watcher goes.
    unsafe { sys::smc_rs_helper_linger_arm(LINGER_MS as c_uint) };
    true
}

/// Takes `hooks` back into use if they linger in `net`. Returns whether they did. May sleep.
pub(crate) fn revive(hooks: &Arc<OptionHooks>, net: &Net) -> bool {
    let id = net.id();
    let entry = Locked::new().take(|entry| entry.id == id && Arc::ptr_eq(&entry.hooks, hooks));
    entry.is_some()
}

impl Locked {
    /// Takes one entry off the list.
    fn take(&mut self, wanted: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let entries = &mut self.state().entries;
        let index = entries.iter().position(wanted)?;
        let last = entries.pop()?;
        match entries.get_mut(index) {
            Some(slot) => Some(mem::replace(slot, last)),
            None => Some(last),
        }
    }

    /// Unregisters the hooks of all entries that are `wanted`.
    fn end(&mut self, wanted: impl Fn(&Entry) -> bool) {
        while let Some(entry) = self.take(&wanted) {
            // SAFETY: The namespace is alive as the entry was on the list until now, and the mutex,
            // which its end waits for, is still held.
            entry.hooks.unregister(unsafe { Net::from_raw(entry.net) });
        }
    }
}

/// A registration will report namespaces that go away, until [`unwatch`]. May sleep.
pub(crate) fn watch() {
    Locked::new().state().watchers += 1;
}

/// From now on nothing lingers that the registration would have to report, if it was the last one.
/// To be followed by reports for all namespaces, and then [`settle`]. May sleep.
pub(crate) fn unwatch() {
    Locked::new().state().watchers -= 1;
}

/// Waits for the work item after [`unwatch`], and gives back the memory of the list, which as a
/// static is never dropped. May sleep.
pub(crate) fn settle() {
    let mut locked = Locked::new();
    let state = locked.state();
    let last = state.watchers == 0;
    if last {
        state.entries = KVec::new();
    }
    drop(locked);
    if last {
        // SAFETY: The work item is a static of the shims; the mutex it takes is not held.
        unsafe { sys::smc_rs_helper_linger_cancel() };
    }
}

/// The namespace goes away. May sleep.
pub(crate) fn net_exit(net: *mut sys::net) {
    Locked::new().end(|entry| entry.net == net);
}

/// The work item: takes out what has lingered long enough.
///
/// # Safety
///
/// To be called by the shims only.
#[no_mangle]
unsafe extern "C" fn smc_rs_linger_expired() {
    let mut locked = Locked::new();
    let now = now_ms();
    locked.end(|entry| entry.until <= now);
    let next = locked.state().entries.iter().map(|entry| entry.until).min();
    if let Some(next) = next {
        // SAFETY: As in `keep`.
        unsafe { sys::smc_rs_helper_linger_arm((next.saturating_sub(now)) as c_uint) };
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Events for whoever listens.

use super::{
    family::event_message,
    reply::Builder, //
};
use crate::{
    net::NetId,
    sys, //
};
use core::{
    ptr,
    sync::atomic::{
        AtomicPtr,
        Ordering, //
    },
};
use kernel::{
    prelude::*,
    sync::rcu, //
};

/// Where a family with events is found while it is registered: a `static` of its own.
pub struct EventSlot(AtomicPtr<sys::genl_family>);

impl EventSlot {
    /// A slot without family.
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// From now on events are sent.
    ///
    /// # Safety
    ///
    /// `family` is registered, and stays so until a grace period after [`EventSlot::clear`].
    pub(super) unsafe fn set(&self, family: *mut sys::genl_family) {
        self.0.store(family, Ordering::Release);
    }

    /// No events are sent any more once a grace period has passed.
    pub(super) fn clear(&self) {
        self.0.store(ptr::null_mut(), Ordering::Release);
    }

    /// Sends an event to those who listen to the family's first group in a namespace. As long as
    /// nobody listens in any namespace `fill` is not called. What cannot be sent is lost. Any
    /// context; `fill` must not sleep.
    pub fn send(&self, net: NetId, cmd: u8, fill: impl FnOnce(&mut Builder) -> Result) {
        let guard = rcu::read_lock();
        let family = self.0.load(Ordering::Acquire);
        // SAFETY: A family in the slot is registered until a grace period after it was taken out.
        if family.is_null() || !unsafe { sys::smc_rs_helper_genl_event_wanted(family) } {
            return;
        }
        // SAFETY: No requirements.
        let skb = unsafe { sys::smc_rs_helper_genl_event_new() };
        if skb.is_null() {
            return;
        }
        // SAFETY: The message is new, the family is registered.
        match unsafe { event_message(skb, family, cmd, fill) } {
            // SAFETY: The message is complete and passes on.
            Ok(()) => unsafe { sys::smc_rs_helper_genl_event(family, net.cookie(), skb) },
            // SAFETY: The message is ours.
            Err(_) => unsafe { sys::smc_rs_helper_nlmsg_free(skb) },
        }
        drop(guard);
    }
}

impl Default for EventSlot {
    fn default() -> Self {
        Self::new()
    }
}

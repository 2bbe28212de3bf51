// SPDX-License-Identifier: GPL-2.0

//! Being told of RDMA devices that come and go.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::device::Device;
use super::event::{EventHandler, EventRegistration};
use crate::sys;
use core::marker::PhantomData;
use core::ptr::NonNull;
use kernel::error::{from_result, to_result};
use kernel::ffi::{c_int, c_void};
use kernel::prelude::*;
use kernel::sync::atomic::{Acquire, Atomic, Full, Release};
use kernel::sync::Arc;
use kernel::types::{ForeignOwnable, Opaque};

/// Where the one registration of a [`Client`] type is found by the C callbacks, which are not told
/// whose they are. Make it a `static` beside the implementation.
pub struct ClientSlot(Atomic<*mut c_void>);

impl ClientSlot {
    /// A slot that no registration uses.
    #[expect(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self(Atomic::new(core::ptr::null_mut()))
    }
}

/// Something that uses RDMA devices. The functions are called in process context.
pub trait Client: EventHandler + Sized {
    /// The name of the client in kernel diagnostics.
    const NAME: &'static CStr;

    /// The `static` slot of this type, always the same one.
    fn slot() -> &'static ClientSlot;

    /// A device is there: at registration every one that exists, in all network namespaces, and
    /// later each one that is added.
    ///
    /// # Errors
    ///
    /// After an error the device is ignored, and [`remove`](Self::remove) is not called for it;
    /// nothing may be left that was created on it.
    fn add(device: Arc<Device>) -> Result;

    /// The device is going away. Nothing new can be created on it, and its events have ended.
    ///
    /// Must see to it that everything created on it is dropped, now or soon: when this returns,
    /// the removal waits until no [`DeviceUse`](super::DeviceUse) is left, in particular no
    /// protection domain, completion queue, queue pair, memory region or mapping. Must not
    /// register or unregister a client.
    fn remove(device: &Arc<Device>);
}

/// The registration of a [`Client`]. Dropping it removes all devices from the client.
///
/// # Invariants
///
/// `client` is registered while the value lives, and the slot of `T` points at it.
#[pin_data(PinnedDrop)]
pub struct ClientRegistration<T: Client> {
    #[pin]
    client: Opaque<sys::ib_client>,
    _type: PhantomData<T>,
}

// SAFETY: A registration may be ended from any thread.
unsafe impl<T: Client> Send for ClientRegistration<T> {}
// SAFETY: There is nothing to do with a shared reference.
unsafe impl<T: Client> Sync for ClientRegistration<T> {}

impl<T: Client> ClientRegistration<T> {
    /// Registers the client, which is told of all present devices before this returns. Process
    /// context.
    ///
    /// # Errors
    ///
    /// `EBUSY` when the type is registered already, or what the core answers.
    pub fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            client <- Opaque::try_ffi_init(Self::register),
            _type: PhantomData,
        }? Error)
    }

    /// Takes the slot, then fills in and registers the C structure.
    fn register(client: *mut sys::ib_client) -> Result {
        let slot = &T::slot().0;
        slot.cmpxchg(core::ptr::null_mut(), client.cast(), Full)
            .map_err(|_| EBUSY)?;
        // SAFETY: `client` is a valid place for the structure, for which all-zero is a valid
        // value.
        unsafe { client.write_bytes(0, 1) };
        // SAFETY: Initialised just now, and nobody else knows it yet.
        let raw = unsafe { &mut *client };
        raw.name = T::NAME.as_char_ptr();
        raw.add = Some(Self::add);
        raw.remove = Some(Self::remove);
        // SAFETY: The structure is pinned, filled in, and unregistered before it goes away.
        to_result(unsafe { sys::ib_register_client(client) })
            .inspect_err(|_| slot.store(core::ptr::null_mut(), Release))
    }

    /// # Safety
    ///
    /// Called by the RDMA core with a registered device.
    unsafe extern "C" fn add(raw: *mut sys::ib_device) -> c_int {
        from_result(|| {
            let raw = NonNull::new(raw).ok_or(EINVAL)?;
            let client = NonNull::new(T::slot().0.load(Acquire)).ok_or(EINVAL)?;
            // SAFETY: The device stays registered until `remove` has returned, or until this
            // function has returned an error; both end its use before.
            let device = unsafe { Device::from_raw(raw) }?;
            let events = KBox::pin_init(EventRegistration::<T>::new(&device), GFP_KERNEL)?;
            if let Err(error) = T::add(device.clone()) {
                drop(events);
                device.begin_removal();
                device.wait_unused();
                return Err(error);
            }
            let data = events.into_foreign();
            // SAFETY: The client of the slot is being told of this device; `remove` takes the data
            // back.
            unsafe { sys::ib_set_client_data(raw.as_ptr(), client.as_ptr().cast(), data) };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Called by the RDMA core with a device that `add` accepted, and what `add` made of it.
    unsafe extern "C" fn remove(_raw: *mut sys::ib_device, data: *mut c_void) {
        if data.is_null() {
            return;
        }
        // SAFETY: `add` put the box there, and it is taken back only here.
        let events = unsafe { Pin::<KBox<EventRegistration<T>>>::from_foreign(data) };
        let device = events.device().clone();
        drop(events);
        device.begin_removal();
        T::remove(&device);
        device.wait_unused();
    }
}

#[pinned_drop]
impl<T: Client> PinnedDrop for ClientRegistration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by the type invariant.
        unsafe { sys::ib_unregister_client(self.client.get()) };
        T::slot().0.store(core::ptr::null_mut(), Release);
    }
}

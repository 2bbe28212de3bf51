// SPDX-License-Identifier: GPL-2.0

//! Being told of RDMA devices that come and go.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::device::Device;
use crate::sys;
use core::ptr::NonNull;
use kernel::error::{from_result, to_result};
use kernel::ffi::{c_int, c_void};
use kernel::prelude::*;
use kernel::sync::atomic::{Acquire, Atomic, Full, Release};
use kernel::sync::Arc;
use kernel::types::Opaque;

/// Where the one registration of a [`Client`] type is found by the C callbacks, which are not told
/// whose they are. Make it a `static` of the implementing module.
pub struct ClientSlot(Atomic<*mut c_void>);

impl ClientSlot {
    /// A slot that no registration uses.
    #[expect(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self(Atomic::new(core::ptr::null_mut()))
    }
}

/// Something that uses RDMA devices. The functions are called in process context.
pub trait Client: Send + Sync + Sized + 'static {
    /// The name of the client in kernel diagnostics.
    const NAME: &'static CStr;

    /// The `static` slot of this type, always the same one.
    fn slot() -> &'static ClientSlot;

    /// A device is there: at registration every one that exists, in all network namespaces, and
    /// later each one that is added.
    ///
    /// # Errors
    ///
    /// After an error the device is ignored, and [`remove`](Self::remove) is not called for it.
    fn add(&self, device: Arc<Device>) -> Result;

    /// The device is going away. Nothing new can be created on it.
    ///
    /// Must see to it that everything created on it is dropped, now or soon: when this returns,
    /// the removal waits until no [`DeviceUse`](super::DeviceUse) is left, in particular no
    /// protection domain, completion queue, queue pair, memory region or mapping. Must not
    /// register or unregister a client.
    fn remove(&self, device: &Arc<Device>);
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
    handler: Arc<T>,
}

// SAFETY: A registration may be ended from any thread, and the handler is `Send` and `Sync`.
unsafe impl<T: Client> Send for ClientRegistration<T> {}
// SAFETY: There is nothing to do with a shared reference but to reach the handler.
unsafe impl<T: Client> Sync for ClientRegistration<T> {}

impl<T: Client> ClientRegistration<T> {
    /// Registers `handler`, which is told of all present devices before this returns. Process
    /// context.
    ///
    /// # Errors
    ///
    /// `EBUSY` when there is a registration of the same type, or what the core answers.
    pub fn new(handler: Arc<T>) -> impl PinInit<Self, Error> {
        // INVARIANT: `client` comes last: it registers, when `handler` is there.
        try_pin_init!(Self {
            handler,
            client <- Opaque::try_ffi_init(Self::register),
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

    /// The handler that was registered.
    pub fn handler(&self) -> &Arc<T> {
        &self.handler
    }

    /// The registration's C structure and its handler, for a callback.
    ///
    /// # Safety
    ///
    /// To be called from a callback: a registration then exists, with both fields initialised.
    unsafe fn current<'a>() -> (*mut sys::ib_client, &'a T) {
        let client: *mut Opaque<sys::ib_client> = T::slot().0.load(Acquire).cast();
        // SAFETY: `client` is a field of a registration.
        let this = unsafe { kernel::container_of!(client, Self, client) };
        // SAFETY: The registration lives and `handler` was initialised first.
        (client.cast(), unsafe { &(*this).handler })
    }

    /// # Safety
    ///
    /// Called by the RDMA core with a registered device.
    unsafe extern "C" fn add(raw: *mut sys::ib_device) -> c_int {
        from_result(|| {
            let raw = NonNull::new(raw).ok_or(EINVAL)?;
            // SAFETY: The device stays registered until `remove` has returned, which calls what is
            // needed; and until this function returns, in which case an error is handled below.
            let device = unsafe { Device::from_raw(raw) }?;
            // SAFETY: This is a callback.
            let (client, handler) = unsafe { Self::current() };
            if let Err(error) = handler.add(device.clone()) {
                device.begin_removal();
                device.wait_unused();
                return Err(error);
            }
            let data = Arc::into_raw(device).cast_mut().cast();
            // SAFETY: The client is being told of this device; `remove` takes the reference back.
            unsafe { sys::ib_set_client_data(raw.as_ptr(), client, data) };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Called by the RDMA core with a device that `add` accepted.
    unsafe extern "C" fn remove(_raw: *mut sys::ib_device, data: *mut c_void) {
        if data.is_null() {
            return;
        }
        // SAFETY: `add` put the reference there, and it is taken back only here.
        let device = unsafe { Arc::from_raw(data.cast::<Device>()) };
        device.begin_removal();
        // SAFETY: This is a callback.
        let (_, handler) = unsafe { Self::current() };
        handler.remove(&device);
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

// SPDX-License-Identifier: GPL-2.0

//! Events of a device and its ports.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::device::Device;
use crate::sys;
use core::marker::PhantomData;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// What happened to a port or a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortEvent {
    /// The port can be used.
    Active,
    /// The port cannot be used any more.
    Error,
    /// An entry of the GID table came, changed or went.
    GidChange,
    /// The device is broken; the port number says nothing.
    Fatal,
    /// Another event; its C number.
    Other(u32),
}

/// A receiver of port events.
pub trait EventHandler: 'static {
    /// Called in process context, in a kernel worker, for each event of a device that the client
    /// was told of or is about to be told of.
    fn port_event(device: &Arc<Device>, port: u32, event: PortEvent);
}

/// Delivers the events of one device to `H` until it is dropped. Process context.
///
/// # Invariants
///
/// `raw` is on the device's list of handlers while the value lives.
#[pin_data(PinnedDrop)]
pub(super) struct EventRegistration<H: EventHandler> {
    #[pin]
    raw: Opaque<sys::ib_event_handler>,
    device: Arc<Device>,
    _handler: PhantomData<H>,
}

// SAFETY: The registration may be ended from any thread.
unsafe impl<H: EventHandler> Send for EventRegistration<H> {}
// SAFETY: There is nothing to do with a shared reference.
unsafe impl<H: EventHandler> Sync for EventRegistration<H> {}

impl<H: EventHandler> EventRegistration<H> {
    /// Begins to deliver events. Process context.
    pub(super) fn new(device: &Arc<Device>) -> impl PinInit<Self> {
        let device = device.clone();
        // INVARIANT: `raw` comes last and is put on the list when the rest is there.
        pin_init!(Self {
            _handler: PhantomData,
            device: device.clone(),
            raw <- Opaque::ffi_init(move |slot| {
                let dev = device.as_raw();
                // SAFETY: `slot` is a valid place for the structure.
                unsafe { sys::smc_rs_helper_rdma_event_handler(slot, dev, Some(Self::event)) };
                // SAFETY: Filled in above, pinned, and taken off the list before it goes away; the
                // device's memory, which holds the list, is kept by `device`.
                unsafe { sys::ib_register_event_handler(slot) };
            }),
        })
    }

    /// The device whose events are delivered.
    pub(super) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// # Safety
    ///
    /// Called by the RDMA core with the structure embedded in a registration and a valid event.
    unsafe extern "C" fn event(raw: *mut sys::ib_event_handler, event: *mut sys::ib_event) {
        let raw: *mut Opaque<sys::ib_event_handler> = raw.cast();
        // SAFETY: The structure is the `raw` field of a registration.
        let this = unsafe { kernel::container_of!(raw, Self, raw) };
        // SAFETY: The registration lives at least until the list's lock, which is held now, is
        // released; its other fields were initialised before it was put on the list.
        let device = unsafe { &(*this).device };
        // SAFETY: The event is valid for the duration of the call.
        let (number, port) = unsafe { ((*event).event, (*event).element.port_num) };
        let event = match number {
            sys::ib_event_type_IB_EVENT_PORT_ACTIVE => PortEvent::Active,
            sys::ib_event_type_IB_EVENT_PORT_ERR => PortEvent::Error,
            sys::ib_event_type_IB_EVENT_GID_CHANGE => PortEvent::GidChange,
            sys::ib_event_type_IB_EVENT_DEVICE_FATAL => PortEvent::Fatal,
            other => PortEvent::Other(other),
        };
        H::port_event(device, port, event);
    }
}

#[pinned_drop]
impl<H: EventHandler> PinnedDrop for EventRegistration<H> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: On the list by the type invariant. The function waits for callbacks that run.
        unsafe { sys::ib_unregister_event_handler(self.raw.get()) };
    }
}

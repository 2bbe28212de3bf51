// SPDX-License-Identifier: GPL-2.0

//! A stream protocol of the internet families: `socket(AF_INET, SOCK_STREAM, …)` and
//! `socket(AF_INET6, SOCK_STREAM, …)` for the sockets of a family.
//!
//! C header: [`include/net/protocol.h`](srctree/include/net/protocol.h)

use super::{
    family::SocketOps,
    family_ops::{
        operations,
        release_value, //
    },
    inet_outer::InetOuter,
    outer::set_value,
    sock::Sock, //
};
use crate::sys;
use core::marker::PhantomData;
use kernel::{
    error::{
        from_result,
        to_result, //
    },
    prelude::*,
    types::Opaque, //
};

/// Keeps a protocol of the internet families registered.
///
/// # Invariants
///
/// All fields but the last are registered, and point to each other.
#[pin_data(PinnedDrop)]
pub struct InetRegistration<T: SocketOps> {
    #[pin]
    proto: Opaque<sys::proto>,
    #[pin]
    ops: Opaque<sys::proto_ops>,
    #[pin]
    ops6: Opaque<sys::proto_ops>,
    #[pin]
    switch: Opaque<sys::inet_protosw>,
    #[pin]
    switch6: Opaque<sys::inet_protosw>,
    _type: PhantomData<T>,
}

// SAFETY: The registration may be dropped on any thread.
unsafe impl<T: SocketOps> Send for InetRegistration<T> {}
// SAFETY: There are no methods that take `&self`.
unsafe impl<T: SocketOps> Sync for InetRegistration<T> {}

impl<T: SocketOps> InetRegistration<T> {
    /// Registers `protocol`. Every open socket holds a reference on `module`, so the registration
    /// can be dropped in the module's exit function only when there is none left. To be dropped
    /// before what the sockets need.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and those of the registration.
    pub fn new(
        module: &'static ThisModule,
        protocol: u16,
        name: &'static CStr,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(&this in Self {
            proto <- Opaque::try_ffi_init(move |proto: *mut sys::proto| {
                let mut value = sys::proto {
                    owner: module.as_ptr(),
                    obj_size: size_of::<InetOuter<T>>() as c_uint,
                    ipv6_pinfo_offset: InetOuter::<T>::PINFO_OFFSET as c_uint,
                    init: Some(init::<T>),
                    destroy: Some(destroy::<T>),
                    unhash: Some(unhash),
                    ..pin_init::zeroed()
                };
                for (to, from) in value.name.iter_mut().zip(name.to_bytes().iter().take(31)) {
                    *to = *from;
                }
                // SAFETY: `proto` is valid for writing.
                unsafe { proto.write(value) };
                // SAFETY: `proto` is pinned and stays until `drop` unregisters it.
                to_result(unsafe { sys::proto_register(proto, 1) })
            }),
            ops: Opaque::new(operations::<T>(module, sys::AF_INET as c_int)),
            ops6: Opaque::new(operations::<T>(module, sys::AF_INET6 as c_int)),
            switch <- Opaque::ffi_init(move |switch: *mut sys::inet_protosw| {
                // SAFETY: `this` points to the value being made, whose first fields are done.
                let (proto, ops) = unsafe { ((*this.as_ptr()).proto.get(), (*this.as_ptr()).ops.get()) };
                // SAFETY: `switch` is valid for writing, and pinned until `drop` unregisters it.
                unsafe {
                    switch.write(entry(protocol, proto, ops));
                    sys::inet_register_protosw(switch);
                }
            }),
            switch6 <- Opaque::try_ffi_init(move |switch: *mut sys::inet_protosw| {
                // SAFETY: `this` points to the value being made, whose first fields are done.
                let (proto, ops) = unsafe { ((*this.as_ptr()).proto.get(), (*this.as_ptr()).ops6.get()) };
                // SAFETY: `switch` is valid for writing, and pinned until `drop` unregisters it.
                let result = to_result(unsafe {
                    switch.write(entry(protocol, proto, ops));
                    sys::inet6_register_protosw(switch)
                });
                if result.is_err() {
                    // SAFETY: Registered above. A socket made meanwhile holds the module's code, but
                    // not the protocol; the module cannot have been found before it is loaded.
                    unsafe {
                        sys::inet_unregister_protosw((*this.as_ptr()).switch.get());
                        sys::proto_unregister(proto);
                    }
                }
                result
            }),
            _type: PhantomData,
        })
    }
}

#[pinned_drop]
impl<T: SocketOps> PinnedDrop for InetRegistration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant all of them are registered. With no reference to the module
        // left there is no socket; those closed a moment ago may still be on their way out of
        // softirq or RCU callbacks.
        unsafe {
            sys::inet6_unregister_protosw(self.switch6.get());
            sys::inet_unregister_protosw(self.switch.get());
            sys::synchronize_net();
            sys::rcu_barrier();
            sys::proto_unregister(self.proto.get());
        }
    }
}

fn entry(protocol: u16, proto: *mut sys::proto, ops: *mut sys::proto_ops) -> sys::inet_protosw {
    sys::inet_protosw {
        type_: sys::sock_type_SOCK_STREAM as c_ushort,
        protocol,
        prot: proto,
        ops,
        ..pin_init::zeroed()
    }
}

/// # Safety
///
/// Called by the internet families only, for a new socket of the protocol.
unsafe extern "C" fn init<T: SocketOps>(sk: *mut sys::sock) -> c_int {
    from_result(|| {
        // SAFETY: `sk` is valid and initialised.
        let sock = unsafe { Sock::from_raw(sk) };
        let value = T::create_inet(sock.net(), sock)?;
        // SAFETY: `sk` is new; its file is not in use yet.
        unsafe {
            set_value::<T>(sock, value);
            InetOuter::<T>::adopt(sk, (*sk).sk_destruct);
            (*(*sk).sk_socket).flags |= 1 << sys::socket_flags_SOCK_CUSTOM_SOCKOPT;
        }
        Ok(0)
    })
}

/// # Safety
///
/// Called by the internet families only, for a socket that was made but is not to be used.
unsafe extern "C" fn destroy<T: SocketOps>(sk: *mut sys::sock) {
    // SAFETY: No operation runs on `sk` or follows.
    unsafe { release_value::<T>(sk) };
}

/// # Safety
///
/// May be called with anything: the sockets are in no table of their family.
unsafe extern "C" fn unhash(_sk: *mut sys::sock) {}

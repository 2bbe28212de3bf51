// SPDX-License-Identifier: GPL-2.0

//! The object behind a socket of a family: `struct sock` and a reference to a Rust value.
//!
//! C header: [`include/net/sock.h`](srctree/include/net/sock.h)

use super::{
    family::SocketOps,
    ns::Net,
    sock::Sock, //
};
use crate::sys;
use core::{
    ptr,
    sync::atomic::{
        AtomicPtr,
        Ordering, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The object the family's slab holds.
///
/// # Invariants
///
/// `value` is null or came from `Arc::into_raw`; once set it does not change until the socket is
/// destroyed.
#[repr(C)]
pub(crate) struct Outer<T> {
    sk: sys::sock,
    pub(crate) value: AtomicPtr<T>,
}

impl<T: SocketOps> Outer<T> {
    /// Makes a `struct sock`, attached to `socket` if there is one. The caller owns the reference.
    ///
    /// # Safety
    ///
    /// The family is registered, `socket` is one without `sk`, and the result is not used past the
    /// reference.
    pub(crate) unsafe fn alloc<'a>(
        net: &Net,
        socket: Option<*mut sys::socket>,
        kern: bool,
    ) -> Result<&'a Sock> {
        let proto = T::slot().proto.load(Ordering::Acquire);
        // SAFETY: `proto` is registered, and objects of its slab are of type `Outer<T>`.
        let sk = unsafe {
            sys::smc_rs_helper_sk_alloc(net.as_ptr(), T::FAMILY, proto, c_int::from(kern))
        };
        if sk.is_null() {
            return Err(ENOMEM);
        }
        let socket = socket.unwrap_or(ptr::null_mut());
        // SAFETY: `sk` is new and zeroed, so `value` is null; `socket` is null or valid.
        unsafe {
            sys::sock_init_data(socket, sk);
            (*sk).sk_destruct = Some(destruct::<T>);
            sys::smc_rs_helper_sock_prot_inuse_add(net.as_ptr(), proto, 1);
            Ok(Sock::from_raw(sk))
        }
    }

    /// Puts the value behind a socket.
    ///
    /// # Safety
    ///
    /// `sock` came from [`Outer::alloc`] and has no value.
    pub(crate) unsafe fn set_value(sock: &Sock, value: Arc<T>) {
        // SAFETY: The object is an `Outer<T>`.
        let slot = unsafe { &(*sock.as_ptr().cast::<Self>()).value };
        // INVARIANT: The pointer comes from `Arc::into_raw` and is set once.
        slot.store(Arc::into_raw(value).cast_mut(), Ordering::Release);
    }
}

/// Attaches a new socket to the file that `accept` returns.
///
/// # Safety
///
/// `sock` is new; its reference passes to `socket`, which has no `sk`.
pub(crate) unsafe fn graft(sock: &Sock, socket: *mut sys::socket) {
    // SAFETY: As promised by the caller; nobody else uses `socket` yet.
    unsafe {
        sys::smc_rs_helper_sock_graft(sock.as_ptr(), socket);
        (*sock.as_ptr()).sk_type = (*socket).type_ as u16;
        (*socket).state = sys::socket_state_SS_CONNECTED;
        (*socket).flags |= 1 << sys::socket_flags_SOCK_CUSTOM_SOCKOPT;
    }
}

/// Takes the `struct sock` off its file and drops the file's reference.
///
/// # Safety
///
/// `sk` is that of `socket`, no operation is running, and `sk` is not used afterwards.
pub(crate) unsafe fn detach(socket: *mut sys::socket, sk: *mut sys::sock) {
    // SAFETY: As promised by the caller.
    unsafe {
        sys::smc_rs_helper_sock_orphan(sk);
        (*socket).sk = ptr::null_mut();
        sys::smc_rs_helper_sock_put(sk);
    }
}

/// # Safety
///
/// To be called for the last user of an `Outer<T>` only.
unsafe extern "C" fn destruct<T: SocketOps>(sk: *mut sys::sock) {
    // SAFETY: Called once, by the last user of an `Outer<T>`.
    let value = unsafe { (*sk.cast::<Outer<T>>()).value.load(Ordering::Acquire) };
    if !value.is_null() {
        // SAFETY: By the invariant of `Outer`.
        drop(unsafe { Arc::from_raw(value) });
    }
    let proto = T::slot().proto.load(Ordering::Acquire);
    // SAFETY: The socket counts as a user of `proto` and of its namespace until it is freed.
    unsafe {
        sys::smc_rs_helper_sock_prot_inuse_add(sys::smc_rs_helper_sock_net(sk), proto, -1);
    }
}

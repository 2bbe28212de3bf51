// SPDX-License-Identifier: GPL-2.0

//! The object behind a socket of a family: `struct sock` and a reference to a Rust value.
//!
//! C header: [`include/net/sock.h`](srctree/include/net/sock.h)

use super::{
    family::SocketOps,
    inet_outer::InetOuter,
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

/// The object the slab of a family of its own holds.
///
/// # Invariants
///
/// `value` is null or came from `Arc::into_raw`; once set it does not change until the socket is
/// destroyed.
#[repr(C)]
pub(crate) struct Outer<T> {
    sk: sys::sock,
    value: AtomicPtr<T>,
}

/// Where the value of a socket is kept.
///
/// # Safety
///
/// `sk` is a valid socket of `T`: one of its family, or one of its protocol of the internet families.
pub(crate) unsafe fn value_of<'a, T: SocketOps>(sk: *mut sys::sock) -> &'a AtomicPtr<T> {
    // SAFETY: As promised by the caller.
    let family = unsafe { Sock::from_raw(sk) }.family();
    if c_int::from(family) == T::FAMILY {
        // SAFETY: Sockets of the family are of type `Outer<T>`.
        unsafe { &(*sk.cast::<Outer<T>>()).value }
    } else {
        // SAFETY: All others are of type `InetOuter<T>`.
        unsafe { &(*sk.cast::<InetOuter<T>>()).value }
    }
}

/// Puts the value behind a socket.
///
/// # Safety
///
/// `sock` is a new socket of `T` and has no value.
pub(crate) unsafe fn set_value<T: SocketOps>(sock: &Sock, value: Arc<T>) {
    // SAFETY: As promised by the caller.
    let slot = unsafe { value_of::<T>(sock.as_ptr()) };
    // INVARIANT: The pointer comes from `Arc::into_raw` and is set once.
    slot.store(Arc::into_raw(value).cast_mut(), Ordering::Release);
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
    unsafe { drop_value::<T>(sk) };
    let proto = T::slot().proto.load(Ordering::Acquire);
    // SAFETY: The socket counts as a user of `proto` and of its namespace until it is freed.
    unsafe {
        sys::smc_rs_helper_sock_prot_inuse_add(sys::smc_rs_helper_sock_net(sk), proto, -1);
    }
}

/// Drops the value of a socket, if it has one.
///
/// # Safety
///
/// To be called once, for the last user of a socket of `T`.
pub(crate) unsafe fn drop_value<T: SocketOps>(sk: *mut sys::sock) {
    // SAFETY: As promised by the caller.
    let value = unsafe { value_of::<T>(sk) }.load(Ordering::Acquire);
    if !value.is_null() {
        // SAFETY: By the invariant of the object.
        drop(unsafe { Arc::from_raw(value) });
    }
}

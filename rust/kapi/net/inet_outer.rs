// SPDX-License-Identifier: GPL-2.0

//! The object behind a socket of a protocol of the internet families.
//!
//! Code of those families takes every socket of `AF_INET` and `AF_INET6` for a `struct inet_sock`,
//! and of the latter for one with a `struct ipv6_pinfo`, so both are there, although nothing here
//! looks at them.
//!
//! C header: [`include/net/inet_sock.h`](srctree/include/net/inet_sock.h)

use super::{
    family::SocketOps,
    outer::drop_value,
    sock::Sock,
    tcp_state::TcpState, //
};
use crate::sys;
use core::{
    mem::offset_of,
    ptr,
    sync::atomic::AtomicPtr, //
};
use kernel::prelude::*;

/// The object the protocol's slab holds.
///
/// # Invariants
///
/// `value` is null or came from `Arc::into_raw`; once set it does not change until the socket is
/// destroyed.
#[repr(C)]
pub(crate) struct InetOuter<T> {
    inet: sys::inet_sock,
    pub(crate) value: AtomicPtr<T>,
    /// What the internet family wants to be called at the end.
    family_destruct: Option<unsafe extern "C" fn(*mut sys::sock)>,
    pinfo: sys::ipv6_pinfo,
}

impl<T: SocketOps> InetOuter<T> {
    /// Where the kernel finds the part for IPv6, in bytes.
    pub(crate) const PINFO_OFFSET: usize = offset_of!(Self, pinfo);

    /// Makes `sk` a socket of `T` that still has no value: counts it, and sees to its end.
    ///
    /// # Safety
    ///
    /// `sk` is a new object of the protocol's slab, and initialised; `destruct` is what its family
    /// calls at the end.
    pub(crate) unsafe fn adopt(
        sk: *mut sys::sock,
        family_destruct: Option<unsafe extern "C" fn(*mut sys::sock)>,
    ) {
        // SAFETY: As promised by the caller; nobody else uses `sk` yet.
        unsafe {
            // The lock of a TCP socket, which has the same family, is taken inside this one.
            sys::smc_rs_helper_sk_own_lock_class(sk);
            (*sk.cast::<Self>()).family_destruct = family_destruct;
            (*sk).sk_destruct = Some(destruct::<T>);
            sys::smc_rs_helper_sock_prot_inuse_add(
                sys::smc_rs_helper_sock_net(sk),
                (*sk).__sk_common.skc_prot,
                1,
            );
        }
    }

    /// Makes a socket of the family and protocol of `listener`. The caller owns the reference.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Safety
    ///
    /// `listener` is a socket of `T` and of an internet family, and the result is not used past the
    /// reference.
    pub(crate) unsafe fn alloc_like<'a>(listener: &Sock, kern: bool) -> Result<&'a Sock> {
        let from = listener.as_ptr();
        let family = c_int::from(listener.family());
        // SAFETY: The protocol of a socket stays registered while the socket is there.
        let sk = unsafe {
            sys::smc_rs_helper_sk_alloc(
                listener.net().as_ptr(),
                family,
                (*from).__sk_common.skc_prot,
                c_int::from(kern),
            )
        };
        if sk.is_null() {
            return Err(ENOMEM);
        }
        let this = sk.cast::<Self>();
        // SAFETY: `sk` is new, of the same type as the listener, and zeroed.
        unsafe {
            sys::sock_init_data(ptr::null_mut(), sk);
            (*sk).sk_protocol = (*from).sk_protocol;
            if family == sys::AF_INET6 as c_int {
                (*this).inet.pinet6 = ptr::addr_of_mut!((*this).pinfo);
            }
            Self::adopt(sk, (*from.cast::<Self>()).family_destruct);
            Ok(Sock::from_raw(sk))
        }
    }
}

/// # Safety
///
/// To be called for the last user of an `InetOuter<T>` only.
unsafe extern "C" fn destruct<T: SocketOps>(sk: *mut sys::sock) {
    // SAFETY: Called once, by the last user of an `InetOuter<T>`.
    unsafe { drop_value::<T>(sk) };
    // SAFETY: The socket counts as a user of its protocol and its namespace until it is freed; its
    // family complains about stream sockets that end in another state.
    unsafe {
        sys::smc_rs_helper_sock_prot_inuse_add(
            sys::smc_rs_helper_sock_net(sk),
            (*sk).__sk_common.skc_prot,
            -1,
        );
        (*sk).__sk_common.skc_state = TcpState::Close.to_raw();
        if let Some(family_destruct) = (*sk.cast::<InetOuter<T>>()).family_destruct {
            family_destruct(sk);
        }
    }
}

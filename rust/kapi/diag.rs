// SPDX-License-Identifier: GPL-2.0

//! Lists of the sockets of a family, as user space asks for them through `NETLINK_SOCK_DIAG`.
//!
//! C header: [`include/linux/sock_diag.h`](srctree/include/linux/sock_diag.h)

use crate::{
    genl::Builder,
    net::{
        Net,
        Sock,
        TcpSocket, //
    },
    sys, //
};
use core::{
    marker::PhantomData,
    slice, //
};
use kernel::{
    error::{
        from_result,
        to_result, //
    },
    prelude::*,
    types::Opaque, //
};

/// How many numbers a list can keep between its parts.
pub const COOKIES: usize = 6;

/// Bytes of `struct inet_diag_sockid`.
pub const SOCKID_LEN: usize = 48;

/// Lists the sockets of a family.
pub trait SocketList: 'static {
    /// The family number.
    const FAMILY: u8;

    /// Adds sockets to the list. May sleep. Called until it returns success without `EMSGSIZE`.
    ///
    /// # Errors
    ///
    /// `EMSGSIZE` when this part is full; others end the list.
    fn dump(list: &mut List<'_>) -> Result;
}

/// A list being sent, possibly in several parts.
///
/// # Invariants
///
/// The pointers are those of a dump being done for `'a`.
pub struct List<'a> {
    skb: *mut sys::sk_buff,
    cb: *mut sys::netlink_callback,
    _call: PhantomData<&'a ()>,
}

impl List<'_> {
    /// The namespace that the request came from.
    pub fn net(&self) -> &Net {
        // SAFETY: The asker's socket holds the namespace.
        unsafe { Net::from_raw(sys::smc_rs_helper_diag_net(self.cb)) }
    }

    /// What the request says, from the family number on.
    pub fn request(&self) -> &[u8] {
        let mut len = 0;
        // SAFETY: The callback keeps the request as long as the dump lasts.
        let data = unsafe { sys::smc_rs_helper_diag_request((*self.cb).nlh, &mut len) };
        // SAFETY: The request has `len` bytes.
        unsafe { slice::from_raw_parts(data.cast(), len) }
    }

    /// What was kept from the part before, 0 at first. `index` is below [`COOKIES`].
    pub fn cookie(&self, index: usize) -> u64 {
        // SAFETY: The callback is valid by the type invariant.
        let args = unsafe { &(*self.cb).__bindgen_anon_1.args };
        args.get(index).map_or(0, |&value| value as u64)
    }

    /// Keeps a number for the next part.
    pub fn set_cookie(&mut self, index: usize, value: u64) {
        // SAFETY: The callback is valid by the type invariant and used by this call only.
        let args = unsafe { &mut (*self.cb).__bindgen_anon_1.args };
        if let Some(slot) = args.get_mut(index) {
            *slot = value as c_long;
        }
    }

    /// The owner of a socket, as the asker's user namespace numbers users.
    pub fn uid(&self, sock: &Sock) -> u32 {
        // SAFETY: The callback is valid by the type invariant, the socket is borrowed.
        unsafe { sys::smc_rs_helper_diag_uid(self.cb, sock.as_ptr()) }
    }

    /// Adds one message: `head`, then the attributes that `fill` adds.
    ///
    /// # Errors
    ///
    /// Those of `fill`, `EMSGSIZE` if this part of the list is full.
    pub fn item(&mut self, head: &[u8], fill: impl FnOnce(&mut Builder) -> Result) -> Result {
        // SAFETY: The dump's buffer is ours; `head` is valid for its length.
        let message = unsafe {
            sys::smc_rs_helper_diag_begin(self.skb, self.cb, head.as_ptr().cast(), head.len())
        };
        if message.is_null() {
            return Err(EMSGSIZE);
        }
        // SAFETY: The message was just begun.
        let result = fill(&mut unsafe { Builder::from_raw(self.skb) });
        // SAFETY: As above.
        unsafe {
            match result {
                Ok(()) => sys::smc_rs_helper_diag_end(self.skb, message),
                Err(_) => sys::smc_rs_helper_diag_cancel(self.skb, message),
            }
        }
        result
    }
}

/// A number that names a socket for as long as it exists.
pub fn cookie(sock: &Sock) -> [u8; 8] {
    let mut words = [0u32; 2];
    // SAFETY: The socket is borrowed, the array has room for two numbers.
    unsafe { sys::smc_rs_helper_diag_cookie(sock.as_ptr(), words.as_mut_ptr()) };
    let mut bytes = [0; 8];
    for (to, word) in bytes.chunks_mut(4).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// Addresses, ports and interface of a TCP socket in the form of `struct inet_diag_sockid`, with
/// zeros for the cookie. Takes no lock: while a connection is being made or broken the parts may
/// not belong together.
pub fn socket_id(tcp: &TcpSocket) -> [u8; SOCKID_LEN] {
    let mut id = sys::inet_diag_sockid::default();
    // SAFETY: The socket is a TCP socket that `tcp` holds.
    unsafe { sys::smc_rs_helper_diag_addresses(tcp.sock().as_ptr(), &mut id) };
    const { assert!(size_of::<sys::inet_diag_sockid>() == SOCKID_LEN) };
    let mut bytes = [0; SOCKID_LEN];
    // SAFETY: The structure has that size and no padding.
    let raw = unsafe { slice::from_raw_parts((&raw const id).cast::<u8>(), SOCKID_LEN) };
    bytes.copy_from_slice(raw);
    bytes
}

/// Keeps the list of a family registered.
///
/// # Invariants
///
/// `handler` is registered.
#[pin_data(PinnedDrop)]
pub struct ListRegistration<T: SocketList> {
    #[pin]
    handler: Opaque<sys::sock_diag_handler>,
    _type: PhantomData<T>,
}

// SAFETY: The registration may be dropped on any thread.
unsafe impl<T: SocketList> Send for ListRegistration<T> {}
// SAFETY: There are no methods that take `&self`.
unsafe impl<T: SocketList> Sync for ListRegistration<T> {}

impl<T: SocketList> ListRegistration<T> {
    /// Registers the list. Lists being sent hold a reference on `module`.
    ///
    /// # Errors
    ///
    /// `EBUSY` if the family has a list already.
    pub fn new(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            handler <- Opaque::try_ffi_init(move |handler: *mut sys::sock_diag_handler| {
                let value = sys::sock_diag_handler {
                    owner: module.as_ptr(),
                    family: T::FAMILY,
                    dump: Some(start::<T>),
                    ..pin_init::zeroed()
                };
                // SAFETY: `handler` is valid for writing, and pinned until `drop` unregisters it.
                unsafe {
                    handler.write(value);
                    to_result(sys::sock_diag_register(handler))
                }
            }),
            _type: PhantomData,
        })
    }
}

#[pinned_drop]
impl<T: SocketList> PinnedDrop for ListRegistration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant the handler is registered.
        unsafe { sys::sock_diag_unregister(self.handler.get()) };
    }
}

/// # Safety
///
/// Called by sock_diag only.
unsafe extern "C" fn start<T: SocketList>(
    skb: *mut sys::sk_buff,
    nlh: *mut sys::nlmsghdr,
) -> c_int {
    // SAFETY: The request is complete.
    let (kind, flags) = unsafe { ((*nlh).nlmsg_type, (*nlh).nlmsg_flags) };
    // One of the two bits is enough, as in other families: there are programs that set one only.
    let is_list = u32::from(flags) & sys::NLM_F_DUMP != 0;
    if u32::from(kind) != sys::SOCK_DIAG_BY_FAMILY || !is_list {
        return 0;
    }
    // SAFETY: As above; the namespace of the asker has a sock_diag socket.
    unsafe { sys::smc_rs_helper_diag_start(skb, nlh, Some(dump::<T>)) }
}

/// # Safety
///
/// Called by netlink for a dump that `start` began.
unsafe extern "C" fn dump<T: SocketList>(
    skb: *mut sys::sk_buff,
    cb: *mut sys::netlink_callback,
) -> c_int {
    from_result(|| {
        // INVARIANT: The dump is being done.
        T::dump(&mut List {
            skb,
            cb,
            _call: PhantomData,
        })?;
        Ok(0)
    })
}

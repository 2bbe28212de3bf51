// SPDX-License-Identifier: GPL-2.0

//! Socket families: what is behind `socket(family, …)`.
//!
//! C headers: [`include/linux/net.h`](srctree/include/linux/net.h),
//! [`include/net/sock.h`](srctree/include/net/sock.h)

use super::{
    addr::{
        SockAddr,
        SockAddrStorage,
        Whose, //
    },
    family_ops::{
        create,
        operations, //
    },
    inet_outer::InetOuter,
    msg::{
        Msg,
        MsgDest,
        SpliceDest, //
    },
    ns::Net,
    outer::{
        set_value,
        Outer, //
    },
    poll::{
        PollMask,
        PollRequest, //
    },
    sock::{
        How,
        Sock,
        SockRef, //
    },
    sockopt::{
        OptIn,
        OptOut, //
    }, //
};
use crate::sys;
use core::{
    marker::PhantomData,
    ptr,
    sync::atomic::{
        AtomicPtr,
        Ordering, //
    }, //
};
use kernel::{
    error::to_result,
    prelude::*,
    seq_file::SeqFile,
    sync::Arc,
    types::Opaque, //
};

/// What a stream socket of a family does. One value belongs to each socket.
///
/// All functions but [`SocketOps::poll`] may sleep. They run concurrently with each other, except
/// that `create` comes first and `release` last. `sock` is the socket user space sees.
///
/// The value is dropped when the last reference to the `struct sock` goes away, possibly in
/// softirq context and after `release`: what may not happen there is done in `release`.
pub trait SocketOps: Send + Sync + Sized + 'static {
    /// The family number, below 46.
    const FAMILY: i32;

    /// Name of the protocol and its slab, at most 31 bytes.
    const NAME: &'static CStr;

    /// Where the registration of this family is kept: a `static` of its own.
    fn slot() -> &'static FamilySlot;

    /// Makes the value for a new socket. `kern` is set for a socket the kernel makes for itself.
    ///
    /// # Errors
    ///
    /// The error of `socket`; `EPROTONOSUPPORT` is the one for an unknown `protocol`.
    fn create(net: &Net, sock: &Sock, protocol: i32, kern: bool) -> Result<Arc<Self>>;

    /// Makes the value for a new socket of the protocol that [`InetRegistration`] adds to the internet
    /// families; the family of `sock` is `AF_INET` or `AF_INET6`.
    ///
    /// # Errors
    ///
    /// The error of `socket`.
    ///
    /// [`InetRegistration`]: super::InetRegistration
    fn create_inet(net: &Net, sock: &Sock) -> Result<Arc<Self>>;

    /// The file is closed. Afterwards no other operation is called.
    fn release(this: &Arc<Self>, sock: &Sock);

    /// `bind`.
    fn bind(this: &Arc<Self>, sock: &Sock, addr: &SockAddr<'_>) -> Result;

    /// `connect`.
    fn connect(this: &Arc<Self>, sock: &Sock, addr: &SockAddr<'_>, nonblock: bool) -> Result;

    /// `accept`: waits for a connection and installs it in `new`.
    fn accept(this: &Arc<Self>, sock: &Sock, nonblock: bool, new: NewSocket<'_, Self>) -> Result;

    /// `getsockname`, `getpeername`, and what other calls tell of the peer's address.
    fn getname(this: &Arc<Self>, sock: &Sock, whose: Whose) -> Result<SockAddrStorage>;

    /// `poll`: registers, then returns the present state. Must not sleep for long.
    fn poll(this: &Arc<Self>, sock: &Sock, request: &PollRequest<'_>) -> PollMask;

    /// `ioctl`; `arg` is a user address for most commands.
    ///
    /// # Errors
    ///
    /// `ENOIOCTLCMD` for a command that is not known here.
    fn ioctl(this: &Arc<Self>, sock: &Sock, cmd: u32, arg: usize) -> Result<i32>;

    /// `ioctl` of a 32-bit program.
    fn compat_ioctl(this: &Arc<Self>, sock: &Sock, cmd: u32, arg: usize) -> Result<i32> {
        Self::ioctl(this, sock, cmd, arg)
    }

    /// `listen`.
    fn listen(this: &Arc<Self>, sock: &Sock, backlog: i32) -> Result;

    /// `shutdown`.
    fn shutdown(this: &Arc<Self>, sock: &Sock, how: How) -> Result;

    /// `setsockopt`, all levels, `SOL_SOCKET` included.
    fn setsockopt(
        this: &Arc<Self>,
        sock: &Sock,
        level: i32,
        name: i32,
        value: &OptIn<'_>,
    ) -> Result;

    /// `getsockopt`, all levels but `SOL_SOCKET`, which is answered from the fields of `sock`.
    fn getsockopt(
        this: &Arc<Self>,
        sock: &Sock,
        level: i32,
        name: i32,
        value: &OptOut<'_>,
    ) -> Result;

    /// `sendmsg`; returns how many bytes were taken.
    fn sendmsg(this: &Arc<Self>, sock: &Sock, msg: &mut Msg<'_>, len: usize) -> Result<usize>;

    /// `recvmsg`; returns how many bytes were delivered.
    fn recvmsg(
        this: &Arc<Self>,
        sock: &Sock,
        msg: &mut MsgDest<'_>,
        len: usize,
        flags: u32,
    ) -> Result<usize>;

    /// `splice` from the socket into a pipe.
    fn splice_read(this: &Arc<Self>, sock: &Sock, dest: SpliceDest<'_>) -> Result<usize>;

    /// A `splice` or `sendfile` into the socket ended before its announced length.
    fn splice_eof(_this: &Arc<Self>, _sock: &Sock) {}

    /// How many bytes a `recv` with `MSG_PEEK` could return now.
    fn peek_len(this: &Arc<Self>, sock: &Sock) -> Result<usize>;

    /// Adds lines to `/proc/PID/fdinfo/FD`.
    fn show_fdinfo(_this: &Arc<Self>, _sock: &Sock, _out: &SeqFile) {}
}

/// The tables of a registered family. Make one `static` per [`SocketOps`] type.
pub struct FamilySlot {
    pub(crate) proto: AtomicPtr<sys::proto>,
    pub(crate) ops: AtomicPtr<sys::proto_ops>,
}

impl FamilySlot {
    /// A slot without registration.
    pub const fn new() -> Self {
        Self {
            proto: AtomicPtr::new(ptr::null_mut()),
            ops: AtomicPtr::new(ptr::null_mut()),
        }
    }
}

impl Default for FamilySlot {
    fn default() -> Self {
        Self::new()
    }
}

/// Keeps a socket family registered.
///
/// # Invariants
///
/// `proto` and `family` are registered and `T::slot()` points to `proto` and `ops`.
#[pin_data(PinnedDrop)]
pub struct FamilyRegistration<T: SocketOps> {
    #[pin]
    proto: Opaque<sys::proto>,
    #[pin]
    ops: Opaque<sys::proto_ops>,
    #[pin]
    family: Opaque<sys::net_proto_family>,
    _type: PhantomData<T>,
}

// SAFETY: The registration may be dropped on any thread.
unsafe impl<T: SocketOps> Send for FamilyRegistration<T> {}
// SAFETY: There are no methods that take `&self`.
unsafe impl<T: SocketOps> Sync for FamilyRegistration<T> {}

impl<T: SocketOps> FamilyRegistration<T> {
    /// Registers the family. Every open socket holds a reference on `module`, so the registration
    /// can be dropped in the module's exit function only when there is none left.
    ///
    /// # Errors
    ///
    /// `EEXIST` if the family number is taken, `EBUSY` if `T` is registered already, `ENOMEM`.
    pub fn new(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(&this in Self {
            proto <- Opaque::try_ffi_init(move |proto: *mut sys::proto| {
                if !T::slot().proto.load(Ordering::Relaxed).is_null() {
                    return Err(EBUSY);
                }
                let mut value = sys::proto {
                    owner: module.as_ptr(),
                    obj_size: size_of::<Outer<T>>() as c_uint,
                    ..pin_init::zeroed()
                };
                let name = T::NAME.to_bytes();
                for (to, from) in value.name.iter_mut().zip(name.iter().take(31)) {
                    *to = *from;
                }
                // SAFETY: `proto` is valid for writing.
                unsafe { proto.write(value) };
                // SAFETY: `proto` is pinned and stays until `drop` unregisters it.
                to_result(unsafe { sys::proto_register(proto, 1) })
            }),
            ops: Opaque::new(operations::<T>(module, T::FAMILY)),
            family <- Opaque::try_ffi_init(move |family: *mut sys::net_proto_family| {
                let value = sys::net_proto_family {
                    family: T::FAMILY,
                    create: Some(create::<T>),
                    owner: module.as_ptr(),
                };
                // SAFETY: `family` is valid for writing.
                unsafe { family.write(value) };
                // SAFETY: `this` points to the value being made, whose first two fields are done.
                let (proto, ops) = unsafe { ((*this.as_ptr()).proto.get(), (*this.as_ptr()).ops.get()) };
                T::slot().ops.store(ops, Ordering::Release);
                T::slot().proto.store(proto, Ordering::Release);
                // SAFETY: `family` is pinned and stays until `drop` unregisters it.
                let result = to_result(unsafe { sys::sock_register(family) });
                if matches!(result, Err(EEXIST)) {
                    pr_err!(
                        "Another module owns address family {}: unload that one first.\n",
                        T::FAMILY
                    );
                }
                if result.is_err() {
                    T::slot().proto.store(ptr::null_mut(), Ordering::Release);
                    // SAFETY: Registered above; no socket was made.
                    unsafe { sys::proto_unregister(proto) };
                }
                result
            }),
            _type: PhantomData,
        })
    }
}

#[pinned_drop]
impl<T: SocketOps> PinnedDrop for FamilyRegistration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant the family is registered.
        unsafe { sys::sock_unregister(T::FAMILY) };
        // Sockets that were closed a moment ago may still be on their way out of softirq or RCU
        // callbacks, in code of this module.
        // SAFETY: No requirements beyond being able to sleep.
        unsafe {
            sys::synchronize_net();
            sys::rcu_barrier();
        }
        T::slot().proto.store(ptr::null_mut(), Ordering::Release);
        // SAFETY: By the type invariant `proto` is registered; with no reference to the module
        // left there is no socket either.
        unsafe { sys::proto_unregister(self.proto.get()) };
    }
}

/// The socket that `accept` is to return, still empty.
pub struct NewSocket<'a, T: SocketOps> {
    pub(crate) listener: &'a Sock,
    pub(crate) socket: *mut sys::socket,
    pub(crate) kern: bool,
    pub(crate) _type: PhantomData<T>,
}

impl<T: SocketOps> NewSocket<'_, T> {
    /// Makes the socket, with `value` behind it. It has the family and protocol of the listener.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `value` is dropped then.
    pub fn install(self, value: Arc<T>) -> Result<SockRef> {
        let net = self.listener.net();
        let sock = if c_int::from(self.listener.family()) == T::FAMILY {
            // SAFETY: `socket` is the empty socket `accept` was given.
            let sock = unsafe { Outer::<T>::alloc(net, None, self.kern)? };
            sock.set_protocol(self.listener.protocol());
            sock
        } else {
            // SAFETY: The listener is a socket of `T`, and of an internet family.
            unsafe { InetOuter::<T>::alloc_like(self.listener, self.kern)? }
        };
        // SAFETY: `sock` is new and has no value yet.
        unsafe { set_value::<T>(sock, value) };
        let held = sock.hold();
        // SAFETY: `socket` is empty, and takes over the reference that `alloc` made.
        unsafe { super::outer::graft(sock, self.socket) };
        Ok(held)
    }
}

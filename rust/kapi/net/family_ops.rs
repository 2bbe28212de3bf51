// SPDX-License-Identifier: GPL-2.0

//! The operation table of a socket family: converts, calls [`SocketOps`], converts back.
//!
//! C header: [`include/linux/net.h`](srctree/include/linux/net.h)

use super::{
    addr::{
        SockAddr,
        Whose,
        ADDR_MAX, //
    },
    family::{
        NewSocket,
        SocketOps, //
    },
    msg::{
        Msg,
        MsgDest,
        SpliceDest, //
    },
    ns::Net,
    outer::{
        detach,
        set_value,
        value_of,
        Outer, //
    },
    poll::{
        PollMask,
        PollRequest, //
    },
    sock::{
        How,
        Sock, //
    },
    sockopt::{
        OptIn,
        OptOut, //
    }, //
};
use crate::sys;
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr,
    slice,
    sync::atomic::Ordering, //
};
use kernel::{
    error::from_result,
    prelude::*,
    seq_file::SeqFile,
    sync::Arc, //
};

/// Calls `f` with what is behind `socket`.
///
/// # Safety
///
/// `socket` is a socket of the family of `T` for which an operation is running.
unsafe fn call<T: SocketOps, R>(
    socket: *mut sys::socket,
    f: impl FnOnce(&Arc<T>, &Sock) -> Result<R>,
) -> Result<R> {
    // SAFETY: `socket` is valid; `sk` changes only before and after all operations.
    let sk = unsafe { (*socket).sk };
    if sk.is_null() {
        return Err(EBADF);
    }
    // SAFETY: The socket holds a reference while an operation runs.
    let sock = unsafe { Sock::from_raw(sk) };
    // SAFETY: `sk` is a socket of `T`.
    let value = unsafe { value_of::<T>(sk) }.load(Ordering::Acquire);
    if value.is_null() {
        return Err(EBADF);
    }
    // SAFETY: By the invariant of the object; the reference stays with the socket.
    let value = ManuallyDrop::new(unsafe { Arc::from_raw(value) });
    f(&value, sock)
}

/// A length as a system call returns it.
fn to_ret(len: usize) -> Result<c_int> {
    c_int::try_from(len).map_err(|_| EOVERFLOW)
}

/// The table of operations of the sockets of `T` in an address family.
pub(crate) fn operations<T: SocketOps>(
    module: &'static ThisModule,
    family: c_int,
) -> sys::proto_ops {
    sys::proto_ops {
        family,
        owner: module.as_ptr(),
        release: Some(release::<T>),
        bind: Some(bind::<T>),
        connect: Some(connect::<T>),
        socketpair: Some(sys::sock_no_socketpair),
        accept: Some(accept::<T>),
        getname: Some(getname::<T>),
        poll: Some(poll::<T>),
        ioctl: Some(ioctl::<T>),
        #[cfg(CONFIG_COMPAT)]
        compat_ioctl: Some(compat_ioctl::<T>),
        gettstamp: Some(sys::sock_gettstamp),
        listen: Some(listen::<T>),
        shutdown: Some(shutdown::<T>),
        setsockopt: Some(setsockopt::<T>),
        getsockopt: Some(getsockopt::<T>),
        show_fdinfo: Some(show_fdinfo::<T>),
        sendmsg: Some(sendmsg::<T>),
        recvmsg: Some(recvmsg::<T>),
        mmap: Some(sys::sock_no_mmap),
        splice_read: Some(splice_read::<T>),
        splice_eof: Some(splice_eof::<T>),
        peek_len: Some(peek_len::<T>),
        // Readers of `T` ask for the offset, see `Sock::peek_offset`.
        set_peek_off: Some(sys::sk_set_peek_off),
        ..pin_init::zeroed()
    }
}

/// # Safety
///
/// The functions below are called by the socket layer only, with the arguments `struct proto_ops`
/// and `struct net_proto_family` describe.
pub(crate) unsafe extern "C" fn create<T: SocketOps>(
    net: *mut sys::net,
    socket: *mut sys::socket,
    protocol: c_int,
    kern: c_int,
) -> c_int {
    from_result(|| {
        // SAFETY: The socket layer passes a live namespace.
        let net = unsafe { Net::from_raw(net) };
        // SAFETY: `socket` is new.
        if c_int::from(unsafe { (*socket).type_ }) != sys::sock_type_SOCK_STREAM as c_int {
            return Err(ESOCKTNOSUPPORT);
        }
        // SAFETY: The family is registered while `create` runs, `socket` is new.
        let sock = unsafe { Outer::<T>::alloc(net, Some(socket), kern != 0)? };
        // CAST: `T::create` refuses what it does not know, before the number is used.
        sock.set_protocol(protocol as u16);
        match T::create(net, sock, protocol, kern != 0) {
            Ok(value) => {
                // SAFETY: `sock` is new.
                unsafe { set_value::<T>(sock, value) };
                // SAFETY: `socket` is not in use yet.
                unsafe {
                    (*socket).ops = T::slot().ops.load(Ordering::Acquire);
                    (*socket).flags |= 1 << sys::socket_flags_SOCK_CUSTOM_SOCKOPT;
                }
                Ok(0)
            }
            Err(error) => {
                // SAFETY: `socket` and the reference made by `alloc` are ours.
                unsafe { detach(socket, sock.as_ptr()) };
                Err(error)
            }
        }
    })
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn release<T: SocketOps>(socket: *mut sys::socket) -> c_int {
    // SAFETY: `socket` is valid. It has no `sk` if `accept` failed.
    let sk = unsafe { (*socket).sk };
    if !sk.is_null() {
        // SAFETY: This is the last operation on the socket.
        let _ = unsafe {
            call::<T, _>(socket, |this, sock| {
                T::release(this, sock);
                Ok(())
            })
        };
        // SAFETY: No other operation runs or follows.
        unsafe { detach(socket, sk) };
    }
    0
}

/// Calls [`SocketOps::release`] for a socket without file, if it has a value.
///
/// # Safety
///
/// `sk` is a socket of `T` on which no operation runs or follows.
pub(crate) unsafe fn release_value<T: SocketOps>(sk: *mut sys::sock) {
    // SAFETY: As promised by the caller.
    let value = unsafe { value_of::<T>(sk) }.load(Ordering::Acquire);
    if value.is_null() {
        return;
    }
    // SAFETY: By the invariant of the object; the reference stays with the socket.
    let value = ManuallyDrop::new(unsafe { Arc::from_raw(value) });
    // SAFETY: As promised by the caller.
    T::release(&value, unsafe { Sock::from_raw(sk) });
}

/// The address bytes of a call.
///
/// # Safety
///
/// `addr` points to `len` bytes that stay valid for `'a`.
unsafe fn address<'a>(addr: *const sys::sockaddr_unsized, len: c_int) -> Result<SockAddr<'a>> {
    let len = usize::try_from(len).map_err(|_| EINVAL)?;
    if len > ADDR_MAX || addr.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: As promised by the caller.
    Ok(SockAddr::new(unsafe {
        slice::from_raw_parts(addr.cast(), len)
    }))
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn bind<T: SocketOps>(
    socket: *mut sys::socket,
    addr: *mut sys::sockaddr_unsized,
    len: c_int,
) -> c_int {
    from_result(|| {
        // SAFETY: The socket layer copied the address.
        let addr = unsafe { address(addr, len)? };
        // SAFETY: An operation of `socket` is running.
        unsafe { call::<T, _>(socket, |this, sock| T::bind(this, sock, &addr))? };
        Ok(0)
    })
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn connect<T: SocketOps>(
    socket: *mut sys::socket,
    addr: *mut sys::sockaddr_unsized,
    len: c_int,
    flags: c_int,
) -> c_int {
    from_result(|| {
        // SAFETY: The socket layer copied the address.
        let addr = unsafe { address(addr, len)? };
        let nonblock = flags as u32 & sys::O_NONBLOCK != 0;
        // SAFETY: An operation of `socket` is running.
        unsafe { call::<T, _>(socket, |this, sock| T::connect(this, sock, &addr, nonblock))? };
        Ok(0)
    })
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn accept<T: SocketOps>(
    socket: *mut sys::socket,
    new: *mut sys::socket,
    arg: *mut sys::proto_accept_arg,
) -> c_int {
    from_result(|| {
        // SAFETY: The socket layer passes a valid argument.
        let (flags, kern) = unsafe { ((*arg).flags, (*arg).kern) };
        let nonblock = flags as u32 & sys::O_NONBLOCK != 0;
        // SAFETY: An operation of `socket` is running.
        unsafe {
            call::<T, _>(socket, |this, sock| {
                let new = NewSocket {
                    listener: sock,
                    socket: new,
                    kern,
                    _type: PhantomData,
                };
                T::accept(this, sock, nonblock, new)
            })?
        };
        Ok(0)
    })
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn getname<T: SocketOps>(
    socket: *mut sys::socket,
    addr: *mut sys::sockaddr,
    peer: c_int,
) -> c_int {
    from_result(|| {
        let whose = Whose::from_raw(peer);
        // SAFETY: An operation of `socket` is running.
        let name = unsafe { call::<T, _>(socket, |this, sock| T::getname(this, sock, whose))? };
        let bytes = name.as_bytes();
        // SAFETY: The socket layer has room for the largest address, which is what `name` holds.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), addr.cast(), bytes.len()) };
        to_ret(bytes.len())
    })
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn poll<T: SocketOps>(
    file: *mut sys::file,
    socket: *mut sys::socket,
    table: *mut sys::poll_table_struct,
) -> sys::__poll_t {
    // SAFETY: These are the arguments of the operation.
    let request = unsafe { PollRequest::new(file, socket, table) };
    // SAFETY: An operation of `socket` is running.
    let mask = unsafe { call::<T, _>(socket, |this, sock| Ok(T::poll(this, sock, &request))) };
    mask.unwrap_or(PollMask::ERR).bits()
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn ioctl<T: SocketOps>(
    socket: *mut sys::socket,
    cmd: c_uint,
    arg: c_ulong,
) -> c_int {
    // SAFETY: An operation of `socket` is running.
    from_result(|| unsafe { call::<T, _>(socket, |this, sock| T::ioctl(this, sock, cmd, arg)) })
}

#[cfg(CONFIG_COMPAT)]
/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn compat_ioctl<T: SocketOps>(
    socket: *mut sys::socket,
    cmd: c_uint,
    arg: c_ulong,
) -> c_int {
    from_result(|| {
        // SAFETY: An operation of `socket` is running.
        unsafe { call::<T, _>(socket, |this, sock| T::compat_ioctl(this, sock, cmd, arg)) }
    })
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn listen<T: SocketOps>(socket: *mut sys::socket, backlog: c_int) -> c_int {
    from_result(|| {
        // SAFETY: An operation of `socket` is running.
        unsafe { call::<T, _>(socket, |this, sock| T::listen(this, sock, backlog))? };
        Ok(0)
    })
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn shutdown<T: SocketOps>(socket: *mut sys::socket, how: c_int) -> c_int {
    from_result(|| {
        let how = How::from_raw(how)?;
        // SAFETY: An operation of `socket` is running.
        unsafe { call::<T, _>(socket, |this, sock| T::shutdown(this, sock, how))? };
        Ok(0)
    })
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn setsockopt<T: SocketOps>(
    socket: *mut sys::socket,
    level: c_int,
    name: c_int,
    value: sys::sockptr_t,
    len: c_uint,
) -> c_int {
    from_result(|| {
        // SAFETY: These are the arguments of the operation.
        let value = unsafe { OptIn::new(value, len) };
        // SAFETY: An operation of `socket` is running.
        unsafe {
            call::<T, _>(socket, |this, sock| {
                T::setsockopt(this, sock, level, name, &value)
            })?
        };
        Ok(0)
    })
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn getsockopt<T: SocketOps>(
    socket: *mut sys::socket,
    level: c_int,
    name: c_int,
    value: *mut c_char,
    len: *mut c_int,
) -> c_int {
    from_result(|| {
        let value = OptOut::new(value, len);
        // SAFETY: An operation of `socket` is running.
        unsafe {
            call::<T, _>(socket, |this, sock| {
                T::getsockopt(this, sock, level, name, &value)
            })?
        };
        Ok(0)
    })
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn show_fdinfo<T: SocketOps>(out: *mut sys::seq_file, socket: *mut sys::socket) {
    // SAFETY: The file belongs to this call; bindings differ only in where they were generated.
    let out = unsafe { SeqFile::from_raw(out.cast()) };
    // SAFETY: An operation of `socket` is running. A socket without value has nothing to show.
    let _ = unsafe {
        call::<T, _>(socket, |this, sock| {
            T::show_fdinfo(this, sock, out);
            Ok(())
        })
    };
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn sendmsg<T: SocketOps>(
    socket: *mut sys::socket,
    msg: *mut sys::msghdr,
    len: usize,
) -> c_int {
    from_result(|| {
        // SAFETY: These are the arguments of the operation.
        let mut msg = unsafe { Msg::from_raw(msg) };
        // SAFETY: An operation of `socket` is running.
        to_ret(unsafe { call::<T, _>(socket, |this, sock| T::sendmsg(this, sock, &mut msg, len))? })
    })
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn recvmsg<T: SocketOps>(
    socket: *mut sys::socket,
    msg: *mut sys::msghdr,
    len: usize,
    flags: c_int,
) -> c_int {
    from_result(|| {
        // SAFETY: These are the arguments of the operation.
        let mut msg = unsafe { MsgDest::from_raw(msg) };
        // SAFETY: An operation of `socket` is running.
        to_ret(unsafe {
            call::<T, _>(socket, |this, sock| {
                T::recvmsg(this, sock, &mut msg, len, flags as u32)
            })?
        })
    })
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn splice_read<T: SocketOps>(
    socket: *mut sys::socket,
    pos: *mut sys::loff_t,
    pipe: *mut sys::pipe_inode_info,
    len: usize,
    flags: c_uint,
) -> isize {
    from_result(|| {
        let dest = SpliceDest {
            socket,
            pos,
            pipe,
            len,
            flags,
            _call: PhantomData,
        };
        // SAFETY: An operation of `socket` is running.
        let done = unsafe { call::<T, _>(socket, |this, sock| T::splice_read(this, sock, dest))? };
        isize::try_from(done).map_err(|_| EOVERFLOW)
    })
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn splice_eof<T: SocketOps>(socket: *mut sys::socket) {
    // SAFETY: An operation of `socket` is running. Without value there is nothing to flush.
    let _ = unsafe {
        call::<T, _>(socket, |this, sock| {
            T::splice_eof(this, sock);
            Ok(())
        })
    };
}

/// # Safety
/// Only the socket layer calls this, as an operation of its table.
unsafe extern "C" fn peek_len<T: SocketOps>(socket: *mut sys::socket) -> c_int {
    // SAFETY: An operation of `socket` is running.
    from_result(|| to_ret(unsafe { call::<T, _>(socket, T::peek_len)? }))
}

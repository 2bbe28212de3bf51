// SPDX-License-Identifier: GPL-2.0

//! The message header of `sendmsg` and `recvmsg`.
//!
//! C header: [`include/linux/socket.h`](srctree/include/linux/socket.h)

use super::addr::{
    SockAddr,
    ADDR_MAX, //
};
use crate::sys;
use core::{
    marker::PhantomData,
    slice, //
};
use kernel::{
    iov::{
        IovIterDest,
        IovIterSource, //
    },
    prelude::*, //
};

/// Flags of `send` and `recv`, as in the user interface.
pub mod flags {
    /// Urgent data.
    pub const OOB: u32 = 0x1;
    /// Look, do not take.
    pub const PEEK: u32 = 0x2;
    /// Do not use a router.
    pub const DONTROUTE: u32 = 0x4;
    /// More was there than fitted; given to `recv` on TCP it throws the data away.
    pub const TRUNC: u32 = 0x20;
    /// Do not block.
    pub const DONTWAIT: u32 = 0x40;
    /// End of a record.
    pub const EOR: u32 = 0x80;
    /// Wait until all that was asked for is there.
    pub const WAITALL: u32 = 0x100;
    /// No `SIGPIPE`.
    pub const NOSIGNAL: u32 = 0x4000;
    /// The caller will send more at once.
    pub const MORE: u32 = 0x8000;
    /// Read the error queue.
    pub const ERRQUEUE: u32 = 0x2000;
    /// Send without copying from user memory.
    pub const ZEROCOPY: u32 = 0x4000000;
    /// Connect and send in the SYN.
    pub const FASTOPEN: u32 = 0x20000000;
    /// The pages of the iterator may be kept instead of copied (kernel-internal).
    pub const SPLICE_PAGES: u32 = 0x8000000;
}

/// A message to send.
///
/// # Invariants
///
/// `raw` is valid and used by nobody else for `'a`; its iterator is a source.
pub struct Msg<'a> {
    raw: *mut sys::msghdr,
    _call: PhantomData<&'a mut ()>,
}

impl<'a> Msg<'a> {
    /// # Safety
    ///
    /// `raw` is the message a `sendmsg` operation was given that runs for `'a`.
    pub(crate) unsafe fn from_raw(raw: *mut sys::msghdr) -> Self {
        // INVARIANT: As promised by the caller.
        Self {
            raw,
            _call: PhantomData,
        }
    }

    /// The C structure.
    pub(crate) fn as_ptr(&mut self) -> *mut sys::msghdr {
        self.raw
    }

    /// The `MSG_*` flags, see [`flags`].
    pub fn flags(&self) -> u32 {
        // SAFETY: `raw` is valid by the type invariant.
        unsafe { (*self.raw).msg_flags }
    }

    /// Whether the call must not block.
    pub fn nonblock(&self) -> bool {
        self.flags() & flags::DONTWAIT != 0
    }

    /// The destination address, if one was given.
    pub fn addr(&self) -> Option<SockAddr<'_>> {
        // SAFETY: `raw` is valid by the type invariant.
        let (name, len) = unsafe { ((*self.raw).msg_name, (*self.raw).msg_namelen) };
        let len = usize::try_from(len).ok()?.min(ADDR_MAX);
        if name.is_null() || len == 0 {
            return None;
        }
        // SAFETY: The socket layer copied `msg_namelen` bytes to `msg_name`.
        Some(SockAddr::new(unsafe {
            slice::from_raw_parts(name.cast(), len)
        }))
    }

    /// Size in bytes of the control messages.
    pub fn control_len(&self) -> usize {
        // SAFETY: `raw` is valid by the type invariant.
        unsafe { (*self.raw).msg_controllen }
    }

    /// Where the data come from.
    pub fn iter(&mut self) -> &mut IovIterSource<'a> {
        // SAFETY: `raw` is valid by the type invariant and borrowed exclusively; the socket layer
        // set the iterator up as a source.
        unsafe { IovIterSource::from_raw(&raw mut (*self.raw).msg_iter) }
    }
}

/// A message to receive into.
///
/// # Invariants
///
/// `raw` is valid and used by nobody else for `'a`; its iterator is a destination.
pub struct MsgDest<'a> {
    raw: *mut sys::msghdr,
    _call: PhantomData<&'a mut ()>,
}

impl<'a> MsgDest<'a> {
    /// # Safety
    ///
    /// `raw` is the message a `recvmsg` operation was given that runs for `'a`.
    pub(crate) unsafe fn from_raw(raw: *mut sys::msghdr) -> Self {
        // INVARIANT: As promised by the caller.
        Self {
            raw,
            _call: PhantomData,
        }
    }

    /// The C structure.
    pub(crate) fn as_ptr(&mut self) -> *mut sys::msghdr {
        self.raw
    }

    /// Adds `MSG_*` flags to those user space gets back, see [`flags`].
    pub fn add_flags(&mut self, flags: u32) {
        // SAFETY: `raw` is valid by the type invariant and borrowed exclusively.
        unsafe { (*self.raw).msg_flags |= flags };
    }

    /// Adds control data, as far as the caller has room for it: `MSG_CTRUNC` tells that it had not.
    /// May sleep.
    pub fn put_control(&mut self, level: i32, kind: i32, data: &[u8]) {
        let len = i32::try_from(data.len()).unwrap_or(0);
        // SAFETY: `raw` is valid by the type invariant and borrowed exclusively; `data` has `len` bytes.
        unsafe { sys::put_cmsg(self.raw, level, kind, len, data.as_ptr().cast_mut().cast()) };
    }

    /// Says that no sender address is returned.
    pub fn clear_addr(&mut self) {
        // SAFETY: `raw` is valid by the type invariant and borrowed exclusively.
        unsafe { (*self.raw).msg_namelen = 0 };
    }

    /// Where the data go.
    pub fn iter(&mut self) -> &mut IovIterDest<'a> {
        // SAFETY: `raw` is valid by the type invariant and borrowed exclusively; the socket layer
        // set the iterator up as a destination.
        unsafe { IovIterDest::from_raw(&raw mut (*self.raw).msg_iter) }
    }
}

/// What a `splice_read` operation moves data into.
///
/// # Invariants
///
/// The pointers are those the socket layer gave to an operation that runs for `'a`.
pub struct SpliceDest<'a> {
    pub(crate) socket: *mut sys::socket,
    pub(crate) pos: *mut sys::loff_t,
    pub(crate) pipe: *mut sys::pipe_inode_info,
    pub(crate) len: usize,
    pub(crate) flags: u32,
    pub(crate) _call: PhantomData<&'a mut ()>,
}

impl SpliceDest<'_> {
    /// Number of bytes wanted.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the call must not block for want of data.
    pub fn nonblock(&self) -> bool {
        // SAFETY: The socket is valid by the type invariant.
        let file = unsafe { (*self.socket).file };
        // SAFETY: The file, if there is one, is held by the caller of the operation.
        !file.is_null() && unsafe { (*file).f_flags } & sys::O_NONBLOCK != 0
    }

    /// Fills the pipe with what the socket's own `recvmsg` gives.
    ///
    /// # Errors
    ///
    /// Those of `recvmsg`; `EBADF` for a socket without file.
    pub fn copy_from_recvmsg(self) -> Result<usize> {
        // SAFETY: The socket is valid by the type invariant.
        let file = unsafe { (*self.socket).file };
        if file.is_null() {
            return Err(EBADF);
        }
        // SAFETY: All pointers are valid by the type invariant; the file is held by the caller of
        // the operation.
        let done =
            unsafe { sys::copy_splice_read(file, self.pos, self.pipe, self.len, self.flags) };
        super::sock::to_len(done)
    }
}

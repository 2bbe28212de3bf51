// SPDX-License-Identifier: GPL-2.0

//! Sleeping on the wait queue of a socket.
//!
//! C headers: [`include/linux/wait.h`](srctree/include/linux/wait.h),
//! [`include/net/sock.h`](srctree/include/net/sock.h)

use super::sock::Sock;
use crate::sys;
use core::{
    marker::PhantomData,
    ptr::{
        addr_of,
        addr_of_mut, //
    }, //
};
use kernel::{
    prelude::*,
    types::{
        NotThreadSafe,
        Opaque, //
    }, //
};

/// A time-out that never comes, in jiffies.
pub const FOREVER: c_long = c_long::MAX;

impl Sock {
    /// Runs `f` while the calling thread is on the socket's wait queue.
    ///
    /// `f` looks at its condition and calls [`Waiter::wait`] in a loop; it may sleep in between. A
    /// wake-up between the look and the wait is not lost.
    ///
    /// # Errors
    ///
    /// `EBADF` if the socket was closed; otherwise what `f` returns.
    pub fn with_waiter<R>(&self, f: impl FnOnce(&Waiter) -> Result<R>) -> Result<R> {
        let queue = WaitQueueRef::of(self)?;
        let entry = Opaque::<sys::wait_queue_entry>::uninit();
        // SAFETY: `entry` stays in place until it is taken off the queue below, and `queue` keeps
        // the queue alive until then.
        unsafe { sys::smc_rs_helper_wait_entry_add(queue.as_ptr(), entry.get()) };
        let waiter = Waiter {
            entry: entry.get(),
            _thread: PhantomData,
        };
        let result = f(&waiter);
        // SAFETY: Added above.
        unsafe { sys::smc_rs_helper_wait_entry_remove(queue.as_ptr(), entry.get()) };
        result
    }
}

/// The calling thread is on a socket's wait queue.
pub struct Waiter {
    entry: *mut sys::wait_queue_entry,
    _thread: PhantomData<NotThreadSafe>,
}

impl Waiter {
    /// Sleeps until the queue is woken, a signal comes, or `timeout` jiffies have passed; what is
    /// left of the time is put back into `timeout`. Returns at once if the queue was woken since
    /// the last call.
    ///
    /// # Errors
    ///
    /// When a signal is pending, the error a socket call returns then, see [`interrupted`].
    pub fn wait(&self, timeout: &mut c_long) -> Result {
        if signal_pending() {
            return Err(interrupted(*timeout));
        }
        // SAFETY: The entry is on a queue while `self` exists.
        *timeout = unsafe { sys::smc_rs_helper_wait_woken(self.entry, *timeout) };
        if signal_pending() {
            return Err(interrupted(*timeout));
        }
        Ok(())
    }
}

/// Keeps the wait queue of a socket alive past the closing of its file.
///
/// # Invariants
///
/// `socket` lies in the same object as `inode`, on which a reference is held.
pub(crate) struct WaitQueueRef {
    pub(crate) socket: *mut sys::socket,
    inode: *mut sys::inode,
}

// SAFETY: The references may be dropped by any thread.
unsafe impl Send for WaitQueueRef {}
// SAFETY: Nothing is changed through a shared reference.
unsafe impl Sync for WaitQueueRef {}

impl WaitQueueRef {
    /// The queue of the file behind `sk`.
    ///
    /// # Errors
    ///
    /// `EBADF` if the socket was closed.
    pub(crate) fn of(sk: &Sock) -> Result<Self> {
        // SAFETY: The socket is valid by its type invariant.
        unsafe { sys::smc_rs_helper_callback_read_lock(sk.as_ptr()) };
        // SAFETY: As above.
        let socket = unsafe { addr_of!((*sk.as_ptr()).sk_socket).read_volatile() };
        let me = if socket.is_null() {
            Err(EBADF)
        } else {
            // SAFETY: With the callback lock held the socket is attached to its file, whose inode
            // has a reference.
            let inode = unsafe { sys::smc_rs_helper_sock_inode(socket) };
            // SAFETY: As above.
            unsafe { sys::ihold(inode) };
            // INVARIANT: The inode contains `socket`.
            Ok(Self { socket, inode })
        };
        // SAFETY: Taken above.
        unsafe { sys::smc_rs_helper_callback_read_unlock(sk.as_ptr()) };
        me
    }

    /// The queue.
    pub(crate) fn as_ptr(&self) -> *mut sys::socket_wq {
        // SAFETY: The socket is valid by the type invariant.
        unsafe { addr_of_mut!((*self.socket).wq) }
    }

    /// Number of the inode.
    pub(crate) fn inode_number(&self) -> u64 {
        // SAFETY: The inode is valid by the type invariant.
        unsafe { (*self.inode).i_ino }
    }
}

impl Drop for WaitQueueRef {
    /// May sleep.
    fn drop(&mut self) {
        // SAFETY: The type owns a reference.
        unsafe { sys::iput(self.inode) };
    }
}

/// Whether a signal waits for the calling thread.
pub fn signal_pending() -> bool {
    // SAFETY: No requirements.
    unsafe { sys::smc_rs_helper_signal_pending() }
}

/// Whether the calling thread is past its last return to user space: it runs what the end of its
/// process leaves to do. Signals do not reach it any more.
pub fn exiting() -> bool {
    // SAFETY: No requirements.
    unsafe { sys::smc_rs_helper_exiting() }
}

/// The error of a call that a signal interrupted: restart it if it had no time limit, else tell
/// the caller.
pub fn interrupted(timeout: c_long) -> Error {
    if timeout == FOREVER {
        ERESTARTSYS
    } else {
        EINTR
    }
}

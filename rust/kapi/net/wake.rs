// SPDX-License-Identifier: GPL-2.0

//! Telling those who wait for a socket: sleepers, pollers, and owners of its file by signal.
//!
//! C header: [`include/net/sock.h`](srctree/include/net/sock.h)

use super::sock::{
    read,
    Sock, //
};
use crate::sys;
use core::ptr::addr_of;

impl Sock {
    /// Tells readers, pollers and `SIGIO` that there is something to read. Any context.
    pub fn wake_readable(&self) {
        self.call(read!(self, sk_data_ready));
    }

    /// Notes that somebody waits for room to write: without it [`Sock::wake_writable`] wakes nobody.
    /// Any context.
    ///
    /// The caller looks for room again afterwards: it may have come in between.
    pub fn note_no_space(&self) {
        // SAFETY: The socket is valid by the type invariant.
        unsafe { sys::smc_rs_helper_sk_note_no_space(self.as_ptr()) };
    }

    /// Tells writers, pollers and `SIGIO` that there is room, if one of them has noted that there was
    /// none. Everybody on the wait queue wakes up, readers, too. Any context.
    pub fn wake_writable(&self) {
        // SAFETY: The socket is valid by the type invariant.
        unsafe { sys::smc_rs_helper_sk_wake_writable(self.as_ptr()) };
    }

    /// Tells everybody that the state changed. Any context.
    pub fn wake_state(&self) {
        self.call(read!(self, sk_state_change));
    }

    /// Tells everybody, also by `SIGIO`, that a `connect()` has led to a connection. Any context.
    pub fn wake_connected(&self) {
        self.wake_state();
        // SAFETY: The socket is valid by the type invariant.
        unsafe { sys::smc_rs_helper_sk_wake_connected(self.as_ptr()) };
    }

    /// Tells everybody that there is an error. Any context.
    pub fn wake_error(&self) {
        self.call(read!(self, sk_error_report));
    }

    /// Calls one of the socket's own callbacks.
    fn call(&self, callback: Option<unsafe extern "C" fn(*mut sys::sock)>) {
        if let Some(callback) = callback {
            // SAFETY: `sock_init_data` or the owner of the socket set the callback, which takes
            // the socket it is found in.
            unsafe { callback(self.as_ptr()) };
        }
    }

    /// Sends `SIGURG` to the owner of the socket's file, and wakes pollers for urgent data. Any
    /// context.
    pub fn send_sigurg(&self) {
        // SAFETY: The socket is valid by the type invariant.
        unsafe { sys::smc_rs_helper_callback_read_lock(self.as_ptr()) };
        if !read!(self, sk_socket).is_null() {
            // SAFETY: With the callback lock held the socket cannot be detached from its file, and
            // the file outlives that.
            unsafe { sys::sk_send_sigurg(self.as_ptr()) };
        }
        // SAFETY: Taken above.
        unsafe { sys::smc_rs_helper_callback_read_unlock(self.as_ptr()) };
    }
}

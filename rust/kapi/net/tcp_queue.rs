// SPDX-License-Identifier: GPL-2.0

//! The wait queue and the file that a kernel TCP socket borrows from the socket above it.
//!
//! C headers: [`include/linux/net.h`](srctree/include/linux/net.h),
//! [`include/net/sock.h`](srctree/include/net/sock.h)

use super::{
    sock::{
        Flag,
        Sock, //
    },
    tcp::TcpSocket,
    wait::WaitQueueRef, //
};
use crate::sys;
use core::{
    cell::UnsafeCell,
    ptr, //
};
use kernel::{
    prelude::*,
    types::Opaque, //
};

/// Which wait queue the TCP socket wakes.
///
/// The queue must not change while a thread is on it: whoever calls a function that may put the
/// thread there holds `lock` for reading, whoever changes the queue holds it for writing.
#[pin_data]
pub(crate) struct WaitSharing {
    #[pin]
    lock: Opaque<sys::rw_semaphore>,
    /// Keeps alive the queue in use, `None` if it is the socket's own. Guarded by `lock`.
    shared: UnsafeCell<Option<WaitQueueRef>>,
    /// Number of [`FileLoan`]s. Guarded by the callback lock of the socket.
    loans: UnsafeCell<usize>,
}

impl WaitSharing {
    pub(crate) fn new() -> Result<Pin<KBox<Self>>> {
        KBox::pin_init(
            pin_init!(Self {
                // SAFETY: The semaphore is pinned and not in use yet.
                lock <- Opaque::ffi_init(|lock| unsafe { sys::smc_rs_helper_init_rwsem(lock) }),
                shared: UnsafeCell::new(None),
                loans: UnsafeCell::new(0),
            }),
            GFP_KERNEL,
        )
    }
}

/// The wait queue does not change.
pub(crate) struct QueueGuard<'a>(&'a WaitSharing);

impl Drop for QueueGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: The guard shows that the lock is held for reading.
        unsafe { sys::up_read(self.0.lock.get()) };
    }
}

/// The TCP socket seems to belong to a file, as some operations require.
///
/// # Invariants
///
/// Counted in `loans`, and the file outlives the value.
pub(crate) struct FileLoan<'a>(&'a TcpSocket);

impl<'a> FileLoan<'a> {
    /// Lends `file` to `tcp`.
    ///
    /// # Safety
    ///
    /// `file` is that of the socket on behalf of which `tcp` exists, and outlives the result.
    pub(crate) unsafe fn new(tcp: &'a TcpSocket, file: *mut sys::file) -> Self {
        // SAFETY: The socket is valid; who looks at `file` does so with one of its locks held or
        // under RCU, as it is with files.
        unsafe {
            sys::smc_rs_helper_callback_write_lock(tcp.sk());
            *tcp.wait.loans.get() += 1;
            ptr::addr_of_mut!((*tcp.socket).file).write_volatile(file);
            sys::smc_rs_helper_callback_write_unlock(tcp.sk());
        }
        // INVARIANT: Counted above.
        Self(tcp)
    }
}

impl Drop for FileLoan<'_> {
    fn drop(&mut self) {
        let tcp = self.0;
        // SAFETY: As in `new`.
        unsafe {
            sys::smc_rs_helper_callback_write_lock(tcp.sk());
            let loans = tcp.wait.loans.get();
            *loans -= 1;
            if *loans == 0 {
                ptr::addr_of_mut!((*tcp.socket).file).write_volatile(ptr::null_mut());
            }
            sys::smc_rs_helper_callback_write_unlock(tcp.sk());
        }
    }
}

impl TcpSocket {
    /// Fixes the wait queue while the thread may be on it.
    pub(crate) fn use_queue(&self) -> QueueGuard<'_> {
        // SAFETY: The semaphore is initialised.
        unsafe { sys::down_read(self.wait.lock.get()) };
        QueueGuard(&self.wait)
    }

    /// Makes the TCP socket wake the wait queue of `outer`: everybody who waits for, polls, or
    /// wants `SIGIO` from that socket is then woken by what happens on the TCP connection. The
    /// inode number shown for the connection becomes that of `outer`, too.
    ///
    /// The queue stays allocated as long as this TCP socket may wake it, even if `outer` is closed
    /// earlier.
    ///
    /// # Errors
    ///
    /// `EBADF` if `outer` was closed.
    pub fn share_wait_queue(&self, outer: &Sock) -> Result {
        let queue = WaitQueueRef::of(outer)?;
        let sk = self.sk();
        // SAFETY: The semaphore is initialised.
        unsafe { sys::down_write(self.wait.lock.get()) };
        // SAFETY: The socket is valid. The flag makes TCP look at the list of `SIGIO` receivers,
        // which is in the queue.
        unsafe {
            sys::smc_rs_helper_lock_sock(sk);
            sys::smc_rs_helper_sock_set_flag(sk, Flag::Fasync as c_int);
            sys::smc_rs_helper_callback_write_lock(sk);
            sys::smc_rs_helper_set_wait_queue(sk, queue.as_ptr());
            (*sk).sk_ino = queue.inode_number();
            sys::smc_rs_helper_callback_write_unlock(sk);
            sys::smc_rs_helper_release_sock(sk);
        }
        // SAFETY: The lock is held for writing.
        let old = unsafe { (*self.wait.shared.get()).replace(queue) };
        // SAFETY: Taken above.
        unsafe { sys::up_write(self.wait.lock.get()) };
        // Whoever still wakes the old queue does so under RCU, which its memory waits for.
        drop(old);
        Ok(())
    }
}

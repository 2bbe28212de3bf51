// SPDX-License-Identifier: GPL-2.0

//! Sleeping on the wait queue of a socket.

use kernel::ffi::c_long;
use kernel::prelude::*;
use smc_kapi::net::Sock;

/// Sleeps until `ready` or until `timeout` jiffies have passed; what is left of the time is put back
/// into `timeout`, 0 when it is over. `ready` may sleep.
///
/// # Errors
///
/// `ERESTARTSYS` or `EINTR` when a signal is pending.
pub(crate) fn wait_until(
    sock: &Sock,
    timeout: &mut c_long,
    mut ready: impl FnMut() -> bool,
) -> Result {
    sock.with_waiter(|waiter| loop {
        if ready() || *timeout == 0 {
            return Ok(());
        }
        waiter.wait(timeout)?;
    })
}

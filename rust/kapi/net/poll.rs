// SPDX-License-Identifier: GPL-2.0

//! Polling a socket.
//!
//! C headers: [`include/linux/poll.h`](srctree/include/linux/poll.h),
//! [`include/uapi/linux/eventpoll.h`](srctree/include/uapi/linux/eventpoll.h)

use crate::sys;
use core::{
    marker::PhantomData,
    ops, //
};

/// The events of a poll call, the `EPOLL*` bits of the user interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollMask(u32);

impl PollMask {
    /// No event.
    pub const NONE: Self = Self(0);
    /// Data to read.
    pub const IN: Self = Self(0x001);
    /// Urgent data.
    pub const PRI: Self = Self(0x002);
    /// Room to write.
    pub const OUT: Self = Self(0x004);
    /// Error.
    pub const ERR: Self = Self(0x008);
    /// Both directions are closed.
    pub const HUP: Self = Self(0x010);
    /// Normal data to read.
    pub const RDNORM: Self = Self(0x040);
    /// Priority data to read.
    pub const RDBAND: Self = Self(0x080);
    /// Room for normal data.
    pub const WRNORM: Self = Self(0x100);
    /// The peer closed its sending side.
    pub const RDHUP: Self = Self(0x2000);
    /// What a readable stream socket reports.
    pub const READABLE: Self = Self(0x041);
    /// What a writable stream socket reports.
    pub const WRITABLE: Self = Self(0x104);

    /// Wraps `EPOLL*` bits.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The `EPOLL*` bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether any event of `other` is in `self`.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl ops::BitOr for PollMask {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl ops::BitOrAssign for PollMask {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl ops::BitAnd for PollMask {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// One poll call on a socket.
///
/// # Invariants
///
/// The pointers are those the socket layer gave to a `poll` operation that is still running; the
/// table may be null.
pub struct PollRequest<'a> {
    file: *mut sys::file,
    socket: *mut sys::socket,
    table: *mut sys::poll_table_struct,
    _call: PhantomData<&'a ()>,
}

impl<'a> PollRequest<'a> {
    /// # Safety
    ///
    /// The arguments are those of a `poll` operation that runs for `'a`.
    pub(crate) unsafe fn new(
        file: *mut sys::file,
        socket: *mut sys::socket,
        table: *mut sys::poll_table_struct,
    ) -> Self {
        // INVARIANT: As promised by the caller.
        Self {
            file,
            socket,
            table,
            _call: PhantomData,
        }
    }

    /// Asks to be told when the socket's wait queue is woken. To be called before the state is
    /// looked at.
    pub fn register(&self) {
        // SAFETY: By the type invariant the pointers are valid.
        unsafe { sys::smc_rs_helper_poll_wait(self.file, self.socket, self.table) };
    }

    /// Notes that the poller waits for room to write, so that `SIGIO` is sent for it as well.
    ///
    /// The caller looks for room again afterwards: it may have come in between.
    pub fn note_no_space(&self) {
        // SAFETY: By the type invariant the socket is valid.
        unsafe { sys::smc_rs_helper_set_async_nospace(self.socket) };
    }

    /// The file being polled.
    pub(crate) fn file(&self) -> *mut sys::file {
        self.file
    }
}

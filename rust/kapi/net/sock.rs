// SPDX-License-Identifier: GPL-2.0

//! The protocol-independent part of a socket.
//!
//! C header: [`include/net/sock.h`](srctree/include/net/sock.h)

use super::{
    msg::flags,
    ns::Net,
    sockopt::OptIn,
    tcp::TcpSocket,
    wait::WaitQueueRef, //
};

use crate::sys;
use core::{
    marker::PhantomData,
    ptr::{
        addr_of,
        addr_of_mut,
        NonNull, //
    }, //
};
use kernel::{
    prelude::*,
    sync::aref::{
        ARef,
        AlwaysRefCounted, //
    },
    types::{
        NotThreadSafe,
        Opaque, //
    }, //
};

pub use super::wait::{
    exiting,
    interrupted,
    signal_pending,
    Waiter,
    FOREVER, //
};

/// Bits of [`Sock::shutdown_mask`].
pub mod shutdown {
    /// Nothing more is received.
    pub const RCV: u8 = 1;
    /// Nothing more is sent.
    pub const SEND: u8 = 2;
    /// Both.
    pub const BOTH: u8 = 3;
}

/// Which direction `shutdown` closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Receiving.
    Read,
    /// Sending.
    Write,
    /// Both.
    Both,
}

impl How {
    /// The argument of the system call.
    pub(crate) fn from_raw(how: c_int) -> Result<Self> {
        match how {
            0 => Ok(Self::Read),
            1 => Ok(Self::Write),
            2 => Ok(Self::Both),
            _ => Err(EINVAL),
        }
    }

    pub(crate) fn to_raw(self) -> c_int {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Both => 2,
        }
    }

    /// The bits this sets in [`Sock::shutdown_mask`].
    pub fn mask(self) -> u8 {
        match self {
            Self::Read => shutdown::RCV,
            Self::Write => shutdown::SEND,
            Self::Both => shutdown::BOTH,
        }
    }
}

/// Yes-or-no properties of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Flag {
    /// The socket is no longer connected to a file.
    Dead = sys::sock_flags_SOCK_DEAD as i32,
    /// Urgent data are delivered in line (`SO_OOBINLINE`).
    UrgInline = sys::sock_flags_SOCK_URGINLINE as i32,
    /// `SO_KEEPALIVE`.
    KeepOpen = sys::sock_flags_SOCK_KEEPOPEN as i32,
    /// `SO_LINGER` is on.
    Linger = sys::sock_flags_SOCK_LINGER as i32,
    /// Someone wants `SIGIO`.
    Fasync = sys::sock_flags_SOCK_FASYNC as i32,
    /// `SO_ZEROCOPY`.
    ZeroCopy = sys::sock_flags_SOCK_ZEROCOPY as i32,
}

/// A `struct sock`.
///
/// # Invariants
///
/// The reference count is above zero while a reference exists, and the structure was initialised
/// by `sock_init_data`.
#[repr(transparent)]
pub struct Sock(Opaque<sys::sock>);

/// A counted reference to a [`Sock`]. Dropping the last one destroys the socket, in whatever
/// context that happens.
pub type SockRef = ARef<Sock>;

// SAFETY: `sock_hold` and `sock_put` may be called from any thread.
unsafe impl Send for Sock {}
// SAFETY: The methods use atomic accesses or fields that do not change.
unsafe impl Sync for Sock {}

// SAFETY: `sock_hold` and `sock_put` count references.
unsafe impl AlwaysRefCounted for Sock {
    fn inc_ref(&self) {
        // SAFETY: By the type invariant the count is above zero.
        unsafe { sys::smc_rs_helper_sock_hold(self.as_ptr()) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller passes on a reference that `inc_ref` made.
        unsafe { sys::smc_rs_helper_sock_put(obj.cast().as_ptr()) };
    }
}

/// `READ_ONCE` of a field.
macro_rules! read {
    ($sk:expr, $($field:ident).+) => {{
        let sk = $sk.as_ptr();
        // SAFETY: The socket is valid by the type invariant.
        unsafe { addr_of!((*sk).$($field).+).read_volatile() }
    }};
}
pub(super) use read;

/// `WRITE_ONCE` of a field.
macro_rules! write {
    ($sk:expr, $($field:ident).+, $value:expr) => {{
        let sk = $sk.as_ptr();
        let value = $value;
        // SAFETY: The socket is valid by the type invariant, and all readers expect the field to
        // change under them.
        unsafe { addr_of_mut!((*sk).$($field).+).write_volatile(value) }
    }};
}

impl Sock {
    /// # Safety
    ///
    /// `ptr` fulfils the type invariant for `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *mut sys::sock) -> &'a Self {
        // SAFETY: `Sock` is a transparent wrapper, the rest is promised by the caller.
        unsafe { &*ptr.cast() }
    }

    /// The C structure.
    pub(crate) fn as_ptr(&self) -> *mut sys::sock {
        self.0.get()
    }

    /// Takes a reference.
    pub fn hold(&self) -> SockRef {
        self.into()
    }

    /// The namespace of the socket.
    pub fn net(&self) -> &Net {
        // SAFETY: A socket of user space counts as a reference to its namespace; one of the kernel
        // is closed by its owner before the namespace goes away.
        unsafe { Net::from_raw(sys::smc_rs_helper_sock_net(self.as_ptr())) }
    }

    /// Takes the socket lock. May sleep.
    ///
    /// Rank: outside every lock of a TCP socket below this one.
    pub fn lock(&self) -> SockGuard<'_> {
        // SAFETY: The socket is valid by the type invariant.
        unsafe { sys::smc_rs_helper_lock_sock(self.as_ptr()) };
        SockGuard {
            sk: self,
            _thread: PhantomData,
        }
    }

    /// The address family.
    pub fn family(&self) -> u16 {
        read!(self, __sk_common.skc_family)
    }

    /// The protocol number within the family.
    pub fn protocol(&self) -> u16 {
        read!(self, sk_protocol)
    }

    /// Changes the protocol number within the family.
    pub fn set_protocol(&self, protocol: u16) {
        write!(self, sk_protocol, protocol);
    }

    /// The state number, in the numbering of TCP.
    pub fn state(&self) -> u8 {
        read!(self, __sk_common.skc_state)
    }

    /// Sets the state number.
    pub fn set_state(&self, state: u8) {
        write!(self, __sk_common.skc_state, state);
    }

    /// The pending error as a positive number, 0 if there is none. Leaves it pending.
    pub fn err(&self) -> i32 {
        read!(self, sk_err)
    }

    /// The pending error, which is then no longer pending.
    pub fn take_err(&self) -> Result {
        if self.err() == 0 {
            return Ok(());
        }
        // SAFETY: The socket is valid by the type invariant.
        kernel::error::to_result(unsafe { sys::smc_rs_helper_sock_error(self.as_ptr()) })
    }

    /// Sets the pending error (positive number).
    pub fn set_err(&self, errno: i32) {
        write!(self, sk_err, errno);
    }

    /// Which directions are closed, see [`shutdown`].
    pub fn shutdown_mask(&self) -> u8 {
        read!(self, sk_shutdown)
    }

    /// Sets which directions are closed.
    pub fn set_shutdown(&self, mask: u8) {
        write!(self, sk_shutdown, mask);
    }

    /// How long a receive call waits, in jiffies.
    pub fn rcvtimeo(&self, nonblock: bool) -> c_long {
        if nonblock {
            0
        } else {
            read!(self, sk_rcvtimeo)
        }
    }

    /// How long a send call waits, in jiffies.
    pub fn sndtimeo(&self, nonblock: bool) -> c_long {
        if nonblock {
            0
        } else {
            read!(self, sk_sndtimeo)
        }
    }

    /// How many bytes a receive call for `len` bytes waits for, at least 1.
    pub fn rcvlowat(&self, waitall: bool, len: usize) -> usize {
        let low = usize::try_from(read!(self, sk_rcvlowat)).unwrap_or(1);
        let want = if waitall { len } else { low.min(len) };
        want.max(1)
    }

    /// Limit of the receive buffer in bytes.
    pub fn rcvbuf(&self) -> i32 {
        read!(self, sk_rcvbuf)
    }

    /// Sets the limit of the receive buffer.
    pub fn set_rcvbuf(&self, bytes: i32) {
        write!(self, sk_rcvbuf, bytes);
    }

    /// Limit of the send buffer in bytes.
    pub fn sndbuf(&self) -> i32 {
        read!(self, sk_sndbuf)
    }

    /// Sets the limit of the send buffer.
    pub fn set_sndbuf(&self, bytes: i32) {
        write!(self, sk_sndbuf, bytes);
    }

    /// Whether the user set the size of the send buffer.
    pub fn sndbuf_locked(&self) -> bool {
        u32::from(read!(self, sk_userlocks)) & sys::SOCK_SNDBUF_LOCK != 0
    }

    /// Whether the user set the size of the receive buffer.
    pub fn rcvbuf_locked(&self) -> bool {
        u32::from(read!(self, sk_userlocks)) & sys::SOCK_RCVBUF_LOCK != 0
    }

    /// How long closing waits for data to leave, in jiffies; `None` if it does not wait.
    pub fn linger(&self) -> Option<u64> {
        self.flag(Flag::Linger)
            .then(|| read!(self, sk_lingertime) as u64)
    }

    /// Tests a flag.
    pub fn flag(&self, flag: Flag) -> bool {
        // SAFETY: The socket is valid by the type invariant.
        unsafe { sys::smc_rs_helper_sock_flag(self.as_ptr(), flag as c_int) }
    }

    /// The user who made the socket, as seen in the socket's namespace.
    pub fn uid(&self) -> u32 {
        // SAFETY: The socket is valid by the type invariant.
        unsafe { sys::smc_rs_helper_sock_uid(self.as_ptr()) }
    }

    /// The inode number that `/proc/PID/fd` shows, 0 once the socket is closed.
    pub fn inode_number(&self) -> u64 {
        read!(self, sk_ino)
    }

    /// The mark set by `SO_MARK`.
    pub fn mark(&self) -> u32 {
        read!(self, sk_mark)
    }

    /// The interface set by `SO_BINDTODEVICE`, 0 for none.
    pub fn bound_ifindex(&self) -> i32 {
        read!(self, __sk_common.skc_bound_dev_if)
    }

    /// How many bytes behind the next one a peek begins, by `SO_PEEK_OFF`.
    pub fn peek_offset(&self) -> usize {
        usize::try_from(read!(self, sk_peek_off)).unwrap_or(0)
    }

    /// Bytes were read, or peeked at: where `SO_PEEK_OFF` is in use, the next peek begins behind them.
    /// Readers take turns.
    pub fn move_peek_offset(&self, bytes: usize, peeked: bool) {
        let offset = read!(self, sk_peek_off);
        if offset >= 0 {
            let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
            let moved = if peeked {
                offset.saturating_add(bytes)
            } else {
                offset.saturating_sub(bytes).max(0)
            };
            write!(self, sk_peek_off, moved);
        }
    }

    /// Takes over where peeks begin on `tcp`.
    pub fn copy_peek_offset(&self, tcp: &TcpSocket) {
        let offset = read!(tcp.sock(), sk_peek_off);
        if offset != read!(self, sk_peek_off) {
            write!(self, sk_peek_off, offset);
        }
    }

    /// Peeks begin at the head, and reads do not move where those of the user begin, while the
    /// result exists. What the user sets meanwhile counts afterwards.
    pub(super) fn suspend_peek_offset(&self) -> PeekOffsetPause<'_> {
        let offset = read!(self, sk_peek_off);
        if offset >= 0 {
            write!(self, sk_peek_off, -1);
        }
        PeekOffsetPause { sk: self, offset }
    }

    /// Applies a `SOL_SOCKET` option to this socket. May sleep.
    ///
    /// # Errors
    ///
    /// Those of `setsockopt`; `EBADF` if the socket was closed.
    pub fn set_socket_option(&self, name: i32, value: &OptIn<'_>) -> Result {
        let queue = WaitQueueRef::of(self)?;
        // SAFETY: `queue` keeps the socket alive.
        kernel::error::to_result(unsafe {
            sys::smc_rs_helper_socket_setsockopt(
                queue.socket,
                super::sockopt::SOL_SOCKET,
                name,
                value.as_ptr(),
                value.len(),
            )
        })
    }

    /// Takes over the `SOL_SOCKET` options that `tcp` has, as a socket returned by `accept` has
    /// those of its listener.
    pub fn copy_options_from(&self, tcp: &TcpSocket) {
        // SAFETY: Both sockets are valid; the fields of `self` are options that every reader
        // expects to change.
        unsafe { sys::smc_rs_helper_sock_copy_options(self.as_ptr(), tcp.sock().as_ptr()) };
    }
}

/// `SO_PEEK_OFF` is out of use.
pub(super) struct PeekOffsetPause<'a> {
    sk: &'a Sock,
    offset: c_int,
}

impl Drop for PeekOffsetPause<'_> {
    fn drop(&mut self) {
        if self.offset >= 0 && read!(self.sk, sk_peek_off) < 0 {
            write!(self.sk, sk_peek_off, self.offset);
        }
    }
}

/// The socket lock is held.
pub struct SockGuard<'a> {
    sk: &'a Sock,
    _thread: PhantomData<NotThreadSafe>,
}

impl Drop for SockGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: The guard shows that this thread holds the lock.
        unsafe { sys::smc_rs_helper_release_sock(self.sk.as_ptr()) };
    }
}

/// Turns a C return value, negative for an error, into a length.
pub(crate) fn to_len(ret: impl TryInto<isize>) -> Result<usize> {
    let ret = ret.try_into().map_err(|_| EOVERFLOW)?;
    if ret < 0 {
        // CAST: Error numbers fit.
        return Err(Error::from_errno(ret as c_int));
    }
    // CAST: Not negative.
    Ok(ret as usize)
}

/// Whether `MSG_*` flags forbid blocking.
pub fn nonblocking(msg_flags: u32) -> bool {
    msg_flags & flags::DONTWAIT != 0
}

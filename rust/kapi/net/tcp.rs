// SPDX-License-Identifier: GPL-2.0

//! TCP sockets that the kernel uses on behalf of a socket of another family.
//!
//! C headers: [`include/linux/net.h`](srctree/include/linux/net.h),
//! [`include/net/tcp.h`](srctree/include/net/tcp.h)

use super::{
    addr::{
        InetAddr,
        SockAddr,
        SockAddrStorage,
        Whose, //
    },
    ns::Net,
    sock::{
        to_len,
        How,
        Sock, //
    },
    sockopt::{
        OptIn,
        OptOut,
        SOL_TCP, //
    },
    tcp_events::{
        self,
        TcpEvents, //
    },
    tcp_queue::WaitSharing, //
};
use crate::sys;
use core::{
    ptr,
    sync::atomic::{
        AtomicBool,
        AtomicI32,
        Ordering, //
    }, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

pub use super::tcp_state::TcpState;

/// Length of the longest address of a TCP socket, in bytes.
const INET_LEN: usize = size_of::<sys::sockaddr_in6>();

const TCP_NODELAY: c_int = 1;
const TCP_SAVE_SYN: c_int = 27;

/// A TCP socket without file.
///
/// All methods may sleep unless they say otherwise. Dropping it closes the connection, in process
/// context.
///
/// # Invariants
///
/// `socket` is a TCP socket that only this value uses.
pub struct TcpSocket {
    pub(crate) socket: *mut sys::socket,
    pub(super) wait: Pin<KBox<WaitSharing>>,
    /// `TCP_SAVE_SYN` as the user wants it; only meaningful while `saves_syn`.
    user_save_syn: AtomicI32,
    /// Whether SYN packets are kept for [`TcpSocket::peer_offered_option`].
    saves_syn: AtomicBool,
}

// SAFETY: The socket layer does its own locking, and closing may happen on any thread.
unsafe impl Send for TcpSocket {}
// SAFETY: As above.
unsafe impl Sync for TcpSocket {}

impl TcpSocket {
    /// Makes a socket in `net` for the calling process, `family` being `AF_INET` or `AF_INET6`.
    /// The socket counts as a user of the namespace.
    ///
    /// # Errors
    ///
    /// Those of `socket`.
    pub fn create(net: &Net, family: u16) -> Result<Self> {
        let wait = WaitSharing::new()?;
        let mut socket = ptr::null_mut();
        // SAFETY: `socket` is valid for writing, the namespace is alive.
        to_result(unsafe {
            sys::__sock_create(
                net.as_ptr(),
                c_int::from(family),
                sys::sock_type_SOCK_STREAM as c_int,
                sys::IPPROTO_TCP as c_int,
                &mut socket,
                0,
            )
        })?;
        // INVARIANT: The socket is new.
        let me = Self {
            socket,
            wait,
            user_save_syn: AtomicI32::new(0),
            saves_syn: AtomicBool::new(false),
        };
        tcp_events::learn_defaults(me.sock());
        Ok(me)
    }

    /// The protocol-independent part.
    pub fn sock(&self) -> &Sock {
        // SAFETY: By the type invariant; `sk` stays until the socket is released in `drop`.
        unsafe { Sock::from_raw((*self.socket).sk) }
    }

    pub(crate) fn sk(&self) -> *mut sys::sock {
        self.sock().as_ptr()
    }

    /// The operations; an IPv6 socket may be turned into an IPv4 one at any time.
    pub(crate) fn ops(&self) -> &sys::proto_ops {
        // SAFETY: The socket has operations until it is released, and they are static data of a
        // module that the socket holds.
        unsafe { &*ptr::addr_of!((*self.socket).ops).read_volatile() }
    }

    /// `bind`.
    ///
    /// # Errors
    ///
    /// Those of the system call.
    pub fn bind(&self, addr: &SockAddr<'_>) -> Result {
        let bind = self.ops().bind.ok_or(EOPNOTSUPP)?;
        let (mut copy, len) = copy_of(addr);
        // SAFETY: The copy has room for every address TCP may look for.
        to_result(unsafe { bind(self.socket, copy.as_mut_ptr().cast(), len) })
    }

    /// `connect`.
    ///
    /// # Errors
    ///
    /// Those of the system call.
    pub fn connect(&self, addr: &SockAddr<'_>, nonblock: bool) -> Result {
        let (mut copy, len) = copy_of(addr);
        let flags = if nonblock {
            sys::O_NONBLOCK as c_int
        } else {
            0
        };
        let connect = self.ops().connect.ok_or(EOPNOTSUPP)?;
        let _queue = self.use_queue();
        // SAFETY: The copy has room for every address TCP may look for.
        to_result(unsafe { connect(self.socket, copy.as_mut_ptr().cast(), len, flags) })
    }

    /// `listen`.
    ///
    /// # Errors
    ///
    /// Those of the system call.
    pub fn listen(&self, backlog: i32) -> Result {
        let listen = self.ops().listen.ok_or(EOPNOTSUPP)?;
        // SAFETY: The socket is valid.
        to_result(unsafe { listen(self.socket, backlog) })
    }

    /// Takes a connection off the accept queue. Callbacks and option offers of the listener are
    /// not passed on.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if the queue is empty, else those of the system call.
    pub fn accept_nonblock(&self) -> Result<Self> {
        let wait = WaitSharing::new()?;
        let ops = self.ops();
        let accept = ops.accept.ok_or(EOPNOTSUPP)?;
        let mut socket = ptr::null_mut();
        // SAFETY: `socket` is valid for writing.
        to_result(unsafe {
            sys::sock_create_lite(
                c_int::from(self.sock().family()),
                sys::sock_type_SOCK_STREAM as c_int,
                sys::IPPROTO_TCP as c_int,
                &mut socket,
            )
        })?;
        let mut arg = sys::proto_accept_arg {
            flags: sys::O_NONBLOCK as c_int,
            ..pin_init::zeroed()
        };
        let _queue = self.use_queue();
        // SAFETY: `socket` is new and empty, `arg` is valid during the call.
        let result = to_result(unsafe { accept(self.socket, socket, &mut arg) });
        if let Err(error) = result {
            // SAFETY: `socket` is ours, without operations and `sk`.
            unsafe { sys::sock_release(socket) };
            return Err(error);
        }
        // SAFETY: `socket` is ours. It holds the module of the operations, as the listener does.
        unsafe {
            (*socket).ops = ops;
            sys::__module_get(ops.owner);
        }
        // INVARIANT: The socket is new.
        let me = Self {
            socket,
            wait,
            user_save_syn: AtomicI32::new(self.user_save_syn.load(Ordering::Relaxed)),
            saves_syn: AtomicBool::new(self.saves_syn.load(Ordering::Relaxed)),
        };
        tcp_events::restore_defaults(me.sock());
        Ok(me)
    }

    /// The local address, or that of the peer.
    ///
    /// # Errors
    ///
    /// `ENOTCONN` if there is no peer.
    pub fn getname(&self, whose: Whose) -> Result<SockAddrStorage> {
        let mut addr = SockAddrStorage::zeroed(0);
        let getname = self.ops().getname.ok_or(EOPNOTSUPP)?;
        // SAFETY: The storage has room for the largest address.
        let len = unsafe { getname(self.socket, addr.as_mut_ptr(), whose.to_raw()) };
        addr.set_len(to_len(len)?);
        Ok(addr)
    }

    fn inet_addr(&self, whose: Whose) -> Result<InetAddr> {
        let mut bytes = [0; INET_LEN];
        let getname = self.ops().getname.ok_or(EOPNOTSUPP)?;
        // SAFETY: A TCP socket has an IPv4 or IPv6 address, for which there is room.
        let len = unsafe { getname(self.socket, bytes.as_mut_ptr().cast(), whose.to_raw()) };
        let used = bytes.get(..to_len(len)?).ok_or(EINVAL)?;
        SockAddr::new(used).parse()
    }

    /// The local address.
    ///
    /// # Errors
    ///
    /// Those of [`TcpSocket::getname`].
    pub fn local_addr(&self) -> Result<InetAddr> {
        self.inet_addr(Whose::Own)
    }

    /// The address of the peer.
    ///
    /// # Errors
    ///
    /// Those of [`TcpSocket::getname`].
    pub fn peer_addr(&self) -> Result<InetAddr> {
        self.inet_addr(Whose::Peer)
    }

    /// The state of the connection. Any context.
    pub fn state(&self) -> TcpState {
        TcpState::from_raw(self.sock().state())
    }

    /// `setsockopt`, all levels.
    ///
    /// # Errors
    ///
    /// Those of the system call.
    pub fn setsockopt(&self, level: i32, name: i32, value: &OptIn<'_>) -> Result {
        // SAFETY: The socket is valid, the value is that of a running operation.
        to_result(unsafe {
            sys::smc_rs_helper_socket_setsockopt(
                self.socket,
                level,
                name,
                value.as_ptr(),
                value.len(),
            )
        })?;
        if (level, name) == (SOL_TCP, TCP_SAVE_SYN) {
            self.user_save_syn
                .store(value.read_i32().unwrap_or(0), Ordering::Relaxed);
            if self.saves_syn.load(Ordering::Relaxed) {
                return self.save_syn();
            }
        }
        Ok(())
    }

    /// Sets an option that is an integer.
    ///
    /// # Errors
    ///
    /// Those of the system call.
    pub fn set_option(&self, level: i32, name: i32, value: i32) -> Result {
        // SAFETY: The socket is valid.
        to_result(unsafe {
            sys::smc_rs_helper_socket_setsockopt_int(self.socket, level, name, value)
        })
    }

    /// `getsockopt`, all levels but `SOL_SOCKET`.
    ///
    /// # Errors
    ///
    /// Those of the system call.
    pub fn getsockopt(&self, level: i32, name: i32, value: &OptOut<'_>) -> Result {
        if (level, name) == (SOL_TCP, TCP_SAVE_SYN) {
            return value.write_i32(self.user_save_syn.load(Ordering::Relaxed));
        }
        // SAFETY: The socket is valid; user pointers are checked when they are used.
        to_result(unsafe {
            sys::smc_rs_helper_socket_getsockopt(
                self.socket,
                level,
                name,
                value.value(),
                value.len(),
            )
        })
    }

    /// Keeps the headers of SYN packets with the connections they lead to.
    pub(crate) fn save_syn(&self) -> Result {
        self.saves_syn.store(true, Ordering::Relaxed);
        let user = self.user_save_syn.load(Ordering::Relaxed);
        self.set_option(SOL_TCP, TCP_SAVE_SYN, if user > 0 { user } else { 1 })
    }

    /// Goes on saving SYN packets after [`TcpSocket::save_syn`], or pauses.
    pub(crate) fn keep_saving_syn(&self, on: bool) -> Result {
        self.set_option(SOL_TCP, TCP_SAVE_SYN, i32::from(on))
    }

    /// Whether the saved SYN of this connection is only for the kernel.
    pub(crate) fn saved_syn_is_ours(&self) -> bool {
        self.saves_syn.load(Ordering::Relaxed) && self.user_save_syn.load(Ordering::Relaxed) == 0
    }

    /// Sends small segments at once (`TCP_NODELAY`), or not.
    ///
    /// # Errors
    ///
    /// Those of `setsockopt`.
    pub fn set_nodelay(&self, on: bool) -> Result {
        self.set_option(SOL_TCP, TCP_NODELAY, i32::from(on))
    }

    /// Makes closing send a RST instead of a FIN, and throw away what was not sent.
    pub fn abort_on_close(&self) {
        // SAFETY: The socket is valid.
        unsafe { sys::sock_no_linger(self.sk()) };
    }

    /// Resets the connection: the peer gets a RST, and a call of the socket the error `ECONNABORTED`.
    /// What is reported to [`TcpEvents`] is reported before this returns.
    pub fn reset(&self) {
        // SAFETY: The socket is a valid TCP socket, which this thread has not locked.
        unsafe { sys::tcp_abort(self.sk(), -ECONNABORTED.to_errno()) };
    }

    /// Makes closing return at once, whatever `SO_LINGER` says; what was sent still goes out.
    pub fn close_without_lingering(&self) {
        let flag = sys::sock_flags_SOCK_LINGER as c_int;
        let _locked = self.sock().lock();
        // SAFETY: The socket is valid, and locked as changes of flags ask for.
        unsafe { sys::smc_rs_helper_sock_reset_flag(self.sk(), flag) };
    }

    /// `shutdown`.
    ///
    /// # Errors
    ///
    /// Those of the system call.
    pub fn shutdown(&self, how: How) -> Result {
        let shutdown = self.ops().shutdown.ok_or(EOPNOTSUPP)?;
        // SAFETY: The socket is valid.
        to_result(unsafe { shutdown(self.socket, how.to_raw()) })
    }

    /// Copies a pending error to `outer`, where user space looks for it, and wakes it.
    pub fn mirror_error_to(&self, outer: &Sock) {
        let errno = self.sock().err();
        if errno != 0 {
            outer.set_err(errno);
            outer.wake_error();
        }
    }

    /// Forgets a pending error if it is `errno` (positive). Returns whether it was.
    pub fn clear_err_if(&self, errno: i32) -> bool {
        self.sock().err() == errno && self.sock().take_err().is_err()
    }

    /// Whether packets of this connection go through an IPsec policy or state.
    pub fn has_ipsec_policy(&self) -> bool {
        // SAFETY: The socket is valid and a TCP socket.
        unsafe { sys::smc_rs_helper_tcp_has_ipsec_policy(self.sk()) }
    }

    /// Whether segments are signed (TCP-MD5 or TCP-AO).
    pub fn has_signature(&self) -> bool {
        // SAFETY: The socket is valid and a TCP socket.
        unsafe { sys::smc_rs_helper_tcp_has_signature(self.sk()) }
    }

    /// Whether the socket uses or may use TCP fast open.
    pub fn has_fastopen(&self) -> bool {
        // SAFETY: The socket is valid and a TCP socket.
        unsafe { sys::smc_rs_helper_tcp_has_fastopen(self.sk()) }
    }

    /// Whether the namespace lets clients use TCP fast open (`net.ipv4.tcp_fastopen`).
    pub fn may_fastopen(&self) -> bool {
        // SAFETY: The socket is valid.
        unsafe { sys::smc_rs_helper_tcp_may_fastopen(self.sk()) }
    }

    /// Whether `recvmsg()` tells how many bytes are left to read (`TCP_INQ`).
    pub fn reports_inq(&self) -> bool {
        // SAFETY: The socket is valid and a TCP socket.
        unsafe { sys::smc_rs_helper_tcp_reports_inq(self.sk()) }
    }

    /// Index of the interface the connection's packets leave through, `None` if there is no route.
    pub fn egress_ifindex(&self) -> Option<i32> {
        // SAFETY: The socket is valid.
        let ifindex = unsafe { sys::smc_rs_helper_tcp_egress_ifindex(self.sk()) };
        (ifindex > 0).then_some(ifindex)
    }

    /// Reports what happens on the connection to `events`, until [`TcpSocket::uninstall`] or until
    /// the socket is dropped.
    ///
    /// # Errors
    ///
    /// `EBUSY` if somebody else, such as a BPF program, has taken over the callbacks of the
    /// socket; `ENOMEM`.
    pub fn install<E: TcpEvents>(&self, events: Arc<E>) -> Result {
        tcp_events::install(self.sock(), events)
    }

    /// Ends reporting. When this returns no report is running or follows.
    ///
    /// Not to be called from a report.
    pub fn uninstall(&self) {
        tcp_events::uninstall(self.sock());
    }
}

impl Drop for TcpSocket {
    fn drop(&mut self) {
        // SAFETY: No requirements.
        unsafe { sys::smc_rs_helper_might_sleep() };
        tcp_events::unhook(self.sock());
        // SAFETY: By the type invariant nobody else uses the socket. Releasing it takes it off the
        // wait queue, whose memory `self.wait` holds until after.
        unsafe { sys::sock_release(self.socket) };
    }
}

/// The address as bytes TCP may change, and its length. TCP needs no more of a
/// longer address than fits.
fn copy_of(addr: &SockAddr<'_>) -> ([u8; INET_LEN], c_int) {
    let mut copy = [0; INET_LEN];
    for (to, from) in copy.iter_mut().zip(addr.as_bytes()) {
        *to = *from;
    }
    // CAST: The length is at most that of the array.
    (copy, addr.as_bytes().len().min(INET_LEN) as c_int)
}

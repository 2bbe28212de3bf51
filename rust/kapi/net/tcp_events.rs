// SPDX-License-Identifier: GPL-2.0

//! Callbacks of a TCP socket.
//!
//! TCP calls three functions in `struct sock` when data come, the state changes, or an error
//! occurs. They are replaced by functions that call the original, which wakes the waiters, and
//! then report to a [`TcpEvents`]. What they need is found through `sk_user_data`, which is marked
//! as not to be inherited; a socket cloned from a listener has the functions without the data, and
//! then only the originals are called.
//!
//! Locking: the three functions and `sk_user_data` are changed with `sk_callback_lock` held for
//! writing and used with it held for reading, so that none is running when the data are freed.
//!
//! C header: [`include/net/sock.h`](srctree/include/net/sock.h)

use super::sock::Sock;
use crate::sys;
use core::{
    mem,
    ptr::{
        self,
        addr_of,
        addr_of_mut, //
    },
    sync::atomic::{
        AtomicBool,
        AtomicU64,
        AtomicUsize,
        Ordering, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Is told what happens on a TCP connection.
///
/// Called in softirq or process context with the lock of the TCP socket held: must not sleep, nor
/// call methods of the socket that may. Waking others and queueing work is what it is for. Calls
/// may come at the same time on several CPUs and without anything new having happened.
pub trait TcpEvents: Send + Sync + 'static {
    /// There is something to read, or, on a listener, a connection to accept.
    fn data_ready(&self);

    /// The state of the connection changed.
    fn state_change(&self);

    /// There is a pending error.
    fn error_report(&self);

    /// The peer announced urgent data; `data_ready` is called as well.
    fn urgent(&self) {}
}

/// A C callback of a socket.
type Callback = unsafe extern "C" fn(*mut sys::sock);

/// Our pointer in `sk_user_data` has these bits. BPF, which may put its own there, does not.
const TAG: usize = sys::SK_USER_DATA_NOCOPY as usize | 8;
/// The socket offers the TCP option.
const OFFERS: usize = 16;
/// All bits that are not part of the pointer.
const BITS: usize = 31;

/// What `sk_user_data` points to.
#[repr(align(32))]
pub(crate) struct Hook {
    data_ready: Option<Callback>,
    state_change: Option<Callback>,
    error_report: Option<Callback>,
    /// Whom to report to. Guarded by `sk_callback_lock`.
    events: Option<Arc<dyn TcpEvents>>,
    /// Sequence number of the last urgent mark reported, with bit 32 set.
    urgent: AtomicU64,
    /// Whether the peer's answer to our SYN had the option.
    pub(crate) option_seen: AtomicBool,
}

/// The functions every TCP socket starts with, as addresses; 0 until the first socket is made.
static DEFAULTS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Remembers the functions of a new socket, which nobody has replaced yet.
pub(crate) fn learn_defaults(sock: &Sock) {
    let sk = sock.as_ptr();
    // SAFETY: The socket is valid.
    let found = unsafe {
        [
            (*sk).sk_data_ready,
            (*sk).sk_state_change,
            (*sk).sk_error_report,
        ]
    };
    for (slot, callback) in DEFAULTS.iter().zip(found) {
        slot.store(callback.map_or(0, |f| f as usize), Ordering::Relaxed);
    }
}

/// One of [`DEFAULTS`].
fn default_callback(index: usize) -> Option<Callback> {
    let address = DEFAULTS.get(index)?.load(Ordering::Relaxed);
    // SAFETY: `learn_defaults` stores either 0, which is `None`, or the address of a function of
    // this type.
    unsafe { mem::transmute::<usize, Option<Callback>>(address) }
}

/// Reads `sk_user_data` as a number.
fn user_data(sk: *mut sys::sock) -> usize {
    // SAFETY: The caller has a valid socket.
    unsafe { addr_of!((*sk).sk_user_data).read_volatile() as usize }
}

/// Our part of `sk_user_data`, null if it is not ours.
fn hook_of(sk: *mut sys::sock) -> *mut Hook {
    let data = user_data(sk);
    if data & BITS & !OFFERS == TAG {
        (data & !BITS) as *mut Hook
    } else {
        ptr::null_mut()
    }
}

/// Whether our functions are installed in `sk`, directly or by inheritance.
fn has_functions(sk: *mut sys::sock) -> bool {
    // SAFETY: The caller has a valid socket.
    let callback = unsafe { addr_of!((*sk).sk_state_change).read_volatile() };
    callback.map_or(0, |f| f as usize) == on_state_change as Callback as usize
}

/// Whether `sk` is one of ours and offers the TCP option. Takes no lock and follows no pointer.
///
/// # Safety
///
/// `sk` is a full socket whose memory is valid.
pub(crate) unsafe fn offers_option(sk: *mut sys::sock) -> bool {
    has_functions(sk) && {
        let data = user_data(sk);
        data & BITS == TAG | OFFERS
    }
}

/// Holds `sk_callback_lock` for reading.
struct ReadLock(*mut sys::sock);

impl ReadLock {
    fn new(sk: *mut sys::sock) -> Self {
        // SAFETY: The caller has a valid socket.
        unsafe { sys::smc_rs_helper_callback_read_lock(sk) };
        Self(sk)
    }

    /// What belongs to the socket, if it is ours.
    fn hook(&self) -> Option<&Hook> {
        // SAFETY: A hook is freed only after the lock was held for writing and the pointer was
        // cleared.
        unsafe { hook_of(self.0).as_ref() }
    }
}

impl Drop for ReadLock {
    fn drop(&mut self) {
        // SAFETY: Taken in `new`.
        unsafe { sys::smc_rs_helper_callback_read_unlock(self.0) };
    }
}

/// Holds `sk_callback_lock` for writing. Callbacks may take it, as they are called without it.
struct CallbackLock(*mut sys::sock);

impl CallbackLock {
    fn new(sock: &Sock) -> Self {
        let sk = sock.as_ptr();
        // SAFETY: The socket is valid.
        unsafe { sys::smc_rs_helper_callback_write_lock(sk) };
        Self(sk)
    }
}

impl Drop for CallbackLock {
    fn drop(&mut self) {
        // SAFETY: Taken in `new`.
        unsafe { sys::smc_rs_helper_callback_write_unlock(self.0) };
    }
}

/// Holds the socket lock, and `sk_callback_lock` for writing. Not in a callback, which TCP calls with the
/// socket lock held.
struct WriteLock(*mut sys::sock);

impl WriteLock {
    fn new(sock: &Sock) -> Self {
        let sk = sock.as_ptr();
        // SAFETY: The socket is valid.
        unsafe {
            sys::smc_rs_helper_lock_sock(sk);
            sys::smc_rs_helper_callback_write_lock(sk);
        }
        Self(sk)
    }

    /// What belongs to the socket, if it is ours.
    fn hook(&mut self) -> Option<&mut Hook> {
        // SAFETY: All users of a hook hold the lock.
        unsafe { hook_of(self.0).as_mut() }
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        // SAFETY: Taken in `new`.
        unsafe {
            sys::smc_rs_helper_callback_write_unlock(self.0);
            sys::smc_rs_helper_release_sock(self.0);
        }
    }
}

/// Makes sure that our functions and a hook are installed, and runs `f` on the hook.
///
/// # Errors
///
/// `EBUSY` if `sk_user_data` belongs to somebody else, `ENOMEM`.
fn with_hook<R>(sock: &Sock, f: impl FnOnce(&mut Hook) -> R) -> Result<R> {
    let mut spare = Some(KBox::new(
        Hook {
            data_ready: None,
            state_change: None,
            error_report: None,
            events: None,
            urgent: AtomicU64::new(0),
            option_seen: AtomicBool::new(false),
        },
        GFP_KERNEL,
    )?);
    let mut lock = WriteLock::new(sock);
    if lock.hook().is_none() {
        let sk = lock.0;
        if user_data(sk) != 0 {
            return Err(EBUSY);
        }
        let mut hook = spare.take().ok_or(ENOMEM)?;
        // SAFETY: The socket is valid, and its callbacks are guarded by the lock.
        unsafe {
            hook.data_ready = (*sk).sk_data_ready;
            hook.state_change = (*sk).sk_state_change;
            hook.error_report = (*sk).sk_error_report;
        }
        let data = KBox::into_raw(hook) as usize;
        debug_assert_eq!(data & BITS, 0);
        // SAFETY: As above; readers without the lock see either all old or a mix of functions that
        // all work without hook.
        unsafe {
            addr_of_mut!((*sk).sk_user_data).write_volatile((data | TAG) as *mut c_void);
            addr_of_mut!((*sk).sk_data_ready).write_volatile(Some(on_data_ready));
            addr_of_mut!((*sk).sk_state_change).write_volatile(Some(on_state_change));
            addr_of_mut!((*sk).sk_error_report).write_volatile(Some(on_error_report));
        }
    }
    let result = f(lock.hook().ok_or(EBUSY)?);
    drop(lock);
    Ok(result)
}

/// See [`super::TcpSocket::install`].
pub(crate) fn install<E: TcpEvents>(sock: &Sock, events: Arc<E>) -> Result {
    let events: Arc<dyn TcpEvents> = events;
    let old = with_hook(sock, |hook| hook.events.replace(events))?;
    drop(old);
    Ok(())
}

/// See [`super::TcpSocket::uninstall`].
pub(crate) fn uninstall(sock: &Sock) {
    let mut lock = WriteLock::new(sock);
    let old = lock.hook().and_then(|hook| hook.events.take());
    drop(lock);
    drop(old);
}

/// Starts or ends offering the TCP option.
///
/// # Errors
///
/// Those of [`with_hook`].
pub(crate) fn set_offer(sock: &Sock, on: bool) -> Result {
    with_hook(sock, |hook| {
        hook.option_seen.store(false, Ordering::Relaxed);
        let data = ptr::from_mut(hook) as usize | TAG | if on { OFFERS } else { 0 };
        // SAFETY: The socket is valid, its callbacks are locked, and the pointer stays the same.
        unsafe { addr_of_mut!((*sock.as_ptr()).sk_user_data).write_volatile(data as *mut c_void) };
    })
}

/// Whether the peer's answer had the option.
pub(crate) fn option_seen(sock: &Sock) -> bool {
    let lock = ReadLock::new(sock.as_ptr());
    lock.hook()
        .is_some_and(|hook| hook.option_seen.load(Ordering::Relaxed))
}

/// Notes whether the peer's answer to our SYN had the option. Any context.
///
/// # Safety
///
/// `sk` is a full socket whose memory is valid.
pub(crate) unsafe fn note_option(sk: *mut sys::sock, seen: bool) {
    let lock = ReadLock::new(sk);
    if let Some(hook) = lock.hook() {
        hook.option_seen.store(seen, Ordering::Relaxed);
    }
}

/// Takes hook and functions out again.
pub(crate) fn unhook(sock: &Sock) {
    let lock = WriteLock::new(sock);
    let sk = lock.0;
    let hook = hook_of(sk);
    let mut owned = None;
    let mut originals = [
        default_callback(0),
        default_callback(1),
        default_callback(2),
    ];
    if !hook.is_null() {
        // SAFETY: The pointer came from `KBox::into_raw`; with the lock held for writing nobody
        // uses it, and it is cleared below.
        let hook = unsafe { KBox::from_raw(hook) };
        originals = [hook.data_ready, hook.state_change, hook.error_report];
        owned = Some(hook);
        // SAFETY: The socket is valid and its callbacks are locked.
        unsafe { addr_of_mut!((*sk).sk_user_data).write_volatile(ptr::null_mut()) };
    }
    // SAFETY: The socket is valid and its callbacks are locked.
    unsafe { put_back(sk, originals) };
    drop(lock);
    drop(owned);
}

/// Gives a socket cloned from a listener the functions it would have without us, unless it has got a
/// hook of its own. Any context.
///
/// TCP calls `sk_state_change` of each clone before it queues it for `accept`, so that none keeps
/// them which TCP moves to another listener of the port.
pub(crate) fn restore_defaults(sock: &Sock) {
    if !has_functions(sock.as_ptr()) {
        return;
    }
    let lock = CallbackLock::new(sock);
    if !hook_of(lock.0).is_null() {
        return;
    }
    let defaults = [
        default_callback(0),
        default_callback(1),
        default_callback(2),
    ];
    // SAFETY: The socket is valid and its callbacks are locked.
    unsafe { put_back(lock.0, defaults) };
}

/// Replaces those of our functions that are in place.
///
/// # Safety
///
/// `sk` is valid and `sk_callback_lock` is held for writing.
unsafe fn put_back(sk: *mut sys::sock, with: [Option<Callback>; 3]) {
    // SAFETY: `sk` is valid as the caller promises, hence so are pointers to its fields.
    let places: [(*mut Option<Callback>, Callback); 3] = unsafe {
        [
            (addr_of_mut!((*sk).sk_data_ready), on_data_ready),
            (addr_of_mut!((*sk).sk_state_change), on_state_change),
            (addr_of_mut!((*sk).sk_error_report), on_error_report),
        ]
    };
    for ((place, ours), with) in places.into_iter().zip(with) {
        // SAFETY: Valid as above.
        let found = unsafe { place.read_volatile() };
        if found.map_or(0, |f| f as usize) == ours as usize {
            // SAFETY: Valid as above, and locked by the caller.
            unsafe { place.write_volatile(with) };
        }
    }
}

/// Calls the original function, then `report`.
///
/// # Safety
///
/// Called from a callback of `sk`.
unsafe fn dispatch(
    sk: *mut sys::sock,
    index: usize,
    original: impl FnOnce(&Hook) -> Option<Callback>,
    report: impl FnOnce(&Hook, &dyn TcpEvents),
) {
    let lock = ReadLock::new(sk);
    let hook = lock.hook();
    let inherited = hook.is_none();
    if let Some(callback) = hook.map_or_else(|| default_callback(index), original) {
        // SAFETY: The original callback of this socket, called as TCP calls it. It only wakes.
        unsafe { callback(sk) };
    }
    if let Some(hook) = hook {
        if let Some(events) = &hook.events {
            report(hook, &**events);
        }
    }
    drop(lock);
    if inherited {
        // SAFETY: The socket is valid while its callback runs.
        restore_defaults(unsafe { Sock::from_raw(sk) });
    }
}

/// # Safety
///
/// This and the functions below are called by TCP only.
unsafe extern "C" fn on_data_ready(sk: *mut sys::sock) {
    let report = |hook: &Hook, events: &dyn TcpEvents| {
        events.data_ready();
        let mut present = false;
        // SAFETY: The hook is only ever installed in TCP sockets.
        let mark = unsafe { sys::smc_rs_helper_tcp_urgent_mark(sk, &mut present) };
        let mark = u64::from(mark) | 1 << 32;
        if present && hook.urgent.swap(mark, Ordering::Relaxed) != mark {
            events.urgent();
        }
    };
    // SAFETY: This is a callback of `sk`.
    unsafe { dispatch(sk, 0, |hook| hook.data_ready, report) };
}

/// # Safety
///
/// Only TCP calls this, as a callback of `sk`.
unsafe extern "C" fn on_state_change(sk: *mut sys::sock) {
    // SAFETY: This is a callback of `sk`.
    unsafe {
        dispatch(
            sk,
            1,
            |hook| hook.state_change,
            |_, events| events.state_change(),
        )
    };
}

/// # Safety
///
/// Only TCP calls this, as a callback of `sk`.
unsafe extern "C" fn on_error_report(sk: *mut sys::sock) {
    // SAFETY: This is a callback of `sk`.
    unsafe {
        dispatch(
            sk,
            2,
            |hook| hook.error_report,
            |_, events| events.error_report(),
        )
    };
}

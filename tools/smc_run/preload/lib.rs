// SPDX-License-Identifier: GPL-2.0

//! `libsmc_preload.so`: a `socket()` that opens SMC sockets where the program asked for TCP.
//!
//! The dynamic linker loads this library into a program started by `smc_run`. Every
//! `AF_INET`/`AF_INET6` stream socket is then opened as `AF_SMC`; when the kernel refuses, the
//! program gets the TCP socket that it asked for. Settings come from the environment:
//!
//! * `SMC_SNDBUF`, `SMC_RCVBUF`: buffer sizes in bytes, set on every SMC socket,
//! * `SMC_FAMILY`: with `inet` sockets keep their family and get the protocol `IPPROTO_SMC` (256),
//! * `SMC_DEBUG`: any value but empty or `0` reports each decision on standard error.
//!
//! The hook takes no lock and allocates nothing, so it can run as the first action of many
//! threads, in a child after `fork()` and in a signal handler.

mod config;
mod hook;
mod message;

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use hook::{Kernel, SocketCall};

/// Signature of the C library's `socket()`.
type SocketFn = unsafe extern "C" fn(c_int, c_int, c_int) -> c_int;

/// The next `socket()` in the linker's search order, or null as long as it was not looked up.
static NEXT_SOCKET: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Looks the next `socket()` up before the program's own code runs.
extern "C" fn init() {
    next_socket();
    config::get();
}

#[used]
#[link_section = ".init_array"]
static INIT: extern "C" fn() = init;

/// Replaces the C library's `socket()`.
///
/// # Safety
///
/// None beyond the C function's: all arguments are plain numbers.
#[no_mangle]
pub unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let call = SocketCall {
        domain,
        kind,
        protocol,
    };
    hook::open(&Libc, config::get(), call)
}

/// Finds the next `socket()`; every thread that races here stores the same pointer.
fn next_socket() -> Option<SocketFn> {
    let mut next = NEXT_SOCKET.load(Ordering::Acquire);
    if next.is_null() {
        // SAFETY: the name is a NUL-terminated literal and RTLD_NEXT is a valid pseudo handle.
        next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"socket".as_ptr()) };
        NEXT_SOCKET.store(next, Ordering::Release);
    }
    if next.is_null() {
        return None;
    }
    // SAFETY: the non-null symbol `socket` is a function with the prototype of <sys/socket.h>.
    Some(unsafe { core::mem::transmute::<*mut c_void, SocketFn>(next) })
}

/// The real operating system behind the hook.
struct Libc;

impl Kernel for Libc {
    fn socket(&self, call: SocketCall) -> c_int {
        match next_socket() {
            // SAFETY: `socket` takes any three numbers and reports bad ones through errno.
            Some(next) => unsafe { next(call.domain, call.kind, call.protocol) },
            // No C library symbol to be found: the system call itself is always there.
            // SAFETY: as above.
            None => unsafe {
                libc::syscall(libc::SYS_socket, call.domain, call.kind, call.protocol) as c_int
            },
        }
    }

    fn set_int_option(&self, fd: c_int, option: c_int, value: c_int) -> bool {
        let length = size_of::<c_int>() as libc::socklen_t;
        // SAFETY: `value` lives until the call returns and `length` is its size.
        let result = unsafe {
            libc::setsockopt(
                fd,
                libc::SOL_SOCKET,
                option,
                (&raw const value).cast::<c_void>(),
                length,
            )
        };
        result == 0
    }

    fn errno(&self) -> c_int {
        // SAFETY: the C library returns the address of this thread's errno.
        unsafe { *libc::__errno_location() }
    }

    fn set_errno(&self, value: c_int) {
        // SAFETY: as in `errno`; nothing else holds a reference to it.
        unsafe { *libc::__errno_location() = value }
    }

    fn monotonic_seconds(&self) -> i64 {
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `now` is a valid timespec to write to.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut now) };
        now.tv_sec
    }

    fn report(&self, text: &[u8]) {
        // SAFETY: pointer and length describe `text`. A closed standard error is no matter.
        unsafe {
            libc::write(
                libc::STDERR_FILENO,
                text.as_ptr().cast::<c_void>(),
                text.len(),
            )
        };
    }
}

/// Reads an environment variable without copying it.
fn environment(name: &core::ffi::CStr) -> Option<&'static core::ffi::CStr> {
    // SAFETY: `name` is NUL-terminated.
    let value: *const c_char = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv returns a NUL-terminated string; it is read at once, before the program
    // can change its environment from the same thread.
    Some(unsafe { core::ffi::CStr::from_ptr(value) })
}

// SPDX-License-Identifier: GPL-2.0

//! The decision which socket to open, apart from the C library so that it can be tested.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI64, Ordering};

use crate::config::Config;
use crate::message::Line;

/// The socket family of SMC, from `<linux/socket.h>`.
pub(crate) const AF_SMC: c_int = 43;
/// SMC over an IPv4 TCP connection (`SMCPROTO_SMC`).
const SMCPROTO_SMC: c_int = 0;
/// SMC over an IPv6 TCP connection (`SMCPROTO_SMC6`).
const SMCPROTO_SMC6: c_int = 1;
/// SMC as a protocol of `AF_INET` and `AF_INET6`, from `<linux/in.h>`.
const IPPROTO_SMC: c_int = 256;
/// The part of the type argument that is no flag.
const TYPE_MASK: c_int = 0xf;
/// How long a missing family is believed to stay missing, in seconds. Asking makes the kernel
/// run `modprobe` every time, which is far dearer than opening a socket.
const ABSENT_SECONDS: i64 = 10;

/// The three arguments of `socket()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SocketCall {
    /// Protocol family.
    pub(crate) domain: c_int,
    /// Socket type, with `SOCK_NONBLOCK` and `SOCK_CLOEXEC`.
    pub(crate) kind: c_int,
    /// Protocol inside the family.
    pub(crate) protocol: c_int,
}

/// What the hook needs from the operating system.
pub(crate) trait Kernel {
    /// Opens a socket; -1 and errno on failure.
    fn socket(&self, call: SocketCall) -> c_int;
    /// Sets a `SOL_SOCKET` option; false on failure.
    fn set_int_option(&self, fd: c_int, option: c_int, value: c_int) -> bool;
    /// This thread's errno.
    fn errno(&self) -> c_int;
    /// Changes this thread's errno.
    fn set_errno(&self, value: c_int);
    /// A clock that never goes back.
    fn monotonic_seconds(&self) -> i64;
    /// Writes one line for the user.
    fn report(&self, text: &[u8]);
}

/// Before this second (monotonic) the kernel is not asked for `AF_SMC` again.
static ASK_AGAIN_AT: AtomicI64 = AtomicI64::new(i64::MIN);

/// Opens the socket that `call` asks for, as SMC where that is possible.
///
/// Any failure to get an SMC socket leads to the socket asked for, so an error that the program
/// sees is always the one that it would see without this library.
pub(crate) fn open<K: Kernel>(kernel: &K, config: Config, call: SocketCall) -> c_int {
    open_remembering(kernel, config, call, &ASK_AGAIN_AT)
}

fn open_remembering<K: Kernel>(
    kernel: &K,
    config: Config,
    call: SocketCall,
    ask_again_at: &AtomicI64,
) -> c_int {
    let Some(smc_call) = smc_equivalent(call, config.inet) else {
        return kernel.socket(call);
    };
    let errno_before = kernel.errno();
    if kernel.monotonic_seconds() < ask_again_at.load(Ordering::Relaxed) {
        return open_tcp(kernel, config, call, libc::EAFNOSUPPORT);
    }
    let fd = kernel.socket(smc_call);
    if fd < 0 {
        let error = kernel.errno();
        // Which one says that there is no SMC depends on what was asked for.
        if matches!(error, libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT) {
            let until = kernel.monotonic_seconds().saturating_add(ABSENT_SECONDS);
            ask_again_at.store(until, Ordering::Relaxed);
        }
        kernel.set_errno(errno_before);
        return open_tcp(kernel, config, call, error);
    }
    set_buffer(kernel, config, fd, &SEND, config.sndbuf);
    set_buffer(kernel, config, fd, &RECEIVE, config.rcvbuf);
    if config.debug {
        report(kernel, format_args!("socket {fd} is an SMC socket"));
    }
    kernel.set_errno(errno_before);
    fd
}

/// The SMC socket to open instead, or `None` when the program did not ask for TCP.
fn smc_equivalent(call: SocketCall, inet: bool) -> Option<SocketCall> {
    let (domain, protocol) = match call.domain {
        libc::AF_INET | libc::AF_INET6 if inet => (call.domain, IPPROTO_SMC),
        libc::AF_INET => (AF_SMC, SMCPROTO_SMC),
        libc::AF_INET6 => (AF_SMC, SMCPROTO_SMC6),
        _ => return None,
    };
    let is_tcp = call.kind & TYPE_MASK == libc::SOCK_STREAM
        && (call.protocol == 0 || call.protocol == libc::IPPROTO_TCP);
    is_tcp.then_some(SocketCall {
        domain,
        kind: call.kind,
        protocol,
    })
}

fn open_tcp<K: Kernel>(kernel: &K, config: Config, call: SocketCall, reason: c_int) -> c_int {
    let fd = kernel.socket(call);
    if config.debug {
        let errno = kernel.errno();
        let why = explain(reason);
        report(
            kernel,
            format_args!("socket {fd} is a TCP socket, because {why} (error {reason})"),
        );
        kernel.set_errno(errno);
    }
    fd
}

/// Says in words why the kernel gave no SMC socket.
fn explain(error: c_int) -> &'static str {
    match error {
        libc::EAFNOSUPPORT => "the kernel has no SMC (load the module smc_rs)",
        libc::EPROTONOSUPPORT | libc::ESOCKTNOSUPPORT => "the kernel's SMC lacks this protocol",
        libc::ENOBUFS | libc::ENOMEM => "the kernel had no memory for an SMC socket",
        libc::EPERM | libc::EACCES => "a security policy forbids SMC sockets",
        libc::EMFILE | libc::ENFILE => "no file descriptor was left",
        _ => "the kernel refused an SMC socket",
    }
}

/// The two options that set one buffer's size.
struct BufferOption {
    name: &'static str,
    /// Above the limit of `net.core`, for the privileged.
    forced: c_int,
    /// Up to the limit of `net.core`.
    plain: c_int,
}

const SEND: BufferOption = BufferOption {
    name: "send",
    forced: libc::SO_SNDBUFFORCE,
    plain: libc::SO_SNDBUF,
};

const RECEIVE: BufferOption = BufferOption {
    name: "receive",
    forced: libc::SO_RCVBUFFORCE,
    plain: libc::SO_RCVBUF,
};

fn set_buffer<K: Kernel>(kernel: &K, config: Config, fd: c_int, option: &BufferOption, size: i32) {
    if size == 0 || kernel.set_int_option(fd, option.forced, size) {
        return;
    }
    if !kernel.set_int_option(fd, option.plain, size) && config.debug {
        let name = option.name;
        report(
            kernel,
            format_args!("socket {fd} keeps its default {name} buffer: {size} bytes were refused"),
        );
    }
}

fn report<K: Kernel>(kernel: &K, text: core::fmt::Arguments<'_>) {
    kernel.report(Line::new(format_args!("libsmc_preload: {text}")).as_bytes());
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// A kernel that answers `AF_SMC` as told and records what it was asked.
    #[derive(Default)]
    struct Fake {
        smc_error: c_int,
        tcp_error: c_int,
        refuse_forced: bool,
        errno: Cell<c_int>,
        now: Cell<i64>,
        calls: RefCell<Vec<SocketCall>>,
        options: RefCell<Vec<(c_int, c_int)>>,
        lines: RefCell<String>,
    }

    impl Kernel for Fake {
        fn socket(&self, call: SocketCall) -> c_int {
            self.calls.borrow_mut().push(call);
            let error = if call.domain == AF_SMC {
                self.smc_error
            } else {
                self.tcp_error
            };
            if error == 0 {
                return 5;
            }
            self.errno.set(error);
            -1
        }

        fn set_int_option(&self, _fd: c_int, option: c_int, value: c_int) -> bool {
            let forced = option == libc::SO_SNDBUFFORCE || option == libc::SO_RCVBUFFORCE;
            if forced && self.refuse_forced {
                self.errno.set(libc::EPERM);
                return false;
            }
            self.options.borrow_mut().push((option, value));
            true
        }

        fn errno(&self) -> c_int {
            self.errno.get()
        }

        fn set_errno(&self, value: c_int) {
            self.errno.set(value);
        }

        fn monotonic_seconds(&self) -> i64 {
            self.now.get()
        }

        fn report(&self, text: &[u8]) {
            self.errno.set(libc::EBADF);
            self.lines
                .borrow_mut()
                .push_str(&String::from_utf8_lossy(text));
        }
    }

    fn call(domain: c_int, kind: c_int, protocol: c_int) -> SocketCall {
        SocketCall {
            domain,
            kind,
            protocol,
        }
    }

    fn run(kernel: &Fake, config: Config, asked: SocketCall) -> c_int {
        open_remembering(kernel, config, asked, &AtomicI64::new(i64::MIN))
    }

    const DEBUG: Config = Config {
        sndbuf: 0,
        rcvbuf: 0,
        inet: false,
        debug: true,
    };

    #[test]
    fn sockets_keep_their_family_when_asked_to() {
        let config = Config {
            inet: true,
            ..Config::default()
        };
        for domain in [libc::AF_INET, libc::AF_INET6] {
            let kernel = Fake::default();
            let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
            assert_eq!(run(&kernel, config, call(domain, kind, 6)), 5);
            assert_eq!(*kernel.calls.borrow(), [call(domain, kind, 256)]);
        }
    }

    #[test]
    fn tcp_sockets_become_smc_sockets_with_their_flags() {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        for (domain, smc_protocol) in [(libc::AF_INET, 0), (libc::AF_INET6, 1)] {
            for protocol in [0, libc::IPPROTO_TCP] {
                for flag in [0, libc::SOCK_NONBLOCK, libc::SOCK_CLOEXEC, flags] {
                    let kernel = Fake::default();
                    let kind = libc::SOCK_STREAM | flag;
                    assert_eq!(
                        run(&kernel, Config::default(), call(domain, kind, protocol)),
                        5
                    );
                    assert_eq!(*kernel.calls.borrow(), [call(AF_SMC, kind, smc_protocol)]);
                }
            }
        }
    }

    #[test]
    fn other_sockets_pass_unchanged() {
        for asked in [
            call(libc::AF_INET, libc::SOCK_DGRAM, 0),
            call(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
            call(libc::AF_INET, libc::SOCK_SEQPACKET, libc::IPPROTO_SCTP),
            call(libc::AF_INET6, libc::SOCK_STREAM, libc::IPPROTO_MPTCP),
            call(libc::AF_UNIX, libc::SOCK_STREAM, 0),
            call(AF_SMC, libc::SOCK_STREAM, 0),
        ] {
            let kernel = Fake::default();
            assert_eq!(run(&kernel, Config::default(), asked), 5);
            assert_eq!(*kernel.calls.borrow(), [asked]);
        }
    }

    #[test]
    fn any_refusal_ends_in_the_socket_asked_for() {
        for error in [
            libc::EAFNOSUPPORT,
            libc::EPROTONOSUPPORT,
            libc::ESOCKTNOSUPPORT,
            libc::ENOBUFS,
            libc::ENOMEM,
            libc::EPERM,
            libc::EINVAL,
        ] {
            let kernel = Fake {
                smc_error: error,
                errno: Cell::new(libc::EINTR),
                ..Fake::default()
            };
            let asked = call(libc::AF_INET, libc::SOCK_STREAM, 0);
            assert_eq!(run(&kernel, Config::default(), asked), 5);
            assert_eq!(kernel.calls.borrow().last(), Some(&asked));
            assert_eq!(kernel.errno.get(), libc::EINTR, "errno must stay as it was");
        }
    }

    #[test]
    fn the_error_seen_is_that_of_tcp() {
        let kernel = Fake {
            smc_error: libc::ENOBUFS,
            tcp_error: libc::EMFILE,
            ..Fake::default()
        };
        assert_eq!(
            run(&kernel, DEBUG, call(libc::AF_INET, libc::SOCK_STREAM, 0)),
            -1
        );
        assert_eq!(kernel.errno.get(), libc::EMFILE);
    }

    #[test]
    fn a_missing_family_is_asked_for_again_only_later() {
        let kernel = Fake {
            smc_error: libc::EAFNOSUPPORT,
            ..Fake::default()
        };
        let memory = AtomicI64::new(i64::MIN);
        let asked = call(libc::AF_INET, libc::SOCK_STREAM, 0);
        let attempts = |now: i64| {
            kernel.now.set(now);
            kernel.calls.borrow_mut().clear();
            assert_eq!(
                open_remembering(&kernel, Config::default(), asked, &memory),
                5
            );
            kernel.calls.borrow().len()
        };
        assert_eq!(attempts(100), 2);
        assert_eq!(attempts(100 + ABSENT_SECONDS - 1), 1);
        assert_eq!(attempts(100 + ABSENT_SECONDS), 2);
    }

    #[test]
    fn buffer_sizes_are_set_on_smc_sockets() {
        let config = Config {
            sndbuf: 65_536,
            rcvbuf: 131_072,
            ..Config::default()
        };
        let asked = call(libc::AF_INET, libc::SOCK_STREAM, 0);
        let kernel = Fake::default();
        run(&kernel, config, asked);
        assert_eq!(
            *kernel.options.borrow(),
            [
                (libc::SO_SNDBUFFORCE, 65_536),
                (libc::SO_RCVBUFFORCE, 131_072)
            ]
        );
        let kernel = Fake {
            refuse_forced: true,
            ..Fake::default()
        };
        run(&kernel, config, asked);
        assert_eq!(
            *kernel.options.borrow(),
            [(libc::SO_SNDBUF, 65_536), (libc::SO_RCVBUF, 131_072)]
        );
        assert_eq!(kernel.errno.get(), 0, "errno must stay as it was");
    }

    #[test]
    fn debugging_says_what_happened_and_keeps_errno() {
        let asked = call(libc::AF_INET, libc::SOCK_STREAM, 0);
        let kernel = Fake::default();
        run(&kernel, DEBUG, asked);
        assert_eq!(
            *kernel.lines.borrow(),
            "libsmc_preload: socket 5 is an SMC socket\n"
        );
        assert_eq!(kernel.errno.get(), 0);
        let kernel = Fake {
            smc_error: libc::EAFNOSUPPORT,
            ..Fake::default()
        };
        run(&kernel, DEBUG, asked);
        let lines = kernel.lines.borrow();
        assert!(lines.contains("TCP socket"), "{lines}");
        assert!(lines.contains("load the module smc_rs"), "{lines}");
        assert_eq!(kernel.errno.get(), 0);
    }
}

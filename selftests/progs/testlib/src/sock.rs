// SPDX-License-Identifier: GPL-2.0

//! Stream sockets of every family under test, as thin as the system calls.

pub use crate::addr::{Family, RawAddr, AF_SMC};
use crate::opts::{check, Value, SIOCOUTQNSD};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Turns a system call's return value into a result.
///
/// # Errors
///
/// The current `errno` when the value is -1.
pub(crate) fn cvt(ret: isize) -> io::Result<usize> {
    if ret < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(ret as usize)
    }
}

/// Calls `socket(2)` with exactly these arguments.
///
/// # Errors
///
/// The error of the system call.
pub fn raw_socket(domain: i32, ty: i32, protocol: i32) -> io::Result<Sock> {
    // SAFETY: socket() takes no pointers.
    let fd = cvt(unsafe { libc::socket(domain, ty, protocol) } as isize)?;
    // SAFETY: the descriptor was just returned to us and nobody else knows it.
    Ok(Sock(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
}

/// Calls `socketpair(2)`, only to see its error.
///
/// # Errors
///
/// The error of the system call.
pub fn raw_socketpair(domain: i32, ty: i32, protocol: i32) -> io::Result<(Sock, Sock)> {
    let mut fds = [0; 2];
    // SAFETY: the array has room for the two descriptors.
    cvt(unsafe { libc::socketpair(domain, ty, protocol, fds.as_mut_ptr()) } as isize)?;
    // SAFETY: both descriptors were just returned to us.
    Ok(unsafe {
        (
            Sock(OwnedFd::from_raw_fd(fds[0])),
            Sock(OwnedFd::from_raw_fd(fds[1])),
        )
    })
}

/// One open stream socket.
#[derive(Debug)]
pub struct Sock(OwnedFd);

impl AsRawFd for Sock {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Sock {
    /// A blocking socket that is closed on exec.
    ///
    /// # Errors
    ///
    /// The error of `socket(2)`.
    pub fn new(family: Family) -> io::Result<Sock> {
        Sock::with_flags(family, libc::SOCK_CLOEXEC)
    }

    /// A socket with the given `SOCK_*` flags.
    ///
    /// # Errors
    ///
    /// The error of `socket(2)`.
    pub fn with_flags(family: Family, flags: i32) -> io::Result<Sock> {
        let (domain, protocol) = family.domain_and_protocol();
        raw_socket(domain, libc::SOCK_STREAM | flags, protocol)
    }

    /// Takes over a descriptor, for example one received from another process.
    pub fn from_owned(fd: OwnedFd) -> Sock {
        Sock(fd)
    }

    /// Binds to an address.
    ///
    /// # Errors
    ///
    /// The error of `bind(2)`.
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        self.bind_raw(&RawAddr::from(addr))
    }

    /// Binds to an address of any shape.
    ///
    /// # Errors
    ///
    /// The error of `bind(2)`.
    pub fn bind_raw(&self, addr: &RawAddr) -> io::Result<()> {
        // SAFETY: the pointer is valid for sockaddr_storage, which is at least `len` bytes.
        cvt(unsafe { libc::bind(self.as_raw_fd(), addr.ptr(), addr.len) } as isize).map(drop)
    }

    /// Starts listening.
    ///
    /// # Errors
    ///
    /// The error of `listen(2)`.
    pub fn listen(&self, backlog: i32) -> io::Result<()> {
        // SAFETY: no pointers.
        cvt(unsafe { libc::listen(self.as_raw_fd(), backlog) } as isize).map(drop)
    }

    /// A listener with `SO_REUSEADDR` on an address of this family.
    ///
    /// # Errors
    ///
    /// The error of the call that failed.
    pub fn listener(family: Family, ip: IpAddr, port: u16, backlog: i32) -> io::Result<Sock> {
        let sock = Sock::new(family)?;
        sock.set_int(libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        sock.bind(SocketAddr::new(ip, port))?;
        sock.listen(backlog)?;
        Ok(sock)
    }

    /// Accepts a connection with the given `SOCK_*` flags.
    ///
    /// # Errors
    ///
    /// The error of `accept4(2)`.
    pub fn accept(&self, flags: i32) -> io::Result<(Sock, RawAddr)> {
        let mut addr = RawAddr::empty();
        // SAFETY: `addr.len` says how much room the storage has.
        let fd = cvt(unsafe {
            libc::accept4(
                self.as_raw_fd(),
                (&raw mut addr.storage).cast(),
                &raw mut addr.len,
                flags,
            )
        } as isize)?;
        // SAFETY: the descriptor was just returned to us.
        Ok((Sock(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }), addr))
    }

    /// Connects to an address.
    ///
    /// # Errors
    ///
    /// The error of `connect(2)`.
    pub fn connect(&self, addr: SocketAddr) -> io::Result<()> {
        self.connect_raw(&RawAddr::from(addr))
    }

    /// Connects to an address of any shape.
    ///
    /// # Errors
    ///
    /// The error of `connect(2)`.
    pub fn connect_raw(&self, addr: &RawAddr) -> io::Result<()> {
        // SAFETY: the pointer is valid for sockaddr_storage, which is at least `len` bytes.
        cvt(unsafe { libc::connect(self.as_raw_fd(), addr.ptr(), addr.len) } as isize).map(drop)
    }

    /// Sends bytes; `MSG_NOSIGNAL` is not added.
    ///
    /// # Errors
    ///
    /// The error of `send(2)`.
    pub fn send(&self, data: &[u8], flags: i32) -> io::Result<usize> {
        // SAFETY: pointer and length describe the slice.
        cvt(unsafe { libc::send(self.as_raw_fd(), data.as_ptr().cast(), data.len(), flags) })
    }

    /// Sends to an address, as `MSG_FASTOPEN` needs.
    ///
    /// # Errors
    ///
    /// The error of `sendto(2)`.
    pub fn send_to(&self, data: &[u8], flags: i32, addr: SocketAddr) -> io::Result<usize> {
        let raw = RawAddr::from(addr);
        // SAFETY: both pointer and length pairs describe live objects.
        cvt(unsafe {
            libc::sendto(
                self.as_raw_fd(),
                data.as_ptr().cast(),
                data.len(),
                flags,
                raw.ptr(),
                raw.len,
            )
        })
    }

    /// Sends from a raw address, which may be invalid on purpose.
    ///
    /// # Errors
    ///
    /// The error of `send(2)`.
    pub fn send_from_address(&self, addr: usize, len: usize, flags: i32) -> io::Result<usize> {
        // SAFETY: the kernel only reads from the address and checks every access.
        cvt(unsafe { libc::send(self.as_raw_fd(), addr as *const libc::c_void, len, flags) })
    }

    /// Receives bytes.
    ///
    /// # Errors
    ///
    /// The error of `recv(2)`.
    pub fn recv(&self, data: &mut [u8], flags: i32) -> io::Result<usize> {
        // SAFETY: pointer and length describe the slice.
        cvt(unsafe {
            libc::recv(
                self.as_raw_fd(),
                data.as_mut_ptr().cast(),
                data.len(),
                flags,
            )
        })
    }

    /// Receives into a null pointer, only to see the error.
    ///
    /// # Errors
    ///
    /// The error of `recv(2)`.
    pub fn recv_into_null(&self, len: usize, flags: i32) -> io::Result<usize> {
        // SAFETY: the kernel refuses to write to the null page, so no memory changes.
        cvt(unsafe { libc::recv(self.as_raw_fd(), std::ptr::null_mut(), len, flags) })
    }

    /// Sends the whole slice on a blocking socket, without `SIGPIPE`.
    ///
    /// # Errors
    ///
    /// The error of `send(2)`, or `WriteZero`.
    pub fn send_all(&self, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            match self.send(data, libc::MSG_NOSIGNAL) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => data = &data[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Fills the whole slice from a blocking socket.
    ///
    /// # Errors
    ///
    /// The error of `recv(2)`, or `UnexpectedEof`.
    pub fn recv_exact(&self, data: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < data.len() {
            match self.recv(&mut data[done..], 0) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Shuts one or both directions down (`SHUT_*`).
    ///
    /// # Errors
    ///
    /// The error of `shutdown(2)`.
    pub fn shutdown(&self, how: i32) -> io::Result<()> {
        // SAFETY: no pointers.
        cvt(unsafe { libc::shutdown(self.as_raw_fd(), how) } as isize).map(drop)
    }

    /// The local address as the kernel returns it.
    ///
    /// # Errors
    ///
    /// The error of `getsockname(2)`.
    pub fn name_raw(&self) -> io::Result<RawAddr> {
        let mut a = RawAddr::empty();
        // SAFETY: `a.len` says how much room the storage has.
        cvt(unsafe {
            libc::getsockname(
                self.as_raw_fd(),
                (&raw mut a.storage).cast(),
                &raw mut a.len,
            )
        } as isize)?;
        Ok(a)
    }

    /// The peer's address as the kernel returns it.
    ///
    /// # Errors
    ///
    /// The error of `getpeername(2)`.
    pub fn peer_raw(&self) -> io::Result<RawAddr> {
        let mut a = RawAddr::empty();
        // SAFETY: `a.len` says how much room the storage has.
        cvt(unsafe {
            libc::getpeername(
                self.as_raw_fd(),
                (&raw mut a.storage).cast(),
                &raw mut a.len,
            )
        } as isize)?;
        Ok(a)
    }

    /// The local address.
    ///
    /// # Errors
    ///
    /// The error of `getsockname(2)` or of decoding.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.name_raw()?.decode()
    }

    /// Sets an integer option.
    ///
    /// # Errors
    ///
    /// The error of `setsockopt(2)`.
    pub fn set_int(&self, level: i32, name: i32, value: i32) -> io::Result<()> {
        self.set_bytes(level, name, &value.to_ne_bytes())
    }

    /// Sets an option from bytes.
    ///
    /// # Errors
    ///
    /// The error of `setsockopt(2)`.
    pub fn set_bytes(&self, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
        check(self.as_raw_fd(), Value::Set(level, name, value)).map(drop)
    }

    /// Reads an integer option.
    ///
    /// # Errors
    ///
    /// The error of `getsockopt(2)`.
    pub fn int(&self, level: i32, name: i32) -> io::Result<i32> {
        let mut buf = [0u8; 4];
        check(self.as_raw_fd(), Value::Get(level, name, &mut buf, 4))?;
        Ok(i32::from_ne_bytes(buf))
    }

    /// Reads an option, telling the kernel `optlen`, however wrong.
    ///
    /// # Errors
    ///
    /// The error of `getsockopt(2)`.
    pub fn get_bytes(
        &self,
        level: i32,
        name: i32,
        buf: &mut [u8],
        optlen: i32,
    ) -> io::Result<usize> {
        check(self.as_raw_fd(), Value::Get(level, name, buf, optlen))
    }

    /// Reads and so clears `SO_ERROR`.
    ///
    /// # Errors
    ///
    /// The error of `getsockopt(2)`.
    pub fn take_error(&self) -> io::Result<i32> {
        self.int(libc::SOL_SOCKET, libc::SO_ERROR)
    }

    /// Sets a receive or send time-out (`SO_RCVTIMEO`, `SO_SNDTIMEO`).
    ///
    /// # Errors
    ///
    /// The error of `setsockopt(2)`.
    pub fn set_timeout(&self, name: i32, time: Duration) -> io::Result<()> {
        let mut bytes = [0u8; 16];
        bytes[..8].copy_from_slice(&(time.as_secs() as i64).to_ne_bytes());
        bytes[8..].copy_from_slice(&i64::from(time.subsec_micros()).to_ne_bytes());
        self.set_bytes(libc::SOL_SOCKET, name, &bytes)
    }

    /// Sets `SO_LINGER`.
    ///
    /// # Errors
    ///
    /// The error of `setsockopt(2)`.
    pub fn set_linger(&self, on: bool, seconds: i32) -> io::Result<()> {
        let mut bytes = [0u8; 8];
        bytes[..4].copy_from_slice(&i32::from(on).to_ne_bytes());
        bytes[4..].copy_from_slice(&seconds.to_ne_bytes());
        self.set_bytes(libc::SOL_SOCKET, libc::SO_LINGER, &bytes)
    }

    /// Bytes that were written and not yet sent.
    ///
    /// # Errors
    ///
    /// The error of `ioctl(2)`.
    pub fn unsent(&self) -> io::Result<i32> {
        self.ioctl_int(SIOCOUTQNSD)
    }

    /// Switches blocking mode.
    ///
    /// # Errors
    ///
    /// The error of `fcntl(2)`.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        let flags = self.fcntl(libc::F_GETFL, 0)?;
        let flags = if on {
            flags | libc::O_NONBLOCK
        } else {
            flags & !libc::O_NONBLOCK
        };
        self.fcntl(libc::F_SETFL, flags).map(drop)
    }

    /// Calls `fcntl(2)` with an integer argument.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn fcntl(&self, cmd: i32, arg: i32) -> io::Result<i32> {
        // SAFETY: only commands with integer arguments are passed by the tests.
        cvt(unsafe { libc::fcntl(self.as_raw_fd(), cmd, arg) } as isize).map(|v| v as i32)
    }

    /// Calls an `ioctl(2)` that returns an integer through a pointer.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn ioctl_int(&self, request: libc::c_ulong) -> io::Result<i32> {
        let mut value: i32 = 0;
        // SAFETY: the requests used by the tests write one int.
        cvt(unsafe { libc::ioctl(self.as_raw_fd(), request, &raw mut value) } as isize)?;
        Ok(value)
    }

    /// A second descriptor for the same open socket.
    ///
    /// # Errors
    ///
    /// The error of `dup(2)`.
    pub fn dup(&self) -> io::Result<Sock> {
        Ok(Sock(self.0.try_clone()?))
    }

    /// Closes the descriptor and returns the error that `Drop` would swallow.
    ///
    /// # Errors
    ///
    /// The error of `close(2)`.
    pub fn close(self) -> io::Result<()> {
        let fd = self.0.into_raw_fd();
        // SAFETY: ownership was given up in the line above, so this is the only close.
        cvt(unsafe { libc::close(fd) } as isize).map(drop)
    }
}

/// The `errno` of a result that should have failed, or a sentence.
///
/// # Errors
///
/// When the call succeeded or failed without an error number.
pub fn errno_of<T: std::fmt::Debug>(result: io::Result<T>) -> Result<i32, String> {
    match result {
        Ok(v) => Err(format!("the call succeeded with {v:?}")),
        Err(e) => e
            .raw_os_error()
            .ok_or_else(|| format!("the call failed with {e}")),
    }
}

impl From<Sock> for OwnedFd {
    fn from(sock: Sock) -> OwnedFd {
        sock.0
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Less common system calls: sendfile, splice, tee, passing descriptors, unmapped memory.

use crate::sock::{cvt, Sock};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// Sends `count` bytes of a file from `offset` on; returns how many went.
///
/// # Errors
///
/// The error of `sendfile(2)`.
pub fn sendfile(to: &Sock, from: &impl AsRawFd, offset: i64, count: usize) -> io::Result<usize> {
    let mut offset = offset;
    // SAFETY: the offset lives across the call.
    cvt(unsafe { libc::sendfile(to.as_raw_fd(), from.as_raw_fd(), &raw mut offset, count) })
}

/// Moves up to `count` bytes between a pipe and another descriptor.
///
/// # Errors
///
/// The error of `splice(2)`.
pub fn splice(
    from: &impl AsRawFd,
    to: &impl AsRawFd,
    count: usize,
    flags: u32,
) -> io::Result<usize> {
    // SAFETY: null offsets mean that the descriptors' own positions are used.
    cvt(unsafe {
        libc::splice(
            from.as_raw_fd(),
            ptr::null_mut(),
            to.as_raw_fd(),
            ptr::null_mut(),
            count,
            flags,
        )
    })
}

/// Duplicates up to `count` bytes of one pipe in another one.
///
/// # Errors
///
/// The error of `tee(2)`.
pub fn tee(from: &impl AsRawFd, to: &impl AsRawFd, count: usize) -> io::Result<usize> {
    // SAFETY: no pointers.
    cvt(unsafe { libc::tee(from.as_raw_fd(), to.as_raw_fd(), count, 0) })
}

/// Closes a descriptor under whoever uses it at the moment: from now on it is another one for what
/// `other` is.
///
/// # Errors
///
/// The error of `dup3(2)`.
pub fn close_under(sock: &Sock, other: &Sock) -> io::Result<()> {
    // SAFETY: no pointers; the descriptor stays its owner's to close.
    cvt(unsafe { libc::dup3(other.as_raw_fd(), sock.as_raw_fd(), libc::O_CLOEXEC) } as isize)
        .map(drop)
}

/// A Unix socket pair for passing descriptors.
///
/// # Errors
///
/// The error of `socketpair(2)`.
pub fn unix_pair() -> io::Result<(Sock, Sock)> {
    crate::sock::raw_socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0)
}

const CONTROL_LEN: usize = 64;

/// Control buffers must be aligned as `cmsghdr` is.
#[repr(align(8))]
struct Control([u8; CONTROL_LEN]);

fn message(byte: &mut libc::iovec, control: &mut Control, len: usize) -> libc::msghdr {
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut m: libc::msghdr = unsafe { mem::zeroed() };
    m.msg_iov = byte;
    m.msg_iovlen = 1;
    m.msg_control = control.0.as_mut_ptr().cast();
    m.msg_controllen = len;
    m
}

/// Sends a descriptor over a Unix socket.
///
/// # Errors
///
/// The error of `sendmsg(2)`.
pub fn send_fd(over: &Sock, fd: RawFd) -> io::Result<()> {
    let mut data = [0u8; 1];
    let mut iov = libc::iovec {
        iov_base: data.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let mut control = Control([0; CONTROL_LEN]);
    // SAFETY: CMSG_SPACE only computes.
    let space = unsafe { libc::CMSG_SPACE(size_of::<RawFd>() as u32) } as usize;
    let m = message(&mut iov, &mut control, space);
    // SAFETY: the control buffer has room for one header with one descriptor.
    unsafe {
        let c = libc::CMSG_FIRSTHDR(&raw const m);
        (*c).cmsg_level = libc::SOL_SOCKET;
        (*c).cmsg_type = libc::SCM_RIGHTS;
        (*c).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
        ptr::write_unaligned(libc::CMSG_DATA(c).cast::<RawFd>(), fd);
    }
    // SAFETY: every pointer in the message describes a live local.
    cvt(unsafe { libc::sendmsg(over.as_raw_fd(), &raw const m, 0) }).map(drop)
}

/// Receives a descriptor from a Unix socket.
///
/// # Errors
///
/// The error of `recvmsg(2)`, or that no descriptor came.
pub fn recv_fd(over: &Sock) -> io::Result<Sock> {
    let mut data = [0u8; 1];
    let mut iov = libc::iovec {
        iov_base: data.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let mut control = Control([0; CONTROL_LEN]);
    let mut m = message(&mut iov, &mut control, CONTROL_LEN);
    // SAFETY: every pointer in the message describes a live local.
    cvt(unsafe { libc::recvmsg(over.as_raw_fd(), &raw mut m, libc::MSG_CMSG_CLOEXEC) })?;
    // SAFETY: the kernel filled the control buffer and its length.
    unsafe {
        let c = libc::CMSG_FIRSTHDR(&raw const m);
        if c.is_null() || (*c).cmsg_type != libc::SCM_RIGHTS {
            return Err(io::Error::other("no descriptor came with the message"));
        }
        let fd = ptr::read_unaligned(libc::CMSG_DATA(c).cast::<RawFd>());
        Ok(Sock::from_owned(OwnedFd::from_raw_fd(fd)))
    }
}

/// Two pages of memory, the second of which cannot be accessed.
pub struct HalfMapped {
    base: *mut u8,
}

const PAGE: usize = 4096;

impl HalfMapped {
    /// Maps the pages and fills the first with `fill(offset)`.
    ///
    /// # Errors
    ///
    /// The error of `mmap(2)` or `mprotect(2)`.
    pub fn new(fill: impl Fn(usize) -> u8) -> io::Result<HalfMapped> {
        // SAFETY: a fresh anonymous mapping of two pages.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                2 * PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let pages = HalfMapped { base: base.cast() };
        for i in 0..PAGE {
            // SAFETY: the index is within the first page, which is writable and ours.
            unsafe { pages.base.add(i).write(fill(i)) };
        }
        // SAFETY: the second page is part of the mapping made above.
        cvt(
            unsafe { libc::mprotect(pages.base.add(PAGE).cast(), PAGE, libc::PROT_NONE) } as isize,
        )?;
        Ok(pages)
    }

    /// Address `before` bytes in front of the page that cannot be read.
    pub fn address(&self, before: usize) -> usize {
        self.base as usize + PAGE - before
    }
}

impl Drop for HalfMapped {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` and nobody keeps its address.
        unsafe { libc::munmap(self.base.cast(), 2 * PAGE) };
    }
}

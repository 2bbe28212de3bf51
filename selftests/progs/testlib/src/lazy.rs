// SPDX-License-Identifier: GPL-2.0

//! A page of memory that whoever touches it has to wait for (`userfaultfd(2)`).

use crate::event::poll_fd;
use crate::sock::cvt;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

const PAGE: usize = 4096;

/// Numbers of `linux/userfaultfd.h`.
const UFFD_API: u64 = 0xaa;
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
const UFFDIO_ZEROPAGE: libc::c_ulong = 0xc020_aa04;
const MODE_MISSING: u64 = 1;

/// `struct uffdio_register` and `struct uffdio_zeropage` alike: a range, a mode, an answer.
#[repr(C)]
struct Request {
    start: u64,
    len: u64,
    mode: u64,
    answer: u64,
}

/// The page. Waiters are let go when it is dropped.
pub struct LazyPage {
    base: usize,
    faults: OwnedFd,
}

impl LazyPage {
    /// A page that is not there yet.
    ///
    /// # Errors
    ///
    /// Those of the system calls; `ENOSYS` where the kernel lacks them.
    pub fn new() -> io::Result<LazyPage> {
        // SAFETY: no pointers.
        let fd = cvt(unsafe {
            // One that blocks cannot be polled.
            libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | libc::O_NONBLOCK)
        } as isize)?;
        // SAFETY: the descriptor was just returned to us.
        let faults = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
        let mut api = [UFFD_API, 0, 0];
        // SAFETY: the array is as long as `struct uffdio_api`.
        cvt(unsafe { libc::ioctl(faults.as_raw_fd(), UFFDIO_API, api.as_mut_ptr()) } as isize)?;
        // SAFETY: a fresh anonymous mapping of one page.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let page = LazyPage {
            base: base as usize,
            faults,
        };
        page.ask(UFFDIO_REGISTER, MODE_MISSING)?;
        Ok(page)
    }

    fn ask(&self, request: libc::c_ulong, mode: u64) -> io::Result<()> {
        let mut body = Request {
            start: self.base as u64,
            len: PAGE as u64,
            mode,
            answer: 0,
        };
        // SAFETY: the structure is what both requests take.
        cvt(unsafe { libc::ioctl(self.faults.as_raw_fd(), request, &raw mut body) } as isize)
            .map(drop)
    }

    /// Whether somebody waits for the page, or comes to within so many milliseconds.
    ///
    /// # Errors
    ///
    /// The error of `poll(2)`.
    pub fn is_wanted(&self, timeout_ms: i32) -> io::Result<bool> {
        poll_fd(self.faults.as_raw_fd(), libc::POLLIN, timeout_ms)
            .map(|bits| bits & libc::POLLIN != 0)
    }

    /// Gives the page, full of zeros, to all who wait and to all who come.
    ///
    /// # Errors
    ///
    /// The error of `ioctl(2)`, for example when it was given before.
    pub fn give(&self) -> io::Result<()> {
        self.ask(UFFDIO_ZEROPAGE, 0)
    }

    /// Sets a socket option whose value of `len` bytes is in the page.
    ///
    /// # Errors
    ///
    /// The error of `setsockopt(2)`.
    pub fn set_option(
        &self,
        sock: &impl AsRawFd,
        (level, name): (i32, i32),
        len: u32,
    ) -> io::Result<()> {
        let value = self.base as *const libc::c_void;
        // SAFETY: the kernel only reads from the mapping, which lives as long as the page.
        cvt(unsafe { libc::setsockopt(sock.as_raw_fd(), level, name, value, len) } as isize)
            .map(drop)
    }

    /// Reads a socket option into the page.
    ///
    /// # Errors
    ///
    /// The error of `getsockopt(2)`.
    pub fn get_option(
        &self,
        sock: &impl AsRawFd,
        (level, name): (i32, i32),
        mut len: u32,
    ) -> io::Result<()> {
        let value = self.base as *mut libc::c_void;
        // SAFETY: the kernel writes no more than the page has, to which nothing refers.
        cvt(
            unsafe { libc::getsockopt(sock.as_raw_fd(), level, name, value, &raw mut len) }
                as isize,
        )
        .map(drop)
    }

    /// An `ioctl(2)` that writes an integer to the page.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn ioctl(&self, sock: &impl AsRawFd, request: libc::c_ulong) -> io::Result<()> {
        let value = self.base as *mut i32;
        // SAFETY: the requests used by the tests write one int.
        cvt(unsafe { libc::ioctl(sock.as_raw_fd(), request, value) } as isize).map(drop)
    }

    /// Receives up to `len` bytes into the page.
    ///
    /// # Errors
    ///
    /// The error of `recv(2)`.
    pub fn recv(&self, sock: &impl AsRawFd, len: usize) -> io::Result<usize> {
        let data = self.base as *mut libc::c_void;
        // SAFETY: the kernel writes no more than the page has, to which nothing refers.
        cvt(unsafe { libc::recv(sock.as_raw_fd(), data, len.min(PAGE), 0) })
    }
}

impl Drop for LazyPage {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` and nobody keeps its address.
        unsafe { libc::munmap(self.base as *mut libc::c_void, PAGE) };
    }
}

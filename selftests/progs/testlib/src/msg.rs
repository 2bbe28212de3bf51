// SPDX-License-Identifier: GPL-2.0

//! The vector and message forms of sending and receiving.

use crate::addr::RawAddr;
use crate::sock::{cvt, Sock};
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::ptr;

/// What `recvmsg(2)` told beside the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes received.
    pub len: usize,
    /// `MSG_*` flags of the message.
    pub flags: i32,
    /// Length of the address that came with it.
    pub name_len: u32,
    /// Level, type and length of each control message.
    pub controls: Vec<(i32, i32, usize)>,
}

const CONTROL_LEN: usize = 256;

/// Control buffers must be aligned as `cmsghdr` is.
#[repr(align(8))]
struct Control([u8; CONTROL_LEN]);

fn vectors(parts: &[&[u8]]) -> Vec<libc::iovec> {
    parts
        .iter()
        .map(|part| libc::iovec {
            iov_base: part.as_ptr().cast_mut().cast(),
            iov_len: part.len(),
        })
        .collect()
}

fn vectors_mut(parts: &mut [&mut [u8]]) -> Vec<libc::iovec> {
    parts
        .iter_mut()
        .map(|part| libc::iovec {
            iov_base: part.as_mut_ptr().cast(),
            iov_len: part.len(),
        })
        .collect()
}

fn empty_message() -> libc::msghdr {
    // SAFETY: all-zero bytes are a valid msghdr.
    unsafe { mem::zeroed() }
}

/// Sends the parts as one message, to an address if there is one.
///
/// # Errors
///
/// The error of `sendmsg(2)`.
pub fn sendmsg(
    sock: &Sock,
    parts: &[&[u8]],
    flags: i32,
    to: Option<SocketAddr>,
) -> io::Result<usize> {
    let mut iov = vectors(parts);
    let mut name = to.map(RawAddr::from);
    let mut m = empty_message();
    m.msg_iov = iov.as_mut_ptr();
    m.msg_iovlen = iov.len();
    if let Some(name) = &mut name {
        m.msg_name = (&raw mut name.storage).cast();
        m.msg_namelen = name.len;
    }
    // SAFETY: every pointer in the message describes a live object; sending only reads.
    cvt(unsafe { libc::sendmsg(sock.as_raw_fd(), &raw const m, flags) })
}

/// Receives into the parts.
///
/// # Errors
///
/// The error of `recvmsg(2)`.
pub fn recvmsg(sock: &Sock, parts: &mut [&mut [u8]], flags: i32) -> io::Result<Received> {
    let mut iov = vectors_mut(parts);
    let mut name = RawAddr::empty();
    let mut control = Control([0; CONTROL_LEN]);
    let mut m = empty_message();
    m.msg_iov = iov.as_mut_ptr();
    m.msg_iovlen = iov.len();
    m.msg_name = (&raw mut name.storage).cast();
    m.msg_namelen = name.len;
    m.msg_control = control.0.as_mut_ptr().cast();
    m.msg_controllen = CONTROL_LEN;
    // SAFETY: every pointer in the message describes a live object with the length announced.
    let len = cvt(unsafe { libc::recvmsg(sock.as_raw_fd(), &raw mut m, flags) })?;
    let mut controls = Vec::new();
    // SAFETY: the kernel filled the control buffer and its length; the macros stay within.
    unsafe {
        let mut c = libc::CMSG_FIRSTHDR(&raw const m);
        while !c.is_null() {
            controls.push(((*c).cmsg_level, (*c).cmsg_type, (*c).cmsg_len));
            c = libc::CMSG_NXTHDR(&raw const m, c);
        }
    }
    Ok(Received {
        len,
        flags: m.msg_flags,
        name_len: m.msg_namelen,
        controls,
    })
}

/// `writev(2)`.
///
/// # Errors
///
/// The error of the system call.
pub fn writev(sock: &Sock, parts: &[&[u8]]) -> io::Result<usize> {
    let iov = vectors(parts);
    // SAFETY: the vector describes live slices.
    cvt(unsafe { libc::writev(sock.as_raw_fd(), iov.as_ptr(), iov.len() as i32) })
}

/// `readv(2)`.
///
/// # Errors
///
/// The error of the system call.
pub fn readv(sock: &Sock, parts: &mut [&mut [u8]]) -> io::Result<usize> {
    let iov = vectors_mut(parts);
    // SAFETY: the vector describes live slices that may be written.
    cvt(unsafe { libc::readv(sock.as_raw_fd(), iov.as_ptr(), iov.len() as i32) })
}

/// `write(2)`.
///
/// # Errors
///
/// The error of the system call.
pub fn write(sock: &impl AsRawFd, data: &[u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe the slice.
    cvt(unsafe { libc::write(sock.as_raw_fd(), data.as_ptr().cast(), data.len()) })
}

/// `read(2)`.
///
/// # Errors
///
/// The error of the system call.
pub fn read(sock: &impl AsRawFd, data: &mut [u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe the slice.
    cvt(unsafe { libc::read(sock.as_raw_fd(), data.as_mut_ptr().cast(), data.len()) })
}

/// Sends each slice as a message of its own; returns how many went.
///
/// # Errors
///
/// The error of `sendmmsg(2)`.
pub fn sendmmsg(sock: &Sock, messages: &[&[u8]], flags: i32) -> io::Result<usize> {
    let mut iov = vectors(messages);
    let mut all: Vec<libc::mmsghdr> = iov.iter_mut().map(one_message).collect();
    let count = all.len() as u32;
    // SAFETY: the headers describe live slices; sending only reads them.
    cvt(unsafe { libc::sendmmsg(sock.as_raw_fd(), all.as_mut_ptr(), count, flags) } as isize)
}

/// Receives into each slice a message of its own; returns the lengths of those that came.
///
/// # Errors
///
/// The error of `recvmmsg(2)`.
pub fn recvmmsg(sock: &Sock, messages: &mut [&mut [u8]], flags: i32) -> io::Result<Vec<u32>> {
    let mut iov = vectors_mut(messages);
    let mut all: Vec<libc::mmsghdr> = iov.iter_mut().map(one_message).collect();
    let count = all.len() as u32;
    // SAFETY: the headers describe live slices that may be written; there is no time limit.
    let n = cvt(unsafe {
        libc::recvmmsg(
            sock.as_raw_fd(),
            all.as_mut_ptr(),
            count,
            flags,
            ptr::null_mut(),
        )
    } as isize)?;
    Ok(all[..n].iter().map(|m| m.msg_len).collect())
}

fn one_message(iov: &mut libc::iovec) -> libc::mmsghdr {
    let mut m = empty_message();
    m.msg_iov = iov;
    m.msg_iovlen = 1;
    libc::mmsghdr {
        msg_hdr: m,
        msg_len: 0,
    }
}

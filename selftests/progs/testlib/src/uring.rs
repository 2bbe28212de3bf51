// SPDX-License-Identifier: GPL-2.0

//! Socket operations by io_uring, one at a time.

use crate::sock::{RawAddr, Sock};
use io_uring::squeue::Entry;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{opcode, IoUring};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// What marks the completion of the operation, and that of its cancellation.
const OPERATION: u64 = 1;
const CANCEL: u64 = 2;

/// Carries out one operation; what it returned, or nothing if it did not end within `limit`
/// and was cancelled.
///
/// # Errors
///
/// That of the operation, or of io_uring itself.
///
/// # Safety
///
/// The memory that the entry points to must live across the call.
unsafe fn carry_out(entry: Entry, limit: Duration) -> io::Result<Option<i32>> {
    let mut ring = IoUring::new(4)?;
    // SAFETY: the memory lives until this returns, and it returns after the completion only.
    unsafe { push(&mut ring, &entry.user_data(OPERATION))? };
    if let Some(result) = completion(&mut ring, limit)? {
        return outcome(result).map(Some);
    }
    let cancel = opcode::AsyncCancel::new(OPERATION)
        .build()
        .user_data(CANCEL);
    // SAFETY: a cancellation points to nothing.
    unsafe { push(&mut ring, &cancel)? };
    loop {
        if let Some(result) = completion(&mut ring, Duration::from_secs(1))? {
            // It may have ended in the last moment.
            return match result {
                n if n == -libc::ECANCELED => Ok(None),
                n => outcome(n).map(Some),
            };
        }
    }
}

/// # Safety
///
/// As [`carry_out`].
unsafe fn push(ring: &mut IoUring, entry: &Entry) -> io::Result<()> {
    // SAFETY: as the caller says.
    unsafe { ring.submission().push(entry) }.map_err(io::Error::other)
}

fn outcome(result: i32) -> io::Result<i32> {
    if result < 0 {
        Err(io::Error::from_raw_os_error(-result))
    } else {
        Ok(result)
    }
}

/// Submits what is queued and waits for the operation's completion.
fn completion(ring: &mut IoUring, limit: Duration) -> io::Result<Option<i32>> {
    let end = Instant::now() + limit;
    loop {
        let left = Timespec::from(end.saturating_duration_since(Instant::now()));
        let waited = ring
            .submitter()
            .submit_with_args(1, &SubmitArgs::new().timespec(&left));
        while let Some(entry) = ring.completion().next() {
            if entry.user_data() == OPERATION {
                return Ok(Some(entry.result()));
            }
        }
        match waited {
            Err(e) if !matches!(e.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => {
                return Err(e);
            }
            _ if Instant::now() >= end => return Ok(None),
            _ => {}
        }
    }
}

fn fd(sock: &Sock) -> Fd {
    Fd(sock.as_raw_fd())
}

fn count(result: Option<i32>) -> Option<usize> {
    result.map(|n| usize::try_from(n).unwrap_or(0))
}

/// `send()`; nothing if it did not end in time.
///
/// # Errors
///
/// Those of `send(2)` and of io_uring.
pub fn send(sock: &Sock, data: &[u8], flags: i32, limit: Duration) -> io::Result<Option<usize>> {
    let entry = opcode::Send::new(fd(sock), data.as_ptr(), data.len() as u32)
        .flags(flags)
        .build();
    // SAFETY: the data is borrowed for the whole call.
    unsafe { carry_out(entry, limit) }.map(count)
}

/// `recv()`; nothing if it did not end in time.
///
/// # Errors
///
/// Those of `recv(2)` and of io_uring.
pub fn recv(
    sock: &Sock,
    data: &mut [u8],
    flags: i32,
    limit: Duration,
) -> io::Result<Option<usize>> {
    let entry = opcode::Recv::new(fd(sock), data.as_mut_ptr(), data.len() as u32)
        .flags(flags)
        .build();
    // SAFETY: the data is borrowed for the whole call.
    unsafe { carry_out(entry, limit) }.map(count)
}

/// `accept4()`; nothing if it did not end in time.
///
/// # Errors
///
/// Those of `accept4(2)` and of io_uring.
pub fn accept(sock: &Sock, flags: i32, limit: Duration) -> io::Result<Option<Sock>> {
    let none = std::ptr::null_mut();
    let entry = opcode::Accept::new(fd(sock), none, std::ptr::null_mut())
        .flags(flags)
        .build();
    // SAFETY: it points to nothing.
    let child = unsafe { carry_out(entry, limit) }?;
    // SAFETY: the descriptor was made for this caller.
    Ok(child.map(|fd| Sock::from_owned(unsafe { OwnedFd::from_raw_fd(fd) })))
}

/// `connect()`; nothing if it did not end in time.
///
/// # Errors
///
/// Those of `connect(2)` and of io_uring.
pub fn connect(sock: &Sock, to: &RawAddr, limit: Duration) -> io::Result<Option<i32>> {
    let address = (&raw const to.storage).cast();
    let entry = opcode::Connect::new(fd(sock), address, to.len).build();
    // SAFETY: the address is borrowed for the whole call.
    unsafe { carry_out(entry, limit) }
}

/// The events of `poll()` once one of those wanted is there; nothing if none came in time.
///
/// # Errors
///
/// Those of io_uring.
pub fn poll(sock: &Sock, events: i16, limit: Duration) -> io::Result<Option<i16>> {
    let entry = opcode::PollAdd::new(fd(sock), u32::from(events as u16)).build();
    // SAFETY: it points to nothing.
    unsafe { carry_out(entry, limit) }.map(|bits| bits.map(|bits| bits as i16))
}

/// `shutdown()`.
///
/// # Errors
///
/// Those of `shutdown(2)` and of io_uring.
pub fn shutdown(sock: &Sock, how: i32, limit: Duration) -> io::Result<Option<i32>> {
    let entry = opcode::Shutdown::new(fd(sock), how).build();
    // SAFETY: it points to nothing.
    unsafe { carry_out(entry, limit) }
}

// SPDX-License-Identifier: GPL-2.0

//! `poll(2)` and `epoll(7)`.

use crate::sock::{cvt, Sock};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// Polls one descriptor; returns its `revents`, zero on time-out or a signal.
///
/// # Errors
///
/// The error of `poll(2)`, except for an interruption.
pub fn poll_fd(fd: RawFd, events: i16, timeout_ms: i32) -> io::Result<i16> {
    let mut fds = [libc::pollfd {
        fd,
        events,
        revents: 0,
    }];
    // SAFETY: the array holds the one entry announced.
    match cvt(unsafe { libc::poll(fds.as_mut_ptr(), 1, timeout_ms) } as isize) {
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(0),
        other => other.map(|_| fds[0].revents),
    }
}

/// Polls one socket; returns its `revents`, zero on time-out or a signal.
///
/// # Errors
///
/// As [`poll_fd`].
pub fn poll_one(sock: &Sock, events: i16, timeout_ms: i32) -> io::Result<i16> {
    poll_fd(sock.as_raw_fd(), events, timeout_ms)
}

/// Polls until every bit of `want` is set and returns the last `revents`.
///
/// # Errors
///
/// A sentence when the time is over.
pub fn poll_until(sock: &Sock, want: i16, limit: Duration) -> Result<i16, String> {
    let end = Instant::now() + limit;
    loop {
        let got = poll_one(sock, want, 50).map_err(|e| format!("poll failed: {e}"))?;
        if got & want == want {
            return Ok(got);
        }
        if Instant::now() > end {
            return Err(format!(
                "poll gave {got:#x} but {want:#x} was expected within {limit:?}"
            ));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// An epoll instance.
pub struct Epoll(OwnedFd);

impl Epoll {
    /// Creates one.
    ///
    /// # Errors
    ///
    /// The error of `epoll_create1(2)`.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers.
        let fd = cvt(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) } as isize)?;
        // SAFETY: the descriptor was just returned to us.
        Ok(Epoll(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
    }

    fn ctl(&self, op: i32, sock: &Sock, events: i32, token: u64) -> io::Result<()> {
        let mut ev = libc::epoll_event {
            events: events as u32,
            u64: token,
        };
        // SAFETY: the event lives across the call.
        cvt(
            unsafe { libc::epoll_ctl(self.0.as_raw_fd(), op, sock.as_raw_fd(), &raw mut ev) }
                as isize,
        )
        .map(drop)
    }

    /// Registers a socket.
    ///
    /// # Errors
    ///
    /// The error of `epoll_ctl(2)`.
    pub fn add(&self, sock: &Sock, events: i32, token: u64) -> io::Result<()> {
        self.ctl(libc::EPOLL_CTL_ADD, sock, events, token)
    }

    /// Changes a registration.
    ///
    /// # Errors
    ///
    /// The error of `epoll_ctl(2)`.
    pub fn modify(&self, sock: &Sock, events: i32, token: u64) -> io::Result<()> {
        self.ctl(libc::EPOLL_CTL_MOD, sock, events, token)
    }

    /// Removes a registration.
    ///
    /// # Errors
    ///
    /// The error of `epoll_ctl(2)`.
    pub fn remove(&self, sock: &Sock) -> io::Result<()> {
        self.ctl(libc::EPOLL_CTL_DEL, sock, 0, 0)
    }

    /// Waits for events: pairs of token and event bits, none on time-out.
    ///
    /// # Errors
    ///
    /// The error of `epoll_wait(2)`.
    pub fn wait(&self, timeout_ms: i32) -> io::Result<Vec<(u64, i32)>> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 128];
        // SAFETY: the array has room for the announced number of events.
        let n = cvt(unsafe {
            libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), 128, timeout_ms)
        } as isize)?;
        Ok(events[..n]
            .iter()
            .map(|e| (e.u64, e.events as i32))
            .collect())
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Processes, signals, timers and network namespaces.

use crate::sock::cvt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A child process.
#[derive(Debug)]
pub struct Child {
    pid: i32,
    reaped: bool,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It called `exit` with this status.
    Exit(i32),
    /// It was ended by this signal.
    Signal(i32),
    /// It was still running after the time given and was killed.
    TimedOut,
}

/// Runs `body` in a forked child, which exits with the value returned.
///
/// # Errors
///
/// The error of `fork(2)`.
pub fn spawn(body: impl FnOnce() -> i32) -> io::Result<Child> {
    // SAFETY: the child runs `body` and exits without returning into the caller.
    // The programs fork before they start threads, or the child only makes system
    // calls and uses glibc's allocator, which is consistent after fork.
    let pid = cvt(unsafe { libc::fork() } as isize)? as i32;
    if pid == 0 {
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(101);
        // SAFETY: ends this process; no destructors of the parent may run here.
        unsafe { libc::_exit(code) };
    }
    Ok(Child { pid, reaped: false })
}

impl Child {
    /// The process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends a signal.
    ///
    /// # Errors
    ///
    /// The error of `kill(2)`.
    pub fn kill(&self, signal: i32) -> io::Result<()> {
        // SAFETY: no pointers; the pid is our own child that has not been reaped.
        cvt(unsafe { libc::kill(self.pid, signal) } as isize).map(drop)
    }

    /// Waits for the end of the child, killing it when the limit is over.
    ///
    /// # Errors
    ///
    /// The error of `waitpid(2)`.
    pub fn wait(mut self, limit: Duration) -> io::Result<End> {
        let end = Instant::now() + limit;
        let mut pause = Duration::from_micros(200);
        loop {
            let mut status = 0;
            // SAFETY: the status word lives across the call.
            let pid =
                cvt(unsafe { libc::waitpid(self.pid, &raw mut status, libc::WNOHANG) } as isize)?;
            if pid != 0 {
                self.reaped = true;
                return Ok(if libc::WIFEXITED(status) {
                    End::Exit(libc::WEXITSTATUS(status))
                } else {
                    End::Signal(libc::WTERMSIG(status))
                });
            }
            if Instant::now() > end {
                self.kill(libc::SIGKILL)?;
                return Ok(End::TimedOut);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        // A child that does not die, for example one stuck in the kernel, must not
        // take the test program with it: reap it only if it is gone soon.
        let _ = self.kill(libc::SIGKILL);
        for _ in 0..50 {
            // SAFETY: a null status pointer is allowed.
            let pid = unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), libc::WNOHANG) };
            if pid != 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A pipe: read end, write end.
///
/// # Errors
///
/// The error of `pipe2(2)`.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0 as RawFd; 2];
    // SAFETY: the array has room for two descriptors.
    cvt(unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) } as isize)?;
    // SAFETY: both descriptors were just returned to us.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// Moves the calling thread into the named network namespace of `ip netns`.
///
/// # Errors
///
/// When the namespace does not exist or the caller may not enter it.
pub fn enter_netns(name: &str) -> io::Result<()> {
    let file = File::open(format!("/run/netns/{name}"))?;
    // SAFETY: the descriptor is open for the length of the call.
    cvt(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) } as isize).map(drop)
}

/// Moves the calling thread into a new, empty network namespace.
///
/// # Errors
///
/// The error of `unshare(2)`.
pub fn new_netns() -> io::Result<()> {
    // SAFETY: no pointers.
    cvt(unsafe { libc::unshare(libc::CLONE_NEWNET) } as isize).map(drop)
}

/// Runs `f` in the named network namespace, or right here without a name.
///
/// # Errors
///
/// When the namespace cannot be entered; the result of `f` otherwise.
pub fn in_netns<T: Send>(
    name: Option<&str>,
    f: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let Some(name) = name else { return f() };
    std::thread::scope(|s| {
        s.spawn(|| {
            enter_netns(name)?;
            f()
        })
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace panicked")))
    })
}

static CAUGHT: [AtomicU32; 65] = [const { AtomicU32::new(0) }; 65];

extern "C" fn on_signal(signal: i32) {
    if let Some(c) = CAUGHT.get(signal as usize) {
        c.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts deliveries of a signal from now on, without `SA_RESTART`.
///
/// # Errors
///
/// The error of `sigaction(2)`.
pub fn count_signal(signal: i32) -> io::Result<()> {
    catch_signal(signal, 0)
}

/// As [`count_signal`], with `SA_RESTART`: calls go on after the signal.
///
/// # Errors
///
/// The error of `sigaction(2)`.
pub fn count_signal_and_go_on(signal: i32) -> io::Result<()> {
    catch_signal(signal, libc::SA_RESTART)
}

fn catch_signal(signal: i32, flags: i32) -> io::Result<()> {
    CAUGHT[signal as usize].store(0, Ordering::Relaxed);
    // SAFETY: all-zero bytes are a valid sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_flags = flags;
    action.sa_sigaction = on_signal as *const () as usize;
    // SAFETY: the handler only touches an atomic, which is safe in a signal handler.
    cvt(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } as isize)
        .map(drop)
}

/// How often a counted signal was delivered.
pub fn signals_caught(signal: i32) -> u32 {
    CAUGHT[signal as usize].load(Ordering::Relaxed)
}

/// Restores the default action of a signal.
///
/// # Errors
///
/// The error of `signal(2)`.
pub fn default_signal(signal: i32) -> io::Result<()> {
    // SAFETY: SIG_DFL is a valid disposition.
    if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Delivers `SIGALRM` every `every`, or stops that with a zero duration.
///
/// # Errors
///
/// The error of `setitimer(2)`.
pub fn interval_timer(every: Duration) -> io::Result<()> {
    let tv = libc::timeval {
        tv_sec: every.as_secs() as libc::time_t,
        tv_usec: every.subsec_micros().into(),
    };
    let it = libc::itimerval {
        it_interval: tv,
        it_value: tv,
    };
    // SAFETY: the structure lives across the call.
    cvt(unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const it, std::ptr::null_mut()) } as isize)
        .map(drop)
}

/// Raises the limit of open files to the hard limit, as many connections need.
pub fn raise_file_limit() {
    let mut lim = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure lives across both calls; failure leaves the old limit.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut lim) == 0 {
            lim.rlim_cur = lim.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const lim);
        }
    }
}

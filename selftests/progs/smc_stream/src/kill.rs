// SPDX-License-Identifier: GPL-2.0

//! Connections whose one process is killed while both directions are busy.

use crate::plan::{header, Plan, Script, Side};
use crate::report::ConnReport;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use testlib::event::poll_one;
use testlib::pattern::{fill, Rng, Tally};
use testlib::process::{pipe, spawn, End};
use testlib::sock::{Family, Sock};

/// The survivor must have learnt of the end this long after it.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// How the other end of a stream went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// There is nothing more to read, or nobody to write to.
    Quietly,
    /// A call failed with `ECONNRESET`.
    Reset,
}

/// One end of a connection that sends and receives all the time.
pub(crate) struct Flow<'a> {
    sock: &'a Sock,
    msg_min: u64,
    msg_max: u64,
    rng: Rng,
    sent: Tally,
    received: Tally,
    buf: Vec<u8>,
}

impl<'a> Flow<'a> {
    /// Begins the streams of a script.
    ///
    /// # Errors
    ///
    /// When the socket cannot be made non-blocking.
    pub(crate) fn new(
        sock: &'a Sock,
        plan: &Plan,
        script: &Script,
        side: Side,
    ) -> Result<Flow<'a>, String> {
        sock.set_nonblocking(true)
            .map_err(|e| format!("fcntl: {e}"))?;
        Ok(Flow {
            sock,
            msg_min: plan.msg_min,
            msg_max: plan.msg_max.min(64 << 10),
            rng: script.rng(side),
            sent: Tally::new(script.out(side).key),
            received: Tally::new(script.inp(side).key),
            buf: vec![0u8; 64 << 10],
        })
    }

    /// Sends and receives what can be at once, after at most 200 ms. Says whether the other end is
    /// gone.
    ///
    /// # Errors
    ///
    /// A sentence when a byte is wrong, or a call fails with anything but what the death of a peer
    /// gives.
    pub(crate) fn step(&mut self) -> Result<Option<Gone>, String> {
        let bits = poll_one(self.sock, libc::POLLIN | libc::POLLOUT, 200)
            .map_err(|e| format!("poll failed: {e}"))?;
        if bits & (libc::POLLOUT | libc::POLLERR) != 0 {
            let size = self.rng.log_range(self.msg_min, self.msg_max) as usize;
            fill(self.sent.key(), self.sent.count(), &mut self.buf[..size]);
            match self.sock.send(&self.buf[..size], libc::MSG_NOSIGNAL) {
                Ok(n) => self.sent.take(&self.buf[..n]),
                Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {}
                Err(e) => {
                    return gone_by(&e)
                        .map(Some)
                        .ok_or_else(|| format!("send failed: {e}"))
                }
            }
        }
        if bits & (libc::POLLIN | libc::POLLERR | libc::POLLHUP) != 0 {
            match self.sock.recv(&mut self.buf, 0) {
                Ok(0) => return Ok(Some(Gone::Quietly)),
                Ok(n) => self.received.verify(&self.buf[..n])?,
                Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {}
                Err(e) => {
                    return gone_by(&e)
                        .map(Some)
                        .ok_or_else(|| format!("recv failed: {e}"))
                }
            }
        }
        Ok(None)
    }

    /// What went both ways so far.
    pub(crate) fn report(&self) -> ConnReport {
        ConnReport::new(&self.sent, &self.received)
    }
}

/// What an error says about the other end.
fn gone_by(error: &io::Error) -> Option<Gone> {
    match error.raw_os_error() {
        Some(libc::ECONNRESET) => Some(Gone::Reset),
        Some(libc::EPIPE) => Some(Gone::Quietly),
        _ => None,
    }
}

/// Streams both ways until the other end is gone.
///
/// # Errors
///
/// As [`Flow::step`], and when nothing happens for too long.
pub(crate) fn until_end(
    sock: &Sock,
    plan: &Plan,
    script: &Script,
    side: Side,
) -> Result<(ConnReport, Gone), String> {
    let mut flow = Flow::new(sock, plan, script, side)?;
    let end = Instant::now() + Duration::from_millis(script.kill_after_ms) + LIMIT;
    loop {
        if let Some(gone) = flow.step()? {
            return Ok((flow.report(), gone));
        }
        if Instant::now() > end {
            return Err(format!(
                "the end of the peer was not noticed within {LIMIT:?}: sent {}, received {}",
                flow.sent.count(),
                flow.received.count()
            ));
        }
    }
}

fn check_end(end: End) -> Result<(), String> {
    match end {
        End::Signal(libc::SIGKILL) => Ok(()),
        End::TimedOut => Err("the killed process was not gone within 20 s".into()),
        other => Err(format!(
            "the process that was to be killed ended by itself: {other:?}"
        )),
    }
}

/// Runs the accepted side of one connection in a child and kills it.
///
/// The parent's descriptor is closed at once, or the death would close nothing.
///
/// # Errors
///
/// A sentence when the child ended in any other way.
pub(crate) fn server_victim(
    sock: Sock,
    plan: Plan,
    script: Script,
) -> Result<std::thread::JoinHandle<Result<(), String>>, String> {
    let child = spawn(|| i32::from(until_end(&sock, &plan, &script, Side::Server).is_err()) + 40)
        .map_err(|e| format!("fork failed: {e}"))?;
    drop(sock);
    Ok(std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(script.kill_after_ms));
        child
            .kill(libc::SIGKILL)
            .map_err(|e| format!("kill failed: {e}"))?;
        check_end(
            child
                .wait(LIMIT)
                .map_err(|e| format!("waitpid failed: {e}"))?,
        )
    }))
}

fn byte_from(pipe: &OwnedFd) -> bool {
    let mut file = match pipe.try_clone() {
        Ok(fd) => std::fs::File::from(fd),
        Err(_) => return false,
    };
    let mut byte = [0u8; 1];
    std::io::Read::read_exact(&mut file, &mut byte).is_ok()
}

fn byte_to(pipe: &OwnedFd) {
    if let Ok(fd) = pipe.try_clone() {
        // A parent that is gone does not read it; then nothing matters any more.
        let _ = std::io::Write::write_all(&mut std::fs::File::from(fd), &[1]);
    }
}

/// Connects in a child, streams there and kills the child.
///
/// # Errors
///
/// A sentence when the child could not connect or ended in any other way.
pub(crate) fn client_victim(
    id: u64,
    plan: &Plan,
    family: Family,
    addr: SocketAddr,
) -> Result<(), String> {
    let script = plan.script(id);
    let (from_child, to_parent) = pipe().map_err(|e| format!("pipe failed: {e}"))?;
    let child = spawn(|| {
        let connected = || -> std::io::Result<Sock> {
            let sock = Sock::new(family)?;
            crate::client::set_buffers(&sock, plan)?;
            sock.connect(addr)?;
            sock.send_all(&header(id))?;
            Ok(sock)
        };
        let sock = match connected() {
            Ok(s) => s,
            Err(_) => return 50,
        };
        byte_to(&to_parent);
        i32::from(until_end(&sock, plan, &script, Side::Client).is_err()) + 40
    })
    .map_err(|e| format!("fork failed: {e}"))?;
    drop(to_parent);
    if !byte_from(&from_child) {
        let end = child
            .wait(LIMIT)
            .map_err(|e| format!("waitpid failed: {e}"))?;
        return Err(format!("the child could not connect: {end:?}"));
    }
    std::thread::sleep(Duration::from_millis(script.kill_after_ms));
    child
        .kill(libc::SIGKILL)
        .map_err(|e| format!("kill failed: {e}"))?;
    check_end(
        child
            .wait(LIMIT)
            .map_err(|e| format!("waitpid failed: {e}"))?,
    )
}

// SPDX-License-Identifier: GPL-2.0

//! Connections whose one process is killed while both directions are busy.

use crate::plan::{header, Plan, Script, Side};
use crate::report::ConnReport;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use testlib::event::poll_one;
use testlib::pattern::{fill, Tally};
use testlib::process::{pipe, spawn, End};
use testlib::sock::{Family, Sock};

/// The survivor must have learnt of the death this long after it.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// Streams both ways until the other end is gone.
///
/// # Errors
///
/// A sentence when a byte is wrong, a call fails with anything but what the
/// death of a peer gives, or nothing happens for too long.
pub(crate) fn until_end(
    sock: &Sock,
    plan: &Plan,
    script: &Script,
    side: Side,
) -> Result<ConnReport, String> {
    let mut rng = script.rng(side);
    let mut sent = Tally::new(script.out(side).key);
    let mut received = Tally::new(script.inp(side).key);
    let mut buf = vec![0u8; 64 << 10];
    sock.set_nonblocking(true)
        .map_err(|e| format!("fcntl: {e}"))?;
    let end = Instant::now() + Duration::from_millis(script.kill_after_ms) + LIMIT;
    let gone = [libc::ECONNRESET, libc::EPIPE];
    loop {
        if Instant::now() > end {
            return Err(format!(
                "the killed peer was not noticed within {LIMIT:?}: sent {}, received {}",
                sent.count(),
                received.count()
            ));
        }
        let bits = poll_one(sock, libc::POLLIN | libc::POLLOUT, 200)
            .map_err(|e| format!("poll failed: {e}"))?;
        if bits & (libc::POLLOUT | libc::POLLERR) != 0 {
            let size = rng.log_range(plan.msg_min, (64 << 10).min(plan.msg_max)) as usize;
            fill(sent.key(), sent.count(), &mut buf[..size]);
            match sock.send(&buf[..size], libc::MSG_NOSIGNAL) {
                Ok(n) => sent.take(&buf[..n]),
                Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {}
                Err(e) if e.raw_os_error().is_some_and(|n| gone.contains(&n)) => break,
                Err(e) => return Err(format!("send after the kill failed with {e}")),
            }
        }
        if bits & (libc::POLLIN | libc::POLLERR | libc::POLLHUP) != 0 {
            match sock.recv(&mut buf, 0) {
                Ok(0) => break,
                Ok(n) => received.verify(&buf[..n])?,
                Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {}
                Err(e) if e.raw_os_error().is_some_and(|n| gone.contains(&n)) => break,
                Err(e) => return Err(format!("recv after the kill failed with {e}")),
            }
        }
    }
    Ok(ConnReport::new(&sent, &received))
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

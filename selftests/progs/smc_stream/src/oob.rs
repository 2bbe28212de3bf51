// SPDX-License-Identifier: GPL-2.0

//! Urgent bytes between ordinary ones, read inline and out of band.

use crate::plan::{Plan, Script, Side};
use crate::report::{ConnReport, Progress};
use std::sync::atomic::Ordering;
use std::time::Duration;
use testlib::event::{poll_one, poll_until};
use testlib::opts::SIOCATMARK;
use testlib::pattern::{fill, Rng, Tally};
use testlib::sock::{errno_of, Sock};

/// Length of the piece before the next urgent byte, and that byte.
fn round(rng: &mut Rng, left: u64) -> (usize, u8) {
    (
        rng.log_range(1, left.clamp(1, 4000)).min(left) as usize,
        rng.next_u64() as u8,
    )
}

/// Runs one connection: the client sends, the server checks and acknowledges.
///
/// Connections with odd numbers use `SO_OOBINLINE`.
///
/// # Errors
///
/// The first thing that went wrong.
pub(crate) fn run(
    sock: Sock,
    plan: &Plan,
    id: u64,
    side: Side,
    progress: &Progress,
) -> Result<ConnReport, String> {
    let script = plan.script(id);
    let inline = id % 2 == 1;
    let sent;
    let received;
    match side {
        Side::Client => {
            sent = send(&sock, &script, progress)?;
            received = Tally::new(script.s2c.key);
        }
        Side::Server => {
            if inline {
                sock.set_int(libc::SOL_SOCKET, libc::SO_OOBINLINE, 1)
                    .map_err(|e| format!("SO_OOBINLINE: {e}"))?;
            }
            // Tells the client to start: the option must be set before urgent data comes.
            sock.send_all(b"!")
                .map_err(|e| format!("the start mark failed: {e}"))?;
            received = receive(&sock, &script, inline, progress)?;
            sent = Tally::new(script.s2c.key);
        }
    }
    sock.close().map_err(|e| format!("close failed: {e}"))?;
    Ok(ConnReport::new(&sent, &received))
}

fn send(sock: &Sock, script: &Script, progress: &Progress) -> Result<Tally, String> {
    let mut rng = Rng::new(script.client_seed);
    let mut tally = Tally::new(script.c2s.key);
    let mut ack = [0u8; 1];
    sock.recv_exact(&mut ack)
        .map_err(|e| format!("no start mark: {e}"))?;
    while tally.count() < script.c2s.len {
        let (size, urgent) = round(&mut rng, script.c2s.len - tally.count());
        let mut data = vec![0u8; size];
        fill(script.c2s.key, tally.count(), &mut data);
        sock.send_all(&data)
            .map_err(|e| format!("send failed: {e}"))?;
        match sock.send(&[urgent], libc::MSG_OOB | libc::MSG_NOSIGNAL) {
            Ok(1) => {}
            other => return Err(format!("send(OOB) returned {other:?} for one byte")),
        }
        tally.take(&data);
        progress.sent.store(tally.count(), Ordering::Relaxed);
        sock.recv_exact(&mut ack)
            .map_err(|e| format!("no acknowledgement at byte {}: {e}", tally.count()))?;
    }
    sock.shutdown(libc::SHUT_WR)
        .map_err(|e| format!("shutdown failed: {e}"))?;
    if sock
        .recv(&mut ack, 0)
        .map_err(|e| format!("recv failed: {e}"))?
        != 0
    {
        return Err("bytes came after the last acknowledgement".into());
    }
    Ok(tally)
}

fn receive(
    sock: &Sock,
    script: &Script,
    inline: bool,
    progress: &Progress,
) -> Result<Tally, String> {
    let mut rng = Rng::new(script.client_seed);
    let mut tally = Tally::new(script.c2s.key);
    while tally.count() < script.c2s.len {
        let (size, urgent) = round(&mut rng, script.c2s.len - tally.count());
        let at = tally.count();
        poll_until(sock, libc::POLLPRI, Duration::from_secs(10))
            .map_err(|e| format!("no urgent data at byte {at}: {e}"))?;
        if !inline {
            urgent_byte(sock, urgent, at)?;
        }
        let mut data = vec![0u8; size];
        sock.recv_exact(&mut data)
            .map_err(|e| format!("recv failed at byte {at}: {e}"))?;
        tally.verify(&data)?;
        let mark = sock
            .ioctl_int(SIOCATMARK)
            .map_err(|e| format!("SIOCATMARK: {e}"))?;
        if inline {
            if mark != 1 {
                return Err(format!("SIOCATMARK is {mark} in front of the urgent byte"));
            }
            let mut one = [0u8; 1];
            sock.recv_exact(&mut one)
                .map_err(|e| format!("recv of the urgent byte: {e}"))?;
            if one[0] != urgent {
                return Err(format!(
                    "the inline urgent byte is {:#x}, not {urgent:#x}",
                    one[0]
                ));
            }
        }
        progress.received.store(tally.count(), Ordering::Relaxed);
        sock.send_all(b"+")
            .map_err(|e| format!("acknowledging failed: {e}"))?;
    }
    let mut one = [0u8; 1];
    if sock
        .recv(&mut one, 0)
        .map_err(|e| format!("recv failed: {e}"))?
        != 0
    {
        return Err("bytes came after the end of the stream".into());
    }
    Ok(tally)
}

/// Reads the urgent byte out of band: once, and not twice.
fn urgent_byte(sock: &Sock, urgent: u8, at: u64) -> Result<(), String> {
    let mut one = [0u8; 2];
    let mut last = String::new();
    // The announcement may come before the byte itself (EAGAIN until then).
    for _ in 0..500 {
        match sock.recv(&mut one, libc::MSG_OOB) {
            Ok(1) if one[0] == urgent => {
                let again = errno_of(sock.recv(&mut one, libc::MSG_OOB))?;
                if again != libc::EINVAL {
                    return Err(format!("a second recv(OOB) failed with errno {again}"));
                }
                let bits = poll_one(sock, libc::POLLPRI, 0).map_err(|e| format!("poll: {e}"))?;
                if bits & libc::POLLPRI != 0 {
                    return Err("POLLPRI stays on after the urgent byte was read".into());
                }
                return Ok(());
            }
            Ok(n) => {
                return Err(format!(
                    "recv(OOB) returned {n} bytes, {:#x} not {urgent:#x}",
                    one[0]
                ))
            }
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => last = e.to_string(),
            Err(e) => return Err(format!("recv(OOB) failed at byte {at}: {e}")),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(format!("the urgent byte did not come within 5 s: {last}"))
}

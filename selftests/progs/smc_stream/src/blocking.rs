// SPDX-License-Identifier: GPL-2.0

//! One connection driven by blocking calls.

use crate::plan::{Plan, Recv, Script, Side, Stream};
use crate::report::{ConnReport, Progress};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use testlib::event::poll_one;
use testlib::pattern::{fill, first_difference, Rng, Tally};
use testlib::sock::Sock;

/// Largest piece a receiver asks for.
const MAX_READ: u64 = 256 << 10;

/// Sends a whole stream in messages of random sizes.
///
/// # Errors
///
/// A sentence saying which send failed and how.
pub(crate) fn send_stream(
    sock: &Sock,
    plan: &Plan,
    stream: Stream,
    mut rng: Rng,
    progress: &Progress,
) -> Result<Tally, String> {
    let mut tally = Tally::new(stream.key);
    let mut buf = Vec::new();
    while tally.count() < stream.len {
        let left = stream.len - tally.count();
        let size = rng.log_range(plan.msg_min, plan.msg_max).min(left) as usize;
        buf.resize(size.max(buf.len()), 0);
        fill(stream.key, tally.count(), &mut buf[..size]);
        let more = if size as u64 != left && rng.one_in(8) {
            libc::MSG_MORE
        } else {
            0
        };
        let mut done = 0;
        while done < size {
            match sock.send(&buf[done..size], libc::MSG_NOSIGNAL | more) {
                Ok(0) => return Err("send returned 0 for bytes that were there".into()),
                Ok(n) if n > size - done => return Err(format!("send returned {n}, too much")),
                Ok(n) => done += n,
                Err(e) => {
                    return Err(format!("send failed after {} bytes: {e}", tally.count()));
                }
            }
            progress
                .sent
                .store(tally.count() + done as u64, Ordering::Relaxed);
        }
        tally.take(&buf[..size]);
        if rng.one_in(200) {
            std::thread::sleep(Duration::from_micros(rng.range(1, 2000)));
        }
    }
    Ok(tally)
}

/// Receives a stream; stops at its last byte or, with `to_end`, at the end mark.
///
/// # Errors
///
/// A sentence saying what was wrong with the bytes or which call failed.
pub(crate) fn recv_stream(
    sock: &Sock,
    how: Recv,
    stream: Stream,
    to_end: bool,
    mut rng: Rng,
    progress: &Progress,
) -> Result<Tally, String> {
    let mut tally = Tally::new(stream.key);
    let mut buf = vec![0u8; MAX_READ as usize];
    loop {
        if !to_end && tally.count() == stream.len {
            return Ok(tally);
        }
        let mut size = rng.log_range(1, MAX_READ);
        if !to_end {
            // Closing with unread bytes would reset the connection.
            size = size.min(stream.len - tally.count());
        }
        let piece = &mut buf[..size as usize];
        let n = match how {
            Recv::Plain => recv_plain(sock, piece, &mut tally)?,
            Recv::Flags => recv_flags(sock, piece, stream, &mut tally, &mut rng)?,
            Recv::Slow => {
                std::thread::sleep(Duration::from_millis(rng.range(1, 60)));
                recv_plain(sock, piece, &mut tally)?
            }
        };
        progress.received.store(tally.count(), Ordering::Relaxed);
        match n {
            Some(0) if tally.count() == stream.len => return Ok(tally),
            Some(0) => {
                return Err(format!(
                    "the stream ended at byte {} of {}",
                    tally.count(),
                    stream.len
                ))
            }
            _ => {}
        }
        if rng.one_in(100) {
            std::thread::sleep(Duration::from_micros(rng.range(1, 3000)));
        }
    }
}

fn recv_plain(sock: &Sock, piece: &mut [u8], tally: &mut Tally) -> Result<Option<usize>, String> {
    let n = sock
        .recv(piece, 0)
        .map_err(|e| format!("recv failed after {} bytes: {e}", tally.count()))?;
    tally.verify(&piece[..n])?;
    Ok(Some(n))
}

/// One read with randomly chosen flags; `None` means that nothing was there yet.
fn recv_flags(
    sock: &Sock,
    piece: &mut [u8],
    stream: Stream,
    tally: &mut Tally,
    rng: &mut Rng,
) -> Result<Option<usize>, String> {
    let at = tally.count();
    let left = (stream.len - at) as usize;
    let fail = |what: &str, e: std::io::Error| format!("{what} failed at byte {at}: {e}");
    match rng.range(0, 4) {
        0 => peek_then_read(sock, piece, tally, 0),
        1 => {
            let size = piece.len().min(MAX_PEEK_WAIT).min(left.max(1));
            peek_then_read(sock, &mut piece[..size], tally, libc::MSG_WAITALL)
        }
        2 => {
            let n = sock
                .recv(piece, libc::MSG_WAITALL)
                .map_err(|e| fail("recv(WAITALL)", e))?;
            if n < piece.len() && n != left {
                return Err(format!(
                    "recv(WAITALL) returned {n} of {} with {left} left",
                    piece.len()
                ));
            }
            tally.verify(&piece[..n])?;
            Ok(Some(n))
        }
        3 => {
            let n = sock
                .recv(piece, libc::MSG_TRUNC)
                .map_err(|e| fail("recv(TRUNC)", e))?;
            if n > piece.len() {
                return Err(format!(
                    "recv(TRUNC) skipped {n} bytes of at most {}",
                    piece.len()
                ));
            }
            // The bytes are gone unseen; the count and the bytes after them prove the rest.
            fill(stream.key, at, &mut piece[..n]);
            tally.take(&piece[..n]);
            Ok(Some(n))
        }
        _ => match sock.recv(piece, libc::MSG_DONTWAIT) {
            Ok(n) => {
                tally.verify(&piece[..n])?;
                Ok(Some(n))
            }
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {
                let got = poll_one(sock, libc::POLLIN, 20_000).map_err(|e| fail("poll", e))?;
                if got == 0 {
                    return Err(format!("nothing arrived within 20 s at byte {at}"));
                }
                Ok(None)
            }
            Err(e) => Err(fail("recv(DONTWAIT)", e)),
        },
    }
}

/// How much a peek may wait for. A connection that fell back is TCP whatever the family of its
/// socket, and a TCP buffer of 128 KiB is full after a hundred short segments that nobody takes.
const MAX_PEEK_WAIT: usize = 32;

fn peek_then_read(
    sock: &Sock,
    piece: &mut [u8],
    tally: &mut Tally,
    extra: i32,
) -> Result<Option<usize>, String> {
    let at = tally.count();
    let seen = sock
        .recv(piece, libc::MSG_PEEK | extra)
        .map_err(|e| format!("recv(PEEK) failed at byte {at}: {e}"))?;
    if let Some(d) = first_difference(tally.key(), at, &piece[..seen]) {
        return Err(format!(
            "recv(PEEK) showed a wrong byte at {}",
            at + d as u64
        ));
    }
    let n = if seen == 0 {
        sock.recv(piece, 0)
    } else {
        sock.recv(&mut piece[..seen], 0)
    }
    .map_err(|e| format!("recv after PEEK failed at byte {at}: {e}"))?;
    if n == 0 && seen != 0 {
        return Err(format!(
            "recv returned the end after PEEK had shown {seen} bytes"
        ));
    }
    if n != 0 && seen == 0 {
        return Err(format!("PEEK showed the end but recv returned {n} bytes"));
    }
    tally.verify(&piece[..n])?;
    Ok(Some(n))
}

/// How long [`drain`] waits.
const DRAIN: Duration = Duration::from_secs(60);

/// Waits until everything was sent, where this end is to do so.
fn drain(sock: &Sock, plan: &Plan) -> Result<(), String> {
    if !plan.own.drain {
        return Ok(());
    }
    let end = Instant::now() + DRAIN;
    loop {
        match sock.unsent() {
            Ok(0) => return Ok(()),
            Ok(left) if Instant::now() > end => {
                return Err(format!("{left} bytes were not sent within {DRAIN:?}"))
            }
            Ok(_) => std::thread::sleep(Duration::from_millis(2)),
            Err(e) => return Err(format!("SIOCOUTQNSD: {e}")),
        }
    }
}

fn shut_down(sock: &Sock, plan: &Plan) -> Result<(), String> {
    drain(sock, plan)?;
    sock.shutdown(libc::SHUT_WR)
        .map_err(|e| format!("shutdown failed: {e}"))
}

fn close(sock: Sock, plan: &Plan) -> Result<(), String> {
    drain(&sock, plan)?;
    sock.close().map_err(|e| format!("close failed: {e}"))
}

/// Runs both directions of a connection at once and closes it as scripted.
///
/// # Errors
///
/// The first thing that went wrong.
pub(crate) fn run(
    sock: Sock,
    plan: &Plan,
    script: &Script,
    side: Side,
    progress: &Progress,
) -> Result<ConnReport, String> {
    let mut rng = script.rng(side);
    let out_rng = Rng::new(rng.next_u64());
    let shuts_down = script.shuts_down(side);
    let (sent, received) = std::thread::scope(|s| {
        let sender = std::thread::Builder::new()
            .stack_size(256 << 10)
            .spawn_scoped(s, || {
                let tally = send_stream(&sock, plan, script.out(side), out_rng, progress)?;
                if shuts_down {
                    shut_down(&sock, plan)?;
                }
                Ok::<Tally, String>(tally)
            });
        let received = recv_stream(
            &sock,
            plan.recv,
            script.inp(side),
            shuts_down,
            rng,
            progress,
        );
        if received.is_err() {
            // Ends a sender that waits for room which will never come.
            let _ = sock.shutdown(libc::SHUT_RDWR);
        }
        let sent = match sender {
            Ok(handle) => handle
                .join()
                .unwrap_or_else(|_| Err("the sender panicked".into())),
            Err(e) => Err(format!("no thread for the sender: {e}")),
        };
        (sent, received)
    });
    let (sent, received) = match (sent, received) {
        (Ok(s), Ok(r)) => (s, r),
        (Err(s), Err(r)) => return Err(format!("{r}; {s}")),
        (Err(e), _) | (_, Err(e)) => return Err(e),
    };
    close(sock, plan)?;
    Ok(ConnReport::new(&sent, &received))
}

/// Request, end of sending, answer, close (`client` asks).
///
/// # Errors
///
/// The first thing that went wrong.
pub(crate) fn half_close(
    sock: Sock,
    plan: &Plan,
    script: &Script,
    side: Side,
    progress: &Progress,
) -> Result<ConnReport, String> {
    let mut rng = script.rng(side);
    let send_rng = Rng::new(rng.next_u64());
    let send = |rng| send_stream(&sock, plan, script.out(side), rng, progress);
    let recv = |rng| recv_stream(&sock, plan.recv, script.inp(side), true, rng, progress);
    let (sent, received) = match side {
        Side::Client => {
            let sent = send(send_rng)?;
            shut_down(&sock, plan)?;
            (sent, recv(rng)?)
        }
        Side::Server => {
            let received = recv(rng)?;
            (send(send_rng)?, received)
        }
    };
    close(sock, plan)?;
    Ok(ConnReport::new(&sent, &received))
}

/// The server answers in one call and closes at once; the client reads late or early.
///
/// # Errors
///
/// The first thing that went wrong.
pub(crate) fn short_reply(
    sock: Sock,
    plan: &Plan,
    script: &Script,
    side: Side,
    progress: &Progress,
) -> Result<ConnReport, String> {
    let mut rng = script.rng(side);
    let empty = Tally::new(script.c2s.key);
    match side {
        Side::Server => {
            let mut data = vec![0u8; script.s2c.len as usize];
            fill(script.s2c.key, 0, &mut data);
            sock.send_all(&data)
                .map_err(|e| format!("the answer could not be sent: {e}"))?;
            close(sock, plan)?;
            let mut sent = Tally::new(script.s2c.key);
            sent.take(&data);
            Ok(ConnReport::new(&sent, &empty))
        }
        Side::Client => {
            if rng.one_in(3) {
                std::thread::sleep(Duration::from_millis(rng.range(1, 30)));
            }
            let received = recv_stream(&sock, plan.recv, script.s2c, true, rng, progress)?;
            Ok(ConnReport::new(&empty, &received))
        }
    }
}

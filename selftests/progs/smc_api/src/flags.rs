// SPDX-License-Identifier: GPL-2.0

//! Message flags: PEEK, WAITALL, TRUNC, MORE, OOB, ERRQUEUE.

use crate::check::{fails, works};
use crate::ctx::{readable, talk, Ctx};
use crate::{check, Check};
use libc::{EAGAIN, EINVAL, MSG_DONTWAIT, MSG_OOB, MSG_PEEK, MSG_TRUNC, MSG_WAITALL, POLLPRI};
use std::time::{Duration, Instant};
use testlib::event::{poll_one, poll_until};
use testlib::opts::SIOCATMARK;
use testlib::pattern::{fill, first_difference};
use testlib::process::{count_signal, signals_caught};
use testlib::sock::Sock;
use testlib::tap::Outcome;

pub(crate) const CHECKS: &[Check] = &[
    check("flags: PEEK shows what recv returns", peek),
    check(
        "flags: PEEK and WAITALL across the end of the ring",
        peek_wrapped,
    ),
    check("flags: PEEK with TRUNC, and TRUNC alone", truncate),
    check("flags: WAITALL", wait_all),
    check("flags: MORE is sent at last", more),
    check("flags: OOB out of band", oob),
    check("flags: OOB inline", oob_inline),
    check("flags: OOB raises SIGURG", sigurg),
    check("flags: OOB errors", oob_errors),
    check("flags: ERRQUEUE", error_queue),
];

const SOON: Duration = Duration::from_secs(10);

fn peek(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    fails(
        "recv(PEEK|DONTWAIT)",
        b.recv(&mut [0u8; 4], MSG_PEEK | MSG_DONTWAIT),
        &[EAGAIN],
    )?;
    works("send()", a.send_all(b"abcdef"))?;
    readable(&b)?;
    let mut buf = [0u8; 6];
    for _ in 0..3 {
        works(
            "recv(PEEK|WAITALL)",
            b.recv(&mut buf, MSG_PEEK | MSG_WAITALL),
        )?;
        same!("peeked", &buf, b"abcdef");
    }
    same!(
        "peeked part",
        works("recv()", b.recv(&mut buf[..2], MSG_PEEK))?,
        2
    );
    works("recv()", b.recv_exact(&mut buf))?;
    same!("read", &buf, b"abcdef");
    works("shutdown(WR)", a.shutdown(libc::SHUT_WR))?;
    same!(
        "peek at the end",
        works("recv()", b.recv(&mut buf, MSG_PEEK))?,
        0
    );
    same!("read at the end", works("recv()", b.recv(&mut buf, 0))?, 0);
    Ok(())
}

fn peek_wrapped(c: &Ctx) -> Outcome {
    const PIECE: usize = 10 << 10;
    let (a, b) = c.pair()?;
    let mut at = 0u64;
    // An odd distance between rounds puts the ring's end anywhere in a piece.
    for round in 0..60u64 {
        let gap = 1 + (round * 1237 % 3000) as usize;
        let mut data = vec![0u8; PIECE + gap];
        fill(21, at, &mut data);
        for part in data.chunks(2777) {
            works("send()", a.send_all(part))?;
        }
        let mut seen = vec![0u8; PIECE];
        let n = works(
            "recv(PEEK|WAITALL)",
            b.recv(&mut seen, MSG_PEEK | MSG_WAITALL),
        )?;
        same!(format!("round {round}: peeked"), n, PIECE);
        if let Some(d) = first_difference(21, at, &seen) {
            return Err(format!("round {round}: byte {d} of the peeked ones is wrong").into());
        }
        let mut got = vec![0u8; data.len()];
        works("recv()", b.recv_exact(&mut got))?;
        ensure!(
            got == data,
            "round {round}: other bytes were read than sent"
        );
        at += data.len() as u64;
    }
    Ok(())
}

fn truncate(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works("send()", a.send_all(b"0123456789"))?;
    let mut buf = [b'.'; 4];
    let n = works(
        "recv(PEEK|WAITALL)",
        b.recv(&mut buf, MSG_PEEK | MSG_WAITALL),
    )?;
    same!("peeked", (n, &buf), (4, b"0123"));
    let mut buf = [b'.'; 4];
    same!(
        "recv(TRUNC)",
        works("recv()", b.recv(&mut buf, MSG_TRUNC | MSG_WAITALL))?,
        4
    );
    same!("the buffer is left alone", &buf, b"....");
    let mut rest = [0u8; 6];
    works("recv()", b.recv_exact(&mut rest))?;
    same!("the rest", &rest, b"456789");
    Ok(())
}

fn wait_all(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    std::thread::scope(|s| {
        s.spawn(|| {
            for _ in 0..10 {
                std::thread::sleep(Duration::from_millis(10));
                // A failed send shows as a short receive.
                let _ = a.send_all(&[5u8; 1000]);
            }
        });
        let n = works("recv(WAITALL)", b.recv(&mut [0u8; 10_000], MSG_WAITALL))?;
        if n != 10_000 {
            return Err(format!("recv(WAITALL) returned {n} of 10000 bytes"));
        }
        Ok(())
    })?;
    works("send()", a.send_all(&[5u8; 100]))?;
    works("shutdown(WR)", a.shutdown(libc::SHUT_WR))?;
    same!(
        "WAITALL at the end",
        works("recv()", b.recv(&mut [0u8; 1000], MSG_WAITALL))?,
        100
    );
    let (a, b) = c.pair()?;
    works(
        "SO_RCVTIMEO",
        b.set_timeout(libc::SO_RCVTIMEO, Duration::from_millis(400)),
    )?;
    works("send()", a.send_all(&[5u8; 100]))?;
    same!(
        "WAITALL timed out",
        works("recv()", b.recv(&mut [0u8; 1000], MSG_WAITALL))?,
        100
    );
    Ok(())
}

fn more(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works("send(MORE)", a.send(b"head", libc::MSG_MORE))?;
    works("send()", a.send(b"tail", 0))?;
    let mut buf = [0u8; 8];
    works("recv()", b.recv_exact(&mut buf))?;
    same!("bytes", &buf, b"headtail");
    // Without a second send the bytes must still leave soon.
    works("send(MORE)", a.send(b"lone", libc::MSG_MORE))?;
    let start = Instant::now();
    readable(&b)?;
    ensure!(
        start.elapsed() < Duration::from_secs(3),
        "MSG_MORE held for {:?}",
        start.elapsed()
    );
    works("recv()", b.recv_exact(&mut buf[..4]))?;
    same!("bytes", &buf[..4], b"lone");
    Ok(())
}

fn oob_byte(b: &Sock) -> Result<u8, String> {
    let end = Instant::now() + SOON;
    let mut one = [0u8; 4];
    loop {
        match b.recv(&mut one, MSG_OOB) {
            Ok(1) => return Ok(one[0]),
            Ok(n) => return Err(format!("recv(OOB) returned {n} bytes")),
            // Announced, but not there yet.
            Err(e) if e.raw_os_error() == Some(EAGAIN) && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(e) => return Err(format!("recv(OOB) failed: {e}")),
        }
    }
}

fn oob(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    for round in 0..10u8 {
        works("send()", a.send_all(b"before"))?;
        same!("send(OOB)", works("send()", a.send(&[round], MSG_OOB))?, 1);
        poll_until(&b, POLLPRI, SOON)?;
        same!("urgent byte", oob_byte(&b)?, round);
        same!(
            "POLLPRI afterwards",
            works("poll()", poll_one(&b, POLLPRI, 0))?,
            0
        );
        fails("recv(OOB) twice", b.recv(&mut [0u8; 1], MSG_OOB), &[EINVAL])?;
        let mut buf = [0u8; 6];
        works("recv()", b.recv_exact(&mut buf))?;
        same!("ordinary bytes", &buf, b"before");
        works("send()", a.send_all(b"after"))?;
        let mut buf = [0u8; 5];
        works("recv()", b.recv_exact(&mut buf))?;
        same!("ordinary bytes after the mark", &buf, b"after");
    }
    Ok(())
}

fn oob_inline(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works(
        "SO_OOBINLINE",
        b.set_int(libc::SOL_SOCKET, libc::SO_OOBINLINE, 1),
    )?;
    for round in 0..10u8 {
        works("send()", a.send_all(b"xyz"))?;
        works("send(OOB)", a.send(&[round], MSG_OOB))?;
        poll_until(&b, POLLPRI, SOON)?;
        fails(
            "recv(OOB) inline",
            b.recv(&mut [0u8; 1], MSG_OOB),
            &[EINVAL],
        )?;
        let mut buf = [0u8; 3];
        works("recv()", b.recv_exact(&mut buf))?;
        same!(
            "SIOCATMARK at the mark",
            works("ioctl", b.ioctl_int(SIOCATMARK))?,
            1
        );
        // A read never runs across the mark's byte together with what is before it.
        works("recv()", b.recv_exact(&mut buf[..1]))?;
        same!("urgent byte", buf[0], round);
        same!(
            "SIOCATMARK behind it",
            works("ioctl", b.ioctl_int(SIOCATMARK))?,
            0
        );
    }
    talk(&a, &b)?;
    Ok(())
}

fn sigurg(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works("sigaction", count_signal(libc::SIGURG))?;
    works(
        "F_SETOWN",
        b.fcntl(libc::F_SETOWN, std::process::id() as i32),
    )?;
    works("send(OOB)", a.send(b"!", MSG_OOB))?;
    let end = Instant::now() + SOON;
    while signals_caught(libc::SIGURG) == 0 {
        ensure!(Instant::now() < end, "no SIGURG came");
        std::thread::sleep(Duration::from_millis(5));
    }
    same!("urgent byte", oob_byte(&b)?, b'!');
    Ok(())
}

fn oob_errors(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    fails(
        "recv(OOB) without urgent data",
        b.recv(&mut [0u8; 1], MSG_OOB),
        &[EINVAL],
    )?;
    same!("SIOCATMARK", works("ioctl", b.ioctl_int(SIOCATMARK))?, 0);
    works("send()", a.send_all(b"plain"))?;
    let mut buf = [0u8; 5];
    works("recv()", b.recv_exact(&mut buf))?;
    fails(
        "recv(OOB) after plain data",
        b.recv(&mut [0u8; 1], MSG_OOB),
        &[EINVAL],
    )?;
    Ok(())
}

fn error_queue(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works("send()", a.send_all(b"data"))?;
    readable(&b)?;
    fails(
        "recv(ERRQUEUE)",
        b.recv(&mut [0u8; 4], libc::MSG_ERRQUEUE),
        &[EAGAIN, EINVAL],
    )?;
    let mut buf = [0u8; 4];
    works("recv()", b.recv_exact(&mut buf))?;
    same!("data afterwards", &buf, b"data");
    Ok(())
}

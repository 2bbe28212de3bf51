// SPDX-License-Identifier: GPL-2.0

//! Sending and receiving without special flags, and the other ways to move bytes.

use crate::check::{fails, works};
use crate::ctx::{talk, Ctx};
use crate::{check, Check};
use libc::{EAGAIN, EFAULT, ENOTCONN, EPIPE, MSG_DONTWAIT, MSG_NOSIGNAL};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use testlib::extra::{sendfile, HalfMapped};
use testlib::pattern::{fill, Tally};
use testlib::process::{count_signal, interval_timer, signals_caught};
use testlib::sock::Sock;
use testlib::tap::Outcome;

pub(crate) const CHECKS: &[Check] = &[
    check("data: sizes around the ring sizes, both ways", sizes),
    check("data: empty sends", empty),
    check("data: not connected", unconnected),
    check("data: non-blocking sends of too much", partial),
    check("data: send time-out with a part sent", send_timeout),
    check("data: receive time-out", recv_timeout),
    check("data: signals do not change EAGAIN", signals),
    check("data: writev and readv", vectors),
    check("data: bad addresses", bad_address),
    check("data: an address that goes bad half way", half_bad),
    check("data: sendfile", send_file),
    check("data: SO_RCVLOWAT", low_water),
    check(
        "data: a slow reader stops the sender, and nothing is lost",
        slow_reader,
    ),
];

fn sizes(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    for size in [
        1usize, 15, 16, 17, 4095, 4096, 16383, 16384, 16385, 65536, 100_000, 300_000,
    ] {
        for (from, to) in [(&a, &b), (&b, &a)] {
            let mut data = vec![0u8; size];
            fill(size as u64, 0, &mut data);
            let got = std::thread::scope(|s| {
                let sender = s.spawn(|| from.send_all(&data));
                let mut got = vec![0u8; size];
                works("recv()", to.recv_exact(&mut got))?;
                works("send()", sender.join().unwrap_or(Ok(())))?;
                Ok::<_, String>(got)
            })?;
            ensure!(got == data, "{size} bytes arrived changed");
        }
    }
    Ok(())
}

fn empty(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    same!("send() of nothing", works("send()", a.send(&[], 0))?, 0);
    fails(
        "recv() after an empty send",
        b.recv(&mut [0u8; 8], MSG_DONTWAIT),
        &[EAGAIN],
    )?;
    talk(&a, &b)?;
    Ok(())
}

fn unconnected(c: &Ctx) -> Outcome {
    let s = c.client_socket(0)?;
    fails("send()", s.send(b"x", MSG_NOSIGNAL), &[EPIPE, ENOTCONN])?;
    fails("recv()", s.recv(&mut [0u8; 4], 0), &[ENOTCONN])?;
    let (listener, _) = c.listener(0)?;
    fails(
        "send() on a listener",
        listener.send(b"x", MSG_NOSIGNAL),
        &[EPIPE, ENOTCONN],
    )?;
    fails(
        "recv() on a listener",
        listener.recv(&mut [0u8; 4], 0),
        &[ENOTCONN],
    )?;
    Ok(())
}

/// Reads `count` bytes of stream `key` and compares them.
fn expect_stream(s: &Sock, key: u64, count: u64) -> Result<(), String> {
    let mut tally = Tally::new(key);
    let mut buf = vec![0u8; 40_000];
    while tally.count() < count {
        let want = (count - tally.count()).min(buf.len() as u64) as usize;
        let n = works("recv()", s.recv(&mut buf[..want], 0))?;
        if n == 0 {
            return Err(format!(
                "the stream ended at byte {} of {count}",
                tally.count()
            ));
        }
        tally.verify(&buf[..n])?;
    }
    Ok(())
}

fn partial(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let mut data = vec![0u8; 32 << 20];
    fill(3, 0, &mut data);
    let first = works("send()", a.send(&data, MSG_DONTWAIT))?;
    ensure!(
        first > 0 && first < data.len(),
        "a non-blocking send took {first} bytes"
    );
    let mut sent = first;
    let mut quiet = 0;
    while quiet < 5 {
        match a.send(&data[sent..], MSG_DONTWAIT) {
            Ok(n) => sent += n,
            Err(e) => {
                fails("send() to a full socket", Err::<(), _>(e), &[EAGAIN])?;
                quiet += 1;
                std::thread::sleep(Duration::from_millis(40));
            }
        }
    }
    expect_stream(&b, 3, sent as u64)?;
    talk(&a, &b)?;
    Ok(())
}

fn send_timeout(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let mut data = vec![0u8; 32 << 20];
    fill(4, 0, &mut data);
    works(
        "SO_SNDTIMEO",
        a.set_timeout(libc::SO_SNDTIMEO, Duration::from_millis(300)),
    )?;
    let start = Instant::now();
    let sent = works("send()", a.send(&data, 0))?;
    ensure!(
        sent > 0 && sent < data.len(),
        "a send with a time-out took {sent} bytes"
    );
    // Room for nothing: the next call reports the time-out, at the latest the one after.
    let mut more = 0;
    let mut timed_out = false;
    for _ in 0..20 {
        match a.send(&data[sent + more..], 0) {
            Ok(n) => more += n,
            Err(e) => {
                fails("send() to a full socket", Err::<(), _>(e), &[EAGAIN])?;
                timed_out = true;
                break;
            }
        }
    }
    ensure!(timed_out, "send() never reported the time-out");
    ensure!(
        start.elapsed() < Duration::from_secs(20),
        "took {:?}",
        start.elapsed()
    );
    expect_stream(&b, 4, (sent + more) as u64)?;
    talk(&a, &b)?;
    Ok(())
}

fn recv_timeout(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works(
        "SO_RCVTIMEO",
        b.set_timeout(libc::SO_RCVTIMEO, Duration::from_millis(250)),
    )?;
    let start = Instant::now();
    fails("recv()", b.recv(&mut [0u8; 4], 0), &[EAGAIN])?;
    let took = start.elapsed();
    ensure!(took >= Duration::from_millis(200), "gave up after {took:?}");
    ensure!(took < Duration::from_secs(5), "waited {took:?} for 250 ms");
    talk(&a, &b)?;
    Ok(())
}

fn signals(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works("sigaction", count_signal(libc::SIGALRM))?;
    works("setitimer", interval_timer(Duration::from_millis(1)))?;
    let end = Instant::now() + Duration::from_millis(400);
    while Instant::now() < end {
        fails(
            "recv(DONTWAIT)",
            b.recv(&mut [0u8; 4], MSG_DONTWAIT),
            &[EAGAIN],
        )?;
    }
    // A blocking call does see the signal, as no SA_RESTART is set.
    fails("recv()", b.recv(&mut [0u8; 4], 0), &[libc::EINTR])?;
    works("setitimer", interval_timer(Duration::ZERO))?;
    ensure!(
        signals_caught(libc::SIGALRM) > 10,
        "too few signals were delivered"
    );
    talk(&a, &b)?;
    Ok(())
}

fn file(s: &Sock) -> Result<File, String> {
    Ok(File::from(OwnedFd::from(works("dup()", s.dup())?)))
}

fn vectors(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let n = works(
        "writev()",
        file(&a)?.write_vectored(&[
            IoSlice::new(b"one"),
            IoSlice::new(b""),
            IoSlice::new(b"two!"),
        ]),
    )?;
    same!("writev()", n, 7);
    let (mut x, mut y, mut z) = ([0u8; 2], [0u8; 4], [0u8; 10]);
    let mut got = 0;
    // The bytes may come in two pieces; then readv is simply called later.
    let end = Instant::now() + Duration::from_secs(10);
    while got < 7 && Instant::now() < end {
        got = works("recv(PEEK)", b.recv(&mut [0u8; 16], libc::MSG_PEEK))?;
    }
    let n = works(
        "readv()",
        file(&b)?.read_vectored(&mut [
            IoSliceMut::new(&mut x),
            IoSliceMut::new(&mut y),
            IoSliceMut::new(&mut z),
        ]),
    )?;
    same!("readv()", n, 7);
    same!(
        "bytes",
        [&x[..], &y[..], &z[..1]].concat(),
        b"onetwo!".to_vec()
    );
    Ok(())
}

fn bad_address(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    fails(
        "send() from address 8",
        a.send_from_address(8, 100, MSG_NOSIGNAL),
        &[EFAULT],
    )?;
    works("send()", a.send_all(b"good"))?;
    crate::ctx::readable(&b)?;
    fails("recv() to address 0", b.recv_into_null(4, 0), &[EFAULT])?;
    let mut buf = [0u8; 4];
    works("recv()", b.recv_exact(&mut buf))?;
    same!("bytes after a failed recv()", &buf, b"good");
    talk(&a, &b)?;
    Ok(())
}

fn half_bad(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let pages = works("mmap()", HalfMapped::new(|i| i as u8))?;
    let mut want = Vec::new();
    // Shifts the place in the ring at which the copy breaks off.
    for round in 0..40usize {
        let filler = vec![0xabu8; 997 * (round % 7) + 1];
        works("send()", a.send_all(&filler))?;
        want.extend_from_slice(&filler);
        let good = 100 + round * 90;
        match a.send_from_address(pages.address(good), good + 3000, MSG_NOSIGNAL) {
            Ok(n) => {
                ensure!(
                    n <= good,
                    "send() took {n} bytes although {good} can be read"
                );
                want.extend((4096 - good..4096 - good + n).map(|i| i as u8));
            }
            Err(e) => {
                fails("send()", Err::<(), _>(e), &[EFAULT])?;
            }
        }
        let mut got = vec![0u8; want.len()];
        works("recv()", b.recv_exact(&mut got))?;
        ensure!(
            got == want,
            "round {round}: other bytes than send() reported arrived"
        );
        want.clear();
    }
    fails(
        "recv() of more",
        b.recv(&mut [0u8; 4], MSG_DONTWAIT),
        &[EAGAIN],
    )?;
    Ok(())
}

fn temporary(size: usize) -> Result<File, String> {
    let path = std::env::temp_dir().join(format!("smc_api.{}", std::process::id()));
    let made = || -> std::io::Result<File> {
        let mut f = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        std::fs::remove_file(&path)?;
        let mut data = vec![0u8; size];
        fill(6, 0, &mut data);
        f.write_all(&data)?;
        f.rewind()?;
        Ok(f)
    };
    works("a temporary file", made())
}

fn send_file(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let size = 400_000usize;
    let f = temporary(size)?;
    let start = 4097usize;
    std::thread::scope(|s| {
        let sender = s.spawn(|| {
            let mut at = start;
            while at < size {
                let n = works("sendfile()", sendfile(&a, &f, at as i64, size - at))?;
                if n == 0 {
                    return Err("sendfile() returned 0".to_owned());
                }
                at += n;
            }
            Ok(())
        });
        let mut got = vec![0u8; size - start];
        works("recv()", b.recv_exact(&mut got))?;
        sender
            .join()
            .unwrap_or_else(|_| Err("a thread panicked".into()))?;
        match testlib::pattern::first_difference(6, start as u64, &got) {
            None => Ok(()),
            Some(d) => Err(format!("byte {d} of the file arrived changed")),
        }
    })?;
    let s = c.client_socket(0)?;
    works("sigaction", count_signal(libc::SIGPIPE))?;
    fails(
        "sendfile() unconnected",
        sendfile(&s, &f, 0, 100),
        &[EPIPE, ENOTCONN],
    )?;
    works("shutdown(WR)", a.shutdown(libc::SHUT_WR))?;
    fails(
        "sendfile() after shutdown",
        sendfile(&a, &f, 0, 100),
        &[EPIPE],
    )?;
    Ok(())
}

fn low_water(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    works(
        "SO_RCVLOWAT",
        b.set_int(libc::SOL_SOCKET, libc::SO_RCVLOWAT, 100),
    )?;
    works("send()", a.send_all(&[1u8; 60]))?;
    std::thread::sleep(Duration::from_millis(300));
    let bits = works("poll()", testlib::event::poll_one(&b, libc::POLLIN, 0))?;
    same!("poll below the low-water mark", bits, 0);
    works("send()", a.send_all(&[1u8; 60]))?;
    crate::ctx::readable(&b)?;
    same!("recv()", works("recv()", b.recv(&mut [0u8; 200], 0))?, 120);
    Ok(())
}

fn slow_reader(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let total = 3u64 << 20;
    std::thread::scope(|s| {
        let sender = s.spawn(|| {
            let mut data = vec![0u8; total as usize];
            fill(8, 0, &mut data);
            works("send()", a.send_all(&data))
        });
        std::thread::sleep(Duration::from_millis(500));
        let mut tally = Tally::new(8);
        let mut buf = vec![0u8; 30_000];
        while tally.count() < total {
            let want = (total - tally.count()).min(buf.len() as u64) as usize;
            let n = works("recv()", b.recv(&mut buf[..want], 0))?;
            if n == 0 {
                return Err(format!("ended at byte {}", tally.count()));
            }
            tally.verify(&buf[..n])?;
            if tally.count() < 400_000 {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        sender
            .join()
            .unwrap_or_else(|_| Err("a thread panicked".into()))
    })?;
    Ok(())
}

// SPDX-License-Identifier: GPL-2.0

//! Bytes that go through pipes: `splice()` and `tee()`.

use crate::check::{fails, works};
use crate::ctx::{readable, talk, Ctx};
use crate::{check, Check};
use libc::EAGAIN;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use testlib::extra::{splice, tee};
use testlib::pattern::fill;
use testlib::process::pipe;
use testlib::sock::Sock;
use testlib::tap::Outcome;

pub(crate) const CHECKS: &[Check] = &[
    check("pipes: splice", splices),
    check("pipes: tee of what was spliced", teed),
    check("pipes: spliced bytes outlive the socket", outlived),
];

fn file_of(fd: &OwnedFd) -> Result<File, String> {
    Ok(File::from(works("dup()", fd.try_clone())?))
}

/// Moves this many bytes from the socket into the pipe.
fn splice_all(from: &Sock, into: &OwnedFd, count: usize) -> Result<(), String> {
    let mut moved = 0;
    while moved < count {
        readable(from)?;
        moved += works(
            "splice() from the socket",
            splice(from, into, count - moved, 0),
        )?;
    }
    Ok(())
}

fn splices(c: &Ctx) -> Outcome {
    let (a, b) = c.pair()?;
    let (out, inp) = works("pipe()", pipe())?;
    let mut got = Vec::new();
    for round in 0..20u64 {
        let mut data = vec![0u8; 3000];
        fill(round, 0, &mut data);
        works("write to pipe", file_of(&inp)?.write_all(&data))?;
        let mut moved = 0;
        while moved < data.len() {
            moved += works(
                "splice() to the socket",
                splice(&out, &a, data.len() - moved, 0),
            )?;
        }
        splice_all(&b, &inp, data.len())?;
        got.resize(data.len(), 0);
        works("read from pipe", file_of(&out)?.read_exact(&mut got))?;
        ensure!(got == data, "round {round}: spliced bytes arrived changed");
    }
    works("fcntl", b.set_nonblocking(true))?;
    fails(
        "splice() from an empty socket",
        splice(&b, &inp, 10, 2),
        &[EAGAIN],
    )?;
    works("shutdown(WR)", a.shutdown(libc::SHUT_WR))?;
    readable(&b)?;
    same!(
        "splice() at the end",
        works("splice()", splice(&b, &inp, 10, 0))?,
        0
    );
    Ok(())
}

/// Bytes are in two pipes, which are closed in turn, read or not; the receive window must be that of
/// bytes taken once.
fn teed(c: &Ctx) -> Outcome {
    const SIZE: usize = 3000;
    // Several times what a ring holds.
    const ROUNDS: u64 = 120;
    let (a, b) = c.pair()?;
    for round in 0..ROUNDS {
        let mut data = vec![0u8; SIZE];
        fill(round, 0, &mut data);
        works("send()", a.send_all(&data))?;
        let (out, inp) = works("pipe()", pipe())?;
        let (second_out, second_inp) = works("pipe()", pipe())?;
        splice_all(&b, &inp, SIZE)?;
        same!("tee()", works("tee()", tee(&out, &second_inp, SIZE))?, SIZE);
        let read = match round % 3 {
            0 => vec![&out, &second_out],
            1 => vec![&second_out],
            _ => Vec::new(),
        };
        for end in read {
            let mut got = vec![0u8; SIZE];
            works("read from pipe", file_of(end)?.read_exact(&mut got))?;
            ensure!(got == data, "round {round}: bytes arrived changed");
        }
        if round % 2 == 0 {
            drop((out, inp));
            drop((second_out, second_inp));
        } else {
            drop((second_out, second_inp));
            drop((out, inp));
        }
    }
    talk(&a, &b)?;
    Ok(())
}

/// The connection ends at both ends, and is gone, while its bytes are in a pipe.
fn outlived(c: &Ctx) -> Outcome {
    const SIZE: usize = 30_000;
    for is_read in [true, false] {
        let (a, b) = c.pair()?;
        let name = works("getsockname()", a.local())?.to_string();
        let mut data = vec![0u8; SIZE];
        fill(9, 0, &mut data);
        works("send()", a.send_all(&data))?;
        let (out, inp) = works("pipe()", pipe())?;
        splice_all(&b, &inp, SIZE)?;
        works("close()", b.close())?;
        works("close()", a.close())?;
        let end = Instant::now() + Duration::from_secs(10);
        while is_listed(c, &name) {
            ensure!(Instant::now() < end, "the connection is still there");
            std::thread::sleep(Duration::from_millis(20));
        }
        if is_read {
            let mut got = vec![0u8; SIZE];
            works("read from pipe", file_of(&out)?.read_exact(&mut got))?;
            ensure!(got == data, "bytes changed when the socket was closed");
        }
        drop((out, inp));
    }
    let (a, b) = c.pair()?;
    talk(&a, &b)?;
    Ok(())
}

/// Whether a connection has an end of this name.
fn is_listed(c: &Ctx, name: &str) -> bool {
    [&c.server_ns, &c.client_ns].into_iter().any(|ns| {
        c.counters(ns.as_deref()).is_some_and(|counters| {
            let mut all = counters.connections.iter();
            all.any(|conn| conn.get("local") == Some(name) || conn.get("peer") == Some(name))
        })
    })
}

// SPDX-License-Identifier: GPL-2.0

//! Calls whose memory is not there yet: whoever waits for a page must not keep others from the
//! socket.

use crate::check::works;
use crate::ctx::{Ctx, Expect};
use crate::{check, Check};
use libc::{IPPROTO_TCP, SOL_SOCKET};
use std::sync::mpsc;
use std::time::Duration;
use testlib::extra::close_under;
use testlib::lazy::LazyPage;
use testlib::opts::{SIOCINQ, SIOCOUTQ};
use testlib::sock::Sock;
use testlib::tap::{Outcome, Problem};

pub(crate) const CHECKS: &[Check] = &[
    check("options: values go where there is nothing yet", get_values),
    check("ioctl: the answer goes where there is nothing yet", ioctls),
    check("data: received where there is nothing yet", received),
];

const SOL_SMC: i32 = 286;
const SMC_LIMIT_HS: i32 = 1;
const SMC_INFO: i32 = 64;

fn page() -> Result<LazyPage, Problem> {
    LazyPage::new().map_err(|e| match e.raw_os_error() {
        Some(libc::ENOSYS | libc::EPERM) => {
            Problem::Skipped(format!("the kernel does not let a page be missing: {e}"))
        }
        _ => Problem::Failed(format!("userfaultfd() failed: {e}")),
    })
}

/// While `call` waits for the page, others use the socket, shut it down and close it.
fn others_go_on(
    c: &Ctx,
    what: &str,
    prepare: impl FnOnce(&Sock) -> Result<(), String>,
    call: impl FnOnce(&LazyPage, &Sock) -> std::io::Result<()> + Send,
) -> Outcome {
    let page = page()?;
    let (a, b) = c.pair()?;
    let other = c.client_socket(0)?;
    prepare(&b)?;
    let (done, ended) = mpsc::channel();
    let outcome = std::thread::scope(|s| {
        let (page, a, b, other) = (&page, &a, &b, &other);
        let waiting = s.spawn(move || call(page, a));
        if !works("poll()", page.is_wanted(10_000))? {
            works("UFFDIO_ZEROPAGE", page.give())?;
            return Err(format!("{what}: nobody waited for the page"));
        }
        s.spawn(move || {
            // Who waits for the result has left if it took too long.
            let _ = done.send(use_and_close(a, b, other));
        });
        let used = ended
            .recv_timeout(Duration::from_secs(10))
            .unwrap_or_else(|_| Err("others wait for the page, too".into()));
        works("UFFDIO_ZEROPAGE", page.give())?;
        let result = waiting.join().unwrap_or(Ok(()));
        used.and_then(|()| works("the call itself", result))
            .map_err(|e| format!("{what}: {e}"))
    });
    outcome?;
    Ok(())
}

fn use_and_close(a: &Sock, b: &Sock, other: &Sock) -> Result<(), String> {
    works("getsockname()", a.local())?;
    works("SO_KEEPALIVE", a.set_int(SOL_SOCKET, libc::SO_KEEPALIVE, 1))?;
    works("TCP_CORK", a.set_int(IPPROTO_TCP, libc::TCP_CORK, 0))?;
    works("send()", a.send_all(b"go on"))?;
    works("recv()", b.recv_exact(&mut [0u8; 5]))?;
    works("shutdown()", a.shutdown(libc::SHUT_RDWR))?;
    works("the end", b.recv(&mut [0u8; 4], 0))?;
    works("close()", close_under(a, other))
}

fn get_values(c: &Ctx) -> Outcome {
    for (level, name, len) in [
        (SOL_SOCKET, libc::SO_TYPE, 4),
        (IPPROTO_TCP, libc::TCP_NODELAY, 4),
        (SOL_SMC, SMC_LIMIT_HS, 4),
        (SOL_SMC, SMC_INFO, 64),
    ] {
        if level == SOL_SMC && !c.family.is_smc() {
            continue;
        }
        let what = format!("getsockopt() of {level} {name}");
        others_go_on(
            c,
            &what,
            |_| Ok(()),
            |page, sock| page.get_option(sock, (level, name), len),
        )?;
    }
    Ok(())
}

fn ioctls(c: &Ctx) -> Outcome {
    for request in [SIOCINQ, SIOCOUTQ] {
        let what = format!("ioctl() {request:#x}");
        others_go_on(c, &what, |_| Ok(()), |page, sock| page.ioctl(sock, request))?;
    }
    Ok(())
}

fn received(c: &Ctx) -> Outcome {
    if c.expect != Expect::Smcr {
        skip!("TCP keeps others waiting meanwhile");
    }
    let send = |peer: &Sock| works("send()", peer.send_all(b"data"));
    others_go_on(c, "recv()", send, |page, sock| page.recv(sock, 4).map(drop))
}

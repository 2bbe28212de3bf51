// SPDX-License-Identifier: GPL-2.0

//! The connecting side.

use crate::plan::{header, Io, Mode, Plan, Side, Victim};
use crate::report::{read_line, Results};
use crate::{abort, blocking, edge, kill, oob};
use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use testlib::sock::{Family, Sock};

/// Sets the buffer sizes of the plan; zero leaves a default alone.
///
/// # Errors
///
/// The error of `setsockopt(2)`.
pub(crate) fn set_buffers(sock: &Sock, plan: &Plan) -> io::Result<()> {
    for (name, value) in [
        (libc::SO_SNDBUF, plan.sndbuf),
        (libc::SO_RCVBUF, plan.rcvbuf),
    ] {
        if value > 0 {
            sock.set_int(libc::SOL_SOCKET, name, value as i32)?;
        }
    }
    Ok(())
}

/// Connects the control connection, waiting for a server that is just starting.
fn control(addr: SocketAddr) -> Result<TcpStream, String> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match TcpStream::connect_timeout(&addr, Duration::from_secs(5)) {
            Ok(s) => return Ok(s),
            Err(e) if Instant::now() > end => {
                return Err(format!("no server answers on {addr} (control port): {e}"))
            }
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Carries out a plan against a server.
///
/// # Errors
///
/// A sentence when the run could not be carried through.
pub(crate) fn run(plan: &Plan, io: Io, family: Family, addr: SocketAddr) -> Result<i32, String> {
    let mut control = control(SocketAddr::new(addr.ip(), addr.port() + 1))?;
    let mut lines = BufReader::new(control.try_clone().map_err(|e| format!("dup: {e}"))?);
    writeln!(control, "{}", plan.to_line()).map_err(|e| format!("control connection: {e}"))?;
    let answer = read_line(&mut lines)?;
    if answer != "READY" {
        return Err(format!("the server could not start: {answer}"));
    }
    let results = Results::start(Side::Client, plan);
    match io {
        Io::Epoll => {
            edge::client(plan, family, addr, &results).map_err(|e| format!("epoll: {e}"))?;
        }
        Io::Blocking => workers(plan, family, addr, &results),
    }
    results.send(&mut control)?;
    results.compare(&mut lines)?;
    Ok(results.print())
}

/// Lets a limited number of threads through at one time.
struct Gate {
    free: Mutex<u64>,
    changed: Condvar,
}

impl Gate {
    /// A gate for `limit` threads; 0 for any number.
    fn new(limit: u64) -> Gate {
        Gate {
            free: Mutex::new(if limit == 0 { u64::MAX } else { limit }),
            changed: Condvar::new(),
        }
    }

    fn pass<R>(&self, action: impl FnOnce() -> R) -> R {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self
            .changed
            .wait_while(free, |free| *free == 0)
            .unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        drop(free);
        let result = action();
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_one();
        result
    }
}

fn workers(plan: &Plan, family: Family, addr: SocketAddr, results: &Arc<Results>) {
    let next = AtomicU64::new(0);
    let gate = Gate::new(plan.own.connecting);
    std::thread::scope(|s| {
        for _ in 0..plan.parallel.min(plan.conns) {
            let worker = || loop {
                let id = next.fetch_add(1, Ordering::Relaxed);
                if id >= plan.conns || (results.failed() && plan.mode != Mode::Kill) {
                    return;
                }
                one(id, plan, family, addr, results, &gate);
            };
            let thread = std::thread::Builder::new()
                .stack_size(256 << 10)
                .spawn_scoped(s, worker);
            if let Err(e) = thread {
                results.fail(format!("no thread for a connection: {e}"));
            }
        }
    });
}

fn one(id: u64, plan: &Plan, family: Family, addr: SocketAddr, results: &Results, gate: &Gate) {
    if plan.mode == Mode::Kill && plan.victim == Victim::Client {
        if let Err(e) = kill::client_victim(id, plan, family, addr) {
            results.fail(format!("connection {id}: {e}"));
        }
        return;
    }
    let connect = || -> io::Result<Sock> {
        let sock = Sock::new(family)?;
        set_buffers(&sock, plan)?;
        sock.connect(addr)?;
        sock.send_all(&header(id))?;
        Ok(sock)
    };
    let sock = match gate.pass(connect) {
        Ok(sock) => sock,
        Err(e) => return results.fail(format!("connection {id}: connecting failed: {e}")),
    };
    let progress = results.opened(id);
    if id < plan.parallel && matches!(plan.mode, Mode::Fixed | Mode::Churn) {
        // The first ones wait for each other, so that all are open at once.
        let want = plan.parallel.min(plan.conns);
        let patience = if plan.own.connecting == 0 {
            30
        } else {
            plan.timeout
        };
        let end = Instant::now() + Duration::from_secs(patience);
        while results.peak() < want && !results.failed() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let script = plan.script(id);
    let side = Side::Client;
    let outcome = match plan.mode {
        Mode::Fixed | Mode::Churn => blocking::run(sock, plan, &script, side, &progress),
        Mode::HalfClose => blocking::half_close(sock, plan, &script, side, &progress),
        Mode::ShortReply => blocking::short_reply(sock, plan, &script, side, &progress),
        Mode::Oob => oob::run(sock, plan, id, side, &progress),
        Mode::Kill => kill::until_end(&sock, plan, &script, side).map(|(report, _)| report),
        Mode::Abort => abort::run(sock, plan, &script, side),
    };
    results.done(id, outcome);
}

// SPDX-License-Identifier: GPL-2.0

//! The accepting side.

use crate::plan::{parse_header, Io, Mode, Own, Plan, Side, Victim, HEADER_LEN};
use crate::report::{read_line, Results};
use crate::{abort, blocking, edge, kill, oob};
use std::io::{BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use testlib::event::poll_one;
use testlib::sock::{Family, Sock};

/// Serves one plan: control connection, data connections, comparison.
///
/// # Errors
///
/// A sentence when the run could not be carried through.
pub(crate) fn serve(family: Family, ip: IpAddr, port: u16, own: Own) -> Result<i32, String> {
    let control_addr = SocketAddr::new(ip, port + 1);
    let control = TcpListener::bind(control_addr)
        .map_err(|e| format!("cannot listen for the control connection on {control_addr}: {e}"))?;
    let (mut control, _) = control
        .accept()
        .map_err(|e| format!("control accept: {e}"))?;
    let mut lines = BufReader::new(control.try_clone().map_err(|e| format!("dup: {e}"))?);
    let mut plan = Plan::from_line(&read_line(&mut lines)?)?;
    plan.own = own;
    let results = Results::start(Side::Server, &plan);
    let listener = listen(family, ip, port, &plan).map_err(|e| {
        // The client shows the reason; a broken control connection would hide it.
        let _ = writeln!(control, "ERROR {e}");
        e
    })?;
    writeln!(control, "READY").map_err(|e| format!("control connection: {e}"))?;
    match plan.server_io {
        Io::Epoll => edge::server(&plan, &listener, &results).map_err(|e| format!("epoll: {e}"))?,
        Io::Blocking => accept_all(&plan, &listener, &results),
    }
    drop(listener);
    results.send(&mut control)?;
    results.compare(&mut lines)?;
    Ok(results.print())
}

fn listen(family: Family, ip: IpAddr, port: u16, plan: &Plan) -> Result<Sock, String> {
    let set_up = || -> std::io::Result<Sock> {
        let sock = Sock::new(family)?;
        sock.set_int(libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        crate::client::set_buffers(&sock, plan)?;
        sock.bind(SocketAddr::new(ip, port))?;
        sock.listen(1024)?;
        Ok(sock)
    };
    set_up().map_err(|e| format!("cannot listen on {ip} port {port} ({}): {e}", family.name()))
}

fn accept_all(plan: &Plan, listener: &Sock, results: &Arc<Results>) {
    let mut threads = Vec::new();
    for n in 0..plan.conns {
        match poll_one(listener, libc::POLLIN, 30_000) {
            Ok(bits) if bits & libc::POLLIN != 0 => {}
            other => {
                results.fail(format!(
                    "{n} of {} connections came in: {other:?}",
                    plan.conns
                ));
                break;
            }
        }
        let sock = match listener.accept(libc::SOCK_CLOEXEC) {
            Ok((sock, _)) => sock,
            Err(e) => {
                results.fail(format!("accept failed: {e}"));
                break;
            }
        };
        if plan.mode == Mode::Kill && plan.victim == Victim::Server {
            victim(sock, plan, results, &mut threads);
            continue;
        }
        let (plan, shared) = (plan.clone(), Arc::clone(results));
        let thread = std::thread::Builder::new()
            .stack_size(256 << 10)
            .spawn(move || handle(sock, &plan, &shared));
        match thread {
            Ok(t) => threads.push(t),
            Err(e) => results.fail(format!("no thread for a connection: {e}")),
        }
    }
    for t in threads {
        if t.join().is_err() {
            results.fail("a connection's thread panicked".into());
        }
    }
}

fn victim(
    sock: Sock,
    plan: &Plan,
    results: &Arc<Results>,
    threads: &mut Vec<std::thread::JoinHandle<()>>,
) {
    let started = first_bytes(&sock, plan).and_then(|id| {
        let t = kill::server_victim(sock, plan.clone(), plan.script(id))?;
        Ok((id, t))
    });
    match started {
        Ok((id, t)) => {
            let shared = Arc::clone(results);
            threads.push(std::thread::spawn(move || {
                if let Err(e) = t.join().unwrap_or_else(|_| Err("a thread panicked".into())) {
                    shared.fail(format!("connection {id}: {e}"));
                }
            }));
        }
        Err(e) => results.fail(e),
    }
}

fn first_bytes(sock: &Sock, plan: &Plan) -> Result<u64, String> {
    let mut h = [0u8; HEADER_LEN];
    sock.recv_exact(&mut h)
        .map_err(|e| format!("a connection's header did not come: {e}"))?;
    parse_header(&h, plan.conns)
}

fn handle(sock: Sock, plan: &Plan, results: &Results) {
    let id = match first_bytes(&sock, plan) {
        Ok(id) => id,
        Err(e) => return results.fail(e),
    };
    let progress = results.opened(id);
    let script = plan.script(id);
    let side = Side::Server;
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

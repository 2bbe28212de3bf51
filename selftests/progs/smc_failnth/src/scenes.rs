// SPDX-License-Identifier: GPL-2.0

//! What is done while an allocation fails.

use crate::talk::{exchange, refused, socket, whole, Seen};
use crate::{run_tool, Ctx, Fault};
use std::net::SocketAddr;
use testlib::event::poll_until;
use testlib::process::new_netns;
use testlib::sock::{raw_socketpair, Family, Sock};

/// Whose allocations fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Those that the system call makes itself.
    Thread,
    /// Those of both ends, their work items and bottom halves.
    Everybody,
}

/// One thing to do over and over.
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) reach: Reach,
    /// Done before, while nothing fails.
    pub(crate) prepare: fn(&Ctx) -> Result<(), String>,
    /// Done by a process of its own, in the client's namespace.
    pub(crate) run: fn(&Ctx, &Fault<'_>) -> Result<Seen, String>,
}

fn nothing(_: &Ctx) -> Result<(), String> {
    Ok(())
}

const fn thread(name: &'static str, run: fn(&Ctx, &Fault<'_>) -> Result<Seen, String>) -> Scene {
    Scene {
        name,
        reach: Reach::Thread,
        prepare: nothing,
        run,
    }
}

const fn everybody(
    name: &'static str,
    prepare: fn(&Ctx) -> Result<(), String>,
    run: fn(&Ctx, &Fault<'_>) -> Result<Seen, String>,
) -> Scene {
    Scene {
        name,
        reach: Reach::Everybody,
        prepare,
        run,
    }
}

pub(crate) const SCENES: &[Scene] = &[
    thread("socket()", make),
    thread("socket() as a protocol of the internet family", make_inet),
    thread("socketpair()", pair),
    thread("listen()", listen),
    thread("connect() without waiting", connect_nonblocking),
    thread("connect()", connect),
    thread("accept()", accept),
    thread("accept() of the internet family", accept_inet),
    thread("a new network namespace", namespace),
    everybody(
        "the first connection of a link group",
        fresh_group,
        connection,
    ),
    everybody("another connection of a link group", nothing, connection),
    everybody("a connection to a closed port", nothing, closed_port),
    everybody("a connection with large buffers", nothing, large_buffers),
    everybody("data of an open connection", nothing, open_connection),
    everybody("a device that comes", device_away, device_comes),
    everybody("listings and settings", nothing, tools),
];

/// Turns the result of a call into what was seen, or goes on with its value.
macro_rules! or_refused {
    ($call:literal, $result:expr) => {
        match $result {
            Ok(value) => value,
            Err(e) => return refused($call, &e),
        }
    };
}

fn made() -> Result<Sock, String> {
    socket(Family::Smc).map_err(|e| format!("socket() without a fault: {e}"))
}

fn make(ctx: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    make_of(Family::Smc, ctx, fault)
}

fn make_inet(ctx: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    make_of(Family::SmcInet, ctx, fault)
}

fn make_of(family: Family, ctx: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    fault.start()?;
    let sock = Sock::new(family);
    fault.stop()?;
    let sock = or_refused!("socket()", sock);
    or_refused!("connect()", sock.connect(ctx.server));
    exchange(&sock)
}

/// There are no such pairs, but both sockets are made before that is said.
fn pair(_: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    fault.start()?;
    let all = [Family::Smc, Family::Smc6, Family::SmcInet].map(|family| {
        let (domain, protocol) = family.domain_and_protocol();
        raw_socketpair(domain, libc::SOCK_STREAM, protocol)
    });
    fault.stop()?;
    let mut seen = Seen::Refused(libc::EOPNOTSUPP);
    for result in all {
        match result {
            Ok(_) => return Err("socketpair() made a pair".to_owned()),
            Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
            Err(e) => seen = refused("socketpair()", &e)?,
        }
    }
    Ok(seen)
}

fn any_port(ctx: &Ctx) -> SocketAddr {
    SocketAddr::new(ctx.client_ip, 0)
}

fn listen(ctx: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    let sock = made()?;
    fault.start()?;
    let bound = sock.bind(any_port(ctx));
    let listening = sock.listen(8);
    fault.stop()?;
    or_refused!("bind()", bound);
    or_refused!("listen()", listening);
    let to = sock.local().map_err(|e| format!("getsockname(): {e}"))?;
    let client = made()?;
    client
        .connect(to)
        .map_err(|e| format!("connect() to the new listener: {e}"))?;
    let (server, _) = sock
        .accept(0)
        .map_err(|e| format!("accept() of the new listener: {e}"))?;
    server
        .send_all(b"x")
        .and_then(|()| client.recv_exact(&mut [0]))
        .map_err(|e| format!("a byte over the new listener: {e}"))?;
    Ok(Seen::Done)
}

fn connect(ctx: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    let sock = made()?;
    fault.start()?;
    let connected = sock.connect(ctx.server);
    fault.stop()?;
    or_refused!("connect()", connected);
    exchange(&sock)
}

fn connect_nonblocking(ctx: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    let sock = made()?;
    let set = |on| {
        sock.set_nonblocking(on)
            .map_err(|e| format!("fcntl(): {e}"))
    };
    set(true)?;
    fault.start()?;
    let connected = sock.connect(ctx.server);
    fault.stop()?;
    match connected {
        Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {
            poll_until(&sock, libc::POLLOUT, crate::talk::PATIENCE)
                .map_err(|e| format!("poll(): {e}"))?;
            let error = sock.take_error().map_err(|e| format!("SO_ERROR: {e}"))?;
            if error != 0 {
                let error = std::io::Error::from_raw_os_error(error);
                return refused("the connect() that was under way", &error);
            }
        }
        other => or_refused!("connect()", other),
    }
    set(false)?;
    exchange(&sock)
}

fn accept(ctx: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    accept_of(Family::Smc, ctx, fault)
}

fn accept_inet(ctx: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    accept_of(Family::SmcInet, ctx, fault)
}

fn accept_of(family: Family, ctx: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    let listener = socket(family).map_err(|e| format!("socket() without a fault: {e}"))?;
    listener
        .bind(any_port(ctx))
        .and_then(|()| listener.listen(8))
        .map_err(|e| format!("a listener without a fault: {e}"))?;
    let to = listener
        .local()
        .map_err(|e| format!("getsockname(): {e}"))?;
    let client = made()?;
    client
        .connect(to)
        .map_err(|e| format!("connect() without a fault: {e}"))?;
    fault.start()?;
    let accepted = listener.accept(0);
    fault.stop()?;
    let (server, _) = or_refused!("accept()", accepted);
    or_refused!("send()", server.send_all(b"x"));
    or_refused!("recv()", client.recv_exact(&mut [0]));
    Ok(Seen::Done)
}

fn namespace(_: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    fault.start()?;
    let entered = new_netns();
    fault.stop()?;
    or_refused!("unshare()", entered);
    or_refused!("socket()", Sock::new(Family::Smc));
    Ok(Seen::Done)
}

/// Link groups are for one enterprise identifier: with a new one there is none yet.
fn fresh_group(_: &Ctx) -> Result<(), String> {
    // This process prepares one attempt only, so its number is a new one.
    let name = format!("FAILNTH-{}", std::process::id());
    run_tool("smc_ueid", &["flush"])?;
    run_tool("smc_ueid", &["add", &name])
}

fn connection(ctx: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    fault.start()?;
    whole(ctx.server)
}

fn closed_port(ctx: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    fault.start()?;
    whole(SocketAddr::new(ctx.server.ip(), 1))
}

fn large_buffers(ctx: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    let sock = made()?;
    for name in [libc::SO_RCVBUF, libc::SO_SNDBUF] {
        sock.set_int(libc::SOL_SOCKET, name, 300_000)
            .map_err(|e| format!("setsockopt(): {e}"))?;
    }
    fault.start()?;
    or_refused!("connect()", sock.connect(ctx.server));
    exchange(&sock)
}

fn open_connection(ctx: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    let sock = made()?;
    sock.connect(ctx.server)
        .map_err(|e| format!("connect() without a fault: {e}"))?;
    fault.start()?;
    exchange(&sock)
}

fn device_away(ctx: &Ctx) -> Result<(), String> {
    run_tool("rdma", &["link", "delete", &ctx.device])
}

fn device_comes(ctx: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    fault.start()?;
    run_tool(
        "rdma",
        &[
            "link",
            "add",
            &ctx.device,
            "type",
            "rxe",
            "netdev",
            &ctx.netdev,
        ],
    )?;
    // A new device belongs to the first namespace, whoever asked for it.
    run_tool(
        "nsenter",
        &[
            "-t",
            "1",
            "-n",
            "rdma",
            "dev",
            "set",
            &ctx.device,
            "netns",
            &ctx.client_ns,
        ],
    )?;
    whole(ctx.server)
}

/// The tools may say that they failed, but they end.
fn tools(_: &Ctx, fault: &Fault<'_>) -> Result<Seen, String> {
    fault.start()?;
    let mut seen = Seen::Done;
    for (tool, args) in [
        ("smcr", &["linkgroup", "link-show"][..]),
        ("smcr", &["device"]),
        ("smcr", &["stats"]),
        ("smcss", &["-a", "-d"]),
        ("smc_ueid", &["list"]),
        ("smc_ueid", &["add", "FAILNTH"]),
        ("smc_ueid", &["del", "FAILNTH"]),
        ("smc_pnet", &["-a", "-I", "lo", "FAILNTH"]),
        ("smc_pnet", &["-s", "FAILNTH"]),
        ("smc_pnet", &["-d", "FAILNTH"]),
        ("sysctl", &["-qw", "net.smc.rmem=65536"]),
        ("cat", &["/proc/net/smc_rs"]),
    ] {
        if run_tool(tool, args).is_err() {
            seen = Seen::Refused(libc::ENOMEM);
        }
    }
    Ok(seen)
}

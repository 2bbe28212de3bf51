// SPDX-License-Identifier: GPL-2.0

//! Socket options: applied to the TCP socket, and to the program's socket where it has a say.

use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    },
};
use smc_kapi::net::{
    sock::Flag,
    sockopt::{
        SOL_SOCKET,
        SOL_TCP, //
    },
    OptIn,
    OptOut,
    Sock, //
};
use smc_proto::{
    info::{
        SocketInfo as Info,
        Use,
        SMC_INFO,
        SMC_LIMIT_HS,
        SOL_SMC, //
    },
    reason::DeclineReason, //
};

use super::{
    Phase,
    SmcSocket, //
};
use crate::smc::{
    diag,
    stats::Count, //
};

const SO_OOBINLINE: i32 = 10;
const SO_REUSEPORT: i32 = 15;
const SO_TXREHASH: i32 = 74;
const TCP_NODELAY: i32 = 1;
const TCP_CORK: i32 = 3;
const TCP_FASTOPEN: i32 = 23;
const TCP_FASTOPEN_CONNECT: i32 = 30;
const TCP_REPAIR: i32 = 19;
const TCP_DEFER_ACCEPT: i32 = 9;
const TCP_ULP: i32 = 31;
const TCP_FASTOPEN_KEY: i32 = 33;
const TCP_FASTOPEN_NO_COOKIE: i32 = 34;
const TCP_INQ: i32 = 36;

/// `setsockopt()`.
pub(super) fn set(
    socket: &Arc<SmcSocket>,
    sock: &Sock,
    level: i32,
    name: i32,
    value: &OptIn<'_>,
) -> Result {
    match level {
        SOL_SMC if name == SMC_LIMIT_HS => {
            socket.limit_handshakes(value.read_i32()? != 0);
            Ok(())
        }
        SOL_SMC => Err(EOPNOTSUPP),
        SOL_SOCKET => {
            if matches!(name, SO_REUSEPORT | SO_TXREHASH) {
                // The core lets only sockets of the internet families have them.
                let tcp = socket.tcp()?;
                tcp.setsockopt(level, name, value)?;
                sock.copy_options_from(&tcp);
                return Ok(());
            }
            sock.set_socket_option(name, value)?;
            // The TCP socket needs the same timers, marks and buffers; what it refuses, such as an
            // option that only sockets of user space have, does not matter to it.
            let _ = socket.tcp()?.setsockopt(level, name, value);
            if name == SO_OOBINLINE {
                if let Phase::Smc(conn) = socket.phase() {
                    let inline = sock.flag(Flag::UrgInline);
                    conn.change(|conn| conn.set_oob_inline(inline));
                }
            }
            Ok(())
        }
        _ => {
            socket.await_tcp_end(sock)?;
            if level == SOL_TCP {
                set_tcp(socket, sock, name, value)
            } else {
                socket.on_tcp(sock, |tcp| tcp.setsockopt(level, name, value))
            }
        }
    }
}

fn set_tcp(socket: &Arc<SmcSocket>, sock: &Sock, name: i32, value: &OptIn<'_>) -> Result {
    let phase = socket.phase();
    if name == TCP_ULP {
        // An upper protocol would take over the TCP socket, which the handshake needs.
        return Err(EOPNOTSUPP);
    }
    socket.on_tcp(sock, |tcp| tcp.setsockopt(SOL_TCP, name, value))?;
    match name {
        TCP_FASTOPEN | TCP_FASTOPEN_CONNECT | TCP_FASTOPEN_KEY | TCP_FASTOPEN_NO_COOKIE => {
            // Data in the SYN would go to a TCP peer before the handshake. A listener goes on with
            // SMC: clients that offer it have no data in theirs. What is connected is so already.
            if matches!(phase, Phase::Init | Phase::Fallback) {
                socket.no_smc.store(DeclineReason::OPTUNSUPP.0, Relaxed);
            }
        }
        TCP_DEFER_ACCEPT => {
            let seconds = value.read_i32()?;
            socket.defers.store(seconds, Relaxed);
            if let Phase::Listening(listener) = phase {
                listener.defer(seconds);
            }
        }
        TCP_REPAIR => socket.repairs.store(value.read_i32()? > 0, Relaxed),
        TCP_INQ => socket.tells_left.store(value.read_i32()? != 0, Relaxed),
        TCP_CORK => {
            let corked = value.read_i32()? != 0;
            socket.corked.store(corked, Relaxed);
            if let Phase::Smc(conn) = phase {
                if !corked {
                    socket.net.stats.traffic.inc(Count::CORK);
                }
                conn.set_corked(corked);
            }
        }
        TCP_NODELAY => {
            if let Phase::Smc(conn) = phase {
                if value.read_i32()? != 0 {
                    socket.net.stats.traffic.inc(Count::NODELAY);
                }
                conn.push();
            }
        }
        _ => {}
    }
    Ok(())
}

/// `getsockopt()`.
pub(super) fn get(
    socket: &Arc<SmcSocket>,
    sock: &Sock,
    level: i32,
    name: i32,
    value: &OptOut<'_>,
) -> Result {
    match level {
        SOL_SMC if name == SMC_INFO => value.write(&info(socket).emit()),
        SOL_SMC if name == SMC_LIMIT_HS => value.write_i32(i32::from(socket.limits_handshakes())),
        SOL_SMC => Err(EOPNOTSUPP),
        _ => socket.on_tcp(sock, |tcp| tcp.getsockopt(level, name, value)),
    }
}

/// What a program is told about its socket.
fn info(socket: &SmcSocket) -> Info {
    let phase = socket.phase();
    let (reason, peer) = socket.fallback_reason();
    let mut info = Info {
        fallback: reason.0,
        peer_diagnosis: peer.0,
        ..Info::default()
    };
    if let Ok(tcp) = socket.tcp() {
        info.state = diag::state(&phase, &tcp).number();
    }
    match &phase {
        Phase::Smc(conn) => {
            info.mode = Use::Rdma;
            conn.fill_info(&mut info);
        }
        Phase::Fallback => info.mode = Use::Tcp,
        _ => {}
    }
    info
}

// SPDX-License-Identifier: GPL-2.0

//! The table of socket calls.

use kernel::{
    ffi::c_long,
    prelude::*,
    seq_file::SeqFile,
    sync::{
        atomic::Relaxed,
        Arc, //
    },
};
use smc_kapi::{
    net::{
        addr::{
            Whose, //
            AF_INET,
            AF_INET6,
            AF_UNSPEC,
        },
        family::FamilySlot,
        msg::{
            flags,
            SpliceDest, //
        },
        sock::{
            exiting,
            nonblocking,
            shutdown::SEND, //
        },
        sockopt::SOL_TCP,
        How,
        Msg,
        MsgDest,
        Net,
        NewSocket,
        OptIn,
        OptOut,
        PernetRegistration,
        PollMask,
        PollRequest,
        Sock,
        SockAddr,
        SockAddrStorage,
        SocketOps,
        TcpSocket, //
    },
    trace, //
};
use smc_proto::reason::DeclineReason;

use super::{
    connect::{
        self,
        Connecting, //
    },
    ioctl,
    listen,
    options,
    poll,
    shutdown,
    wait::wait_until,
    Phase,
    SmcSocket,
    TcpWatch, //
};
use crate::smc::{
    conn::Connection,
    global,
    netns::NetState,
    stats::{
        Count,
        Dir,
        Side, //
    }, //
};

/// Number of the address family.
pub(crate) const AF_SMC: i32 = 43;
/// `socket(AF_INET or AF_INET6, SOCK_STREAM, 256)`.
pub(crate) const IPPROTO_SMC: u16 = 256;
/// `recv()` with these flags gives something else than the bytes of the stream, and never waits.
const BESIDE_DATA: u32 = flags::OOB | flags::ERRQUEUE;
/// Control message with the number of bytes that are left to read.
const TCP_CM_INQ: i32 = 36;
/// `socket(AF_SMC, SOCK_STREAM, 0)`: over IPv4.
const SMCPROTO_SMC: i32 = 0;
/// `socket(AF_SMC, SOCK_STREAM, 1)`: over IPv6.
const SMCPROTO_SMC6: i32 = 1;

static SLOT: FamilySlot = FamilySlot::new();

impl SocketOps for SmcSocket {
    const FAMILY: i32 = AF_SMC;
    const NAME: &'static CStr = c"SMC";

    fn slot() -> &'static FamilySlot {
        &SLOT
    }

    fn create(net: &Net, sock: &Sock, protocol: i32, _kern: bool) -> Result<Arc<Self>> {
        let family = match protocol {
            SMCPROTO_SMC => AF_INET,
            SMCPROTO_SMC6 => AF_INET6,
            _ => return Err(EPROTONOSUPPORT),
        };
        make(net, sock, family)
    }

    fn create_inet(net: &Net, sock: &Sock) -> Result<Arc<Self>> {
        make(net, sock, sock.family())
    }

    fn release(this: &Arc<Self>, sock: &Sock) {
        this.net.sockets.remove(this.number.load(Relaxed));
        let (phase, held) = this.close_phase();
        if let Some(held) = &held {
            held.tcp.uninstall();
        }
        match phase {
            Phase::Smc(conn) => {
                conn.leave_tcp();
                close_connection(sock, &conn);
                if let Some(held) = &held {
                    if sock.linger() != Some(0) {
                        // The TCP connection has nothing that is worth a wait of its own.
                        held.tcp.close_without_lingering();
                    }
                    if conn.error().is_some() {
                        // A reset of one of the two is a reset of both.
                        held.tcp.abort_on_close();
                    }
                }
            }
            Phase::Listening(listener) => listener.close(),
            Phase::Connecting(connecting) => {
                // A handshake under way ends when its TCP connection does.
                let _ = connecting.tcp().shutdown(How::Both);
            }
            Phase::Init | Phase::Fallback | Phase::Closed => {}
        }
        drop(held);
    }

    fn bind(this: &Arc<Self>, sock: &Sock, addr: &SockAddr<'_>) -> Result {
        this.await_tcp_end(sock)?;
        this.on_tcp(sock, |tcp| tcp.bind(addr))
    }

    fn connect(this: &Arc<Self>, sock: &Sock, addr: &SockAddr<'_>, nonblock: bool) -> Result {
        connect::connect(this, sock, addr, nonblock)
    }

    fn accept(this: &Arc<Self>, sock: &Sock, nonblock: bool, new: NewSocket<'_, Self>) -> Result {
        listen::accept(this, sock, nonblock, new)
    }

    fn getname(this: &Arc<Self>, sock: &Sock, whose: Whose) -> Result<SockAddrStorage> {
        match this.phase() {
            Phase::Smc(conn) if whose == Whose::Peer && is_over(&conn, sock) => Err(ENOTCONN),
            _ => this.on_tcp(sock, |tcp| tcp.getname(whose)),
        }
    }

    fn poll(this: &Arc<Self>, sock: &Sock, request: &PollRequest<'_>) -> PollMask {
        poll::poll(this, sock, request)
    }

    fn ioctl(this: &Arc<Self>, sock: &Sock, cmd: u32, arg: usize) -> Result<i32> {
        ioctl::ioctl(this, sock, cmd, arg)
    }

    fn listen(this: &Arc<Self>, sock: &Sock, backlog: i32) -> Result {
        listen::listen(this, sock, backlog)
    }

    fn shutdown(this: &Arc<Self>, sock: &Sock, how: How) -> Result {
        shutdown::shut(this, sock, how)
    }

    fn setsockopt(
        this: &Arc<Self>,
        sock: &Sock,
        level: i32,
        name: i32,
        value: &OptIn<'_>,
    ) -> Result {
        options::set(this, sock, level, name, value)
    }

    fn getsockopt(
        this: &Arc<Self>,
        sock: &Sock,
        level: i32,
        name: i32,
        value: &OptOut<'_>,
    ) -> Result {
        options::get(this, sock, level, name, value)
    }

    fn sendmsg(this: &Arc<Self>, sock: &Sock, msg: &mut Msg<'_>, len: usize) -> Result<usize> {
        if msg.flags() & flags::FASTOPEN != 0 {
            connect_first(this, sock, msg)?;
        }
        loop {
            match after_connect(this, sock, msg)? {
                Phase::Smc(conn) => return send(this, sock, &conn, msg, len),
                Phase::Fallback => return this.on_tcp(sock, |tcp| tcp.sendmsg(msg, len)),
                _ => {}
            }
            if let Some(result) = this.on_idle_tcp(sock, |tcp| tcp.sendmsg(msg, len)) {
                return result;
            }
        }
    }

    fn recvmsg(
        this: &Arc<Self>,
        sock: &Sock,
        msg: &mut MsgDest<'_>,
        len: usize,
        how: u32,
    ) -> Result<usize> {
        loop {
            let phase = match this.phase() {
                Phase::Connecting(connecting) if how & BESIDE_DATA == 0 => {
                    wait_connected(sock, &connecting, sock.rcvtimeo(nonblocking(how)))?;
                    this.phase()
                }
                phase => phase,
            };
            match phase {
                Phase::Smc(_) if how & flags::ERRQUEUE != 0 || this.repairs.load(Relaxed) => {
                    return this.tcp()?.recvmsg(msg, len, how)
                }
                Phase::Smc(conn) => return receive(this, sock, &conn, msg, len, how),
                Phase::Fallback => {
                    if how & BESIDE_DATA == 0 {
                        wait_for_data(this, sock, nonblocking(how))?;
                    }
                    return this.on_tcp(sock, |tcp| receive_tcp(sock, tcp, msg, len, how));
                }
                // They do not touch the stream.
                Phase::Connecting(_) if how & BESIDE_DATA != 0 => {
                    return this.on_tcp(sock, |tcp| receive_tcp(sock, tcp, msg, len, how));
                }
                _ => {}
            }
            let result = this.on_idle_tcp(sock, |tcp| receive_tcp(sock, tcp, msg, len, how));
            if let Some(result) = result {
                return result;
            }
        }
    }

    fn splice_read(this: &Arc<Self>, sock: &Sock, dest: SpliceDest<'_>) -> Result<usize> {
        match this.phase() {
            Phase::Fallback => {
                wait_for_data(this, sock, dest.nonblock())?;
                this.on_tcp(sock, |tcp| tcp.splice_read(dest))
            }
            _ => {
                this.net.stats.traffic.inc(Count::SPLICE);
                dest.copy_from_recvmsg()
            }
        }
    }

    fn splice_eof(this: &Arc<Self>, _sock: &Sock) {
        match this.phase() {
            Phase::Smc(conn) => conn.set_corked(this.corked.load(Relaxed)),
            _ => {
                if let Ok(tcp) = this.tcp() {
                    tcp.splice_eof();
                }
            }
        }
    }

    fn peek_len(this: &Arc<Self>, _sock: &Sock) -> Result<usize> {
        match this.phase() {
            Phase::Smc(conn) => Ok(conn.with(|conn| conn.readable()).unwrap_or(0) as usize),
            _ => Ok(this.tcp()?.readable_len()),
        }
    }

    fn show_fdinfo(this: &Arc<Self>, _sock: &Sock, out: &SeqFile) {
        let (reason, peer) = this.fallback_reason();
        match this.phase() {
            Phase::Smc(conn) => {
                kernel::seq_print!(out, "smc-mode:\tSMCR\n");
                kernel::seq_print!(out, "smc-link-group:\t{:08x}\n", conn.group().id);
            }
            Phase::Fallback => {
                kernel::seq_print!(out, "smc-mode:\tTCP\n");
                kernel::seq_print!(
                    out,
                    "smc-fallback:\t{:#010x} {}\n",
                    reason.0,
                    reason.describe()
                );
                kernel::seq_print!(out, "smc-peer-diagnosis:\t{:#010x}\n", peer.0);
            }
            _ => kernel::seq_print!(out, "smc-mode:\tnone\n"),
        }
    }
}

/// `sendmsg()` over SMC-R.
fn send(
    this: &Arc<SmcSocket>,
    sock: &Sock,
    conn: &Arc<Connection>,
    msg: &mut Msg<'_>,
    len: usize,
) -> Result<usize> {
    let corked = this.corked.load(Relaxed);
    conn.count_write(len, msg.flags());
    let result = conn
        .send(sock, msg, len, corked, &this.writer)
        .inspect_err(|error| sock.signal_broken_pipe(*error, msg));
    let done = result.as_ref().map_or(0, |done| *done);
    this.net.stats.traffic.call(Dir::Tx, len, done);
    if done > 0 && trace::watches_sendmsg() {
        let name = conn.group().port.device.name();
        trace::sendmsg(sock, this.net.id(), done, name.as_str());
    }
    result
}

/// `recvmsg()` over SMC-R.
fn receive(
    this: &Arc<SmcSocket>,
    sock: &Sock,
    conn: &Arc<Connection>,
    msg: &mut MsgDest<'_>,
    len: usize,
    how: u32,
) -> Result<usize> {
    msg.clear_addr();
    let result = conn.recv(sock, msg, len, how, &this.reader);
    if result.is_ok() && this.tells_left.load(Relaxed) {
        tell_left(conn, msg);
    }
    let done = result.as_ref().map_or(0, |done| *done);
    this.net.stats.traffic.call(Dir::Rx, done, done);
    if done > 0 && trace::watches_recvmsg() {
        let name = conn.group().port.device.name();
        trace::recvmsg(sock, this.net.id(), done, name.as_str());
    }
    result
}

/// `recvmsg()` on the TCP socket.
fn receive_tcp(
    sock: &Sock,
    tcp: &TcpSocket,
    msg: &mut MsgDest<'_>,
    len: usize,
    how: u32,
) -> Result<usize> {
    let result = tcp.recvmsg(msg, len, how);
    sock.copy_peek_offset(tcp);
    result
}

/// Tells how many bytes are left to read, as `TCP_INQ` asks for; at the end of the stream that is 1,
/// so that the program reads on.
fn tell_left(conn: &Connection, msg: &mut MsgDest<'_>) {
    let left = conn.with(|conn| match conn.readable() {
        0 => u32::from(conn.is_end_of_data()),
        left => left,
    });
    let left = left.unwrap_or(0);
    msg.put_control(SOL_TCP, TCP_CM_INQ, &left.to_ne_bytes());
}

/// Makes a socket whose TCP socket is of `family`.
fn make(net: &Net, sock: &Sock, family: u16) -> Result<Arc<SmcSocket>> {
    if !global::get().is_some_and(|global| global.is_open()) {
        return Err(ENETDOWN);
    }
    let state = PernetRegistration::<NetState>::get(net)?;
    let option = state.use_option(net)?;
    let tcp = Arc::new(TcpSocket::create(net, family)?, GFP_KERNEL)?;
    tcp.share_wait_queue(sock)?;
    // The socket layer counts twice the payload.
    sock.set_sndbuf(2 * state.settings.wmem() as i32);
    sock.set_rcvbuf(2 * state.settings.rmem() as i32);
    let socket = SmcSocket::new(state, option, tcp.clone(), Phase::Init)?;
    TcpWatch::install(&socket, sock, &tcp)?;
    if let Err(error) = socket.enlist(sock) {
        tcp.uninstall();
        return Err(error);
    }
    Ok(socket)
}

/// Whether TCP would not call it a connection any more: both directions have ended, or it was reset.
/// May sleep.
pub(super) fn is_over(conn: &Connection, sock: &Sock) -> bool {
    conn.await_last_words(sock);
    let shut = sock.shutdown_mask() & SEND != 0;
    conn.with(|conn| conn.error().is_some() || (shut && conn.is_end_of_data()))
        .unwrap_or(true)
}

/// Closes the connection of a socket; with `SO_LINGER`, waits until its data and the word about the
/// end have arrived. The end of a process waits for nobody, as on TCP.
fn close_connection(sock: &Sock, conn: &Arc<Connection>) {
    match sock.linger() {
        Some(0) => conn.abort(),
        Some(jiffies) if !exiting() => {
            conn.begin_close();
            let mut timeout = c_long::try_from(jiffies).unwrap_or(0);
            // A signal ends the wait, not the close.
            let _ = wait_until(sock, &mut timeout, || {
                sock.note_no_space();
                conn.is_through()
            });
        }
        _ => {}
    }
    conn.close();
}

/// `MSG_FASTOPEN` stands for a `connect()` before, also where there is a connection already, if
/// the namespace allows it at all.
fn connect_first(this: &Arc<SmcSocket>, sock: &Sock, msg: &Msg<'_>) -> Result {
    if !this.tcp()?.may_fastopen() {
        return Err(EOPNOTSUPP);
    }
    match this.phase() {
        Phase::Smc(_) => {}
        Phase::Connecting(connecting) if connecting.is_under_way() => {}
        _ => return Ok(()),
    }
    match msg.addr() {
        Some(addr) if addr.family() == Some(AF_UNSPEC) => Err(EOPNOTSUPP),
        Some(addr) => connect::connect(this, sock, &addr, msg.nonblock()),
        // TCP looks at the address of a socket only that is not connected.
        None => {
            let own = sock.family().to_ne_bytes();
            connect::connect(this, sock, &SockAddr::new(&own), msg.nonblock())
        }
    }
}

/// The phase for `send()`: waits for a `connect()` under way, and lets `MSG_FASTOPEN` connect.
fn after_connect(this: &Arc<SmcSocket>, sock: &Sock, msg: &Msg<'_>) -> Result<Phase> {
    let phase = this.phase();
    match &phase {
        Phase::Connecting(connecting) => {
            wait_connected(sock, connecting, sock.sndtimeo(msg.nonblock()))?;
            Ok(this.phase())
        }
        Phase::Init if msg.flags() & flags::FASTOPEN != 0 => {
            let entered = this.leave_init(&sock.lock(), Phase::Fallback);
            if !entered {
                // Another call was first.
                return Ok(this.phase());
            }
            this.note_fallback(Side::Client, DeclineReason::OPTUNSUPP, DeclineReason(0));
            Ok(Phase::Fallback)
        }
        _ => Ok(phase),
    }
}

/// Waits at most `timeout` jiffies for the end of a `connect()` under way; `EAGAIN` after that.
fn wait_connected(sock: &Sock, connecting: &Connecting, mut timeout: c_long) -> Result {
    wait_until(sock, &mut timeout, || !connecting.is_under_way())?;
    if connecting.is_under_way() {
        Err(EAGAIN)
    } else {
        Ok(())
    }
}

/// Waits until the head of the TCP stream is the program's data and not a late handshake message.
fn wait_for_data(this: &Arc<SmcSocket>, sock: &Sock, nonblock: bool) -> Result {
    if !this.has_late_filter() {
        return Ok(());
    }
    let tcp = this.tcp()?;
    let mut timeout = sock.rcvtimeo(nonblock);
    wait_until(sock, &mut timeout, || this.clear_late(&tcp))?;
    if this.clear_late(&tcp) {
        Ok(())
    } else {
        Err(EAGAIN)
    }
}

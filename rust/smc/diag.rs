// SPDX-License-Identifier: GPL-2.0

//! The list of sockets for `sock_diag`.
//!
//! First come the sockets that programs have open, then the connections that have none: their
//! program has not accepted them yet, or closed them while the peer still has to agree.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use smc_kapi::{
    diag::{
        self,
        List,
        SocketList,
        SOCKID_LEN, //
    },
    genl::Builder,
    net::{
        sock::shutdown,
        PernetRegistration,
        TcpSocket,
        TcpState, //
    },
};
use smc_proto::{
    diag::{
        fallback,
        GroupInfo,
        Mode,
        SocketInfo,
        ATTR_CONNINFO,
        ATTR_FALLBACK,
        ATTR_LGRINFO,
        ATTR_SHUTDOWN, //
    },
    lgr::Role,
    state::ConnState, //
};

use crate::smc::{
    conn::Connection,
    global,
    lgr::LinkGroup,
    netns::NetState,
    sock::{
        ops::AF_SMC,
        table::Listed,
        Phase, //
    },
};

/// The family as `sock_diag` knows it.
pub(crate) struct SmcSockets;

/// What a list keeps between its parts.
mod kept {
    /// Number of the last socket.
    pub(super) const SOCKET: usize = 0;
    /// Number of the last link group that was done.
    pub(super) const GROUP: usize = 1;
    /// The next connection of the link group that is being done.
    pub(super) const SLOT: usize = 2;
    /// All sockets were sent.
    pub(super) const SOCKETS_DONE: usize = 3;
    /// Number of the link group that is being done.
    pub(super) const SLOT_GROUP: usize = 4;
}

/// Which attributes the request wants.
#[derive(Clone, Copy)]
struct Wanted(u8);

impl Wanted {
    /// The mask is the fourth byte of `struct smc_diag_req`.
    fn of(list: &List<'_>) -> Self {
        Self(list.request().get(3).copied().unwrap_or(0))
    }

    fn has(self, attr: u16) -> bool {
        self.0 & (1 << (attr - 1)) != 0
    }
}

impl SocketList for SmcSockets {
    const FAMILY: u8 = AF_SMC as u8;

    fn dump(list: &mut List<'_>) -> Result {
        let net = PernetRegistration::<NetState>::get(list.net())?;
        let wanted = Wanted::of(list);
        if list.cookie(kept::SOCKETS_DONE) == 0 {
            while let Some((number, listed)) = net.sockets.after(list.cookie(kept::SOCKET)) {
                put_socket(list, &listed, wanted)?;
                list.set_cookie(kept::SOCKET, number);
            }
            list.set_cookie(kept::SOCKETS_DONE, 1);
        }
        let global = global::get().ok_or(ENODEV)?;
        while let Some(group) = global.groups.after(list.cookie(kept::GROUP) as u32) {
            if group.net().id() == net.id() {
                put_ownerless(list, &group, wanted)?;
            }
            list.set_cookie(kept::GROUP, u64::from(group.id));
        }
        Ok(())
    }
}

fn put_ownerless(list: &mut List<'_>, group: &LinkGroup, wanted: Wanted) -> Result {
    // The group of the last part may have ended since.
    let id = u64::from(group.id);
    if list.cookie(kept::SLOT_GROUP) != id {
        list.set_cookie(kept::SLOT_GROUP, id);
        list.set_cookie(kept::SLOT, 0);
    }
    for slot in list.cookie(kept::SLOT)..=u64::from(u8::MAX) {
        // CAST: The range ends at 255.
        let conn = group
            .connection(slot as u8)
            .filter(|conn| !conn.has_owner());
        if let Some((conn, state)) = conn.and_then(|conn| Some((conn.clone(), conn.state()?))) {
            let info = SocketInfo {
                family: AF_SMC as u8,
                state: state.number(),
                mode: Mode::Rdma,
                id: conn.names.socket_id(),
                uid: 0,
                inode: 0,
            };
            list.item(&info.emit(), |out| {
                out.put_u8(ATTR_SHUTDOWN, shut(&conn, 0))?;
                out.put(ATTR_FALLBACK, &fallback(0, 0))?;
                put_connection(out, &conn, wanted)
            })?;
        }
        list.set_cookie(kept::SLOT, slot + 1);
    }
    Ok(())
}

fn put_socket(list: &mut List<'_>, listed: &Listed, wanted: Wanted) -> Result {
    let Listed { socket, sock } = listed;
    // A socket that is being closed has given its TCP socket away.
    let Ok(tcp) = socket.tcp() else {
        return Ok(());
    };
    let phase = socket.phase();
    let mut id = diag::socket_id(&tcp);
    if let Some(place) = id.get_mut(SOCKID_LEN - 8..) {
        place.copy_from_slice(&diag::cookie(sock));
    }
    let info = SocketInfo {
        // CAST: Family numbers are below 46.
        family: sock.family() as u8,
        state: state(&phase, &tcp).number(),
        mode: match phase {
            Phase::Fallback => Mode::Tcp,
            _ => Mode::Rdma,
        },
        id,
        uid: list.uid(sock),
        inode: sock.inode_number(),
    };
    let shut = match &phase {
        Phase::Fallback => tcp.sock().shutdown_mask(),
        Phase::Smc(conn) => shut(conn, sock.shutdown_mask()),
        _ => sock.shutdown_mask(),
    };
    let (reason, peer) = socket.fallback_reason();
    list.item(&info.emit(), |out| {
        out.put_u8(ATTR_SHUTDOWN, shut)?;
        out.put(ATTR_FALLBACK, &fallback(reason.0, peer.0))?;
        match &phase {
            Phase::Smc(conn) => put_connection(out, conn, wanted),
            _ => Ok(()),
        }
    })
}

/// The directions that are shut, as bits of the shutdown mask: those that the program has shut, that of
/// a peer which ended its own, and both when this side is gone.
fn shut(conn: &Connection, by_program: u8) -> u8 {
    conn.with(|conn| {
        let close = conn.close_state();
        match (close.left(), close.peer_is_done()) {
            (true, _) => shutdown::RCV | shutdown::SEND,
            (false, true) => by_program | shutdown::RCV,
            (false, false) => by_program,
        }
    })
    .unwrap_or(by_program)
}

/// The state in the numbering of SMC.
pub(crate) fn state(phase: &Phase, tcp: &TcpSocket) -> ConnState {
    match phase {
        Phase::Init | Phase::Connecting(_) => ConnState::Init,
        Phase::Listening(_) => ConnState::Listen,
        Phase::Smc(conn) => conn.state().unwrap_or(ConnState::Init),
        Phase::Fallback => match tcp.state() {
            TcpState::Listen => ConnState::Listen,
            TcpState::Close => ConnState::Closed,
            TcpState::SynSent => ConnState::Init,
            _ => ConnState::Active,
        },
        Phase::Closed => ConnState::Closed,
    }
}

/// Adds what a connection over RDMA has beyond a socket.
fn put_connection(out: &mut Builder, conn: &Arc<Connection>, wanted: Wanted) -> Result {
    if wanted.has(ATTR_CONNINFO) {
        if let Some(info) = conn.diag_info() {
            out.put(ATTR_CONNINFO, &info.emit())?;
        }
    }
    if wanted.has(ATTR_LGRINFO) {
        let group = conn.group();
        let name = group.port.device.name();
        let info = GroupInfo {
            link_id: conn.link_id().map_or(0, |id| id.0),
            device: name.as_str().as_bytes(),
            port: group.port.port,
            gid: group.port.gid,
            peer_gid: group.peer.gid,
            role: u8::from(group.role == Role::Server),
        };
        out.put(ATTR_LGRINFO, &info.emit())?;
    }
    Ok(())
}

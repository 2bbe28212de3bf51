// SPDX-License-Identifier: GPL-2.0

//! `/proc/net/smc_rs`: counters, link groups and connections of one network namespace, as text.
//!
//! The first line is the version of the format. Then come counters (`key value`), fallback reasons
//! with a sentence each, a line for each link group and a line for each connection.

use kernel::{
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::Arc, //
};
use smc_kapi::{
    net::{
        InetAddr,
        Net,
        PernetRegistration,
        PernetSlot, //
    },
    proc::Show,
    proc_files::NetFile, //
};
use smc_proto::{
    lgr::Role,
    state::ConnState, //
};

use crate::smc::{
    conn::Connection,
    global,
    lgr::LinkGroup,
    netns::NetState, //
};

static SLOT: PernetSlot = PernetSlot::new();

/// The file.
pub(crate) struct StatusFile;

impl NetFile for StatusFile {
    const NAME: &'static CStr = c"smc_rs";

    fn slot() -> &'static PernetSlot {
        &SLOT
    }
}

impl Show for StatusFile {
    fn show(net: &Net, out: &SeqFile) -> Result {
        let state = PernetRegistration::<NetState>::get(net)?;
        seq_print!(out, "smc_rs 1\n");
        state.stats.show(out);
        let Some(global) = global::get() else {
            return Ok(());
        };
        let mut count = 0;
        let mut index = 0;
        while let Some(group) = global.groups.entry(index) {
            index += 1;
            if group.net().id() == state.id() {
                count += 1;
                show_group(out, &group);
            }
        }
        seq_print!(out, "link_groups {}\n", count);
        Ok(())
    }
}

fn show_group(out: &SeqFile, group: &Arc<LinkGroup>) {
    let role = match group.role {
        Role::Client => "CLNT",
        Role::Server => "SERV",
    };
    let (rings, rmbs) = group.buffer_bytes();
    seq_print!(
        out,
        "lgr {:08x} role={} conns={} dev={} version={}.{} max_conns={} max_links={} sndbuf_bytes={} rmb_bytes={} peer_gid=",
        group.id,
        role,
        group.conns_num(),
        group.port.device.name().as_str(),
        group.terms.version.number(),
        group.terms.release.number(),
        group.terms.max_conns,
        group.terms.max_links,
        rings,
        rmbs,
    );
    show_gid(out, &group.peer.gid.0);
    seq_print!(out, "\n");
    for slot in 0..u8::MAX {
        if let Some(conn) = group.connection(slot) {
            show_connection(out, group, &conn);
        }
    }
}

fn show_gid(out: &SeqFile, gid: &[u8; 16]) {
    for (index, pair) in gid.chunks_exact(2).enumerate() {
        if let [high, low] = pair {
            let colon = if index == 0 { "" } else { ":" };
            seq_print!(out, "{}{:02x}{:02x}", colon, high, low);
        }
    }
}

fn show_connection(out: &SeqFile, group: &LinkGroup, conn: &Connection) {
    let Some(snapshot) = conn.snapshot() else {
        return;
    };
    seq_print!(out, "conn local=");
    show_address(out, &conn.names.local);
    seq_print!(out, " peer=");
    show_address(out, &conn.names.peer);
    seq_print!(
        out,
        " token={:08x} mode=SMCR state={} lgr={:08x} link=1 dev={} sndbuf={} rmb={} rmbe={} readable={} unsent={} peer_room={} unannounced={} in_flight={} tx={} rx={}\n",
        conn.token().0,
        state_name(snapshot.state),
        group.id,
        group.port.device.name().as_str(),
        snapshot.send_len,
        conn.rmb().len(),
        conn.rmb().index().get(),
        snapshot.readable,
        snapshot.unsent,
        snapshot.peer_room,
        snapshot.unannounced,
        snapshot.in_flight,
        snapshot.sent,
        snapshot.received,
    );
}

fn show_address(out: &SeqFile, addr: &InetAddr) {
    match addr.to_v4() {
        Some([a, b, c, d]) => seq_print!(out, "{}.{}.{}.{}:{}", a, b, c, d, addr.port()),
        None => {
            seq_print!(out, "[");
            show_gid(out, &addr.to_v6());
            seq_print!(out, "]:{}", addr.port());
        }
    }
}

/// The state in the words that SMC tools use.
fn state_name(state: ConnState) -> &'static str {
    match state {
        ConnState::Active => "ACTIVE",
        ConnState::Init => "INIT",
        ConnState::Closed => "CLOSED",
        ConnState::Listen => "LISTEN",
        ConnState::PeerCloseWait1 => "PEERCLOSEWAIT1",
        ConnState::PeerCloseWait2 => "PEERCLOSEWAIT2",
        ConnState::AppCloseWait1 => "APPCLOSEWAIT1",
        ConnState::AppCloseWait2 => "APPCLOSEWAIT2",
        ConnState::AppFinCloseWait => "APPFINCLOSEWAIT",
        ConnState::PeerFinCloseWait => "PEERFINCLOSEWAIT",
        ConnState::PeerAbortWait => "PEERABORTWAIT",
        ConnState::ProcessAbort => "PROCESSABORT",
    }
}

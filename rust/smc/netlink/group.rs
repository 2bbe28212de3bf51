// SPDX-License-Identifier: GPL-2.0

//! Link groups over RoCE and their links.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use smc_kapi::{
    genl::{
        Builder,
        Dump, //
    },
    net::Net, //
};
use smc_proto::{
    genl::smc::{
        cmd,
        lgr_r as attr,
        lgr_r_v2 as v2,
        lgr_type,
        lgr_v2 as common,
        link as link_attr,
        link_state,
        outer, //
    },
    ids::Version,
    lgr::Role, //
};

use crate::smc::{
    global,
    lgr::{
        LinkGroup,
        State, //
    },
    link::Link, //
};

/// Link groups.
pub(super) fn dump_groups(dump: &mut Dump<'_>) -> Result {
    each_group(dump, put_group)
}

/// Link groups, each with its links behind it.
pub(super) fn dump_links(dump: &mut Dump<'_>) -> Result {
    each_group(dump, |dump, group| {
        // A part of the list may end between a group and its link, and the group before the next
        // part begins: then the link there is that of another group.
        let id = u64::from(group.id);
        if dump.cookie(1) != id {
            put_group(dump, group)?;
            dump.set_cookie(1, id);
        }
        match group.link() {
            Some(link) => put_link(dump, group, &link),
            None => Ok(()),
        }
    })
}

/// Calls `send` for each group that the caller may see, in the order of their numbers.
fn each_group(
    dump: &mut Dump<'_>,
    mut send: impl FnMut(&mut Dump<'_>, &Arc<LinkGroup>) -> Result,
) -> Result {
    let global = global::get().ok_or(ENODEV)?;
    while let Some(group) = global.groups.after(dump.cookie(0) as u32) {
        if is_visible(dump.net(), &group) {
            send(dump, &group)?;
        }
        dump.set_cookie(0, u64::from(group.id));
    }
    Ok(())
}

fn is_visible(net: &Net, group: &LinkGroup) -> bool {
    let alive = matches!(group.state(), State::Pending | State::Active);
    alive && (net.is_initial() || group.net().id() == net.id())
}

fn put_group(dump: &mut Dump<'_>, group: &Arc<LinkGroup>) -> Result {
    dump.item(cmd::GET_LGR_SMCR, |message| {
        message.nest(outer::LGR_SMCR, |out| {
            out.put_u32(attr::ID, group.id)?;
            out.put_u32(attr::CONNS_NUM, u32::from(group.conns_num()))?;
            out.put_u8(attr::ROLE, u8::from(group.role == Role::Server))?;
            let kind = match group.state() {
                State::Active => lgr_type::SINGLE,
                _ => lgr_type::NONE,
            };
            out.put_u8(attr::TYPE, kind)?;
            out.put_u8(attr::BUF_TYPE, group.buffer_type.number())?;
            // CAST: The attribute has room for the lower half only.
            out.put_u8(attr::VLAN_ID, group.port.vlan.unwrap_or(0) as u8)?;
            let cookie = group.net().id().cookie();
            out.put_u64(attr::NET_COOKIE, cookie, attr::PAD)?;
            let network = group.port.network.as_ref();
            out.put_text(
                attr::PNETID,
                network.map_or(&[][..], |network| network.text()),
            )?;
            let (rings, rmbs) = group.buffer_bytes();
            out.put_uint(attr::SNDBUF_ALLOC, rings as u64)?;
            out.put_uint(attr::RMB_ALLOC, rmbs as u64)?;
            if group.terms.version > Version::V1 {
                put_version_2(out, group)?;
            }
            Ok(())
        })
    })
}

fn put_version_2(out: &mut Builder, group: &LinkGroup) -> Result {
    let terms = &group.terms;
    let peer = group.peer_info();
    out.nest(attr::V2_COMMON, |out| {
        out.put_u8(common::VER, terms.version.number())?;
        out.put_u8(common::REL, terms.release.number())?;
        out.put_u8(common::OS, peer.os)?;
        out.put_text(common::PEER_HOST, &peer.host.0)?;
        let eid = terms.eid.map_or([b' '; 32], |eid| eid.0);
        out.put_text(common::NEG_EID, &eid)
    })?;
    out.nest(attr::V2, |out| {
        out.put_u8(v2::DIRECT, u8::from(peer.direct))?;
        out.put_u8(v2::MAX_CONNS, terms.max_conns)?;
        out.put_u8(v2::MAX_LINKS, terms.max_links)
    })
}

fn put_link(dump: &mut Dump<'_>, group: &Arc<LinkGroup>, link: &Link) -> Result {
    dump.item(cmd::GET_LINK_SMCR, |message| {
        message.nest(outer::LINK_SMCR, |out| {
            out.put_u8(link_attr::ID, link.id.0)?;
            let state = match group.state() {
                State::Active => link_state::ACTIVE,
                _ => link_state::ACTIVATING,
            };
            out.put_u32(link_attr::STATE, u32::from(state))?;
            out.put_u32(link_attr::CONN_CNT, u32::from(group.conns_num()))?;
            out.put_u8(link_attr::IB_PORT, link.port.port)?;
            // CAST: Interface numbers are positive.
            out.put_u32(link_attr::NET_DEV, link.port.ifindex as u32)?;
            let name = link.device().name();
            out.put_text(link_attr::IB_DEV, name.as_str().as_bytes())?;
            // The bytes as they are in messages.
            out.put(link_attr::UID, &link.uid.0.to_be_bytes())?;
            let peer_uid = group.peer_link_uid();
            out.put(link_attr::PEER_UID, &peer_uid.0.to_be_bytes())?;
            out.put_text(link_attr::GID, &link.gid().text())?;
            out.put_text(link_attr::PEER_GID, &group.peer.gid.text())
        })
    })
}

// SPDX-License-Identifier: GPL-2.0

//! The family `SMC_GEN_NETLINK`.

use smc_proto::genl::smc::{cmd, eid, hs_limitation, lgr_d, outer, seid, FAMILY, VERSION};

use crate::{
    Attrs, Device, Error, Fallbacks, Family, Group, Link, Result, Stats, SystemInfo, Writer,
};

/// A connection to the kernel's SMC.
pub struct Smc(Family);

impl Smc {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// [`Error::NoFamily`] when no SMC module is loaded.
    pub fn open() -> Result<Self> {
        Family::open(FAMILY.name, VERSION).map(Self)
    }

    /// What this host can do.
    ///
    /// # Errors
    ///
    /// What the kernel answers, here and below.
    pub fn system(&mut self) -> Result<SystemInfo> {
        let messages = self.0.list(cmd::GET_SYS_INFO)?;
        let (_, message) = messages
            .first()
            .ok_or(Error::Malformed("there is no system information"))?;
        Ok(SystemInfo::parse(&message.nested(outer::SYS_INFO)?))
    }

    /// Link groups over RoCE, with their links.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn groups(&mut self) -> Result<Vec<Group>> {
        collect_groups(&self.0.list(cmd::GET_LINK_SMCR)?)
    }

    /// Link groups over RoCE, without their links.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn groups_only(&mut self) -> Result<Vec<Group>> {
        collect_groups(&self.0.list(cmd::GET_LGR_SMCR)?)
    }

    /// Link groups over shared memory: number, VLAN, connections, network and channel.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn smcd_groups(&mut self) -> Result<Vec<Group>> {
        let messages = self.0.list(cmd::GET_LGR_SMCD)?;
        messages
            .iter()
            .map(|(_, message)| {
                let lgr = message.nested(outer::LGR_SMCD)?;
                Ok(Group {
                    id: lgr.u32(lgr_d::ID).unwrap_or(0),
                    vlan: lgr.u8(lgr_d::VLAN_ID).unwrap_or(0),
                    connections: lgr.u32(lgr_d::CONNS_NUM).unwrap_or(0),
                    pnet_id: lgr.text(lgr_d::PNETID).unwrap_or_default(),
                    sndbuf_bytes: lgr.uint(lgr_d::SNDBUF_ALLOC).unwrap_or(0),
                    rmb_bytes: lgr.uint(lgr_d::DMB_ALLOC).unwrap_or(0),
                    ..Group::default()
                })
            })
            .collect()
    }

    /// RoCE devices.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn devices(&mut self) -> Result<Vec<Device>> {
        let messages = self.0.list(cmd::GET_DEV_SMCR)?;
        let devices = messages.iter();
        devices
            .map(|(_, message)| Device::parse(&message.nested(outer::DEV_SMCR)?))
            .collect()
    }

    /// Shared memory devices.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn smcd_devices(&mut self) -> Result<Vec<Device>> {
        let messages = self.0.list(cmd::GET_DEV_SMCD)?;
        let devices = messages.iter();
        devices
            .map(|(_, message)| Device::parse(&message.nested(outer::DEV_SMCD)?))
            .collect()
    }

    /// Counters.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn stats(&mut self) -> Result<Stats> {
        let messages = self.0.list(cmd::GET_STATS)?;
        let (_, message) = messages
            .first()
            .ok_or(Error::Malformed("there are no counters"))?;
        Stats::parse(&message.nested(outer::STATS)?)
    }

    /// Connections that stayed on TCP.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn fallbacks(&mut self) -> Result<Fallbacks> {
        let mut fallbacks = Fallbacks::default();
        for (_, message) in self.0.list(cmd::GET_FBACK_STATS)? {
            fallbacks.add(&message.nested(outer::FBACK_STATS)?);
        }
        Ok(fallbacks)
    }

    /// The user-defined enterprise IDs.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn ueids(&mut self) -> Result<Vec<String>> {
        let messages = self.0.list(cmd::DUMP_UEID)?;
        Ok(messages
            .iter()
            .filter_map(|(_, message)| message.text(eid::ENTRY))
            .collect())
    }

    /// Adds an enterprise ID.
    ///
    /// # Errors
    ///
    /// `EINVAL` for one that is not well formed, `EEXIST`, `ERANGE` when there are four.
    pub fn add_ueid(&mut self, eid: &str) -> Result<()> {
        self.change(cmd::ADD_UEID, &padded(eid))
    }

    /// Removes an enterprise ID. True when this switched the system's own ID on.
    ///
    /// # Errors
    ///
    /// `ENOENT` when it is not there.
    pub fn remove_ueid(&mut self, eid: &str) -> Result<bool> {
        match self.change(cmd::REMOVE_UEID, &padded(eid)) {
            Err(Error::Kernel(libc::EAGAIN)) => Ok(true),
            result => result.map(|()| false),
        }
    }

    /// Removes all enterprise IDs.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn flush_ueids(&mut self) -> Result<()> {
        self.change(cmd::FLUSH_UEID, &Writer::new())
    }

    /// The system's own enterprise ID and whether it is used; `None` where there is none.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn seid(&mut self) -> Result<Option<(String, bool)>> {
        let messages = self.0.list(cmd::DUMP_SEID)?;
        let first = messages.first();
        Ok(first.and_then(|(_, message)| {
            Some((message.text(seid::ENTRY)?, message.flag(seid::ENABLED)))
        }))
    }

    /// Uses the system's own enterprise ID, or does not.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` where there is none, `ENOENT` when it is the only one.
    pub fn set_seid(&mut self, on: bool) -> Result<()> {
        let command = if on {
            cmd::ENABLE_SEID
        } else {
            cmd::DISABLE_SEID
        };
        self.change(command, &Writer::new())
    }

    /// Whether handshakes are shed under load.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn handshake_limitation(&mut self) -> Result<bool> {
        let messages = self.0.list(cmd::DUMP_HS_LIMITATION)?;
        let mut messages = messages.iter();
        Ok(messages.any(|(_, message)| message.flag(hs_limitation::ENABLED)))
    }

    /// Sheds handshakes under load, or does not.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn set_handshake_limitation(&mut self, on: bool) -> Result<()> {
        let command = if on {
            cmd::ENABLE_HS_LIMITATION
        } else {
            cmd::DISABLE_HS_LIMITATION
        };
        self.change(command, &Writer::new())
    }

    fn change(&mut self, command: u8, attrs: &Writer) -> Result<()> {
        self.0.call(command, attrs).map(drop)
    }
}

/// The attribute of an enterprise ID: 32 bytes padded with blanks, and a NUL.
fn padded(text: &str) -> Writer {
    Writer::new().text(eid::ENTRY, &format!("{text:<32}"))
}

/// Link groups, each with the links that follow it.
fn collect_groups(messages: &[(u8, Attrs)]) -> Result<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    for (_, message) in messages {
        if message.has(outer::LGR_SMCR) {
            groups.push(Group::parse(&message.nested(outer::LGR_SMCR)?)?);
        }
        if message.has(outer::LINK_SMCR) {
            let link = Link::parse(&message.nested(outer::LINK_SMCR)?);
            let group = groups
                .last_mut()
                .ok_or(Error::Malformed("a link has no link group"))?;
            group.links.push(link);
        }
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(command: u8, attr: u16, inner: Writer) -> (u8, Attrs) {
        let bytes = Writer::new().put(attr, &inner.into_bytes()).into_bytes();
        (command, Attrs::parse(&bytes).expect("the lengths fit"))
    }

    #[test]
    fn links_belong_to_the_group_before_them() {
        let group = |id: u32| {
            let inner = Writer::new().put(1, &id.to_ne_bytes()).put(2, &[1]);
            message(cmd::GET_LGR_SMCR, outer::LGR_SMCR, inner)
        };
        let link = |id: u8| {
            let inner = Writer::new()
                .put(1, &[id])
                .text(2, "rxe0")
                .put(8, &[0, 0, 3, id]);
            message(cmd::GET_LINK_SMCR, outer::LINK_SMCR, inner)
        };
        let list = [group(0x300), link(1), link(2), group(0x400)];
        let groups = collect_groups(&list).expect("the list is good");
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].links.len(), 2);
        assert_eq!(groups[0].role_name(), "SERV");
        assert_eq!(groups[0].links[1].device, "rxe0");
        assert_eq!(groups[0].links[1].uid, 0x302);
        assert!(groups[1].links.is_empty());
        assert!(groups[0].v2.is_none());
        assert!(collect_groups(&[link(1)]).is_err());
    }

    #[test]
    fn an_enterprise_id_is_padded() {
        let attrs = Attrs::parse(&padded("LAB").into_bytes()).expect("the lengths fit");
        let bytes = attrs.bytes(1).expect("it is there");
        assert_eq!(bytes.len(), 33);
        assert_eq!(&bytes[..4], b"LAB ");
        assert_eq!(bytes[32], 0);
    }

    #[test]
    fn totals_of_fallbacks_come_with_the_first_reason() {
        let item = |side: u8, code: u32, totals: bool| {
            let mut item = Writer::new().put(1, &[side]);
            if totals {
                item = item
                    .put(2, &5_u64.to_ne_bytes())
                    .put(3, &6_u64.to_ne_bytes());
            }
            let item = item
                .put(4, &code.to_ne_bytes())
                .put(5, &2_u16.to_ne_bytes());
            Attrs::parse(&item.into_bytes()).expect("the lengths fit")
        };
        let mut fallbacks = Fallbacks::default();
        fallbacks.add(&item(1, 0x0301_0000, true));
        fallbacks.add(&item(0, 0x0500_0000, false));
        assert_eq!((fallbacks.server, fallbacks.client), (5, 6));
        assert_eq!(fallbacks.reasons.len(), 2);
        assert_eq!(fallbacks.reasons[0].reason.name(), "PEERNOSMC");
        assert_eq!(fallbacks.reasons[1].count, 2);
    }
}

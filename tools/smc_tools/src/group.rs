// SPDX-License-Identifier: GPL-2.0

//! `linkgroup`: link groups and their links.

use std::fmt::Write;

use smc_netlink::{Group, Link, Smc};

use crate::object::{misused, stem, Options, Program};
use crate::output::{self, Outcome};

/// The low byte of a link group's number belongs to the link.
const GROUP_MASK: u32 = 0xffff_ff00;

/// What is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Links, not groups.
    pub links: bool,
    /// One group only.
    pub id: Option<u32>,
    /// Links over one RDMA device.
    pub ibdev: Option<String>,
    /// Links over one network device.
    pub netdev: Option<String>,
}

impl Query {
    /// Takes the words after `linkgroup` apart.
    fn parse(program: Program, words: &[&str]) -> Option<Self> {
        let smcr = program == Program::Smcr;
        let mut query = Self::default();
        let words = match words.split_first() {
            Some((word, rest)) if stem(word, "show") => rest,
            Some((word, rest)) if smcr && stem(word, "link-show") => {
                query.links = true;
                rest
            }
            _ => words,
        };
        match words {
            [] => {}
            [word] if stem(word, "all") => {}
            [key, name] if smcr && stem(key, "ibdev") => query.ibdev = Some((*name).to_owned()),
            [key, name] if smcr && stem(key, "netdev") => query.netdev = Some((*name).to_owned()),
            [id] => {
                let digits = id.trim_start_matches("0x");
                query.id = Some(u32::from_str_radix(digits, 16).ok()?);
            }
            _ => return None,
        }
        Some(query)
    }

    fn wants_group(&self, group: &Group) -> bool {
        self.id
            .is_none_or(|id| id & GROUP_MASK == group.id & GROUP_MASK)
    }

    fn wants_link(&self, link: &Link, interface: &str) -> bool {
        let fits = |wanted: &Option<String>, name| wanted.as_deref().is_none_or(|w| w == name);
        fits(&self.ibdev, link.device.as_str()) && fits(&self.netdev, interface)
    }

    /// Leaves the links that are wanted, and their groups.
    fn retain(&self, groups: &mut Vec<Group>, interface_name: &dyn Fn(u32) -> String) {
        if self.ibdev.is_none() && self.netdev.is_none() {
            return;
        }
        groups.retain_mut(|group| {
            let wanted = |link: &Link| self.wants_link(link, &interface_name(link.ifindex));
            group.links.retain(wanted);
            !group.links.is_empty()
        });
    }
}

/// Runs `linkgroup`.
///
/// # Errors
///
/// A sentence for the user.
pub fn run(program: Program, options: Options, words: &[&str], mut smc: Smc) -> Outcome {
    let query = Query::parse(program, words).ok_or_else(|| misused(program, "linkgroup"))?;
    let groups = match program {
        Program::Smcr if query.links || options.json => smc.groups(),
        Program::Smcr => smc.groups_only(),
        Program::Smcd => smc.smcd_groups(),
    };
    let mut groups = groups.map_err(|error| error.to_string())?;
    groups.retain(|group| query.wants_group(group));
    if options.json {
        query.retain(&mut groups, &output::interface_name);
        return output::print_json(&groups);
    }
    output::print(&match program {
        Program::Smcd => smcd_text(&groups),
        Program::Smcr if query.links => {
            links_text(&groups, &query, options, &output::interface_name)
        }
        Program::Smcr if options.detail > 0 => details_text(&groups),
        Program::Smcr => groups_text(&groups),
    })
}

/// The VLAN as C's `%#4x` shows it.
fn vlan(number: u8) -> String {
    match number {
        0 => "   0".to_owned(),
        other => format!("{:>4}", format!("{other:#x}")),
    }
}

/// The table of groups.
pub fn groups_text(groups: &[Group]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let mut out = String::from("LG-ID    LG-Role  LG-Type  VLAN  #Conns  PNET-ID \n");
    for group in groups {
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{:08x} {:<8} {:<8} {}  {:>6}  {:<16} ",
            group.id,
            group.role_name(),
            group.kind_name(),
            vlan(group.vlan),
            group.connections,
            group.pnet_id
        );
    }
    out
}

/// The table of groups over shared memory.
pub fn smcd_text(groups: &[Group]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let mut out = String::from("LG-ID    VLAN  #Conns  PNET-ID \n");
    for group in groups {
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{:08x} {}  {:>6}  {:<16} ",
            group.id,
            vlan(group.vlan),
            group.connections,
            group.pnet_id
        );
    }
    out
}

/// A block of lines for each group.
pub fn details_text(groups: &[Group]) -> String {
    let blocks: Vec<String> = groups.iter().map(details).collect();
    blocks.join("\n")
}

fn details(group: &Group) -> String {
    let mut rows = vec![
        ("LG-ID", format!("{:08x}", group.id)),
        ("LG-Role", group.role_name().to_owned()),
        ("LG-Type", group.kind_name().to_owned()),
        ("VLAN", format!("{:x}", group.vlan)),
        ("PNET-ID", group.pnet_id.clone()),
        (
            "Version",
            group.v2.as_ref().map_or(1, |v2| v2.version).to_string(),
        ),
    ];
    if let Some(v2) = &group.v2 {
        let os = v2.peer_os.name().map_or_else(
            || format!("Unknown ({:#x})", v2.peer_os.0),
            ToOwned::to_owned,
        );
        rows.extend([
            ("Peer-Rel", v2.peer_release.to_string()),
            ("Peer-Host", v2.peer_host.clone()),
            ("Peer-OS", os),
            ("Direct", (if v2.direct { "Yes" } else { "No" }).to_owned()),
            // As the kernel pads it, which scripts expect.
            ("EID", format!("{:<32}", v2.eid)),
        ]);
    }
    rows.extend([
        ("#Conns", group.connections.to_string()),
        ("Sndbuf", format!("{} B", group.sndbuf_bytes)),
        ("RMB", format!("{} B", group.rmb_bytes)),
    ]);
    let mut out = String::new();
    for (name, value) in rows {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{name:<9}: {value}");
    }
    out
}

/// The table of links.
pub fn links_text(
    groups: &[Group],
    query: &Query,
    options: Options,
    interface_name: &dyn Fn(u32) -> String,
) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let mut out =
        String::from("LG-ID    LG-Role  LG-Type  Net-Dev         Link-State      #Conns  ");
    if options.detail > 0 {
        out.push_str("Link-UID  Peer-UID  IB-Dev    IB-P  ");
    }
    if options.detail > 1 {
        out.push_str("Local-GID                                 Peer-GID  ");
    }
    out.push('\n');
    for group in groups {
        for link in &group.links {
            let interface = interface_name(link.ifindex);
            if !query.wants_link(link, &interface) {
                continue;
            }
            // Writing to a string does not fail.
            let _ = write!(
                out,
                "{:08x} {:<8} {:<8} {interface:<15.15} {:<15} {:>6}  ",
                group.id,
                group.role_name(),
                group.kind_name(),
                link.state_name(),
                link.connections
            );
            if options.detail > 0 {
                let _ = write!(
                    out,
                    "{:08x}  {:08x}  {:<8.8}  {:>4}  ",
                    link.uid, link.peer_uid, link.device, link.port
                );
            }
            if options.detail > 1 {
                let _ = write!(out, "{:<40}  {}  ", link.gid, link.peer_gid);
            }
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use smc_netlink::{GroupV2, PeerOs};

    fn group() -> Group {
        Group {
            id: 0x300,
            server: true,
            kind: 2,
            pnet_id: "RACK12".to_owned(),
            connections: 7,
            sndbuf_bytes: 458_752,
            rmb_bytes: 458_752,
            v2: Some(GroupV2 {
                version: 2,
                peer_release: 1,
                peer_os: PeerOs(2),
                peer_host: "NODEB".to_owned(),
                eid: "LAB-EID-01".to_owned(),
                direct: true,
                max_connections: Some(255),
                max_links: Some(2),
            }),
            links: vec![Link {
                id: 1,
                device: "mlx5_1".to_owned(),
                port: 1,
                connections: 4,
                uid: 0x301,
                peer_uid: 0x502,
                state: 3,
                ..Link::default()
            }],
            ..Group::default()
        }
    }

    #[test]
    fn groups_have_their_columns() {
        assert_eq!(
            groups_text(&[group()]),
            "LG-ID    LG-Role  LG-Type  VLAN  #Conns  PNET-ID \n\
             00000300 SERV     SYM         0       7  RACK12           \n"
        );
        assert_eq!(vlan(16), "0x10");
    }

    #[test]
    fn details_have_a_line_each() {
        let text = details_text(&[group(), group()]);
        assert!(
            text.starts_with("LG-ID    : 00000300\nLG-Role  : SERV\n"),
            "{text}"
        );
        assert!(text.contains("Peer-Host: NODEB\nPeer-OS  : LINUX\nDirect   : Yes\n"));
        assert!(
            text.contains("RMB      : 458752 B\n\nLG-ID    : "),
            "{text}"
        );
    }

    #[test]
    fn links_have_their_columns() {
        let detailed = Options {
            detail: 1,
            ..Options::default()
        };
        let name = |_: u32| "eth2".to_owned();
        let text = links_text(&[group()], &Query::default(), detailed, &name);
        assert_eq!(
            text,
            "LG-ID    LG-Role  LG-Type  Net-Dev         Link-State      #Conns  \
             Link-UID  Peer-UID  IB-Dev    IB-P  \n\
             00000300 SERV     SYM      eth2            LINK_ACTIVE          4  \
             00000301  00000502  mlx5_1       1  \n"
        );
        let query = Query {
            netdev: Some("eth9".to_owned()),
            ..Query::default()
        };
        assert_eq!(
            links_text(&[group()], &query, detailed, &name)
                .lines()
                .count(),
            1
        );
        for (netdev, count) in [(Some("eth9"), 0), (Some("eth2"), 1), (None, 1)] {
            let query = Query {
                netdev: netdev.map(str::to_owned),
                ..Query::default()
            };
            let mut groups = vec![group()];
            query.retain(&mut groups, &name);
            assert_eq!(groups.len(), count, "{netdev:?}");
        }
    }

    #[test]
    fn words_choose_groups() {
        let parse = |words: &[&str]| Query::parse(Program::Smcr, words);
        assert_eq!(parse(&["show", "all"]), Some(Query::default()));
        let by_id = parse(&["300"]).expect("the number is good");
        assert!(by_id.wants_group(&group()));
        assert!(!parse(&["400"])
            .expect("the number is good")
            .wants_group(&group()));
        assert!(parse(&["link-show"]).is_some_and(|query| query.links));
        assert_eq!(parse(&["nothing"]), None);
        assert_eq!(Query::parse(Program::Smcd, &["link-show"]), None);
    }
}

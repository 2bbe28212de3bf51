// SPDX-License-Identifier: GPL-2.0

//! The statistics of the SMC that comes with the kernel, which has no file in `/proc`.
//!
//! They are asked for over the generic netlink family `SMC_GEN_NETLINK` (`<linux/smc.h>`) and
//! written in the words of `/proc/net/smc_rs`, so that a test need not know whom it asks.

use std::fmt::Write;

use neli::consts::nl::NlmF;
use neli::consts::socket::NlFamily;
use neli::genl::{Genlmsghdr, GenlmsghdrBuilder};
use neli::nl::NlPayload;
use neli::router::synchronous::NlRouter;
use neli::utils::Groups;

const FAMILY: &str = "SMC_GEN_NETLINK";
/// `SMC_NETLINK_GET_LGR_SMCR`
const GET_GROUPS: u8 = 2;
/// `SMC_NETLINK_GET_STATS`
const GET_STATS: u8 = 7;
/// `SMC_NETLINK_GET_FBACK_STATS`
const GET_FALLBACKS: u8 = 8;
/// `SMC_GEN_LGR_SMCR`
const GROUPS: u16 = 2;
/// `SMC_GEN_STATS`
const STATS: u16 = 7;
/// `SMC_GEN_FBACK_STATS`
const FALLBACKS: u16 = 8;
/// `SMC_NLA_STATS_SMCD_TECH`
const SMCD: u16 = 1;
/// `SMC_NLA_STATS_SMCR_TECH`
const SMCR: u16 = 2;
/// `SMC_NLA_STATS_CLNT_HS_ERR_CNT` and `SMC_NLA_STATS_SRV_HS_ERR_CNT`
const HANDSHAKE_ERRORS: std::ops::RangeInclusive<u16> = 3..=4;
/// `SMC_NLA_STATS_T_CLNT_V1_SUCC` to `SMC_NLA_STATS_T_SRV_V2_SUCC`
const CONNECTIONS: std::ops::RangeInclusive<u16> = 7..=10;
/// `SMC_NLA_STATS_T_RX_BYTES`
const RX_BYTES: u16 = 16;
/// `SMC_NLA_STATS_T_TX_BYTES`
const TX_BYTES: u16 = 17;
/// `SMC_NLA_FBACK_STATS_TYPE`: 1 for the server's side
const FALLBACK_SIDE: u16 = 1;
/// `SMC_NLA_FBACK_STATS_SRV_CNT` and `SMC_NLA_FBACK_STATS_CLNT_CNT`
const FALLBACK_TOTALS: std::ops::RangeInclusive<u16> = 2..=3;
/// `SMC_NLA_FBACK_STATS_RSN_CODE`
const FALLBACK_REASON: u16 = 4;
/// `SMC_NLA_FBACK_STATS_RSN_CNT`
const FALLBACK_COUNT: u16 = 5;
/// `SMC_NLA_LGR_R_ID`
const GROUP_ID: u16 = 1;
/// `SMC_NLA_LGR_R_ROLE`: 0 for the client
const GROUP_ROLE: u16 = 2;
/// `SMC_NLA_LGR_R_CONNS_NUM`
const GROUP_CONNECTIONS: u16 = 6;
/// `SMC_NLA_LGR_R_V2_COMMON`
const GROUP_COMMON: u16 = 7;
/// `SMC_NLA_LGR_R_V2`
const GROUP_V2: u16 = 8;
/// `SMC_NLA_LGR_V2_VER`, in `GROUP_COMMON`
const COMMON_VERSION: u16 = 0;
/// `SMC_NLA_LGR_V2_REL`, in `GROUP_COMMON`
const COMMON_RELEASE: u16 = 1;
/// `SMC_NLA_LGR_R_V2_MAX_CONNS`, in `GROUP_V2`
const V2_MAX_CONNS: u16 = 2;

type Message = Genlmsghdr<u8, u16>;

/// Asks for the statistics of the calling thread's network namespace.
///
/// # Errors
///
/// A sentence for the user, when the kernel has no SMC or does not answer.
pub fn read() -> Result<String, String> {
    let mut text = String::from("smc 1\n");
    for payload in dump(GET_STATS, STATS)? {
        tell_totals(&payload, &mut text);
    }
    tell_fallbacks(&dump(GET_FALLBACKS, FALLBACKS)?, &mut text);
    tell_groups(&dump(GET_GROUPS, GROUPS)?, &mut text);
    Ok(text)
}

/// Returns what the kernel's answers to a command have in the attribute `wanted`.
fn dump(command: u8, wanted: u16) -> Result<Vec<Vec<u8>>, String> {
    let (router, _) =
        NlRouter::connect(NlFamily::Generic, None, Groups::empty()).map_err(|e| words(&e))?;
    let family = router
        .resolve_genl_family(FAMILY)
        .map_err(|_| "the kernel has no SMC: load the module smc or smc_rs.".to_owned())?;
    let request: Message = GenlmsghdrBuilder::default()
        .cmd(command)
        .version(1)
        .attrs([].into_iter().collect())
        .build()
        .map_err(|e| words(&e))?;
    let answers = router
        .send::<u16, Message, u16, Message>(family, NlmF::DUMP, NlPayload::Payload(request))
        .map_err(|e| words(&e))?;
    let mut found = Vec::new();
    for answer in answers {
        if let NlPayload::Payload(message) = answer.map_err(|e| words(&e))?.nl_payload() {
            for attribute in message.attrs().iter() {
                if *attribute.nla_type().nla_type() == wanted {
                    found.push(attribute.nla_payload().as_ref().to_vec());
                }
            }
        }
    }
    Ok(found)
}

fn words(error: &dyn std::fmt::Display) -> String {
    format!("the exchange with the kernel failed: {error}.")
}

fn tell_totals(payload: &[u8], text: &mut String) {
    let mut errors = 0;
    for (kind, value) in attributes(payload) {
        let name = match kind {
            SMCD => "smcd",
            SMCR => "smcr",
            _ if HANDSHAKE_ERRORS.contains(&kind) => {
                errors += number(value);
                continue;
            }
            _ => continue,
        };
        let (mut connections, mut received, mut sent) = (0, 0, 0);
        for (kind, value) in attributes(value) {
            match kind {
                RX_BYTES => received = number(value),
                TX_BYTES => sent = number(value),
                _ if CONNECTIONS.contains(&kind) => connections += number(value),
                _ => {}
            }
        }
        let _ = writeln!(text, "connections_{name} {connections}");
        let _ = writeln!(text, "rx_bytes_{name} {received}\ntx_bytes_{name} {sent}");
    }
    let _ = writeln!(text, "handshake_errors {errors}");
}

/// The kernel counts by reason, for each side, in a message of its own; the totals are in the first.
fn tell_fallbacks(payloads: &[Vec<u8>], text: &mut String) {
    let mut total = 0;
    let mut lines = String::new();
    for payload in payloads {
        let (mut side, mut reason, mut count) = ("client", 0, 0);
        for (kind, value) in attributes(payload) {
            match kind {
                FALLBACK_SIDE if number(value) == 1 => side = "server",
                FALLBACK_REASON => reason = number(value),
                FALLBACK_COUNT => count = number(value),
                _ if FALLBACK_TOTALS.contains(&kind) => total += number(value),
                _ => {}
            }
        }
        let _ = writeln!(lines, "fallback 0x{reason:08x} {side} {count}");
    }
    let _ = write!(text, "fallback_total {total}\n{lines}");
}

fn tell_groups(payloads: &[Vec<u8>], text: &mut String) {
    for payload in payloads {
        let (mut id, mut role, mut conns) = (0, "SERV", 0);
        let (mut version, mut release, mut max_conns) = (0, 0, 0);
        for (kind, value) in attributes(payload) {
            match kind {
                GROUP_ID => id = number(value),
                GROUP_ROLE if number(value) == 0 => role = "CLNT",
                GROUP_CONNECTIONS => conns = number(value),
                GROUP_COMMON => {
                    version = member(value, COMMON_VERSION);
                    release = member(value, COMMON_RELEASE);
                }
                GROUP_V2 => max_conns = member(value, V2_MAX_CONNS),
                _ => {}
            }
        }
        let _ = writeln!(
            text,
            "lgr {id:08x} role={role} conns={conns} version={version}.{release} max_conns={max_conns}"
        );
    }
    let _ = writeln!(text, "link_groups {}", payloads.len());
}

/// The number in the attribute `wanted` of a nest; zero if it is not there.
fn member(nest: &[u8], wanted: u16) -> u64 {
    attributes(nest)
        .iter()
        .find(|(kind, _)| *kind == wanted)
        .map_or(0, |(_, value)| number(value))
}

/// Splits netlink attributes; what is cut short ends the list.
fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    /// `NLA_TYPE_MASK`: without the flags for nesting and byte order.
    const TYPE: u16 = 0x3fff;
    let mut found = Vec::new();
    while let [l0, l1, t0, t1, ..] = *bytes {
        let len = usize::from(u16::from_ne_bytes([l0, l1]));
        let Some(value) = bytes.get(4..len) else {
            break;
        };
        found.push((u16::from_ne_bytes([t0, t1]) & TYPE, value));
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
    found
}

/// A number of one to eight bytes, in the byte order of this machine (little-endian).
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .take(8)
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (value.len() as u16 + 4).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn connections_of_both_roles_and_versions_are_added_up() {
        let tech: Vec<u8> = (7u16..=10)
            .flat_map(|kind| attribute(kind, &u64::from(kind).to_ne_bytes()))
            .chain(attribute(17, &500u64.to_ne_bytes()))
            .collect();
        let mut text = String::new();
        tell_totals(&attribute(2 | 0x8000, &tech), &mut text);
        assert!(text.contains("connections_smcr 34\n"), "{text}");
        assert!(text.contains("tx_bytes_smcr 500\n"), "{text}");
    }

    #[test]
    fn fallbacks_have_their_side_and_reason() {
        let first = [
            attribute(1, &[1]),
            attribute(2, &3u64.to_ne_bytes()),
            attribute(3, &2u64.to_ne_bytes()),
            attribute(4, &0x0500_0000u32.to_ne_bytes()),
            attribute(5, &3u16.to_ne_bytes()),
        ]
        .concat();
        let second = [
            attribute(1, &[0]),
            attribute(4, &0x0301_0000u32.to_ne_bytes()),
            attribute(5, &2u16.to_ne_bytes()),
        ]
        .concat();
        let mut text = String::new();
        tell_fallbacks(&[first, second], &mut text);
        assert_eq!(
            text,
            "fallback_total 5\nfallback 0x05000000 server 3\nfallback 0x03010000 client 2\n"
        );
    }

    #[test]
    fn link_groups_have_their_terms() {
        let common = [attribute(0, &[2]), attribute(1, &[1])].concat();
        let group = [
            attribute(1, &0x0102_0304u32.to_ne_bytes()),
            attribute(2, &[0]),
            attribute(6, &5u32.to_ne_bytes()),
            attribute(7 | 0x8000, &common),
            attribute(8 | 0x8000, &attribute(2, &[16])),
        ]
        .concat();
        let mut text = String::new();
        tell_groups(&[group], &mut text);
        assert_eq!(
            text,
            "lgr 01020304 role=CLNT conns=5 version=2.1 max_conns=16\nlink_groups 1\n"
        );
    }

    #[test]
    fn attributes_cut_short_end_the_list() {
        let mut bytes = attribute(1, &[7]);
        bytes.extend([9, 0, 2, 0, 1]);
        assert_eq!(attributes(&bytes), [(1, &[7u8][..])]);
        assert!(attributes(&[3, 0, 1, 0]).is_empty());
    }
}

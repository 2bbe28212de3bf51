// SPDX-License-Identifier: GPL-2.0

//! What happened between two looks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;
use smc_netlink::diag::{Cursor, Mode, Socket};
use smc_netlink::{Fallback, Fallbacks, Group, Stats};

use super::sample::Look;

/// All of it.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Rates {
    /// Seconds between the looks.
    pub(super) seconds: f64,
    /// Bytes a second, of all connections, also those that were over before the second look.
    pub(super) sent: u64,
    /// As `sent`.
    pub(super) received: u64,
    /// Connections over SMC-R.
    pub(super) smcr: usize,
    /// Connections over SMC-D.
    pub(super) smcd: usize,
    /// Connections that stay on TCP.
    pub(super) tcp: usize,
    /// Connections that stayed on TCP since the first look.
    pub(super) fallbacks: Option<Fallbacks>,
    /// The busiest first.
    pub(super) connections: Vec<ConnectionRate>,
    /// The busiest first.
    pub(super) links: Vec<LinkRate>,
}

/// A connection and how fast it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct ConnectionRate {
    pub(super) local: String,
    pub(super) peer: String,
    pub(super) mode: Mode,
    pub(super) device: String,
    /// Bytes a second.
    pub(super) sent: u64,
    /// Bytes a second.
    pub(super) received: u64,
    /// Bytes that wait to be read.
    pub(super) unread: u32,
    /// Bytes that wait to be sent.
    pub(super) unsent: u32,
}

/// A link and how fast it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct LinkRate {
    /// Numbers of its link group. More than one when the links of several groups cannot be told
    /// apart in the list of sockets; none when the kernel lists no groups.
    pub(super) groups: Vec<u32>,
    /// Its number in the group.
    pub(super) link: u8,
    pub(super) device: String,
    /// Port of the device.
    pub(super) port: u8,
    /// Host name of the peer, else its address.
    pub(super) peer: String,
    pub(super) connections: u32,
    /// Bytes a second.
    pub(super) sent: u64,
    /// Bytes a second.
    pub(super) received: u64,
}

/// What tells a link from others in the list of sockets.
type LinkKey = (bool, u8, String, String, String);

impl Rates {
    pub(super) fn between(last: &Look, now: &Look) -> Self {
        let seconds = now.at.duration_since(last.at).as_secs_f64();
        let per_second = |bytes| per_second(bytes, seconds);
        let mut connections: Vec<(&Socket, ConnectionRate)> = now
            .sockets
            .iter()
            .map(|socket| (socket, connection(last, socket, &per_second)))
            .collect();
        connections.sort_by_key(|(_, row)| Reverse(row.sent + row.received));
        let links = links(&now.groups, &connections);
        let connections: Vec<ConnectionRate> =
            connections.into_iter().map(|(_, row)| row).collect();
        let count = |mode| connections.iter().filter(|row| row.mode == mode).count();
        let (sent, received) = match (&last.stats, &now.stats) {
            (Some(last), Some(now)) => {
                let ((sent, received), (sent_before, received_before)) = (bytes(now), bytes(last));
                (
                    per_second(sent.saturating_sub(sent_before)),
                    per_second(received.saturating_sub(received_before)),
                )
            }
            _ => connections
                .iter()
                .fold((0, 0), |sum, row| (sum.0 + row.sent, sum.1 + row.received)),
        };
        Self {
            seconds,
            sent,
            received,
            smcr: count(Mode::Rdma),
            smcd: count(Mode::SharedMemory),
            tcp: count(Mode::Tcp),
            fallbacks: match (&last.fallbacks, &now.fallbacks) {
                (Some(last), Some(now)) => Some(fallbacks(last, now)),
                _ => None,
            },
            connections,
            links,
        }
    }
}

/// Bytes a second. Two looks are never at the same time, but they can be close.
fn per_second(bytes: u64, seconds: f64) -> u64 {
    // CAST: A rate is shown with four digits.
    (bytes as f64 / seconds.max(0.001)) as u64
}

/// Bytes sent and received over SMC.
fn bytes(stats: &Stats) -> (u64, u64) {
    (
        stats.smcr.tx.bytes + stats.smcd.tx.bytes,
        stats.smcr.rx.bytes + stats.smcd.rx.bytes,
    )
}

/// The fallbacks since the first look, with the reasons that were counted since.
fn fallbacks(last: &Fallbacks, now: &Fallbacks) -> Fallbacks {
    let before = |new: &Fallback| {
        let mut old = last.reasons.iter();
        old.find(|old| old.side == new.side && old.reason == new.reason)
            .map_or(0, |old| old.count)
    };
    let reasons = now.reasons.iter().map(|new| Fallback {
        count: new.count.saturating_sub(before(new)),
        ..new.clone()
    });
    Fallbacks {
        server: now.server.saturating_sub(last.server),
        client: now.client.saturating_sub(last.client),
        reasons: reasons.filter(|reason| reason.count > 0).collect(),
    }
}

fn connection(last: &Look, socket: &Socket, per_second: &impl Fn(u64) -> u64) -> ConnectionRate {
    let new = socket.connection.as_ref();
    let (sent, received) = match (last.cursors.get(&socket.cookie), new) {
        (Some(old), Some(new)) => (
            between(old.tx_sent, new.tx_sent, new.sndbuf_size),
            between(old.rx_prod, new.rx_prod, new.rmbe_size),
        ),
        _ => (0, 0),
    };
    let waiting = |from: Cursor, to: Cursor, size: u32| {
        u32::try_from(between(from, to, size)).unwrap_or(u32::MAX)
    };
    let link = socket.link.as_ref();
    ConnectionRate {
        local: socket.local.to_string(),
        peer: socket.peer.to_string(),
        mode: socket.mode,
        device: link.map_or_else(String::new, |link| link.device.clone()),
        sent: per_second(sent),
        received: per_second(received),
        unread: new.map_or(0, |c| waiting(c.tx_cons, c.rx_prod, c.rmbe_size)),
        unsent: new.map_or(0, |c| waiting(c.tx_sent, c.tx_prep, c.sndbuf_size)),
    }
}

/// Bytes from one place in a ring to a later one. Wraps are counted modulo 2^16.
fn between(from: Cursor, to: Cursor, size: u32) -> u64 {
    let wraps = u64::from(to.wrap.wrapping_sub(from.wrap));
    (wraps * u64::from(size) + u64::from(to.count)).saturating_sub(u64::from(from.count))
}

/// The links that are listed, and those that are not but have connections, each with the sum of
/// its connections.
fn links(groups: &[Group], connections: &[(&Socket, ConnectionRate)]) -> Vec<LinkRate> {
    let mut links: BTreeMap<LinkKey, LinkRate> = BTreeMap::new();
    for group in groups {
        for link in &group.links {
            let device = link.device.clone();
            let key = (
                group.server,
                link.id,
                device,
                link.gid.clone(),
                link.peer_gid.clone(),
            );
            let host = group.v2.as_ref().map_or("", |v2| v2.peer_host.as_str());
            let row = links.entry(key).or_insert_with(|| LinkRate {
                link: link.id,
                device: link.device.clone(),
                port: link.port,
                peer: peer(host, &link.peer_gid),
                ..LinkRate::default()
            });
            row.groups.push(group.id);
            row.connections += link.connections;
        }
    }
    for (socket, rate) in connections {
        let Some(link) = &socket.link else { continue };
        let device = link.device.clone();
        let key = (
            link.server,
            link.link_id,
            device,
            link.gid.clone(),
            link.peer_gid.clone(),
        );
        let row = links.entry(key).or_insert_with(|| LinkRate {
            link: link.link_id,
            device: link.device.clone(),
            port: link.port,
            peer: peer("", &link.peer_gid),
            ..LinkRate::default()
        });
        if row.groups.is_empty() {
            row.connections += 1;
        }
        row.sent += rate.sent;
        row.received += rate.received;
    }
    let mut links: Vec<LinkRate> = links.into_values().collect();
    links.sort_by_key(|row| {
        (
            Reverse(row.sent + row.received),
            row.groups.clone(),
            row.link,
        )
    });
    links
}

/// A peer's host name, else its address: that of IPv4 as such.
fn peer(host: &str, gid: &str) -> String {
    if !host.is_empty() {
        return host.to_owned();
    }
    match gid.parse::<std::net::Ipv6Addr>() {
        Ok(address) => address.to_canonical().to_string(),
        Err(_) => gid.to_owned(),
    }
}

#[cfg(test)]
pub(super) use tests::example;
#[cfg(test)]
mod tests;

// SPDX-License-Identifier: GPL-2.0

//! On which sockets and over which network a scenario runs.

use std::io;
use std::net::IpAddr;
use std::str::FromStr;
use testlib::process::in_netns;
use testlib::sock::{Family, Sock};

/// How data goes once a socket is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// TCP sockets.
    Tcp,
    /// SMC sockets, over SMC-R.
    Rdma,
    /// SMC sockets that stayed on TCP.
    Fallback,
}

/// Which addresses a scenario uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addresses {
    V4,
    V6,
    /// Those of IPv4, on sockets with addresses of IPv6.
    Mapped,
}

/// One of the ways in which each scenario runs.
#[derive(Debug)]
pub(crate) struct Mode {
    pub(crate) name: &'static str,
    /// Family of the socket under test.
    pub(crate) subject: Family,
    /// Family of the socket at the other end.
    pub(crate) peer: Family,
    /// Runs on the network without RDMA devices.
    pub(crate) plain: bool,
    pub(crate) over: Over,
    pub(crate) addresses: Addresses,
}

const fn mode(name: &'static str, subject: Family, peer: Family, plain: bool, over: Over) -> Mode {
    Mode {
        name,
        subject,
        peer,
        plain,
        over,
        addresses: if subject.is_v6() {
            Addresses::V6
        } else {
            Addresses::V4
        },
    }
}

const fn mapped(mode: Mode) -> Mode {
    Mode {
        addresses: Addresses::Mapped,
        ..mode
    }
}

/// With IPv4 addresses.
const V4: &[Mode] = &[
    mode("tcp", Family::Tcp, Family::Tcp, false, Over::Tcp),
    mode("smcr", Family::Smc, Family::Smc, false, Over::Rdma),
    mode("inet", Family::SmcInet, Family::SmcInet, false, Over::Rdma),
    mode("peer-tcp", Family::Smc, Family::Tcp, false, Over::Fallback),
    mode("no-device", Family::Smc, Family::Smc, true, Over::Fallback),
];

/// With IPv6 addresses, which SMC-R version 2 does not do.
const V6: &[Mode] = &[
    mode("tcp6", Family::Tcp6, Family::Tcp6, false, Over::Tcp),
    mode("smc6", Family::Smc6, Family::Smc6, false, Over::Fallback),
    mode(
        "inet6",
        Family::SmcInet6,
        Family::SmcInet6,
        false,
        Over::Fallback,
    ),
];

/// With IPv4 addresses in IPv6 form, on which SMC-R is possible.
const MAPPED: &[Mode] = &[
    mapped(mode("tcp6", Family::Tcp6, Family::Tcp6, false, Over::Tcp)),
    mapped(mode("smc6", Family::Smc6, Family::Smc6, false, Over::Rdma)),
    mapped(mode(
        "inet6",
        Family::SmcInet6,
        Family::SmcInet6,
        false,
        Over::Rdma,
    )),
    mapped(mode(
        "peer-tcp6",
        Family::Smc6,
        Family::Tcp6,
        false,
        Over::Fallback,
    )),
];

/// One end of a network.
#[derive(Clone, Debug)]
pub(crate) struct End {
    ns: Option<String>,
    pub(crate) v4: IpAddr,
    pub(crate) v6: IpAddr,
}

impl End {
    /// The address of this end that sockets use in a mode.
    pub(crate) fn ip(&self, mode: &Mode) -> IpAddr {
        match (mode.addresses, self.v4) {
            (Addresses::V6, _) => self.v6,
            (Addresses::Mapped, IpAddr::V4(v4)) => v4.to_ipv6_mapped().into(),
            (_, ip) => ip,
        }
    }

    /// A socket that lives at this end.
    pub(crate) fn socket(&self, family: Family) -> io::Result<Sock> {
        in_netns(self.ns.as_deref(), || {
            Sock::with_flags(family, libc::SOCK_CLOEXEC)
        })
    }
}

/// Two ends that reach each other.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) server: End,
    pub(crate) client: End,
}

impl FromStr for Network {
    type Err = String;

    /// `namespace,IPv4,IPv6,namespace,IPv4,IPv6`: the server's end, then the client's.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(',').collect();
        let [a, a4, a6, b, b4, b6] = parts[..] else {
            return Err(format!(
                "'{text}' is not of the form namespace,IPv4,IPv6,namespace,IPv4,IPv6"
            ));
        };
        Ok(Network {
            server: end(a, a4, a6)?,
            client: end(b, b4, b6)?,
        })
    }
}

fn end(ns: &str, v4: &str, v6: &str) -> Result<End, String> {
    let ip = |text: &str| {
        IpAddr::from_str(text)
            .map_err(|_| format!("'{text}' is not an address: give one like 10.9.0.1"))
    };
    Ok(End {
        ns: (!ns.is_empty()).then(|| ns.to_owned()),
        v4: ip(v4)?,
        v6: ip(v6)?,
    })
}

/// The networks a run has.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) rdma: Network,
    pub(crate) plain: Network,
    /// Only the first mode runs.
    pub(crate) tcp_only: bool,
}

impl World {
    /// In which modes scenarios with such addresses run; the first one is the measure.
    pub(crate) fn modes(&self, addresses: Addresses) -> &'static [Mode] {
        let all = match addresses {
            Addresses::V4 => V4,
            Addresses::V6 => V6,
            Addresses::Mapped => MAPPED,
        };
        if self.tcp_only {
            &all[..1]
        } else {
            all
        }
    }

    pub(crate) fn network(&self, mode: &Mode) -> &Network {
        if mode.plain {
            &self.plain
        } else {
            &self.rdma
        }
    }
}

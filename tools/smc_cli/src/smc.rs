// SPDX-License-Identifier: GPL-2.0

//! `smc`.

use std::net::IpAddr;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Port of `smc check listen` unless another one is given.
pub const CHECK_PORT: u16 = 4300;

/// Tell how SMC does on this host.
#[derive(Debug, Parser)]
#[command(name = "smc", version)]
pub struct Options {
    /// JSON instead of text
    #[arg(short, long, global = true)]
    pub json: bool,
    /// What is to be told.
    #[command(subcommand)]
    pub action: Action,
}

/// What is to be told.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// What there is: devices, identifiers, link groups, connections, fallbacks
    Status,
    /// Why connections stay on TCP, and what to do about it
    Why {
        /// Only connections with this address, or address and port, at either end
        address: Option<String>,
    },
    /// RDMA devices, and whether SMC-R can use them
    Devices,
    /// Whether handshakes are limited under load, or limit them
    ///
    /// Where they are, a listener with many handshakes under way offers SMC to no further clients:
    /// they stay on TCP. This is a setting of the network namespace, net.smc.limit_smc_hs in sysctl.
    LimitHandshakes {
        /// Limit them or not, for which root is needed; shown if not given
        set: Option<Switch>,
    },
    /// Whether SMC can work, with a remedy for each thing that is missing
    ///
    /// Exit codes: 0 all is good, 1 something is missing, 2 the command line is wrong, 3 the check
    /// could not be made.
    Check(Check),
    /// What happens, as it happens: link groups, links, connections, fallbacks
    Monitor {
        /// Events to wait for; without end if not given
        #[arg(short = 'n', long)]
        count: Option<u32>,
    },
    /// Rates of connections and links, and how many connections stay on TCP
    ///
    /// On a terminal this is a live view with a picture of the last intervals: "l" shows links, "c"
    /// connections, Tab the other table, the arrow keys scroll it, and "q", Esc or Ctrl-C end the
    /// view. Elsewhere, and with --count or --json, each look is printed below the last one.
    Top {
        /// Seconds between two looks
        #[arg(short, long, default_value_t = 1.0)]
        interval: f64,
        /// Looks to take; without end if not given
        #[arg(short = 'n', long)]
        count: Option<u32>,
    },
}

/// What can be done or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// It is done
    On,
    /// It is not done
    Off,
}

/// Which check is to be made.
#[derive(Args, Debug)]
pub struct Check {
    /// The check; `basic` if not given.
    #[command(subcommand)]
    pub what: Option<What>,
}

/// A check.
#[derive(Clone, Debug, Subcommand)]
pub enum What {
    /// This host: module, identifier, devices, firewall
    Basic,
    /// Whether the path to a TCP server keeps, strips or reflects the SMC option; needs root
    Syn {
        /// The server: HOST:PORT or a URL
        url: String,
        /// Seconds to wait for each answer
        #[arg(short, long, default_value_t = 3.0)]
        timeout: f64,
    },
    /// A connection to "smc check listen" on the peer, from end to end
    Connect {
        /// The peer: HOST or HOST:PORT; with --ssh it may be left out
        #[arg(required_unless_present = "ssh")]
        peer: Option<String>,
        /// Have ssh run "smc check listen" on HOST, or USER@HOST, as long as it is needed; ssh must
        /// get there without a password
        #[arg(long, value_name = "HOST")]
        ssh: Option<String>,
        /// Seconds that all of it may take
        #[arg(short, long, default_value_t = 10.0)]
        timeout: f64,
    },
    /// Wait for "smc check connect"
    Listen {
        /// Address to listen at
        #[arg(short, long, default_value = "0.0.0.0")]
        address: IpAddr,
        /// Port to listen at
        #[arg(short, long, default_value_t = CHECK_PORT)]
        port: u16,
        /// Connections to wait for; without end if not given
        #[arg(short = 'n', long)]
        count: Option<u32>,
        /// End when standard input does
        #[arg(long)]
        attached: bool,
    },
}

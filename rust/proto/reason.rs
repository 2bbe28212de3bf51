// SPDX-License-Identifier: GPL-2.0

//! Why a connection stays on TCP: the diagnosis codes of CLC Decline.
//!
//! RFC 7609 A.2.5 leaves the values to each system; these are the ones that
//! Linux uses, so that its tools and peers understand them.

use core::fmt;

/// A diagnosis code. Peers on other systems may send values not listed here.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeclineReason(pub u32);

macro_rules! reasons {
    ($($name:ident = $code:literal, $what:literal, $hint:literal;)*) => {
        impl DeclineReason {
            $(#[doc = concat!($what, ".")] pub const $name: DeclineReason = DeclineReason($code);)*

            /// Every reason that has a name.
            pub const ALL: &'static [DeclineReason] = &[$(DeclineReason::$name),*];

            /// What happened, as a phrase without a full stop.
            pub const fn describe(self) -> &'static str {
                match self.0 {
                    $($code => $what,)*
                    _ => "the reason is private to the peer's system",
                }
            }

            /// What the user can do about it, as a sentence.
            pub const fn hint(self) -> &'static str {
                match self.0 {
                    $($code => $hint,)*
                    _ => "Look the code up in the documentation of the peer's system.",
                }
            }

            /// Short symbolic name of the code.
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $($code => stringify!($name),)*
                    _ => "UNKNOWN",
                }
            }
        }
    };
}

reasons! {
    MEM = 0x0101_0000,
        "memory for the connection could not be had",
        "Free memory on this host, or ask for smaller socket buffers.";
    TIMEOUT_CL = 0x0201_0000,
        "the peer did not confirm the new RDMA link in time",
        "Check that RDMA traffic passes between the two RoCE ports in both directions.";
    TIMEOUT_AL = 0x0202_0000,
        "the peer did not answer the offer of a second link in time",
        "Check that the link between the RoCE ports does not lose packets.";
    CNFERR = 0x0300_0000,
        "the peer's message does not fit the configuration",
        "Compare the SMC configuration of both hosts.";
    PEERNOSMC = 0x0301_0000,
        "the peer does not offer SMC",
        "Load an SMC module on the peer and run the program there under smc_run; \
         a firewall between may also have removed the TCP option.";
    IPSEC = 0x0302_0000,
        "the connection is protected by IPsec",
        "RDMA would go around IPsec: exempt the connection from it, or stay on TCP.";
    NOSMCDEV = 0x0303_0000,
        "no device for SMC serves this network interface",
        "Check with rdma link that an active RoCE port belongs to the interface.";
    NOSMCDDEV = 0x0303_0001,
        "no shared memory device serves this network interface",
        "Check that an ISM device is there and belongs to the interface.";
    NOSMCRDEV = 0x0303_0002,
        "no RDMA device serves this network interface",
        "Check with rdma link that an active RoCE port belongs to the interface.";
    NOISM2SUPP = 0x0303_0003,
        "this host does not support version 2 of shared memory devices",
        "Use RDMA, or a host whose devices support it.";
    NOV2EXT = 0x0303_0004,
        "the peer offered version 2 without its details",
        "Update the SMC implementation of the peer.";
    NOV2DEXT = 0x0303_0005,
        "the peer offered shared memory version 2 without its details",
        "Update the SMC implementation of the peer.";
    NOSEID = 0x0303_0006,
        "the peer did not send a system enterprise ID",
        "Enable the system enterprise ID on the peer, or set a common one on both hosts.";
    NOSMCD2DEV = 0x0303_0007,
        "no shared memory device for version 2 is there",
        "Check that an ISM device is there and active.";
    NOUEID = 0x0303_0008,
        "the two hosts share no enterprise ID",
        "Set the same enterprise ID on both hosts.";
    RELEASEERR = 0x0303_0009,
        "the two hosts do not agree on a release of version 2",
        "Update the SMC implementation of the older host.";
    MAXCONNERR = 0x0303_000a,
        "the two hosts do not agree on connections per link group",
        "Set the limit to at least 16 on both hosts.";
    MAXLINKERR = 0x0303_000b,
        "the two hosts do not agree on links per link group",
        "Set the limit to 1 or 2 on both hosts.";
    MODEUNSUPP = 0x0304_0000,
        "one host offers RDMA and the other shared memory",
        "Enable a transport that both hosts have.";
    RMBE_EC = 0x0305_0000,
        "the peer wants eyecatchers in the receive buffers",
        "Update the SMC implementation of the peer.";
    OPTUNSUPP = 0x0306_0000,
        "the program asked for TCP Fast Open, or BPF has the connection in a map of sockets",
        "SMC cannot be combined with either: switch TCP Fast Open off in the program, or \
         leave its connections out of the map.";
    DIFFPREFIX = 0x0307_0000,
        "the two hosts are not in one IP subnet",
        "Use version 2, which needs a common enterprise ID, or addresses of one subnet.";
    GETVLANERR = 0x0308_0000,
        "the VLAN of the connection could not be found out",
        "Check that the network interface of the connection still exists.";
    ISMVLANERR = 0x0309_0000,
        "the VLAN could not be registered with the shared memory device",
        "Check the VLAN limits of the device.";
    NOACTLINK = 0x030a_0000,
        "the link group has no active link",
        "Check that the RoCE port is up; the next connection makes a new link group.";
    NOSRVLINK = 0x030b_0000,
        "the link that the server chose is not known here",
        "Try again: the link group was changing.";
    VERSMISMAT = 0x030c_0000,
        "the two hosts speak no common version of SMC",
        "Update the SMC implementation of the older host.";
    MAX_DMB = 0x030d_0000,
        "the limit of shared memory buffers is reached",
        "Close connections, or raise the limit.";
    NOROUTE = 0x030e_0000,
        "there is no route to the RoCE address of the peer",
        "Check with ip route that the RoCE addresses reach each other.";
    NOINDIRECT = 0x030f_0000,
        "one host reaches the other through a gateway, the other directly",
        "Make the routes between the RoCE addresses equal in both directions.";
    SYNCERR = 0x0400_0000,
        "the two hosts disagree on whether they have a link group",
        "Try again: the link group is made anew.";
    PEERDECL = 0x0500_0000,
        "the peer declined",
        "See the reason that the peer gave.";
    INTERR = 0x0999_0000,
        "an internal error happened",
        "See the kernel log, and report it.";
    ERR_RTOK = 0x0999_0001,
        "the address of the peer's receive buffer could not be kept",
        "Try again: the table of the link group may have been full.";
    ERR_RDYLNK = 0x0999_0002,
        "the RDMA queue pair could not be brought into operation",
        "Check with rdma link that the RoCE port is up, and see the kernel log.";
    ERR_REGBUF = 0x0999_0003,
        "the receive buffer could not be registered with the RDMA device, or the peer refused its key",
        "The device or the peer may have run out of memory regions: close connections.";
}

impl DeclineReason {
    /// Whether the code says that the link groups are out of step, in which case
    /// Decline carries the S flag.
    pub const fn is_out_of_sync(self) -> bool {
        self.0 == DeclineReason::SYNCERR.0
    }
}

impl fmt::Display for DeclineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:#010x})", self.describe(), self.0)
    }
}

impl fmt::Debug for DeclineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:#010x})", self.name(), self.0)
    }
}

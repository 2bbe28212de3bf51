// SPDX-License-Identifier: GPL-2.0

//! The family `SMC_GEN_NETLINK`: what exists, what was counted, identifiers and limits.

use super::{attributes, named, Family};

/// The family.
pub const FAMILY: Family = Family {
    name: "SMC_GEN_NETLINK",
    prefix: "SMC_NETLINK_",
    commands: cmd::ALL,
    sets: &[
        &outer::SET,
        &sys::SET,
        &lgr_v2::SET,
        &lgr_r_v2::SET,
        &lgr_r::SET,
        &link::SET,
        &lgr_d::SET,
        &dev_port::SET,
        &dev::SET,
        &pload::SET,
        &rmb::SET,
        &tech::SET,
        &stats::SET,
        &fback::SET,
        &eid::SET,
        &seid::SET,
        &hs_limitation::SET,
    ],
};

/// Version of the family.
pub const VERSION: u8 = 1;

named! {
    /// Commands.
    cmd {
        GET_SYS_INFO = 1,
        GET_LGR_SMCR = 2,
        GET_LINK_SMCR = 3,
        GET_LGR_SMCD = 4,
        GET_DEV_SMCD = 5,
        GET_DEV_SMCR = 6,
        GET_STATS = 7,
        GET_FBACK_STATS = 8,
        DUMP_UEID = 9,
        ADD_UEID = 10,
        REMOVE_UEID = 11,
        FLUSH_UEID = 12,
        DUMP_SEID = 13,
        ENABLE_SEID = 14,
        DISABLE_SEID = 15,
        DUMP_HS_LIMITATION = 16,
        ENABLE_HS_LIMITATION = 17,
        DISABLE_HS_LIMITATION = 18,
    }
}

attributes! {
    /// Attributes of messages: each list has one of these for an item.
    outer, "SMC_GEN_" {
        SYS_INFO = 1: Nest(sys),
        LGR_SMCR = 2: Nest(lgr_r),
        LINK_SMCR = 3: Nest(link),
        LGR_SMCD = 4: Nest(lgr_d),
        DEV_SMCD = 5: Nest(dev),
        DEV_SMCR = 6: Nest(dev),
        STATS = 7: Nest(stats),
        FBACK_STATS = 8: Nest(fback),
    }
}

attributes! {
    /// What a host can do.
    sys, "SMC_NLA_SYS_" {
        VER = 1: U8,
        REL = 2: U8,
        IS_ISM_V2 = 3: U8,
        LOCAL_HOST = 4: String,
        SEID = 5: String,
        IS_SMCR_V2 = 6: U8,
    }
}

attributes! {
    /// What version 2 adds to every link group.
    lgr_v2, "SMC_NLA_LGR_V2_" {
        VER = 0: U8,
        REL = 1: U8,
        OS = 2: U8,
        NEG_EID = 3: String,
        PEER_HOST = 4: String,
    }
}

attributes! {
    /// What version 2 adds to one over RoCE.
    lgr_r_v2, "SMC_NLA_LGR_R_V2_" {
        DIRECT = 1: U8,
        MAX_CONNS = 2: U8,
        MAX_LINKS = 3: U8,
    }
}

attributes! {
    /// A link group over RoCE.
    lgr_r, "SMC_NLA_LGR_R_" {
        ID = 1: U32,
        ROLE = 2: U8,
        TYPE = 3: U8,
        PNETID = 4: String,
        VLAN_ID = 5: U8,
        CONNS_NUM = 6: U32,
        V2_COMMON = 7: Nest(lgr_v2),
        V2 = 8: Nest(lgr_r_v2),
        NET_COOKIE = 9: U64,
        PAD = 10: Pad,
        BUF_TYPE = 11: U8,
        SNDBUF_ALLOC = 12: Uint,
        RMB_ALLOC = 13: Uint,
    }
}

attributes! {
    /// A link. `UID` and `PEER_UID` have their bytes as messages to the peer have them.
    link, "SMC_NLA_LINK_" {
        ID = 1: U8,
        IB_DEV = 2: String,
        IB_PORT = 3: U8,
        GID = 4: String,
        PEER_GID = 5: String,
        CONN_CNT = 6: U32,
        NET_DEV = 7: U32,
        UID = 8: U32,
        PEER_UID = 9: U32,
        STATE = 10: U32,
    }
}

attributes! {
    /// A link group over shared memory.
    lgr_d, "SMC_NLA_LGR_D_" {
        ID = 1: U32,
        GID = 2: U64,
        PEER_GID = 3: U64,
        VLAN_ID = 4: U8,
        CONNS_NUM = 5: U32,
        PNETID = 6: String,
        CHID = 7: U16,
        PAD = 8: Pad,
        V2_COMMON = 9: Nest(lgr_v2),
        EXT_GID = 10: U64,
        PEER_EXT_GID = 11: U64,
        SNDBUF_ALLOC = 12: Uint,
        DMB_ALLOC = 13: Uint,
    }
}

attributes! {
    /// A port of a device.
    dev_port, "SMC_NLA_DEV_PORT_" {
        PNET_USR = 1: U8,
        PNETID = 2: String,
        NETDEV = 3: U32,
        STATE = 4: U8,
        VALID = 5: U8,
        LNK_CNT = 6: U32,
    }
}

attributes! {
    /// A device.
    dev, "SMC_NLA_DEV_" {
        USE_CNT = 1: U32,
        IS_CRIT = 2: U8,
        PCI_FID = 3: U32,
        PCI_CHID = 4: U16,
        PCI_VENDOR = 5: U16,
        PCI_DEVICE = 6: U16,
        PCI_ID = 7: String,
        PORT = 8: Nest(dev_port),
        PORT2 = 9: Nest(dev_port),
        IB_NAME = 10: String,
    }
}

attributes! {
    /// Counts by size of a buffer or a call.
    pload, "SMC_NLA_STATS_PLOAD_" {
        PAD = 0: Pad,
        SIZE_8K = 1: U64,
        SIZE_16K = 2: U64,
        SIZE_32K = 3: U64,
        SIZE_64K = 4: U64,
        SIZE_128K = 5: U64,
        SIZE_256K = 6: U64,
        SIZE_512K = 7: U64,
        SIZE_1024K = 8: U64,
        SIZE_G_1024K = 9: U64,
    }
}

attributes! {
    /// How buffers of one direction did.
    rmb, "SMC_NLA_STATS_RMB_" {
        PAD = 0: Pad,
        SIZE_SM_PEER_CNT = 1: U64,
        SIZE_SM_CNT = 2: U64,
        FULL_PEER_CNT = 3: U64,
        FULL_CNT = 4: U64,
        REUSE_CNT = 5: U64,
        ALLOC_CNT = 6: U64,
        DGRADE_CNT = 7: U64,
    }
}

attributes! {
    /// Counters of one transport.
    tech, "SMC_NLA_STATS_T_" {
        PAD = 0: Pad,
        TX_RMB_SIZE = 1: Nest(pload),
        RX_RMB_SIZE = 2: Nest(pload),
        TXPLOAD_SIZE = 3: Nest(pload),
        RXPLOAD_SIZE = 4: Nest(pload),
        TX_RMB_STATS = 5: Nest(rmb),
        RX_RMB_STATS = 6: Nest(rmb),
        CLNT_V1_SUCC = 7: U64,
        CLNT_V2_SUCC = 8: U64,
        SRV_V1_SUCC = 9: U64,
        SRV_V2_SUCC = 10: U64,
        SENDPAGE_CNT = 11: U64,
        SPLICE_CNT = 12: U64,
        CORK_CNT = 13: U64,
        NDLY_CNT = 14: U64,
        URG_DATA_CNT = 15: U64,
        RX_BYTES = 16: U64,
        TX_BYTES = 17: U64,
        RX_CNT = 18: U64,
        TX_CNT = 19: U64,
        RX_RMB_USAGE = 20: Uint,
        TX_RMB_USAGE = 21: Uint,
    }
}

attributes! {
    /// All counters.
    stats, "SMC_NLA_STATS_" {
        PAD = 0: Pad,
        SMCD_TECH = 1: Nest(tech),
        SMCR_TECH = 2: Nest(tech),
        CLNT_HS_ERR_CNT = 3: U64,
        SRV_HS_ERR_CNT = 4: U64,
    }
}

attributes! {
    /// How often one side stayed on TCP for one reason. `TYPE` is 1 for the server's side.
    fback, "SMC_NLA_FBACK_STATS_" {
        PAD = 0: Pad,
        TYPE = 1: U8,
        SRV_CNT = 2: U64,
        CLNT_CNT = 3: U64,
        RSN_CODE = 4: U32,
        RSN_CNT = 5: U16,
    }
}

attributes! {
    /// A user-defined enterprise ID: 32 characters, padded with blanks, and a NUL. These stand in
    /// messages without an outer attribute.
    eid, "SMC_NLA_EID_TABLE_" {
        ENTRY = 1: String,
    }
}

attributes! {
    /// The system's enterprise ID, without an outer attribute.
    seid, "SMC_NLA_SEID_" {
        ENTRY = 1: String,
        ENABLED = 2: U8,
    }
}

attributes! {
    /// Whether handshakes are limited, without an outer attribute.
    hs_limitation, "SMC_NLA_HS_LIMITATION_" {
        ENABLED = 1: U8,
    }
}

named! {
    /// Types of a link group, by its links.
    lgr_type {
        NONE = 0,
        SINGLE = 1,
        SYMMETRIC = 2,
        ASYMMETRIC_PEER = 3,
        ASYMMETRIC_LOCAL = 4,
    }
}

named! {
    /// States of a link.
    link_state {
        UNUSED = 0,
        INACTIVE = 1,
        ACTIVATING = 2,
        ACTIVE = 3,
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Good messages, and ways to spoil them.

use smc_proto::ids::{
    AlertToken, BufSize, Eid, EidList, Gid, GidList, HostName, Ipv4Prefix, Mac, PathMtu, PeerId,
    Psn, Qpn, Release, Rkey, RmbeIndex, Version, VirtAddr, OS_TYPE_LINUX,
};
use smc_proto::reason::DeclineReason;
use smc_proto::wire::clc::{
    Accept, Confirm, Decline, Endpoint, FirstContactExt, Message, PathType, Proposal, RdmaEndpoint,
    V1Offer, V21Limits, V2Fields, V2Offer, MAX_LEN,
};
use std::net::Ipv4Addr;

/// Position of the length in every message.
pub(crate) const LENGTH: usize = 5;
/// Position of version and flags in every message.
pub(crate) const VERSION: usize = 7;
/// Position of the IP area's offset in a Proposal.
pub(crate) const IP_OFFSET: usize = 38;
/// Position of the version 2 extension's offset in a Proposal.
pub(crate) const V2_OFFSET: usize = 50;
/// Position of the version 2 extension in a Proposal without an IP area.
pub(crate) const V2_EXT: usize = 80;

/// Who this peer says it is.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) addr: Ipv4Addr,
    pub(crate) eid: String,
    /// Differs between cases, so that none meets the link group of another.
    pub(crate) number: u16,
    /// What both sides agree on, as far as it is known.
    pub(crate) terms: Terms,
}

impl Identity {
    fn mac(&self) -> Mac {
        let [hi, lo] = self.number.to_be_bytes();
        Mac([0x02, 0x5f, 0x5f, 0x00, hi, lo])
    }

    fn peer_id(&self) -> PeerId {
        PeerId::new(self.number.to_be_bytes(), self.mac())
    }

    fn gid(&self) -> Gid {
        Gid::from_ipv4(self.addr.octets())
    }

    fn eid(&self) -> Eid {
        // The command line was checked when the program started.
        Eid::parse(self.eid.as_bytes()).unwrap_or(Eid([b' '; 32]))
    }
}

fn bytes(message: &Message) -> Vec<u8> {
    let mut buf = [0u8; MAX_LEN];
    match message.emit(&mut buf) {
        Ok(n) => buf[..n].to_vec(),
        Err(e) => unreachable!("a message of this program cannot be written: {e:?}"),
    }
}

/// A Proposal for version 2 over RDMA, and for version 1 as well if asked.
pub(crate) fn proposal(id: &Identity, v1: bool, v2: bool) -> Vec<u8> {
    let mut eids = EidList::EMPTY;
    // An empty list of this kind has room for eight.
    let _ = eids.push(id.eid());
    let offer = V2Offer {
        release: Release::V2_1,
        eids,
        roce_gid: id.gid(),
        max_conns: GOOD.max_conns,
        max_links: GOOD.max_links,
        ..V2Offer::EMPTY
    };
    let v1_offer = V1Offer {
        gid: id.gid(),
        mac: id.mac(),
        subnet: Ipv4Prefix::new(id.addr.octets(), 24),
        ..V1Offer::EMPTY
    };
    bytes(&Message::Proposal(Proposal {
        version: 2,
        typev1: PathType::of(v1, false),
        typev2: PathType::of(v2, false),
        peer_id: id.peer_id(),
        v1: v1.then_some(v1_offer),
        smcd_v1: None,
        v2: v2.then_some(offer),
    }))
}

/// The RDMA side of this peer; nothing answers there.
fn endpoint(id: &Identity) -> Endpoint {
    Endpoint::Rdma(RdmaEndpoint {
        peer_id: id.peer_id(),
        gid: id.gid(),
        mac: id.mac(),
        qpn: Qpn::new(0x00_1234).unwrap_or_else(|| unreachable!("the number is not 0")),
        rkey: Rkey(0x1357_9bdf),
        rmbe_index: RmbeIndex::FIRST,
        token: AlertToken(0x4711_0000 | u32::from(id.number)),
        buf_size: BufSize::MIN,
        mtu: Some(PathMtu::from_code(3).unwrap_or_else(|| unreachable!("code 3 is 1024"))),
        rmb_addr: VirtAddr(0x1000_0000),
        psn: Psn::new(0x77),
    })
}

/// What a first-contact message of this peer says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) release: u8,
    pub(crate) max_conns: u8,
    pub(crate) max_links: u8,
}

/// What this peer asks for.
pub(crate) const GOOD: Terms = Terms {
    release: 1,
    max_conns: 255,
    max_links: 2,
};

impl Terms {
    /// What follows from another side's first-contact extension.
    pub(crate) fn of(ext: &FirstContactExt) -> Terms {
        Terms {
            release: ext.release.number(),
            max_conns: ext.v21.map_or(GOOD.max_conns, |l| l.max_conns),
            max_links: ext.v21.map_or(GOOD.max_links, |l| l.max_links),
        }
    }

    /// What follows from a client's offer.
    pub(crate) fn for_offer(offer: &V2Offer) -> Terms {
        Terms {
            release: GOOD.release.min(offer.release.number()),
            max_conns: offer.max_conns,
            max_links: GOOD.max_links.min(offer.max_links),
        }
    }
}

fn v2_fields(id: &Identity, terms: Option<Terms>, gids: GidList) -> V2Fields {
    V2Fields {
        eid: id.eid(),
        fce: terms.map(|t| {
            let release = Release::new(t.release).unwrap_or(Release::V2_1);
            FirstContactExt {
                v2_direct: true,
                os_type: OS_TYPE_LINUX,
                release,
                host: HostName::new(b"clc-peer"),
                v21: release.has_v2_1_fields().then_some(V21Limits {
                    max_conns: t.max_conns,
                    max_links: t.max_links,
                    features: 0,
                }),
            }
        }),
        gids,
    }
}

/// A version 2 Accept; with terms it is a first contact.
pub(crate) fn accept(id: &Identity, terms: Option<Terms>) -> Vec<u8> {
    bytes(&Message::Accept(Accept {
        version: Version::V2,
        first_contact: terms.is_some(),
        endpoint: endpoint(id),
        v2: Some(v2_fields(id, terms, GidList::EMPTY)),
    }))
}

/// A version 1 Accept.
pub(crate) fn accept_v1(id: &Identity) -> Vec<u8> {
    bytes(&Message::Accept(Accept {
        version: Version::V1,
        first_contact: true,
        endpoint: endpoint(id),
        v2: None,
    }))
}

/// A version 2 Confirm for a first contact.
pub(crate) fn confirm(id: &Identity, terms: Option<Terms>) -> Vec<u8> {
    let mut gids = GidList::EMPTY;
    if terms.is_some() {
        // An empty list of this kind has room for eight.
        let _ = gids.push(id.gid());
    }
    bytes(&Message::Confirm(Confirm {
        version: Version::V2,
        first_contact: terms.is_some(),
        endpoint: endpoint(id),
        v2: Some(v2_fields(id, terms, gids)),
    }))
}

/// A Decline.
pub(crate) fn decline(id: &Identity, version: Version, reason: DeclineReason) -> Vec<u8> {
    bytes(&Message::Decline(Decline {
        version,
        reason,
        peer_id: id.peer_id(),
        out_of_sync: reason.is_out_of_sync(),
        os_type: OS_TYPE_LINUX,
    }))
}

/// Overwrites bytes of a message.
pub(crate) fn set(mut message: Vec<u8>, at: usize, value: &[u8]) -> Vec<u8> {
    message[at..at + value.len()].copy_from_slice(value);
    message
}

/// Changes the length in the header only.
pub(crate) fn claim(message: Vec<u8>, length: u16) -> Vec<u8> {
    set(message, LENGTH, &length.to_be_bytes())
}

/// Cuts the message to `length` bytes, with a trailer and a length that fit.
pub(crate) fn shortened(mut message: Vec<u8>, length: usize) -> Vec<u8> {
    message.truncate(length);
    let trailer = [message[0], message[1], message[2], message[3]];
    let at = length - 4;
    let message = set(message, at, &trailer);
    claim(message, length as u16)
}

/// Puts `extra` bytes of 0xA5 in front of the trailer, with a length that fits.
pub(crate) fn grown(mut message: Vec<u8>, extra: usize) -> Vec<u8> {
    let at = message.len() - 4;
    message.splice(at..at, std::iter::repeat_n(0xa5, extra));
    let length = message.len() as u16;
    claim(message, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> Identity {
        Identity {
            addr: Ipv4Addr::new(10, 9, 0, 1),
            eid: "SMC-RS-TEST".into(),
            number: 3,
            terms: GOOD,
        }
    }

    #[test]
    fn positions_used_for_spoiling_are_right() {
        let p = proposal(&id(), false, true);
        assert_eq!(
            p.len(),
            usize::from(u16::from_be_bytes([p[LENGTH], p[LENGTH + 1]]))
        );
        assert_eq!(p[V2_OFFSET..V2_OFFSET + 2], [0, 28]);
        // One EID, no ISM device, release 1 in the high nibble.
        assert_eq!(p[V2_EXT..V2_EXT + 4], [1, 0, 0, 0x10]);
        assert_eq!(&p[V2_EXT + 40..V2_EXT + 51], b"SMC-RS-TEST");
        let p = proposal(&id(), true, true);
        assert_eq!(p[IP_OFFSET..IP_OFFSET + 2], [0, 40]);
        assert_eq!((p[80..83].to_vec(), p[84]), (vec![10, 9, 0], 24));
        assert_eq!(accept(&id(), Some(GOOD)).len(), 108 + 52);
        assert_eq!(confirm(&id(), Some(GOOD)).len(), 108 + 52 + 20);
        assert_eq!(accept_v1(&id()).len(), 68);
    }

    #[test]
    fn spoiling_keeps_the_frame() {
        let p = shortened(proposal(&id(), false, true), 60);
        assert_eq!((p.len(), p[6]), (60, 60));
        assert_eq!(p[56..], p[..4]);
        let q = grown(accept(&id(), None), 200);
        assert_eq!(q.len(), 108 + 200);
        assert!(Message::parse(&grown(proposal(&id(), false, true), 200)).is_ok());
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Two hosts and the messages between them.

#![allow(dead_code, reason = "each test program uses a part of it")]

use smc_proto::handshake::{
    Accepted, AwaitAccept, AwaitProposal, Caps, Client, Confirmed, Outcome, Selected, V1Caps,
    V2Caps,
};
use smc_proto::ids::{
    AlertToken, BufSize, Eid, Gid, HostName, Ipv4Prefix, Ipv6Prefix, Mac, PathMtu, PeerId, Psn,
    Qpn, Release, Rkey, RmbeIndex, VirtAddr,
};
use smc_proto::reason::DeclineReason;
use smc_proto::wire::clc::{Message, RdmaEndpoint, MAX_LEN};

pub(crate) fn eid(name: &str) -> Eid {
    Eid::parse(name.as_bytes()).unwrap()
}

pub(crate) fn v4(addr: [u8; 4], len: u8) -> Ipv4Prefix {
    Ipv4Prefix::new(addr, len).unwrap()
}

pub(crate) fn end(number: u8, mtu: Option<PathMtu>) -> RdmaEndpoint {
    RdmaEndpoint {
        peer_id: PeerId([number; 8]),
        gid: Gid::from_ipv4([10, 9, 0, number]),
        mac: Mac([number; 6]),
        qpn: Qpn::new(0x100 + u32::from(number)).unwrap(),
        rkey: Rkey(0x1000 + u32::from(number)),
        rmbe_index: RmbeIndex::FIRST,
        token: AlertToken(u32::from(number)),
        buf_size: BufSize::MIN,
        mtu,
        rmb_addr: VirtAddr(0xffff_8000_0000_0000),
        psn: Psn::new(u32::from(number)),
    }
}

/// What one host can do, with its own storage.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) number: u8,
    pub(crate) subnets: Option<Vec<Ipv4Prefix>>,
    pub(crate) v6: Vec<Ipv6Prefix>,
    pub(crate) eids: Option<Vec<Eid>>,
    pub(crate) max_conns: u8,
    pub(crate) max_links: u8,
    pub(crate) mtu: PathMtu,
    pub(crate) release: Release,
}

impl Host {
    pub(crate) fn new(number: u8) -> Self {
        Self {
            number,
            subnets: Some(vec![v4([10, 9, 0, number], 24)]),
            v6: Vec::new(),
            eids: Some(vec![eid("SMC-EID")]),
            max_conns: 255,
            max_links: 1,
            mtu: PathMtu::Mtu1024,
            release: Release::HIGHEST,
        }
    }

    pub(crate) fn caps(&self) -> Caps<'_> {
        Caps {
            peer_id: PeerId([self.number; 8]),
            v1: self.subnets.as_ref().map(|subnets| V1Caps {
                gid: Gid::from_ipv4([10, 9, 0, self.number]),
                mac: Mac([self.number; 6]),
                subnets,
                v6: &self.v6,
            }),
            v2: self.eids.as_ref().map(|eids| V2Caps {
                gid: Gid::from_ipv4([10, 9, 0, self.number]),
                eids,
                release: self.release,
            }),
            host: HostName::new(&[b'h', b'0' + self.number]),
            max_conns: self.max_conns,
            max_links: self.max_links,
            mtu: self.mtu,
        }
    }

    pub(crate) fn end(&self) -> RdmaEndpoint {
        end(self.number, Some(self.mtu))
    }
}

/// Sends a message as bytes.
pub(crate) fn wire(message: Message) -> Message {
    let mut bytes = [0; MAX_LEN];
    let len = message.emit(&mut bytes).unwrap();
    let read = Message::parse(&bytes[..len]).unwrap();
    assert_eq!(read, message);
    read
}

/// Both ends' views of a handshake that succeeded.
pub(crate) struct Agreed {
    pub(crate) client: Accepted,
    pub(crate) server: Confirmed,
}

pub(crate) fn propose(client: &Host) -> Result<(AwaitAccept, Message), DeclineReason> {
    let (waiting, proposal) = Client::start(&client.caps())?;
    Ok((waiting, wire(Message::Proposal(proposal))))
}

pub(crate) fn select(server: &Host, proposal: &Message) -> Result<Selected, Outcome> {
    AwaitProposal.handle(proposal, &server.caps())
}

pub(crate) fn run(client: &Host, server: &Host, first_contact: bool) -> Result<Agreed, Outcome> {
    let (waiting, proposal) = propose(client).map_err(Outcome::Decline)?;
    let selected = select(server, &proposal)?;
    let (server_waiting, accept) = selected.accept(server.end(), first_contact);
    let accepted = waiting.handle(&wire(Message::Accept(accept)))?;
    assert_eq!(accepted.first_contact, first_contact);
    let confirm = accepted.confirm(client.end(), first_contact);
    let confirmed = server_waiting.handle(&wire(Message::Confirm(confirm)))?;
    Ok(Agreed {
        client: accepted,
        server: confirmed,
    })
}

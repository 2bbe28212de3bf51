// SPDX-License-Identifier: GPL-2.0

//! A link with its connections, from the first contact to the end.

use crate::clc::{self, Identity, CLC_LIMIT};
use crate::conn::{Conn, ECHO_LIMIT};
use crate::link::Link;
use crate::message::{mac_of, request, response};
use smc_proto::ids::{LinkId, LinkUid, Qpn, Version};
use smc_proto::wire::clc::{Accept, Confirm, Endpoint, Message, Proposal, RdmaEndpoint, V2Offer};
use smc_proto::wire::llc::{Body, ConfirmLink, DeleteLink, DeleteLinkReason};
use std::time::Duration;
use testlib::sock::Sock;

/// Longest time until the other side has given up a link.
pub(crate) const END_LIMIT: Duration = Duration::from_secs(25);

/// Connections to the other side over one link.
pub(crate) struct Session {
    pub(crate) id: Identity,
    pub(crate) link: Link,
    pub(crate) conns: Vec<Conn>,
}

/// A first contact whose link is not confirmed yet.
pub(crate) struct Contact {
    pub(crate) id: Identity,
    pub(crate) sock: Sock,
    pub(crate) link: Link,
    /// The other side's end.
    pub(crate) peer: RdmaEndpoint,
    /// What came before the Confirm, if this peer is the client.
    pub(crate) accept: Option<Accept>,
}

/// A later contact of which this peer, as client, has read the Accept.
pub(crate) struct Joining {
    pub(crate) sock: Sock,
    pub(crate) accept: Accept,
    pub(crate) peer: RdmaEndpoint,
    pub(crate) ring: usize,
}

fn rdma_end(endpoint: &Endpoint) -> Result<RdmaEndpoint, String> {
    match endpoint {
        Endpoint::Rdma(end) => Ok(*end),
        Endpoint::Ism(_) => Err("the other side wants shared memory".into()),
    }
}

/// Sends a Proposal and reads the Accept.
fn propose(id: &Identity) -> Result<(Sock, Accept), String> {
    let sock = id.connect()?;
    clc::send(&sock, &id.proposal())?;
    match clc::read(&sock, CLC_LIMIT)? {
        Message::Accept(accept) => Ok((sock, accept)),
        other => Err(format!("an Accept was expected, not {other:?}")),
    }
}

/// Reads the Proposal that every client begins with.
pub(crate) fn read_proposal(sock: &Sock) -> Result<(Proposal, V2Offer), String> {
    match clc::read(sock, CLC_LIMIT)? {
        Message::Proposal(proposal) => match proposal.v2 {
            Some(offer) => Ok((proposal, offer)),
            None => Err("the client offers no version 2".into()),
        },
        other => Err(format!("a Proposal was expected, not {other:?}")),
    }
}

impl Contact {
    /// As client: everything up to the Accept.
    pub(crate) fn propose(id: &Identity) -> Result<Contact, String> {
        let (sock, accept) = propose(id)?;
        if !accept.first_contact {
            return Err("the server knows this peer, which it cannot".into());
        }
        Ok(Contact {
            id: id.clone(),
            link: Link::open(id, 0x5e_0000 + u32::from(id.number))?,
            peer: rdma_end(&accept.endpoint)?,
            sock,
            accept: Some(accept),
        })
    }

    /// As client: connects the queue pair and sends the Confirm, changed by `change`.
    pub(crate) fn confirm(&mut self, change: impl FnOnce(&mut RdmaEndpoint)) -> Result<(), String> {
        self.link.connect(&self.peer)?;
        let Some(accept) = self.accept else {
            return Err("a server sends no Confirm".into());
        };
        let confirm = changed(self.id.confirm(&self.link, 0, &accept), change);
        clc::send(&self.sock, &Message::Confirm(confirm))
    }

    /// As server: everything up to the client's Confirm; then connects the queue pair.
    pub(crate) fn accept(
        id: &Identity,
        sock: Sock,
        change: impl FnOnce(&mut RdmaEndpoint),
    ) -> Result<Contact, String> {
        let offer = match id.version {
            Version::V1 => clc::read(&sock, CLC_LIMIT).map(|_| None)?,
            Version::V2 => Some(read_proposal(&sock)?.1),
        };
        let link = Link::open(id, 0x5e_0000 + u32::from(id.number))?;
        let mut accept = id.accept(&link, 0, offer.as_ref());
        accept.first_contact = true;
        if let Endpoint::Rdma(end) = &mut accept.endpoint {
            change(end);
        }
        clc::send(&sock, &Message::Accept(accept))?;
        let peer = match clc::read(&sock, CLC_LIMIT)? {
            Message::Confirm(confirm) => rdma_end(&confirm.endpoint)?,
            other => return Err(format!("a Confirm was expected, not {other:?}")),
        };
        link.connect(&peer)?;
        Ok(Contact {
            id: id.clone(),
            sock,
            link,
            peer,
            accept: None,
        })
    }

    /// What this peer says in CONFIRM LINK.
    pub(crate) fn own_confirm_link(&self) -> ConfirmLink {
        ConfirmLink {
            mac: mac_of(self.id.number),
            gid: self.id.gid(),
            qpn: Qpn::new(self.link.qpn()).unwrap_or_else(|| unreachable!("0 is reserved")),
            link: self.link.number,
            link_uid: LinkUid(u32::from(self.id.number)),
            max_links: 1,
            max_conns: if self.id.version == Version::V1 {
                0
            } else {
                255
            },
            no_rmbe_eyecatcher: true,
        }
    }

    /// Waits for the other side's CONFIRM LINK.
    pub(crate) fn await_confirm_link(&mut self) -> Result<ConfirmLink, String> {
        let answer = self.accept.is_none();
        let confirm = self
            .link
            .await_llc(CLC_LIMIT, "CONFIRM LINK", |m| match m.body {
                Body::ConfirmLink(body) if m.response == answer => Some(body),
                _ => None,
            })?;
        if confirm.qpn != self.peer.qpn || confirm.gid != self.peer.gid {
            return Err(format!(
                "CONFIRM LINK names another queue pair: {confirm:?}"
            ));
        }
        self.link.number = confirm.link;
        Ok(confirm)
    }

    /// As client: a first contact in which the server waits for the answer to CONFIRM LINK.
    pub(crate) fn asked(id: &Identity) -> Result<Contact, String> {
        let mut contact = Contact::propose(id)?;
        contact.confirm(|_| {})?;
        contact.await_confirm_link()?;
        Ok(contact)
    }

    /// As server: a first contact whose link the client has confirmed.
    pub(crate) fn answered(id: &Identity, sock: Sock) -> Result<Contact, String> {
        let mut contact = Contact::accept(id, sock, |_| {})?;
        contact.ask()?;
        contact.await_confirm_link()?;
        Ok(contact)
    }

    /// As client: answers CONFIRM LINK.
    pub(crate) fn answer(&mut self) -> Result<(), String> {
        let own = self.own_confirm_link();
        self.link.send_llc(&response(Body::ConfirmLink(own)))
    }

    /// As server: sends CONFIRM LINK.
    pub(crate) fn ask(&mut self) -> Result<(), String> {
        let own = self.own_confirm_link();
        self.link.send_llc(&request(Body::ConfirmLink(own)))
    }

    /// The link is confirmed: the first connection is there.
    pub(crate) fn finish(self) -> Session {
        let key = u64::from(self.id.number) << 8;
        Session {
            id: self.id,
            link: self.link,
            conns: vec![Conn::new(self.sock, self.peer, 0, key)],
        }
    }
}

fn changed(mut confirm: Confirm, change: impl FnOnce(&mut RdmaEndpoint)) -> Confirm {
    if let Endpoint::Rdma(end) = &mut confirm.endpoint {
        change(end);
    }
    confirm
}

impl Session {
    /// As client: a first contact as a good peer has it.
    pub(crate) fn connect(id: &Identity) -> Result<Session, String> {
        let mut contact = Contact::asked(id)?;
        contact.answer()?;
        Ok(contact.finish())
    }

    /// As server: a first contact as a good peer has it.
    pub(crate) fn accept(id: &Identity, sock: Sock) -> Result<Session, String> {
        Ok(Contact::answered(id, sock)?.finish())
    }

    /// As client: sends another Proposal and reads the Accept, answering LLC messages meanwhile.
    pub(crate) fn propose_again(&mut self) -> Result<Joining, String> {
        let sock = self.id.connect()?;
        clc::send(&sock, &self.id.proposal())?;
        let end = std::time::Instant::now() + CLC_LIMIT;
        while testlib::event::poll_one(&sock, libc::POLLIN, 0).map_err(|e| format!("poll: {e}"))?
            == 0
        {
            if std::time::Instant::now() > end {
                return Err("the Proposal was not answered in time".into());
            }
            self.link.wait(Duration::from_millis(2), |_| None::<()>)?;
        }
        let accept = match clc::read(&sock, CLC_LIMIT)? {
            Message::Accept(accept) => accept,
            Message::Decline(decline) => return Err(format!("declined: {:?}", decline.reason)),
            other => return Err(format!("an Accept was expected, not {other:?}")),
        };
        if accept.first_contact {
            return Err("the server has forgotten the link group".into());
        }
        Ok(Joining {
            sock,
            peer: rdma_end(&accept.endpoint)?,
            accept,
            ring: self.conns.len(),
        })
    }

    /// As client: sends the Confirm of a later contact, changed by `change`; gives its place.
    pub(crate) fn confirm_again(
        &mut self,
        joining: Joining,
        change: impl FnOnce(&mut RdmaEndpoint),
    ) -> Result<usize, String> {
        let confirm = self.id.confirm(&self.link, joining.ring, &joining.accept);
        clc::send(&joining.sock, &Message::Confirm(changed(confirm, change)))?;
        let n = self.conns.len();
        let key = (u64::from(self.id.number) << 8) + n as u64;
        self.conns
            .push(Conn::new(joining.sock, joining.peer, joining.ring, key));
        Ok(n)
    }

    /// As client: another connection over the same link; gives its place.
    pub(crate) fn join(&mut self) -> Result<usize, String> {
        let joining = self.propose_again()?;
        self.confirm_again(joining, |_| {})
    }

    /// A client's session with two connections, the first of which is to be spoiled.
    pub(crate) fn pair(id: &Identity) -> Result<Session, String> {
        let mut session = Session::connect(id)?;
        session.join()?;
        session.echo(0, 300)?;
        session.echo(1, 300)?;
        Ok(session)
    }

    /// Sends bytes over a connection and reads their echo.
    pub(crate) fn echo(&mut self, conn: usize, len: u64) -> Result<(), String> {
        self.conns[conn]
            .echo(&mut self.link, len)
            .map_err(|e| format!("connection {conn}: {e}"))
    }

    /// The connection must be reset; the others must go on.
    pub(crate) fn expect_reset(&mut self, conn: usize) -> Result<(), String> {
        self.conns[conn].expect_reset(&mut self.link)?;
        self.conns.remove(conn);
        for n in 0..self.conns.len() {
            self.echo(n, 20_000)?;
        }
        Ok(())
    }

    /// The other side must give up link and connections.
    pub(crate) fn expect_end(&mut self) -> Result<(), String> {
        self.link.await_end(END_LIMIT)?;
        self.check_guards()?;
        for conn in &self.conns {
            clc::await_tcp_end(&conn.sock, ECHO_LIMIT)?;
        }
        Ok(())
    }

    /// Nothing was written where it must not be.
    pub(crate) fn check_guards(&self) -> Result<(), String> {
        self.link.check_guards()?;
        let used = |ring: usize| self.conns.iter().any(|c| c.ring == ring && c.arrived > 0);
        match (self.conns.len() + 2..self.link.rings)
            .find(|&ring| !used(ring) && !self.link.ring_is_untouched(ring))
        {
            Some(ring) => Err(format!("ring {ring} belongs to nobody and was written to")),
            None => Ok(()),
        }
    }

    /// Asks the other side to delete all links.
    pub(crate) fn delete_all(&mut self, reason: DeleteLinkReason) -> Result<(), String> {
        let bytes = self.link.emit(&request(Body::DeleteLink(DeleteLink {
            link: LinkId(0),
            all: true,
            orderly: true,
            reason,
        })));
        let id = self.link.post_send(&bytes)?;
        // A link that goes at once need not acknowledge it.
        self.link.finish_within(id, Duration::from_secs(2))?;
        Ok(())
    }

    /// Ends everything in order: connections, then the link.
    pub(crate) fn close(mut self) -> Result<(), String> {
        for conn in &mut self.conns {
            conn.close(&mut self.link)?;
        }
        self.check_guards()?;
        self.delete_all(DeleteLinkReason::INACTIVITY)
    }

    /// Everything still works; then ends it in order.
    pub(crate) fn finish(mut self) -> Result<(), String> {
        for n in 0..self.conns.len() {
            self.echo(n, 20_000)?;
        }
        self.close()
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Version 1, whose first contact always goes through the exchange for a second link, and its
//! messages that nobody waits for.

use crate::case::{client, server, ClientCase, Must, ServerCase};
use crate::message::{mac_of, request, response};
use crate::session::{Contact, Session};
use smc_proto::ids::{LinkId, PathMtu, Psn, Qpn};
use smc_proto::wire::llc::{AddLink, AddLinkCont, Body, RejectReason};
use std::time::Duration;

/// Longest time for an answer, and for the application's data.
const LIMIT: Duration = Duration::from_secs(20);

/// Sends keys of a link that nobody has agreed to, no more at a time than the other side keeps until
/// it looks at them: what comes on top, it drops unread.
fn disturb(contact: &mut Contact) -> Result<(), String> {
    let keys = AddLinkCont::new(LinkId(2), &[]).map_err(|e| format!("{e}"))?;
    for n in 0..5 {
        contact.link.send_llc(&request(Body::AddLinkCont(keys)))?;
        contact.link.send_llc(&response(Body::AddLinkCont(keys)))?;
        // What came before the test has been looked at when that is answered.
        contact.link.test(n, LIMIT)?;
    }
    Ok(())
}

/// An ADD LINK for the port of the first link.
fn second_link(contact: &Contact, link: LinkId, reject: Option<RejectReason>) -> Body<'static> {
    Body::AddLink(AddLink {
        mac: mac_of(contact.id.number),
        gid: contact.id.gid(),
        qpn: Qpn::new(contact.link.qpn()),
        link,
        mtu: PathMtu::from_code(3),
        psn: Psn::new(1),
        reject,
        ext: None,
    })
}

/// As server: offers a second link, which the client has to refuse.
fn offer(contact: &mut Contact) -> Result<(), String> {
    let offer = second_link(contact, LinkId(2), None);
    contact.link.send_llc(&request(offer))?;
    let refusal = contact
        .link
        .await_llc(LIMIT, "the answer to ADD LINK", |m| match m.body {
            Body::AddLink(body) if m.response => Some(body.reject),
            _ => None,
        })?;
    match refusal {
        Some(RejectReason::NO_ALTERNATE_PATH) => Ok(()),
        other => Err(format!("ADD LINK was answered with {other:?}")),
    }
}

fn serve(contact: Contact) -> Result<(), String> {
    let mut session = contact.finish();
    session.conns[0].serve(&mut session.link, LIMIT)?;
    session.close()
}

pub(crate) const CLIENT: &[ClientCase] = &[
    client("version-1-good", |id| {
        let mut session = Session::pair(id)?;
        session.echo(1, 50_000)?;
        session.finish()
    })
    .v1(),
    client("version-1-continuations-while-the-server-waits", |id| {
        let mut contact = Contact::propose(id)?;
        contact.link.habits.refuses_links = false;
        contact.confirm(|_| {})?;
        // The server waits for the answer to CONFIRM LINK.
        contact.await_confirm_link()?;
        disturb(&mut contact)?;
        let own = contact.own_confirm_link();
        contact.link.send_llc(&request(Body::ConfirmLink(own)))?;
        contact.link.send_llc(&request(Body::ConfirmLink(own)))?;
        contact.answer()?;
        // Now it waits for the answer to ADD LINK.
        let offered = contact
            .link
            .await_llc(LIMIT, "ADD LINK", |m| match m.body {
                Body::AddLink(body) if !m.response => Some(body.link),
                _ => None,
            })?;
        disturb(&mut contact)?;
        contact.answer()?;
        let refusal = second_link(&contact, offered, Some(RejectReason::NO_ALTERNATE_PATH));
        contact.link.send_llc(&response(refusal))?;
        disturb(&mut contact)?;
        let mut session = contact.finish();
        session.echo(0, 5000)?;
        session.join()?;
        session.finish()
    })
    .v1(),
];

pub(crate) const SERVER: &[ServerCase] = &[
    server("version-1-good", Must::Work, |id, sock| {
        let mut contact = Contact::answered(id, sock)?;
        offer(&mut contact)?;
        serve(contact)
    })
    .v1(),
    server(
        "version-1-continuations-while-the-client-waits",
        Must::Work,
        |id, sock| {
            let mut contact = Contact::accept(id, sock, |_| {})?;
            // The client waits for CONFIRM LINK.
            disturb(&mut contact)?;
            contact.ask()?;
            contact.await_confirm_link()?;
            // Now it waits for ADD LINK.
            disturb(&mut contact)?;
            contact.ask()?;
            contact.ask()?;
            offer(&mut contact)?;
            disturb(&mut contact)?;
            serve(contact)
        },
    )
    .v1(),
];

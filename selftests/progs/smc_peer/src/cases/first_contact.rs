// SPDX-License-Identifier: GPL-2.0

//! This peer as client, until a link is confirmed: CONFIRM LINK and what comes in its place.

use crate::case::{client, ClientCase};
use crate::clc::{self, Identity};
use crate::link::SEND_LIMIT;
use crate::message::{emit, request, response, test_link};
use crate::session::{Contact, Session};
use smc_proto::ids::{Gid, LinkId, Psn, Qpn, Rkey, Version, VirtAddr};
use smc_proto::reason::DeclineReason as R;
use smc_proto::wire::llc::{Body, ConfirmLink, DeleteLink, DeleteLinkReason, Message};
use std::time::Duration;

/// Longest time for a Decline: the server waits five seconds for the answer to CONFIRM LINK.
const DECLINE_LIMIT: Duration = Duration::from_secs(20);

/// Waits for CONFIRM LINK, does `spoil` instead of answering it, and expects a Decline for one of
/// these reasons, after which data goes over TCP.
fn refused(
    id: &Identity,
    reasons: &[R],
    spoil: impl FnOnce(&mut Contact) -> Result<(), String>,
) -> Result<(), String> {
    let mut contact = Contact::asked(id)?;
    spoil(&mut contact)?;
    declined(&contact, reasons)
}

/// A Decline must come for one of these reasons; then data goes over TCP.
fn declined(contact: &Contact, reasons: &[R]) -> Result<(), String> {
    let reason = clc::read_decline(&contact.sock, DECLINE_LIMIT)?;
    if !reasons.contains(&reason) {
        return Err(format!("declined with {reason:?} instead of {reasons:?}"));
    }
    contact.link.check_guards()?;
    clc::echo_over_tcp(&contact.sock)
}

/// Answers CONFIRM LINK with changes.
fn answer_with(contact: &mut Contact, change: impl FnOnce(&mut ConfirmLink)) -> Result<(), String> {
    let mut own = contact.own_confirm_link();
    change(&mut own);
    contact.link.send_llc(&response(Body::ConfirmLink(own)))
}

/// Answers CONFIRM LINK in order, and expects that everything works.
fn works(mut contact: Contact) -> Result<(), String> {
    contact.answer()?;
    contact.finish().finish()
}

/// A Confirm with another end; the link must never be confirmed.
fn wrong_end(
    id: &Identity,
    change: impl FnOnce(&mut smc_proto::wire::clc::RdmaEndpoint),
) -> Result<(), String> {
    let mut contact = Contact::propose(id)?;
    contact.confirm(change)?;
    let any = [
        R::TIMEOUT_CL,
        R::NOACTLINK,
        R::ERR_RDYLNK,
        R::NOROUTE,
        R::CNFERR,
    ];
    declined(&contact, &any)
}

const DELETE_ALL: DeleteLink = DeleteLink {
    link: LinkId(0),
    all: true,
    orderly: false,
    reason: DeleteLinkReason::OPERATOR,
};

pub(crate) const CLIENT: &[ClientCase] = &[
    client("good", |id| {
        let mut session = Session::connect(id)?;
        session.echo(0, 50_000)?;
        for _ in 0..3 {
            let n = session.join()?;
            session.echo(n, 50_000)?;
        }
        session.finish()
    }),
    client("link-never-confirmed", |id| {
        refused(id, &[R::TIMEOUT_CL], |_| Ok(()))
    })
    .slow(),
    client("link-confirmed-late", |id| {
        let contact = Contact::asked(id)?;
        std::thread::sleep(Duration::from_secs(3));
        works(contact)
    }),
    client("confirm-link-not-noticed", |id| {
        let mut contact = Contact::asked(id)?;
        // It comes a second time.
        contact.await_confirm_link()?;
        works(contact)
    }),
    client("link-confirmed-too-late", |id| {
        let mut contact = Contact::asked(id)?;
        declined(&contact, &[R::TIMEOUT_CL])?;
        // Nobody is there to take it.
        let _ = contact.answer();
        clc::echo_over_tcp(&contact.sock)
    })
    .slow(),
    client("link-confirmed-twice", |id| {
        let mut contact = Contact::asked(id)?;
        contact.answer()?;
        works(contact)
    }),
    client("link-confirmed-five-times-and-requested", |id| {
        let mut contact = Contact::asked(id)?;
        let own = contact.own_confirm_link();
        for _ in 0..5 {
            contact.link.send_llc(&request(Body::ConfirmLink(own)))?;
        }
        works(contact)
    }),
    client("link-confirmed-with-other-qp", |id| {
        refused(id, &[R::CNFERR], |c| {
            answer_with(c, |own| own.qpn = Qpn::new(0xf_ffff).unwrap_or(own.qpn))
        })
    }),
    client("link-confirmed-with-other-gid", |id| {
        refused(id, &[R::CNFERR], |c| {
            answer_with(c, |own| own.gid = Gid([9; 16]))
        })
    }),
    client("link-confirmed-with-other-number", |id| {
        refused(id, &[R::TIMEOUT_CL], |c| {
            answer_with(c, |own| own.link = LinkId(77))
        })
    })
    .slow(),
    client("link-confirmed-with-number-0", |id| {
        refused(id, &[R::TIMEOUT_CL, R::CNFERR], |c| {
            answer_with(c, |own| own.link = LinkId(0))
        })
    })
    .slow(),
    client("link-confirmed-with-eyecatchers", |id| {
        refused(id, &[R::RMBE_EC], |c| {
            answer_with(c, |own| own.no_rmbe_eyecatcher = false)
        })
    }),
    client("link-confirmed-with-qp-0", |id| {
        refused(id, &[R::TIMEOUT_CL, R::CNFERR], |c| {
            let mut bytes = emit(&response(Body::ConfirmLink(c.own_confirm_link())));
            bytes[26..29].fill(0);
            c.link.send(&bytes)
        })
    })
    .slow(),
    client("link-confirmed-in-version-1", |id| {
        refused(id, &[R::NOACTLINK], |c| {
            let own = c.own_confirm_link();
            c.link.send_llc(&Message {
                version: Version::V1,
                ..response(Body::ConfirmLink(ConfirmLink {
                    max_conns: 0,
                    ..own
                }))
            })
        })
    }),
    client("link-confirmed-too-short", |id| {
        refused(id, &[R::TIMEOUT_CL], |c| {
            let bytes = emit(&response(Body::ConfirmLink(c.own_confirm_link())));
            for len in [0, 1, 3, 4, 20, 43] {
                c.link.send(&bytes[..len])?;
            }
            Ok(())
        })
    })
    .slow(),
    client("link-confirmed-too-long-for-any-buffer", |id| {
        refused(id, &[R::NOACTLINK], |c| {
            // The answer is that the queue pair breaks.
            let id = c.link.post_send(&[0x21; 4000])?;
            c.link.finish_refused(id)
        })
    }),
    client("test-link-answer-for-confirm-link", |id| {
        refused(id, &[R::TIMEOUT_CL], |c| {
            c.link.send_llc(&response(test_link(1)))
        })
    })
    .slow(),
    client("delete-link-answer-for-confirm-link", |id| {
        refused(id, &[R::TIMEOUT_CL], |c| {
            c.link.send_llc(&response(Body::DeleteLink(DELETE_ALL)))
        })
    })
    .slow(),
    client("delete-link-for-confirm-link", |id| {
        refused(id, &[R::NOACTLINK], |c| {
            c.link.send_llc(&request(Body::DeleteLink(DELETE_ALL)))
        })
    }),
    client("test-link-before-link-is-confirmed", |id| {
        let mut contact = Contact::asked(id)?;
        (0..20).try_for_each(|n| contact.link.test(n, SEND_LIMIT))?;
        works(contact)
    }),
    client("link-broken-before-it-is-confirmed", |id| {
        refused(id, &[R::NOACTLINK, R::TIMEOUT_CL], |c| c.link.kill())
    })
    .slow(),
    client("link-broken-before-confirm-link", |id| {
        let mut contact = Contact::propose(id)?;
        contact.confirm(|_| {})?;
        contact.link.kill()?;
        declined(&contact, &[R::NOACTLINK, R::TIMEOUT_CL])
    })
    .slow(),
    client("declined-for-confirm-link", |id| {
        let contact = Contact::asked(id)?;
        clc::send(&contact.sock, &id.decline(R::TIMEOUT_CL))?;
        // The server learns of it when its own wait is over.
        declined(&contact, &[R::TIMEOUT_CL])
    })
    .slow(),
    client("tcp-ends-instead-of-confirm-link", |id| {
        let contact = Contact::asked(id)?;
        contact
            .sock
            .shutdown(libc::SHUT_WR)
            .map_err(|e| format!("shutdown: {e}"))?;
        // The end of a direction of the TCP connection says nothing about data over the link.
        works(contact)
    }),
    client("data-before-link-is-confirmed", |id| {
        let contact = Contact::asked(id)?;
        let own = contact.own_confirm_link();
        let mut session = contact.finish();
        session.conns[0].write(&mut session.link, 500)?;
        session.link.send_llc(&response(Body::ConfirmLink(own)))?;
        session.conns[0].read_echo(&mut session.link, 500)?;
        session.finish()
    }),
    client("forged-cursor-before-link-is-confirmed", |id| {
        let contact = Contact::asked(id)?;
        let own = contact.own_confirm_link();
        let mut session = contact.finish();
        session.conns[0].send_cdc(&mut session.link, |m| m.prod.count = u32::MAX)?;
        // Whether the link comes up does not matter, as long as nothing else suffers.
        let _ = session.link.send_llc(&response(Body::ConfirmLink(own)));
        clc::await_tcp_end(&session.conns[0].sock, DECLINE_LIMIT)?;
        session.check_guards()
    }),
    client("confirm-names-a-queue-pair-that-is-not-there", |id| {
        wrong_end(id, |end| end.qpn = Qpn::new(0xff_fffe).unwrap_or(end.qpn))
    }),
    client("confirm-names-a-gid-that-is-not-there", |id| {
        wrong_end(id, |end| end.gid = Gid::from_ipv4([10, 9, 0, 77]))
    })
    .slow(),
    client("confirm-names-a-multicast-gid", |id| {
        wrong_end(id, |end| end.gid = Gid::from_ipv4([224, 0, 0, 1]))
    })
    .slow(),
    client("confirm-names-gid-0", |id| {
        wrong_end(id, |end| end.gid = Gid::ZERO)
    })
    .slow(),
    client("confirm-names-the-servers-own-gid-and-queue-pair", |id| {
        let mut contact = Contact::propose(id)?;
        let own = contact.peer;
        contact.confirm(|end| {
            end.gid = own.gid;
            end.qpn = own.qpn;
            end.psn = own.psn;
        })?;
        let any = [R::TIMEOUT_CL, R::NOACTLINK, R::ERR_RDYLNK, R::CNFERR];
        declined(&contact, &any)
    })
    .slow(),
    client("confirm-names-another-packet-number", |id| {
        wrong_end(id, |end| end.psn = Psn::new(end.psn.get() ^ 0x80_0000))
    })
    .slow(),
    client("confirm-names-a-buffer-at-the-end-of-memory", |id| {
        wrong_end(id, |end| end.rmb_addr = VirtAddr(u64::MAX - 100))
    }),
    client("confirm-names-a-key-that-is-not-there", |id| {
        let mut contact = Contact::propose(id)?;
        contact.confirm(|end| end.rkey = Rkey(0xdead_0000))?;
        contact.await_confirm_link()?;
        contact.answer()?;
        let mut session = contact.finish();
        // The echo cannot be written anywhere, which breaks the link.
        session.conns[0].write(&mut session.link, 100)?;
        session.expect_end()
    }),
    client("confirm-names-a-buffer-of-512-megabytes", |id| {
        let mut contact = Contact::propose(id)?;
        contact.confirm(|end| {
            end.buf_size = smc_proto::ids::BufSize::MAX;
        })?;
        contact.await_confirm_link()?;
        contact.answer()?;
        let mut session = contact.finish();
        // The ring is the last but one in truth, so that the echo comes to its guard and stops where
        // memory that may be written ends.
        for _ in 0..40 {
            let written = session.conns[0].write(&mut session.link, 5_000);
            session
                .link
                .wait(Duration::from_millis(30), |l| l.broken())?;
            // More than the consumer has told may not be written.
            session.conns[0].consumed = session.conns[0].written;
            if written.is_err() || session.link.broken().is_some() {
                break;
            }
        }
        session.link.await_end(crate::session::END_LIMIT)?;
        clc::await_tcp_end(&session.conns[0].sock, DECLINE_LIMIT)
    }),
];

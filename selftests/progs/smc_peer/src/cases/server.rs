// SPDX-License-Identifier: GPL-2.0

//! This peer as server of an application that sends data and expects its echo.

use crate::case::{server, Must, ServerCase};
use crate::clc::{self, Identity};
use crate::conn::cursor;
use crate::link::{Link, RING, SEND_LIMIT};
use crate::message::{emit, mac_of, request, response, test_link};
use crate::session::{read_proposal, Contact, Session};
use smc_proto::ids::{Gid, LinkId, PathMtu, Psn, Qpn, Rkey, Version, VirtAddr};
use smc_proto::reason::DeclineReason as R;
use smc_proto::wire::cdc::{CdcMessage, ConnFlags};
use smc_proto::wire::clc::{Endpoint, Message as ClcMessage, RdmaEndpoint};
use smc_proto::wire::llc::{
    AddLink, AddLinkExt, Body, ConfirmLink, ConfirmRkey, DeleteLink, DeleteLinkReason, List,
    Message, RejectReason, Token,
};
use std::time::Duration;
use testlib::sock::Sock;

/// Longest time for the application's data.
const SERVE_LIMIT: Duration = Duration::from_secs(20);
/// Longest time for a Decline: a client waits ten seconds for CONFIRM LINK.
const DECLINE_LIMIT: Duration = Duration::from_secs(25);

fn serve(mut session: Session) -> Result<(), String> {
    session.conns[0].serve(&mut session.link, SERVE_LIMIT)?;
    session.close()
}

fn contact(id: &Identity, sock: Sock) -> Result<Contact, String> {
    Contact::accept(id, sock, |_| {})
}

/// Does `more` when the link is confirmed, and serves the application.
fn asked(
    id: &Identity,
    sock: Sock,
    more: impl FnOnce(&mut Contact) -> Result<(), String>,
) -> Result<(), String> {
    let mut contact = Contact::answered(id, sock)?;
    more(&mut contact)?;
    serve(contact.finish())
}

/// Does `spoil` in place of CONFIRM LINK; the client must decline for one of these reasons, and its
/// data must come over TCP.
fn refused(
    id: &Identity,
    sock: Sock,
    reasons: &[R],
    spoil: impl FnOnce(&mut Contact) -> Result<(), String>,
) -> Result<(), String> {
    let mut contact = contact(id, sock)?;
    spoil(&mut contact)?;
    let reason = clc::read_decline(&contact.sock, DECLINE_LIMIT)?;
    if !reasons.contains(&reason) {
        return Err(format!("declined with {reason:?} instead of {reasons:?}"));
    }
    contact.link.check_guards()?;
    serve_over_tcp(&contact.sock)
}

fn serve_over_tcp(sock: &Sock) -> Result<(), String> {
    let mut buf = [0u8; 4096];
    loop {
        match sock.recv(&mut buf, 0) {
            Ok(0) => return Ok(()),
            Ok(n) => sock.send_all(&buf[..n]).map_err(|e| format!("send: {e}"))?,
            Err(e) => return Err(format!("recv: {e}")),
        }
    }
}

fn ask_with(contact: &mut Contact, change: impl FnOnce(&mut ConfirmLink)) -> Result<(), String> {
    let mut own = contact.own_confirm_link();
    change(&mut own);
    contact.link.send_llc(&request(Body::ConfirmLink(own)))
}

/// A good first contact; when the application's data came, a message that must reset it.
fn resets(
    id: &Identity,
    sock: Sock,
    spoil: impl FnOnce(&mut CdcMessage, u64),
) -> Result<(), String> {
    let mut session = Session::accept(id, sock)?;
    let conn = &mut session.conns[0];
    if !conn.wait(&mut session.link, SERVE_LIMIT, |c| c.arrived > 0)? {
        return Err("no data arrived".into());
    }
    let len = conn.peer_len();
    conn.send_cdc(&mut session.link, |m| spoil(m, len))?;
    conn.expect_reset(&mut session.link)?;
    session.check_guards()
}

/// A good first contact; when the application's data came, something that must end the link.
fn ends(
    id: &Identity,
    sock: Sock,
    spoil: impl FnOnce(&mut Session) -> Result<(), String>,
) -> Result<(), String> {
    let mut session = Session::accept(id, sock)?;
    if !session.conns[0].wait(&mut session.link, SERVE_LIMIT, |c| c.arrived > 0)? {
        return Err("no data arrived".into());
    }
    spoil(&mut session)?;
    session.expect_end()
}

/// An ADD LINK that names the port of the first link again.
fn add_link(id: &Identity, link: &Link, mtu: Option<PathMtu>) -> AddLink<'static> {
    AddLink {
        mac: mac_of(id.number),
        gid: id.gid(),
        qpn: Qpn::new(link.qpn()),
        link: LinkId(2),
        mtu,
        psn: Psn::new(1),
        reject: None,
        ext: Some(AddLinkExt {
            v2_direct: true,
            client_target_gid: id.gid(),
            rkeys: List::EMPTY,
        }),
    }
}

/// Offers a link and expects a refusal for this reason.
fn offer(contact: &mut Contact, mtu: Option<PathMtu>, reason: RejectReason) -> Result<(), String> {
    let body = Body::AddLink(add_link(&contact.id, &contact.link, mtu));
    contact.link.send_llc(&request(body))?;
    let refusal = contact
        .link
        .await_llc(SERVE_LIMIT, "the answer to ADD LINK", |m| match m.body {
            Body::AddLink(body) if m.response => Some(body.reject),
            _ => None,
        })?;
    match refusal {
        Some(given) if given == reason => Ok(()),
        other => Err(format!("ADD LINK was answered with {other:?}")),
    }
}

fn delete_all() -> DeleteLink {
    DeleteLink {
        link: LinkId(0),
        all: true,
        orderly: false,
        reason: DeleteLinkReason::OPERATOR,
    }
}

/// An Accept with another end, to which no link can be made. The client may decline before or after
/// its Confirm.
fn wrong_end(
    id: &Identity,
    sock: Sock,
    change: impl FnOnce(&mut RdmaEndpoint),
) -> Result<(), String> {
    let (_, offer) = read_proposal(&sock)?;
    let link = Link::open(id, 1)?;
    let mut accept = id.accept(&link, 0, Some(&offer));
    if let Endpoint::Rdma(end) = &mut accept.endpoint {
        change(end);
    }
    clc::send(&sock, &ClcMessage::Accept(accept))?;
    let mut answer = clc::read(&sock, DECLINE_LIMIT)?;
    if matches!(answer, ClcMessage::Confirm(_)) {
        answer = clc::read(&sock, DECLINE_LIMIT)?;
    }
    match answer {
        ClcMessage::Decline(_) => serve_over_tcp(&sock),
        other => Err(format!("a Decline was expected, not {other:?}")),
    }
}

pub(crate) const SETUP: &[ServerCase] = &[
    server("good", Must::Work, |id, sock| {
        serve(Session::accept(id, sock)?)
    }),
    server("link-never-confirmed", Must::Work, |id, sock| {
        refused(id, sock, &[R::TIMEOUT_CL], |_| Ok(()))
    })
    .slow(),
    server("confirm-link-late", Must::Work, |id, sock| {
        let mut contact = contact(id, sock)?;
        std::thread::sleep(Duration::from_secs(4));
        contact.ask()?;
        contact.await_confirm_link()?;
        serve(contact.finish())
    })
    .slow(),
    server("confirm-link-ten-times", Must::Work, |id, sock| {
        asked(id, sock, |c| (0..10).try_for_each(|_| c.ask()))
    }),
    server(
        "confirm-link-answer-in-place-of-request",
        Must::Work,
        |id, sock| refused(id, sock, &[R::TIMEOUT_CL], |c| c.answer()),
    )
    .slow(),
    server("confirm-link-with-other-qp", Must::Work, |id, sock| {
        refused(id, sock, &[R::CNFERR], |c| {
            ask_with(c, |own| own.qpn = Qpn::new(0xf_ffff).unwrap_or(own.qpn))
        })
    }),
    server("confirm-link-with-other-gid", Must::Work, |id, sock| {
        refused(id, sock, &[R::CNFERR], |c| {
            ask_with(c, |own| own.gid = Gid([9; 16]))
        })
    }),
    server("confirm-link-with-number-0", Must::Work, |id, sock| {
        refused(id, sock, &[R::CNFERR], |c| {
            ask_with(c, |own| own.link = LinkId(0))
        })
    }),
    server("confirm-link-with-number-255", Must::Work, |id, sock| {
        let mut contact = contact(id, sock)?;
        contact.link.number = LinkId(255);
        contact.ask()?;
        contact.await_confirm_link()?;
        serve(contact.finish())
    }),
    server("confirm-link-with-eyecatchers", Must::Work, |id, sock| {
        refused(id, sock, &[R::RMBE_EC], |c| {
            ask_with(c, |own| own.no_rmbe_eyecatcher = false)
        })
    }),
    server("confirm-link-in-version-1", Must::Work, |id, sock| {
        refused(id, sock, &[R::NOACTLINK], |c| {
            let own = c.own_confirm_link();
            c.link.send_llc(&Message {
                version: Version::V1,
                ..request(Body::ConfirmLink(ConfirmLink {
                    max_conns: 0,
                    ..own
                }))
            })
        })
    }),
    server("confirm-link-too-short", Must::Work, |id, sock| {
        refused(id, sock, &[R::TIMEOUT_CL], |c| {
            let bytes = emit(&request(Body::ConfirmLink(c.own_confirm_link())));
            [0, 1, 4, 43]
                .into_iter()
                .try_for_each(|len| c.link.send(&bytes[..len]))
        })
    })
    .slow(),
    server(
        "delete-link-in-place-of-confirm-link",
        Must::Work,
        |id, sock| {
            refused(id, sock, &[R::NOACTLINK], |c| {
                c.link.send_llc(&request(Body::DeleteLink(delete_all())))
            })
        },
    ),
    server(
        "add-link-in-place-of-confirm-link",
        Must::Work,
        |id, sock| {
            refused(id, sock, &[R::TIMEOUT_CL], |c| {
                let body = Body::AddLink(add_link(&c.id, &c.link, PathMtu::from_code(3)));
                c.link.send_llc(&request(body))
            })
        },
    )
    .slow(),
    server(
        "link-broken-in-place-of-confirm-link",
        Must::Work,
        |id, sock| refused(id, sock, &[R::NOACTLINK, R::TIMEOUT_CL], |c| c.link.kill()),
    )
    .slow(),
    server(
        "declined-in-place-of-confirm-link",
        Must::Work,
        |id, sock| {
            refused(id, sock, &[R::TIMEOUT_CL], |c| {
                clc::send(&c.sock, &c.id.decline(R::TIMEOUT_CL))
            })
        },
    )
    .slow(),
    server(
        "tcp-ends-in-place-of-confirm-link",
        Must::End,
        |id, sock| {
            let contact = contact(id, sock)?;
            drop(contact);
            Ok(())
        },
    )
    .slow(),
    server("test-links-before-confirm-link", Must::Work, |id, sock| {
        let mut contact = contact(id, sock)?;
        (0..20).try_for_each(|n| contact.link.test(n, SEND_LIMIT))?;
        contact.ask()?;
        contact.await_confirm_link()?;
        serve(contact.finish())
    }),
    server(
        "forged-cursor-before-confirm-link",
        Must::Fail,
        |id, sock| {
            let contact = contact(id, sock)?;
            let own = contact.own_confirm_link();
            let mut session = contact.finish();
            session.conns[0].send_cdc(&mut session.link, |m| m.prod.count = u32::MAX)?;
            let _ = session.link.send_llc(&request(Body::ConfirmLink(own)));
            clc::await_tcp_end(&session.conns[0].sock, DECLINE_LIMIT)?;
            session.check_guards()
        },
    ),
    server("data-before-confirm-link", Must::Fail, |id, sock| {
        // The application gets bytes that are no echo, and says so.
        let contact = contact(id, sock)?;
        let own = contact.own_confirm_link();
        let mut session = contact.finish();
        session.conns[0].write(&mut session.link, 500)?;
        session.link.send_llc(&request(Body::ConfirmLink(own)))?;
        session.conns[0].serve(&mut session.link, SERVE_LIMIT)?;
        session.check_guards()
    }),
    server(
        "accept-names-a-gid-that-is-not-there",
        Must::Work,
        |id, sock| wrong_end(id, sock, |end| end.gid = Gid::from_ipv4([10, 9, 0, 77])),
    )
    .slow(),
    server(
        "accept-names-a-queue-pair-that-is-not-there",
        Must::Work,
        |id, sock| {
            wrong_end(id, sock, |end| {
                end.qpn = Qpn::new(0xff_fffe).unwrap_or(end.qpn)
            })
        },
    )
    .slow(),
    server(
        "accept-names-a-buffer-at-the-end-of-memory",
        Must::Work,
        |id, sock| wrong_end(id, sock, |end| end.rmb_addr = VirtAddr(u64::MAX - 100)),
    ),
    server(
        "accept-names-a-key-that-is-not-there",
        Must::Fail,
        |id, sock| {
            let mut contact = Contact::accept(id, sock, |end| end.rkey = Rkey(0xdead_0000))?;
            contact.ask()?;
            contact.await_confirm_link()?;
            contact.finish().expect_end()
        },
    ),
];

pub(crate) const DATA: &[ServerCase] = &[
    server("producer-one-past-the-ring", Must::Fail, |id, sock| {
        resets(id, sock, |m, len| m.prod.count = len as u32)
    }),
    server("producer-a-wrap-too-far", Must::Fail, |id, sock| {
        resets(id, sock, |m, _| m.prod.wrap = 2)
    }),
    server("consumer-one-past-the-ring", Must::Fail, |id, sock| {
        resets(id, sock, |m, _| m.cons.count = RING as u32)
    }),
    server("consumer-ahead-of-what-was-sent", Must::Fail, |id, sock| {
        resets(id, sock, |m, _| {
            m.cons = cursor(RING as u64 - 1, RING as u64)
        })
    }),
    server("abort", Must::Fail, |id, sock| {
        resets(id, sock, |m, _| m.conn_flags = ConnFlags::ABORT)
    }),
    server("add-link-of-the-same-port", Must::Work, |id, sock| {
        asked(id, sock, |c| {
            offer(c, PathMtu::from_code(3), RejectReason::NO_ALTERNATE_PATH)
        })
    }),
    server("add-link-with-reserved-mtu", Must::Work, |id, sock| {
        asked(id, sock, |c| offer(c, None, RejectReason::BAD_MTU))
    }),
    server("add-link-flood", Must::Work, |id, sock| {
        asked(id, sock, |c| {
            let body = Body::AddLink(add_link(&c.id, &c.link, PathMtu::from_code(3)));
            let bytes = emit(&request(body));
            (0..300).try_for_each(|_| c.link.post_send(&bytes).map(drop))
        })
    }),
    server("answers-unasked", Must::Work, |id, sock| {
        asked(id, sock, |c| {
            let own = c.own_confirm_link();
            let token = Token {
                rkey: Rkey(1),
                addr: VirtAddr(4096),
            };
            let rkey = ConfirmRkey::new(token, &[]).map_err(|e| format!("{e}"))?;
            c.link.send_llc(&response(Body::ConfirmLink(own)))?;
            c.link.send_llc(&response(Body::ConfirmRkey(rkey)))?;
            c.link.send_llc(&response(Body::DeleteLink(delete_all())))?;
            c.link.send_llc(&response(test_link(3)))
        })
    }),
    server(
        "delete-all-links-while-data-flows",
        Must::Fail,
        |id, sock| {
            ends(id, sock, |s| {
                s.link.send_llc(&request(Body::DeleteLink(delete_all())))
            })
        },
    ),
    server(
        "delete-the-link-while-data-flows",
        Must::Fail,
        |id, sock| {
            ends(id, sock, |s| {
                let link = s.link.number;
                s.link.send_llc(&request(Body::DeleteLink(DeleteLink {
                    link,
                    all: false,
                    ..delete_all()
                })))
            })
        },
    )
    .slow(),
    server("message-of-version-1", Must::Fail, |id, sock| {
        ends(id, sock, |s| {
            s.link.send_llc(&Message {
                version: Version::V1,
                ..request(test_link(1))
            })
        })
    }),
    server("link-breaks-while-data-flows", Must::Fail, |id, sock| {
        let mut session = Session::accept(id, sock)?;
        let (link, conn) = (&mut session.link, &mut session.conns[0]);
        conn.wait(link, SERVE_LIMIT, |c| c.arrived > 0)?;
        link.kill()
    })
    .slow(),
];

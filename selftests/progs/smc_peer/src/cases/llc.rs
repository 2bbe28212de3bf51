// SPDX-License-Identifier: GPL-2.0

//! LLC messages on a link that works: unsolicited, repeated, short, long, of no type, and floods.

use crate::case::{client, ClientCase};
use crate::clc::Identity;
use crate::link::Link;
use crate::message::{emit, mac_of, request, response, test_link};
use crate::session::Session;
use smc_proto::ids::{LinkId, LinkUid, PathMtu, Psn, Qpn, Rkey, Version, VirtAddr};
use smc_proto::wire::llc::{
    AddLink, AddLinkExt, Body, ConfirmLink, ConfirmRkey, DeleteLink, DeleteLinkReason, DeleteRkey,
    List, Message, RequestAddLink, RkeyAnswer, Token,
};
use std::time::Duration;

const ANSWER: Duration = Duration::from_secs(10);

/// Does something to a working link after which everything must go on.
fn survives(
    id: &Identity,
    spoil: impl FnOnce(&mut Session) -> Result<(), String>,
) -> Result<(), String> {
    let mut session = Session::pair(id)?;
    spoil(&mut session)?;
    settle(&mut session.link)?;
    session.join()?;
    session.finish()
}

/// Waits until the messages sent before were looked at: a stray answer must not meet an exchange of
/// the other side that began later. After a flood the other side may drop what it has no room for.
fn settle(link: &mut Link) -> Result<(), String> {
    let mut outcome = Ok(());
    for n in 0..10 {
        outcome = link.test(0xb0 + n, Duration::from_secs(3));
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// Does something to a working link that must end it, and finds the server ready for the next.
fn ends(
    id: &Identity,
    spoil: impl FnOnce(&mut Session) -> Result<(), String>,
) -> Result<(), String> {
    let mut session = Session::pair(id)?;
    spoil(&mut session)?;
    session.expect_end()?;
    drop(session);
    Session::pair(id)?.finish()
}

fn token(n: u32) -> Token {
    Token {
        rkey: Rkey(0x1000_0000 + n),
        addr: VirtAddr(0x5_0000_0000 + u64::from(n) * 0x1_0000),
    }
}

fn confirm_rkey(own: Token) -> ConfirmRkey {
    // No other links are too many for nobody.
    ConfirmRkey::new(own, &[]).unwrap_or_else(|e| unreachable!("{e}"))
}

fn add_link(id: &Identity, link: &Link) -> AddLink<'static> {
    AddLink {
        mac: mac_of(id.number),
        gid: id.gid(),
        qpn: Qpn::new(link.qpn()),
        link: LinkId(2),
        mtu: PathMtu::from_code(3),
        psn: Psn::new(1),
        reject: None,
        ext: Some(AddLinkExt {
            v2_direct: true,
            client_target_gid: id.gid(),
            rkeys: List::EMPTY,
        }),
    }
}

fn confirm_link(id: &Identity, link: &Link) -> ConfirmLink {
    ConfirmLink {
        mac: mac_of(id.number),
        gid: id.gid(),
        qpn: Qpn::new(link.qpn()).unwrap_or_else(|| unreachable!("0 is reserved")),
        link: link.number,
        link_uid: LinkUid(1),
        max_links: 2,
        max_conns: 255,
        no_rmbe_eyecatcher: true,
    }
}

fn delete(link: u8, all: bool) -> DeleteLink {
    DeleteLink {
        link: LinkId(link),
        all,
        orderly: false,
        reason: DeleteLinkReason::OPERATOR,
    }
}

/// One message of every type, in the form of version 2.
fn every_type(id: &Identity, link: &Link, response: bool) -> Vec<Vec<u8>> {
    let keys = [Rkey(0x1234_5678)];
    let gids = [id.gid()];
    let delete_rkey = DeleteRkey {
        rkeys: List::new(&keys),
        negative: false,
        errors: 0,
    };
    let bodies = [
        Body::ConfirmLink(confirm_link(id, link)),
        Body::AddLink(add_link(id, link)),
        Body::DeleteLink(delete(99, false)),
        Body::RequestAddLink(RequestAddLink {
            gids: List::new(&gids),
        }),
        Body::ConfirmRkey(confirm_rkey(token(1))),
        Body::DeleteRkey(delete_rkey),
        test_link(0x42),
    ];
    bodies
        .into_iter()
        .map(|body| {
            emit(&Message {
                version: Version::V2,
                response,
                body,
            })
        })
        .collect()
}

/// Sends every type, changed by `change`.
fn send_all(
    session: &mut Session,
    response: bool,
    change: impl Fn(&mut Vec<u8>),
) -> Result<(), String> {
    for mut bytes in every_type(&session.id.clone(), &session.link, response) {
        change(&mut bytes);
        session.link.send(&bytes)?;
    }
    Ok(())
}

fn raw(session: &mut Session, messages: &[&[u8]]) -> Result<(), String> {
    for bytes in messages {
        session.link.send(bytes)?;
    }
    Ok(())
}

/// A frame with this type and length field.
fn frame(code: u8, length: u16, size: usize) -> Vec<u8> {
    let mut bytes = vec![0xee; size];
    let [first, second] = length.to_ne_bytes();
    bytes[..4].copy_from_slice(&[code, first, second, 0]);
    bytes
}

fn answer_of<T>(
    session: &mut Session,
    what: &str,
    want: impl FnMut(&Message<'_>) -> Option<T>,
) -> Result<T, String> {
    session.link.await_llc(ANSWER, what, want)
}

fn rkey_answer(session: &mut Session) -> Result<RkeyAnswer, String> {
    answer_of(session, "the answer to CONFIRM RKEY", |m| match m.body {
        Body::ConfirmRkey(body) if m.response => Some(body.answer),
        _ => None,
    })
}

pub(crate) const STRAY: &[ClientCase] = &[
    client("every-answer-unasked", |id| {
        survives(id, |s| {
            for _ in 0..3 {
                send_all(s, true, |_| {})?;
            }
            Ok(())
        })
    }),
    client("every-request-unasked", |id| {
        survives(id, |s| send_all(s, false, |_| {}))
    }),
    client("every-type-cut-to-43-bytes", |id| {
        survives(id, |s| {
            send_all(s, false, |b| b.truncate(43))?;
            send_all(s, true, |b| b.truncate(43))
        })
    }),
    client("every-type-cut-to-4-bytes", |id| {
        survives(id, |s| {
            send_all(s, false, |b| b.truncate(4))?;
            send_all(s, true, |b| b.truncate(1))
        })
    }),
    client("every-type-in-1088-bytes", |id| {
        survives(id, |s| send_all(s, true, |b| b.resize(1088, 0xff)))
    }),
    client("every-type-with-length-0", |id| {
        survives(id, |s| {
            send_all(s, false, |b| b[1..3].fill(0))?;
            send_all(s, true, |b| b[1..3].fill(0xff))
        })
    }),
    client("every-type-with-all-bits-set", |id| {
        // Among them are requests to end the link.
        let mut session = Session::pair(id)?;
        for bytes in every_type(id, &session.link, false) {
            if bytes[0] == 0x24 {
                continue;
            }
            let mut set = bytes.clone();
            set[4..].fill(0xff);
            set[3] = 0x7f;
            session.link.send(&set)?;
        }
        session.join()?;
        session.finish()
    }),
    client("types-that-do-not-exist", |id| {
        survives(id, |s| {
            for code in (0x2a..0xfe).filter(|code| code & 0x20 != 0) {
                s.link.send(&frame(code, 44, 44))?;
            }
            Ok(())
        })
    }),
    client("types-of-other-systems", |id| {
        survives(id, |s| {
            raw(
                s,
                &[
                    &frame(0x0a, 44, 44),
                    &frame(0x00, 44, 44),
                    &frame(0x20, 44, 44),
                    &frame(0x23, 44, 44),
                    &frame(0x28, 44, 44),
                    &frame(0x8f, 44, 44),
                    &frame(0xbf, 44, 44),
                    &frame(0xff, 44, 44),
                ],
            )
        })
    }),
    client("message-of-version-1", |id| {
        ends(id, |s| {
            s.link.send_llc(&Message {
                version: Version::V1,
                ..request(test_link(1))
            })
        })
    }),
    client("message-longer-than-any-buffer", |id| {
        ends(id, |s| {
            let id = s.link.post_send(&[0x27; 2000])?;
            s.link.finish_refused(id)
        })
    }),
    client("test-link-is-answered", |id| {
        survives(id, |s| (0..5).try_for_each(|n| s.link.test(n, ANSWER)))
    }),
    client("test-link-flood", |id| {
        survives(id, |s| {
            let bytes = emit(&request(test_link(7)));
            for _ in 0..600 {
                s.link.post_send(&bytes)?;
            }
            Ok(())
        })
    })
    .slow(),
    client("test-link-answer-flood", |id| {
        survives(id, |s| {
            let bytes = emit(&response(test_link(7)));
            for _ in 0..600 {
                s.link.post_send(&bytes)?;
            }
            Ok(())
        })
    })
    .slow(),
    client("test-link-never-answered", |id| {
        let mut session = Session::pair(id)?;
        session.link.habits.answers_tests = false;
        // Half a minute of silence, then eight seconds for the answer.
        session
            .link
            .wait(Duration::from_secs(60), |link| link.broken())?;
        session.expect_end()
    })
    .slow(),
];

pub(crate) const LINKS: &[ClientCase] = &[
    client("delete-link-of-unknown-number", |id| {
        survives(id, |s| {
            for link in [0, 2, 77, 255] {
                s.link
                    .send_llc(&request(Body::DeleteLink(delete(link, false))))?;
                let reason = answer_of(s, "the answer to DELETE LINK", |m| match m.body {
                    Body::DeleteLink(body) if m.response => Some(body.reason),
                    _ => None,
                })?;
                if reason != DeleteLinkReason::UNKNOWN_LINK {
                    return Err(format!("link {link} was answered with {reason:?}"));
                }
            }
            Ok(())
        })
    }),
    client("delete-link", |id| {
        ends(id, |s| {
            let number = s.link.number.0;
            s.link
                .send_llc(&request(Body::DeleteLink(delete(number, false))))
        })
    })
    .slow(),
    client("delete-all-links", |id| {
        ends(id, |s| {
            s.link.send_llc(&request(Body::DeleteLink(delete(0, true))))
        })
    }),
    client("delete-all-links-in-order", |id| {
        ends(id, |s| s.delete_all(DeleteLinkReason::OPERATOR))
    })
    .slow(),
    client("delete-all-links-five-times", |id| {
        ends(id, |s| {
            let bytes = emit(&request(Body::DeleteLink(delete(0, true))));
            for _ in 0..5 {
                s.link.post_send(&bytes)?;
            }
            Ok(())
        })
    }),
    client("delete-link-while-data-flows", |id| {
        ends(id, |s| {
            let room = s.conns[0].room();
            s.conns[0].write(&mut s.link, room)?;
            s.conns[1].write(&mut s.link, 5000)?;
            s.link.send_llc(&request(Body::DeleteLink(delete(0, true))))
        })
    }),
    client("add-link-flood", |id| {
        survives(id, |s| {
            let bytes = emit(&request(Body::AddLink(add_link(id, &s.link))));
            for _ in 0..500 {
                s.link.post_send(&bytes)?;
            }
            Ok(())
        })
    })
    .slow(),
    client("add-link-with-more-keys-than-it-has", |id| {
        survives(id, |s| {
            for count in [1u16, 255, 256, 0xffff] {
                let mut bytes = emit(&request(Body::AddLink(add_link(id, &s.link))));
                let len = bytes.len();
                bytes[len - 2..].copy_from_slice(&count.to_ne_bytes());
                s.link.send(&bytes)?;
            }
            Ok(())
        })
    }),
    client("confirm-link-flood", |id| {
        survives(id, |s| {
            let own = confirm_link(id, &s.link);
            for _ in 0..200 {
                s.link.post_send(&emit(&request(Body::ConfirmLink(own))))?;
                s.link.post_send(&emit(&response(Body::ConfirmLink(own))))?;
            }
            Ok(())
        })
    })
    .slow(),
];

pub(crate) const RKEYS: &[ClientCase] = &[
    client("confirm-rkey-more-than-there-is-room-for", |id| {
        survives(id, |s| {
            let mut negative = 0;
            for n in 0..300 {
                let body = Body::ConfirmRkey(confirm_rkey(token(n)));
                s.link.send_llc(&request(body))?;
                negative += usize::from(rkey_answer(s)? == RkeyAnswer::Negative);
            }
            // One key is known from the handshake, and 255 are the most.
            match negative {
                46 => Ok(()),
                n => Err(format!("{n} of 300 keys were refused instead of 46")),
            }
        })
    })
    .slow(),
    client("confirm-rkey-for-two-addresses", |id| {
        survives(id, |s| {
            let mut seen = Vec::new();
            for addr in [1 << 20, 2 << 20] {
                let own = Token {
                    addr: VirtAddr(addr),
                    ..token(1)
                };
                s.link
                    .send_llc(&request(Body::ConfirmRkey(confirm_rkey(own))))?;
                seen.push(rkey_answer(s)?);
            }
            if seen != [RkeyAnswer::Positive, RkeyAnswer::Negative] {
                return Err(format!("the answers were {seen:?}"));
            }
            Ok(())
        })
    }),
    client("confirm-rkey-for-255-links", |id| {
        survives(id, |s| {
            for count in [9, 128, 255] {
                let mut bytes = emit(&request(Body::ConfirmRkey(confirm_rkey(token(1)))));
                bytes[4] = count;
                s.link.send(&bytes)?;
            }
            Ok(())
        })
    }),
    client("delete-rkey-of-unknown-keys", |id| {
        survives(id, |s| {
            let keys: Vec<_> = (0..255).map(|n| Rkey(0x7000_0000 + n)).collect();
            s.link.send_llc(&request(Body::DeleteRkey(DeleteRkey {
                rkeys: List::new(&keys),
                negative: false,
                errors: 0,
            })))?;
            let (negative, errors) = answer_of(s, "the answer to DELETE RKEY", |m| match m.body {
                Body::DeleteRkey(body) if m.response => Some((body.negative, body.errors)),
                _ => None,
            })?;
            match (negative, errors) {
                (true, 255) => Ok(()),
                other => Err(format!("the answer was {other:?}")),
            }
        })
    }),
    client("delete-rkey-with-more-keys-than-it-has", |id| {
        survives(id, |s| {
            for count in [0u8, 10, 255] {
                let mut bytes = frame(0x29, 44, 44);
                bytes[4] = count;
                s.link.send(&bytes)?;
            }
            Ok(())
        })
    }),
    client("delete-rkey-of-the-buffer-in-use", |id| {
        survives(id, |s| {
            let keys = [Rkey(s.link.rkey())];
            s.link.send_llc(&request(Body::DeleteRkey(DeleteRkey {
                rkeys: List::new(&keys),
                negative: false,
                errors: 0,
            })))
        })
    }),
    client("rkey-flood", |id| {
        survives(id, |s| {
            let keys = [Rkey(0x1000_0005)];
            let delete = emit(&request(Body::DeleteRkey(DeleteRkey {
                rkeys: List::new(&keys),
                negative: false,
                errors: 0,
            })));
            let confirm = emit(&request(Body::ConfirmRkey(confirm_rkey(token(5)))));
            for _ in 0..500 {
                s.link.post_send(&confirm)?;
                s.link.post_send(&delete)?;
            }
            Ok(())
        })
    })
    .slow(),
];

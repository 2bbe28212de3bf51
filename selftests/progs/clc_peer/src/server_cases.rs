// SPDX-License-Identifier: GPL-2.0

//! Cases of a bad server: Accepts.

use crate::case::{broken, declined, stalled, Answer, Case, Step, DECLINE, LINK, PATIENT, PROMPT};
use crate::messages::{
    accept, accept_v1, claim, confirm, decline, proposal, set, shortened, Identity, Terms, VERSION,
};
use smc_proto::ids::Version;
use smc_proto::reason::DeclineReason as R;
use std::time::Duration;
use Step::{Await, Fin, Pause, Rst, Send, Trickle};

fn good(id: &Identity) -> Vec<u8> {
    accept(id, Some(id.terms))
}

fn limits(id: &Identity, max_conns: u8, max_links: u8) -> Vec<Step> {
    vec![Send(accept(
        id,
        Some(Terms {
            max_conns,
            max_links,
            ..id.terms
        }),
    ))]
}

fn crossing(id: &Identity, delay_ms: u64) -> Vec<Step> {
    vec![
        Send(good(id)),
        Await(crate::case::CONFIRM),
        Await(DECLINE),
        Pause(Duration::from_millis(delay_ms)),
        Send(decline(id, Version::V2, R::TIMEOUT_CL)),
    ]
}

const fn crossed(name: &'static str, steps: fn(&Identity) -> Vec<Step>) -> Case {
    Case {
        name,
        steps,
        allowed: &[Answer::Data],
        within: LINK,
        must_work: true,
    }
}

const fn confirmed(name: &'static str, steps: fn(&Identity) -> Vec<Step>) -> Case {
    Case {
        name,
        steps,
        allowed: &[Answer::Confirm],
        within: PROMPT,
        must_work: false,
    }
}

/// All of them; each begins when the Proposal has been read.
pub(crate) const ACCEPTS: &[Case] = &[
    confirmed("good", |id| vec![Send(good(id))]),
    confirmed("trickled", |id| {
        vec![Trickle(good(id), Duration::from_millis(8))]
    }),
    declined(
        "declined",
        |id| vec![Send(decline(id, Version::V2, R::NOSMCDEV))],
        &[Answer::Data],
    ),
    declined(
        "declined-v1",
        |id| vec![Send(decline(id, Version::V1, R::CNFERR))],
        &[Answer::Data],
    ),
    declined(
        "declined-out-of-sync",
        |id| vec![Send(decline(id, Version::V2, R::SYNCERR))],
        &[Answer::Data],
    ),
    broken("garbage-8", |_| vec![Send(b"GARBAGE!".to_vec())]),
    broken("garbage-http", |_| {
        vec![
            Send(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".to_vec()),
            Fin,
        ]
    }),
    broken("type-proposal", |id| vec![Send(proposal(id, false, true))]),
    broken("type-confirm", |id| vec![Send(confirm(id, Some(id.terms)))]),
    broken("type-0", |id| vec![Send(set(good(id), 4, &[0]))]),
    broken("type-200", |id| vec![Send(set(good(id), 4, &[200]))]),
    broken("length-0", |id| vec![Send(claim(good(id), 0))]),
    broken("length-8", |id| vec![Send(claim(good(id), 8))]),
    broken("length-67", |id| vec![Send(shortened(good(id), 67))]),
    broken("length-107", |id| vec![Send(shortened(good(id), 107))]),
    stalled("length-ffff-silence", |id| {
        vec![Send(claim(good(id), 0xffff))]
    }),
    broken("length-ffff-fin", |id| {
        vec![Send(claim(good(id), 0xffff)), Fin]
    }),
    broken("length-ffff-flood", |id| {
        let mut a = claim(good(id), 0xffff);
        a.resize(70_000, 0x5a);
        vec![Send(a)]
    }),
    broken("trailer-wrong", |id| {
        let a = good(id);
        let at = a.len() - 4;
        vec![Send(set(a, at, &[9; 4]))]
    }),
    broken("seven-then-fin", |id| {
        vec![Send(good(id)[..7].to_vec()), Fin]
    }),
    broken("half-then-fin", |id| {
        vec![Send(good(id)[..70].to_vec()), Fin]
    }),
    broken("half-then-rst", |id| {
        vec![Send(good(id)[..70].to_vec()), Rst]
    }),
    stalled("half-then-silence", |id| {
        vec![Send(good(id)[..70].to_vec())]
    }),
    broken("fin-at-once", |_| vec![Fin]),
    broken("rst-at-once", |_| vec![Rst]),
    Case {
        name: "silence",
        steps: |_| vec![],
        allowed: &[Answer::AnyDecline, Answer::End, Answer::Data],
        within: PATIENT,
        must_work: false,
    },
    broken("version-0", |id| {
        vec![Send(set(good(id), VERSION, &[0x08]))]
    }),
    broken("version-3", |id| {
        vec![Send(set(good(id), VERSION, &[0x38]))]
    }),
    broken("version-15", |id| {
        vec![Send(set(good(id), VERSION, &[0xf8]))]
    }),
    broken("v1-not-offered", |id| vec![Send(accept_v1(id))]),
    broken("smcd-chid-0", |id| {
        let mut a = set(shortened(good(id), 78), 0, &[0xe2, 0xd4, 0xc3, 0xc4]);
        a = set(a, 8, &[0; 62]);
        vec![Send(set(a, 74, &[0xe2, 0xd4, 0xc3, 0xc4]))]
    }),
    broken("first-contact-without-extension", |id| {
        vec![Send(shortened(good(id), 108))]
    }),
    broken("no-first-contact", |id| vec![Send(accept(id, None))]),
    broken("other-eid", |id| {
        vec![Send(accept(
            &Identity {
                eid: "ANOTHER.EID".into(),
                ..id.clone()
            },
            Some(id.terms),
        ))]
    }),
    broken("release-2", |id| vec![Send(set(good(id), 105, &[0x22]))]),
    broken("release-15", |id| vec![Send(set(good(id), 105, &[0x2f]))]),
    broken("max-conns-0", |id| limits(id, 0, id.terms.max_links)),
    broken("max-conns-15", |id| limits(id, 15, id.terms.max_links)),
    confirmed("max-conns-16", |id| limits(id, 16, id.terms.max_links)),
    broken("max-links-0", |id| limits(id, 255, 0)),
    broken("max-links-3", |id| limits(id, 255, 3)),
    broken("max-links-255", |id| limits(id, 255, 255)),
    broken("qpn-0", |id| vec![Send(set(good(id), 38, &[0; 3]))]),
    broken("rmbe-0", |id| vec![Send(set(good(id), 45, &[0]))]),
    broken("mtu-0", |id| vec![Send(set(good(id), 50, &[0x00]))]),
    broken("mtu-6", |id| vec![Send(set(good(id), 50, &[0x06]))]),
    broken("mtu-15", |id| vec![Send(set(good(id), 50, &[0x0f]))]),
    Case {
        name: "link-never-confirmed",
        steps: |id| vec![Send(good(id)), Await(crate::case::CONFIRM)],
        allowed: &[Answer::Decline(R::TIMEOUT_CL)],
        within: LINK,
        must_work: true,
    },
    Case {
        name: "confirm-then-decline",
        steps: |id| {
            vec![
                Send(good(id)),
                Await(crate::case::CONFIRM),
                Send(decline(id, Version::V2, R::TIMEOUT_CL)),
            ]
        },
        allowed: &[Answer::Data, Answer::AnyDecline],
        within: LINK,
        must_work: true,
    },
    Case {
        name: "confirm-then-fin",
        steps: |id| vec![Send(good(id)), Await(crate::case::CONFIRM), Fin],
        allowed: &[Answer::AnyDecline, Answer::End],
        within: LINK,
        must_work: false,
    },
    crossed("declines-cross-0", |id| crossing(id, 0)),
    crossed("declines-cross-100", |id| crossing(id, 100)),
    crossed("declines-cross-1000", |id| crossing(id, 1000)),
];

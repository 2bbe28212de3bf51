// SPDX-License-Identifier: GPL-2.0

//! Cases of a bad client: Proposals and Confirms.

use crate::case::{
    broken, declined, foreign, stalled, Answer, Case, Step, ACCEPT, DECLINE, LINK, PATIENT, PROMPT,
};
use crate::messages::{
    accept, claim, confirm, decline, grown, proposal, set, shortened, Identity, IP_OFFSET, V2_EXT,
    V2_OFFSET, VERSION,
};
use smc_proto::ids::Version;
use smc_proto::reason::DeclineReason as R;
use std::time::Duration;
use Step::{Await, Fin, Pause, Rst, Send, SendWithData, Trickle};

fn v2(id: &Identity) -> Vec<u8> {
    proposal(id, false, true)
}

fn v1(id: &Identity) -> Vec<u8> {
    proposal(id, true, false)
}

/// A good Proposal, its Accept, and then something.
fn after_accept(id: &Identity, rest: Vec<Step>) -> Vec<Step> {
    [vec![Send(v2(id)), Await(ACCEPT)], rest].concat()
}

fn crossing(id: &Identity, delay_ms: u64) -> Vec<Step> {
    after_accept(
        id,
        vec![
            Send(confirm(id, Some(id.terms))),
            Await(DECLINE),
            Pause(Duration::from_millis(delay_ms)),
            Send(decline(id, Version::V2, R::TIMEOUT_CL)),
        ],
    )
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

const fn accepted(name: &'static str, steps: fn(&Identity) -> Vec<Step>) -> Case {
    Case {
        name,
        steps,
        allowed: &[Answer::Accept],
        within: PROMPT,
        must_work: false,
    }
}

const fn tolerated(name: &'static str, steps: fn(&Identity) -> Vec<Step>) -> Case {
    let allowed = &[Answer::Accept, Answer::AnyDecline];
    Case {
        name,
        steps,
        allowed,
        within: PROMPT,
        must_work: false,
    }
}

/// Frames: header, length, type, version, trailer.
pub(crate) const FRAMES: &[Case] = &[
    accepted("good", |id| vec![Send(v2(id))]),
    accepted("trickled", |id| {
        vec![Trickle(v2(id), Duration::from_millis(8))]
    }),
    accepted("in-two-pieces", |id| {
        let p = v2(id);
        vec![
            Send(p[..8].to_vec()),
            Pause(Duration::from_millis(700)),
            Send(p[8..].to_vec()),
        ]
    }),
    foreign("garbage-8", |_| vec![Send(b"GARBAGE!".to_vec())]),
    foreign("garbage-http", |_| {
        vec![Send(b"GET / HTTP/1.0\r\n\r\n".repeat(20))]
    }),
    broken("eyecatcher-smcd", |id| {
        vec![Send(set(v2(id), 0, &[0xe2, 0xd4, 0xc3, 0xc4]))]
    }),
    broken("trailer-wrong", |id| {
        let p = v2(id);
        let at = p.len() - 4;
        vec![Send(set(p, at, &[0; 4]))]
    }),
    broken("type-0", |id| vec![Send(set(v2(id), 4, &[0]))]),
    broken("type-5", |id| vec![Send(set(v2(id), 4, &[5]))]),
    broken("type-255", |id| vec![Send(set(v2(id), 4, &[255]))]),
    broken("type-accept", |id| vec![Send(accept(id, Some(id.terms)))]),
    broken("type-confirm", |id| vec![Send(confirm(id, Some(id.terms)))]),
    broken("length-0", |id| vec![Send(claim(v2(id), 0))]),
    broken("length-7", |id| vec![Send(claim(v2(id), 7))]),
    broken("length-8", |id| vec![Send(claim(v2(id), 8))]),
    broken("length-51", |id| vec![Send(shortened(v2(id), 51))]),
    broken("length-less", |id| {
        let p = v2(id);
        let n = p.len() as u16;
        vec![Send(claim(p, n - 5))]
    }),
    stalled("length-more", |id| {
        let p = v2(id);
        let n = p.len() as u16;
        vec![Send(claim(p, n + 5))]
    }),
    stalled("length-ffff-silence", |id| {
        vec![Send(claim(v2(id), 0xffff))]
    }),
    broken("length-ffff-fin", |id| {
        vec![Send(claim(v2(id), 0xffff)), Fin]
    }),
    broken("length-ffff-rst", |id| {
        vec![Send(claim(v2(id), 0xffff)), Rst]
    }),
    broken("length-ffff-flood", |id| {
        let mut p = claim(v2(id), 0xffff);
        p.resize(70_000, 0x5a);
        vec![Send(p)]
    }),
    broken("length-2049", |id| {
        let p = v2(id);
        let n = p.len();
        vec![Send(grown(p, 2049 - n))]
    }),
    broken("version-0", |id| vec![Send(set(v2(id), VERSION, &[0x02]))]),
    tolerated("version-3", |id| vec![Send(set(v2(id), VERSION, &[0x32]))]),
    tolerated("version-15", |id| vec![Send(set(v2(id), VERSION, &[0xf2]))]),
    tolerated("version-15-growth-200", |id| {
        vec![Send(grown(set(v2(id), VERSION, &[0xf2]), 200))]
    }),
    broken("seven-then-fin", |id| vec![Send(v2(id)[..7].to_vec()), Fin]),
    broken("header-then-fin", |id| {
        vec![Send(v2(id)[..8].to_vec()), Fin]
    }),
    broken("half-then-fin", |id| vec![Send(v2(id)[..60].to_vec()), Fin]),
    stalled("half-then-silence", |id| vec![Send(v2(id)[..60].to_vec())]),
    broken("half-then-rst", |id| vec![Send(v2(id)[..60].to_vec()), Rst]),
    broken("fin-at-once", |_| vec![Fin]),
    broken("rst-at-once", |_| vec![Rst]),
    Case {
        name: "silence",
        steps: |_| vec![],
        allowed: &[Answer::AnyDecline, Answer::End, Answer::Data],
        within: PATIENT,
        must_work: false,
    },
];

/// Contents of Proposals.
pub(crate) const PROPOSALS: &[Case] = &[
    declined(
        "declines-itself",
        |id| vec![Send(decline(id, Version::V2, R::NOSMCDEV))],
        &[Answer::Data, Answer::AnyDecline],
    ),
    declined(
        "declines-itself-v1",
        |id| vec![Send(decline(id, Version::V1, R::CNFERR))],
        &[Answer::Data, Answer::AnyDecline],
    ),
    broken("ip-offset-fff0", |id| {
        vec![Send(set(v1(id), IP_OFFSET, &[0xff, 0xf0]))]
    }),
    broken("ip-offset-ffff-both", |id| {
        vec![Send(set(
            proposal(id, true, true),
            IP_OFFSET,
            &[0xff, 0xff],
        ))]
    }),
    broken("ipv6-count-255", |id| vec![Send(set(v1(id), 87, &[255]))]),
    broken("ipv6-count-9", |id| vec![Send(set(v1(id), 87, &[9]))]),
    broken("v2-offset-1", |id| {
        vec![Send(set(v2(id), V2_OFFSET, &[0, 1]))]
    }),
    broken("v2-offset-27", |id| {
        vec![Send(set(v2(id), V2_OFFSET, &[0, 27]))]
    }),
    broken("v2-offset-over", |id| {
        vec![Send(set(v2(id), V2_OFFSET, &[0, 29]))]
    }),
    broken("v2-offset-end", |id| {
        vec![Send(set(v2(id), V2_OFFSET, &[0, 101]))]
    }),
    broken("v2-offset-ffff", |id| {
        vec![Send(set(v2(id), V2_OFFSET, &[0xff, 0xff]))]
    }),
    declined(
        "v2-offset-0",
        |id| vec![Send(set(v2(id), V2_OFFSET, &[0, 0]))],
        &[Answer::Decline(R::NOV2EXT)],
    ),
    declined(
        "eids-0",
        |id| vec![Send(set(v2(id), V2_EXT, &[0]))],
        &[Answer::AnyDecline],
    ),
    broken("eids-2-of-1", |id| vec![Send(set(v2(id), V2_EXT, &[2]))]),
    broken("eids-9", |id| vec![Send(set(v2(id), V2_EXT, &[9]))]),
    broken("eids-255", |id| vec![Send(set(v2(id), V2_EXT, &[255]))]),
    broken("ism-9", |id| vec![Send(set(v2(id), V2_EXT + 1, &[9]))]),
    broken("ism-255", |id| vec![Send(set(v2(id), V2_EXT + 1, &[255]))]),
    broken("both-counts-255", |id| {
        vec![Send(set(v2(id), V2_EXT, &[255, 255]))]
    }),
    broken("smcd-only", |id| vec![Send(set(v2(id), VERSION, &[0x26]))]),
    broken("smcd-offset-ffff", |id| {
        vec![Send(set(
            set(v2(id), VERSION, &[0x26]),
            V2_EXT + 6,
            &[0xff, 0xff],
        ))]
    }),
    broken("both-smcd-offset-ffff", |id| {
        vec![Send(set(
            set(v2(id), VERSION, &[0x2e]),
            V2_EXT + 6,
            &[0xff, 0xff],
        ))]
    }),
    declined(
        "eid-unknown",
        |id| {
            vec![Send(v2(&Identity {
                eid: "ANOTHER.EID".into(),
                ..id.clone()
            }))]
        },
        &[Answer::Decline(R::NOUEID)],
    ),
    broken("eid-not-text", |id| {
        vec![Send(set(v2(id), V2_EXT + 40, &[0xff; 32]))]
    }),
    accepted("release-0", |id| {
        vec![Send(set(v2(id), V2_EXT + 3, &[0x00]))]
    }),
    accepted("release-15", |id| {
        vec![Send(set(v2(id), V2_EXT + 3, &[0xf0]))]
    }),
    declined(
        "max-conns-0",
        |id| vec![Send(set(v2(id), V2_EXT + 24, &[0]))],
        &[Answer::Decline(R::MAXCONNERR)],
    ),
    declined(
        "max-conns-15",
        |id| vec![Send(set(v2(id), V2_EXT + 24, &[15]))],
        &[Answer::Decline(R::MAXCONNERR)],
    ),
    accepted("max-conns-16", |id| {
        vec![Send(set(v2(id), V2_EXT + 24, &[16]))]
    }),
    declined(
        "max-links-0",
        |id| vec![Send(set(v2(id), V2_EXT + 25, &[0]))],
        &[Answer::Decline(R::MAXLINKERR)],
    ),
    tolerated("max-links-255", |id| {
        vec![Send(set(v2(id), V2_EXT + 25, &[255]))]
    }),
    declined("v1-only", |id| vec![Send(v1(id))], &[Answer::AnyDecline]),
    declined(
        "no-transport",
        |id| vec![Send(set(v2(id), VERSION, &[0x2a]))],
        &[Answer::AnyDecline],
    ),
];

/// Contents of Confirms, and what follows them.
pub(crate) const CONFIRMS: &[Case] = &[
    Case {
        name: "accept-then-silence",
        steps: |id| after_accept(id, vec![]),
        allowed: &[Answer::AnyDecline, Answer::End],
        within: PATIENT,
        must_work: false,
    },
    broken("accept-then-fin", |id| after_accept(id, vec![Fin])),
    broken("accept-then-rst", |id| after_accept(id, vec![Rst])),
    declined(
        "accept-then-decline",
        |id| after_accept(id, vec![Send(decline(id, Version::V2, R::MEM))]),
        &[Answer::Data],
    ),
    declined(
        "accept-then-out-of-sync",
        |id| after_accept(id, vec![Send(decline(id, Version::V2, R::SYNCERR))]),
        &[Answer::Data],
    ),
    declined(
        "accept-then-decline-and-data",
        |id| after_accept(id, vec![SendWithData(decline(id, Version::V2, R::MEM))]),
        &[Answer::Data],
    ),
    broken("accept-then-proposal", |id| {
        after_accept(id, vec![Send(v2(id))])
    }),
    broken("confirm-garbage", |id| {
        after_accept(id, vec![Send(vec![0x11; 180])])
    }),
    broken("confirm-short", |id| {
        after_accept(id, vec![Send(shortened(confirm(id, Some(id.terms)), 67))])
    }),
    broken("confirm-without-extension", |id| {
        // The first-contact flag is set, but the message ends before the extension.
        after_accept(id, vec![Send(shortened(confirm(id, Some(id.terms)), 108))])
    }),
    broken("confirm-no-first-contact", |id| {
        after_accept(id, vec![Send(confirm(id, None))])
    }),
    broken("confirm-gids-255", |id| {
        after_accept(
            id,
            vec![Send(set(confirm(id, Some(id.terms)), 104 + 52, &[255]))],
        )
    }),
    broken("confirm-qpn-0", |id| {
        after_accept(
            id,
            vec![Send(set(confirm(id, Some(id.terms)), 38, &[0; 3]))],
        )
    }),
    broken("confirm-rmbe-0", |id| {
        after_accept(id, vec![Send(set(confirm(id, Some(id.terms)), 45, &[0]))])
    }),
    broken("confirm-mtu-0", |id| {
        after_accept(
            id,
            vec![Send(set(confirm(id, Some(id.terms)), 50, &[0x00]))],
        )
    }),
    broken("confirm-mtu-15", |id| {
        after_accept(
            id,
            vec![Send(set(confirm(id, Some(id.terms)), 50, &[0x0f]))],
        )
    }),
    broken("confirm-other-eid", |id| {
        let other = Identity {
            eid: "ANOTHER.EID".into(),
            ..id.clone()
        };
        after_accept(id, vec![Send(confirm(&other, Some(id.terms)))])
    }),
    broken("confirm-other-limits", |id| {
        let terms = crate::messages::Terms {
            max_conns: 3,
            max_links: 9,
            ..id.terms
        };
        after_accept(id, vec![Send(confirm(id, Some(terms)))])
    }),
    broken("confirm-release-0", |id| {
        let terms = crate::messages::Terms {
            release: 0,
            ..id.terms
        };
        after_accept(id, vec![Send(confirm(id, Some(terms)))])
    }),
    Case {
        name: "link-never-confirmed",
        steps: |id| after_accept(id, vec![Send(confirm(id, Some(id.terms)))]),
        // This peer's queue pair does not exist, which may show first.
        allowed: &[
            Answer::Decline(R::TIMEOUT_CL),
            Answer::Decline(R::NOACTLINK),
        ],
        within: LINK,
        must_work: true,
    },
    Case {
        name: "link-never-confirmed-fin",
        steps: |id| after_accept(id, vec![Send(confirm(id, Some(id.terms))), Fin]),
        allowed: &[Answer::AnyDecline, Answer::End],
        within: LINK,
        must_work: false,
    },
    crossed("declines-cross-0", |id| crossing(id, 0)),
    crossed("declines-cross-100", |id| crossing(id, 100)),
    crossed("declines-cross-1000", |id| crossing(id, 1000)),
    crossed("declines-cross-4000", |id| crossing(id, 4000)),
];

// SPDX-License-Identifier: GPL-2.0

//! Requests: good ones, and ones with everything wrong that can be.

use smc_proto::genl::{Family, Set, Type};
use testlib::pattern::Rng;

/// Numbers of netlink.
pub(crate) mod nl {
    pub(crate) const ERROR: u16 = 2;
    pub(crate) const DONE: u16 = 3;
    pub(crate) const REQUEST: u16 = 1;
    pub(crate) const ACK: u16 = 4;
    pub(crate) const DUMP: u16 = 0x300;
    /// Bytes of a message's header.
    pub(crate) const HEADER: usize = 16;
    /// Number of the family that knows the others.
    pub(crate) const CONTROLLER: u16 = 16;
    /// Request for the sockets of a family.
    pub(crate) const SOCK_DIAG_BY_FAMILY: u16 = 20;
}

/// Flag of an attribute that has others inside.
const NESTED: u16 = 0x8000;
/// Number of the address family.
const AF_SMC: u8 = 43;
/// Bytes of a request for sockets.
const DIAG_REQUEST: usize = 52;
/// Deepest nesting that is tried.
const MAX_DEPTH: usize = 12;
/// Longest request that is tried.
const MAX_LEN: usize = 16 * 1024;

/// A message: header and body.
pub(crate) fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(nl::HEADER + body.len());
    // CAST: Bodies are much shorter.
    out.extend(((nl::HEADER + body.len()) as u32).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    out.extend(sequence.to_ne_bytes());
    out.extend([0; 4]);
    out.extend(body);
    out
}

/// The body of a request to a generic family.
pub(crate) fn generic(command: u8, version: u8, attributes: &[u8]) -> Vec<u8> {
    let mut body = vec![command, version, 0, 0];
    body.extend(attributes);
    body
}

/// Adds an attribute, padded to a multiple of four.
pub(crate) fn attribute(out: &mut Vec<u8>, kind: u16, length: u16, value: &[u8]) {
    out.extend(length.to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// The body of a good request for all sockets.
pub(crate) fn all_sockets(details: u8) -> Vec<u8> {
    let mut body = vec![0; DIAG_REQUEST];
    body[0] = AF_SMC;
    body[3] = details;
    body
}

/// A request to `family`, and whether it asks for a change. Some are good.
pub(crate) fn random_generic(rng: &mut Rng, family: &Family) -> (Vec<u8>, u16, u8) {
    let command = match rng.below(16) {
        0 => rng.next_u64() as u8,
        _ if family.commands.is_empty() => 1,
        _ => pick(rng, family.commands).number,
    };
    let mut attributes = Vec::new();
    match rng.below(8) {
        0 => {}
        1 => noise(rng, &mut attributes, 64),
        _ => {
            let set = *pick(rng, family.sets);
            let depth = 1 + rng.below(MAX_DEPTH);
            fill(rng, &mut attributes, set, depth);
        }
    }
    if rng.below(64) == 0 {
        noise(rng, &mut attributes, MAX_LEN);
    }
    let version = if rng.below(8) == 0 {
        rng.next_u64() as u8
    } else {
        1
    };
    (generic(command, version, &attributes), flags(rng), command)
}

/// A request for sockets.
pub(crate) fn random_diag(rng: &mut Rng) -> (Vec<u8>, u16) {
    let mut body = all_sockets(rng.next_u64() as u8);
    if rng.below(4) == 0 {
        for _ in 0..=rng.below(8) {
            let at = rng.below(body.len());
            body[at] = rng.next_u64() as u8;
        }
    }
    // Mostly it is this family's.
    if rng.below(8) != 0 {
        body[0] = AF_SMC;
    }
    match rng.below(8) {
        0 => body.truncate(rng.below(DIAG_REQUEST)),
        1 => noise(rng, &mut body, 256),
        _ => {}
    }
    (body, flags(rng))
}

fn flags(rng: &mut Rng) -> u16 {
    match rng.below(8) {
        0 => nl::REQUEST | (rng.next_u64() as u16 & 0x0fff),
        1..=4 => nl::REQUEST | nl::DUMP,
        _ => nl::REQUEST | nl::ACK,
    }
}

/// Attributes of a set: with good and bad lengths, types and values.
fn fill(rng: &mut Rng, out: &mut Vec<u8>, set: &Set, depth: usize) {
    for _ in 0..rng.below(6) {
        if out.len() > MAX_LEN {
            return;
        }
        let known = pick(rng, set.attributes);
        let mut kind = known.number;
        let mut value = Vec::new();
        match known.kind {
            Type::Nest(inner) if depth > 0 => {
                fill(rng, &mut value, inner, depth - 1);
                kind |= NESTED;
            }
            // Others inside of themselves, as deep as it goes.
            _ if depth > 0 && rng.below(16) == 0 => {
                fill(rng, &mut value, set, depth - 1);
                kind |= NESTED;
            }
            other => plain(rng, &mut value, other),
        }
        if rng.below(16) == 0 {
            kind = rng.next_u64() as u16;
        }
        value.truncate(usize::from(u16::MAX) - 8);
        // CAST: It was cut to fit.
        let mut length = value.len() as u16 + 4;
        match rng.below(32) {
            0 => length = rng.next_u64() as u16,
            1 => length = rng.below(8) as u16,
            2 => length = length.saturating_add(rng.below(64) as u16),
            _ => {}
        }
        attribute(out, kind, length, &value);
    }
}

/// A value of the type, mostly.
fn plain(rng: &mut Rng, out: &mut Vec<u8>, kind: Type) {
    let size = match kind {
        Type::U8 => 1,
        Type::U16 => 2,
        Type::U32 => 4,
        Type::U64 => 8,
        Type::Uint => 4 << rng.below(2),
        Type::Pad => 0,
        Type::String => return text(rng, out),
        Type::Binary | Type::Nest(_) => rng.below(64),
    };
    let size = if rng.below(8) == 0 {
        rng.below(64)
    } else {
        size
    };
    out.extend((0..size).map(|_| rng.next_u64() as u8));
}

fn text(rng: &mut Rng, out: &mut Vec<u8>) {
    const TEXTS: [&str; 10] = [
        "veth0", "rxe0", "rxe1", "lo", "NETA", "neta", "FUZZ-1", "FUZZ-2", "n/a", "",
    ];
    match rng.below(6) {
        0 => noise(rng, out, 128),
        1 => out.extend(std::iter::repeat_n(b'A', rng.below(80))),
        _ => out.extend(pick(rng, &TEXTS).as_bytes()),
    }
    // An enterprise ID has 33 bytes.
    if rng.below(3) == 0 {
        out.resize(32, b' ');
    }
    if rng.below(8) != 0 {
        out.push(0);
    }
}

fn noise(rng: &mut Rng, out: &mut Vec<u8>, most: usize) {
    let count = rng.below(most);
    out.extend((0..count).map(|_| rng.next_u64() as u8));
}

/// One of several.
pub(crate) fn pick<'a, T>(rng: &mut Rng, items: &'a [T]) -> &'a T {
    &items[rng.below(items.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use smc_proto::genl::smc;

    #[test]
    fn a_seed_repeats_its_requests() {
        let requests = |seed| -> Vec<Vec<u8>> {
            let mut rng = Rng::new(seed);
            let next = |_| random_generic(&mut rng, &smc::FAMILY).0;
            (0..200).map(next).collect()
        };
        assert_eq!(requests(7), requests(7));
        assert_ne!(requests(7), requests(8));
    }

    #[test]
    fn requests_have_bounds_and_variety() {
        let mut rng = Rng::new(1);
        let mut commands = std::collections::BTreeSet::new();
        for _ in 0..5000 {
            let (body, flags, command) = random_generic(&mut rng, &smc::FAMILY);
            assert!(body.len() < 8 * MAX_LEN, "{}", body.len());
            assert_eq!(flags & nl::REQUEST, nl::REQUEST);
            commands.insert(command);
            assert!(random_diag(&mut rng).0.len() <= DIAG_REQUEST + 256);
        }
        for command in smc::cmd::ALL {
            assert!(commands.contains(&command.number), "{}", command.name);
        }
    }

    #[test]
    fn messages_have_their_length() {
        let bytes = message(16, nl::REQUEST, 9, &[1, 2, 3, 4]);
        assert_eq!(bytes[..4], 20_u32.to_ne_bytes());
        let mut out = Vec::new();
        attribute(&mut out, 3, 5, &[7]);
        assert_eq!(out.len(), 8);
    }
}

// SPDX-License-Identifier: GPL-2.0

//! The TCP option by which both ends say that they can do SMC (RFC 7609 3.1,
//! A.1): an experimental option (kind 254) whose four-byte identifier spells
//! "SMCR" in EBCDIC.

/// The option as it is sent: two NOPs for alignment, kind, length, identifier.
pub const OPTION: [u8; 8] = [NOP, NOP, KIND, LEN, 0xe2, 0xd4, 0xc3, 0xd9];

const END: u8 = 0;
const NOP: u8 = 1;
const KIND: u8 = 254;
const LEN: u8 = 6;
const IDENTIFIER: [u8; 4] = [0xe2, 0xd4, 0xc3, 0xd9];

/// Whether the options of a TCP header contain the SMC option.
///
/// `options` is the part of the header after the fixed 20 bytes. A malformed
/// option ends the search, as TCP itself does not read beyond one either.
pub fn find(options: &[u8]) -> bool {
    let mut rest = options;
    loop {
        rest = match rest {
            [] | [END, ..] | [_] => return false,
            [NOP, rest @ ..] => rest,
            [kind, len, body @ ..] => {
                let Some(body_len) = usize::from(*len).checked_sub(2) else {
                    return false;
                };
                let Some((data, rest)) = body.split_at_checked(body_len) else {
                    return false;
                };
                if *kind == KIND && is_smc(data) {
                    return true;
                }
                rest
            }
        };
    }
}

/// Whether the data of an experimental option is that of SMC. Longer options of
/// even total length are accepted: later versions may append to this one.
fn is_smc(data: &[u8]) -> bool {
    data.starts_with(&IDENTIFIER) && data.len() % 2 == 0
}

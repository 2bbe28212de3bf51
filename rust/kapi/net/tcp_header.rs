// SPDX-License-Identifier: GPL-2.0

//! TCP options in packet headers: finding one, and adding one.
//!
//! Pure functions on bytes. References: RFC 9293 section 3.1 and 3.2, RFC 1071 and RFC 1624 for
//! the checksum.

use kernel::prelude::*;

/// Length of an option this code adds or finds, in bytes.
pub(crate) const OPTION_LEN: usize = 8;

/// The longest TCP header, in bytes.
pub(crate) const MAX_HEADER: usize = 60;

/// The part of a TCP header before its options, in bytes.
pub(crate) const MIN_HEADER: usize = 20;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

const KIND_END: u8 = 0;
const KIND_NOP: u8 = 1;
const KIND_MD5: u8 = 19;
const KIND_AO: u8 = 29;

/// What kind of segment begins a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// SYN.
    Syn,
    /// SYN and ACK.
    SynAck,
}

/// Says which opening segment the fixed part of a header belongs to.
pub(crate) fn opening(fixed: &[u8; MIN_HEADER]) -> Option<Opening> {
    match fixed[13] & (FIN | SYN | RST | ACK) {
        SYN => Some(Opening::Syn),
        flags if flags == SYN | ACK => Some(Opening::SynAck),
        _ => None,
    }
}

/// Header length in bytes as the header states it, `None` if it is impossible.
pub(crate) fn header_len(fixed: &[u8; MIN_HEADER]) -> Option<usize> {
    let len = usize::from(fixed[12] >> 4) * 4;
    (len >= MIN_HEADER).then_some(len)
}

/// Ports, in host byte order: source, destination.
pub(crate) fn ports(fixed: &[u8; MIN_HEADER]) -> (u16, u16) {
    (
        u16::from_be_bytes([fixed[0], fixed[1]]),
        u16::from_be_bytes([fixed[2], fixed[3]]),
    )
}

/// The acknowledgment number.
pub(crate) fn ack_number(fixed: &[u8; MIN_HEADER]) -> u32 {
    u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]])
}

/// What a walk over the options of a header found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// The wanted option is there.
    pub(crate) wanted: bool,
    /// The segment is signed.
    pub(crate) signed: bool,
    /// The list of options is broken.
    pub(crate) broken: bool,
}

/// Walks the options of `header`, a TCP header of exactly its stated length.
pub(crate) fn scan(header: &[u8], wanted: &[u8; OPTION_LEN]) -> Options {
    let mut found = Options::default();
    let mut rest = header.get(MIN_HEADER..).unwrap_or(&[]);
    while let Some(&kind) = rest.first() {
        let len = match kind {
            KIND_END => break,
            KIND_NOP => 1,
            _ => match rest.get(1) {
                Some(&len) if len >= 2 => usize::from(len),
                _ => 0,
            },
        };
        let Some(option) = rest.get(..len).filter(|option| !option.is_empty()) else {
            found.broken = true;
            break;
        };
        // An option may be padded by two NOPs on either side of its own bytes; they are skipped as
        // options of their own, so only the bytes from the kind on are compared.
        let own = own_bytes(wanted);
        found.wanted |= option == own;
        found.signed |= matches!(kind, KIND_MD5 | KIND_AO);
        rest = rest.get(len..).unwrap_or(&[]);
    }
    if found.broken {
        found.wanted = false;
    }
    found
}

/// `option` without the NOPs that align it.
fn own_bytes(option: &[u8; OPTION_LEN]) -> &[u8] {
    let start = option
        .iter()
        .position(|&byte| byte != KIND_NOP)
        .unwrap_or(OPTION_LEN);
    let own = option.get(start..).unwrap_or(&[]);
    match own {
        [_, len, ..] => own.get(..usize::from(*len)).unwrap_or(own),
        _ => own,
    }
}

/// Which IP header precedes the TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Adds `option` behind the other options. `packet` is the IP and TCP header, with
/// [`OPTION_LEN`] free bytes at its end; the TCP header begins at `tcp`. `partial` says that the
/// TCP checksum is to be completed by the device, so that the field has the pseudo header only.
///
/// # Errors
///
/// `EINVAL` if the headers are not of the form described; nothing is changed then.
pub(crate) fn append(
    packet: &mut [u8],
    ip: IpVersion,
    tcp: usize,
    option: &[u8; OPTION_LEN],
    partial: bool,
) -> Result {
    let end = packet.len().checked_sub(OPTION_LEN).ok_or(EINVAL)?;
    let header_len = end.checked_sub(tcp).ok_or(EINVAL)?;
    if header_len < MIN_HEADER || header_len % 4 != 0 || header_len + OPTION_LEN > MAX_HEADER {
        return Err(EINVAL);
    }
    let min_ip = match ip {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    };
    if tcp < min_ip {
        return Err(EINVAL);
    }
    let (ip_header, tcp_header) = packet.split_at_mut(tcp);

    let old = [tcp_header[12], tcp_header[13]];
    let offset = ((header_len + OPTION_LEN) / 4) as u8;
    tcp_header[12] = offset << 4 | tcp_header[12] & 0x0f;
    let new = [tcp_header[12], tcp_header[13]];
    tcp_header[header_len..].copy_from_slice(option);

    let added = (OPTION_LEN as u16).to_be_bytes();
    let mut sum = u16::from_be_bytes([tcp_header[16], tcp_header[17]]);
    if partial {
        // The field is the sum of the pseudo header, which contains the length.
        sum = add(sum, u16::from_be_bytes(added));
    } else {
        sum = replace(sum, [0, 0], added);
        sum = replace(sum, old, new);
        for word in option.chunks_exact(2) {
            sum = replace(sum, [0, 0], [word[0], word[1]]);
        }
    }
    tcp_header[16..18].copy_from_slice(&sum.to_be_bytes());

    match ip {
        IpVersion::V4 => grow_v4(ip_header),
        IpVersion::V6 => {
            let len = u16::from_be_bytes([ip_header[4], ip_header[5]]);
            let len = len.saturating_add(OPTION_LEN as u16);
            ip_header[4..6].copy_from_slice(&len.to_be_bytes());
        }
    }
    Ok(())
}

/// Adds the option's length to an IPv4 header of at least 20 bytes.
fn grow_v4(ip_header: &mut [u8]) {
    let old = [ip_header[2], ip_header[3]];
    let len = u16::from_be_bytes(old).saturating_add(OPTION_LEN as u16);
    ip_header[2..4].copy_from_slice(&len.to_be_bytes());
    let sum = u16::from_be_bytes([ip_header[10], ip_header[11]]);
    let sum = replace(sum, old, len.to_be_bytes());
    ip_header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Sum in ones' complement arithmetic.
fn add(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum.wrapping_add(u16::from(carry))
}

/// The checksum after a word has changed (RFC 1624, equation 3).
fn replace(sum: u16, old: [u8; 2], new: [u8; 2]) -> u16 {
    let old = u16::from_be_bytes(old);
    let new = u16::from_be_bytes(new);
    !add(add(!sum, !old), new)
}

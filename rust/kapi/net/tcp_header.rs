// SPDX-License-Identifier: GPL-2.0

//! TCP options in packet headers: finding one, and adding one.
//!
//! Pure functions on bytes, without anything of the kernel: `rustc --test` runs the tests of this
//! file on any machine. References: RFC 9293 section 3.1 and 3.2, RFC 1071 and RFC 1624 for
//! the checksum.

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
    let own = own_bytes(wanted);
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
        found.wanted |= extends(option, own);
        found.signed |= matches!(kind, KIND_MD5 | KIND_AO);
        rest = rest.get(len..).unwrap_or(&[]);
    }
    if found.broken {
        found.wanted = false;
    }
    found
}

/// Whether `option` is `own`, or one of even length that has more behind the same data: a later
/// version of it.
fn extends(option: &[u8], own: &[u8]) -> bool {
    match (option, own) {
        ([kind, _, data @ ..], [own_kind, _, own_data @ ..]) => {
            kind == own_kind && data.starts_with(own_data) && data.len() % 2 == 0
        }
        _ => false,
    }
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
/// Returns `None` if the headers are not of the form described; nothing is changed then.
pub(crate) fn append(
    packet: &mut [u8],
    ip: IpVersion,
    tcp: usize,
    option: &[u8; OPTION_LEN],
    partial: bool,
) -> Option<()> {
    let end = packet.len().checked_sub(OPTION_LEN)?;
    let header_len = end.checked_sub(tcp)?;
    if header_len < MIN_HEADER || header_len % 4 != 0 || header_len + OPTION_LEN > MAX_HEADER {
        return None;
    }
    let (ip_header, rest) = packet.split_at_mut_checked(tcp)?;
    let (tcp_header, rest) = rest.split_first_chunk_mut::<MIN_HEADER>()?;
    let free = rest.last_chunk_mut::<OPTION_LEN>()?;
    match ip {
        IpVersion::V4 => grow_v4(ip_header.first_chunk_mut()?),
        IpVersion::V6 => grow_v6(ip_header.first_chunk_mut()?),
    }
    *free = *option;

    let old = [tcp_header[12], tcp_header[13]];
    let offset = ((header_len + OPTION_LEN) / 4) as u8;
    tcp_header[12] = offset << 4 | tcp_header[12] & 0x0f;
    let new = [tcp_header[12], tcp_header[13]];

    let added = OPTION_LEN as u16;
    let mut sum = u16::from_be_bytes([tcp_header[16], tcp_header[17]]);
    if partial {
        // The field is the sum of the pseudo header, which contains the length.
        sum = add(sum, added);
    } else {
        sum = replace(sum, [0, 0], added.to_be_bytes());
        sum = replace(sum, old, new);
        let [a, b, c, d, e, f, g, h] = *option;
        for word in [[a, b], [c, d], [e, f], [g, h]] {
            sum = replace(sum, [0, 0], word);
        }
    }
    [tcp_header[16], tcp_header[17]] = sum.to_be_bytes();
    Some(())
}

/// Adds the option's length to an IPv4 header.
fn grow_v4(header: &mut [u8; 20]) {
    let old = [header[2], header[3]];
    let new = u16::from_be_bytes(old).saturating_add(OPTION_LEN as u16);
    [header[2], header[3]] = new.to_be_bytes();
    let sum = u16::from_be_bytes([header[10], header[11]]);
    [header[10], header[11]] = replace(sum, old, new.to_be_bytes()).to_be_bytes();
}

/// Adds the option's length to an IPv6 header.
fn grow_v6(header: &mut [u8; 40]) {
    let old = u16::from_be_bytes([header[4], header[5]]);
    [header[4], header[5]] = old.saturating_add(OPTION_LEN as u16).to_be_bytes();
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

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(tcp_header))]
mod tests {
    use super::*;

    /// An option of six bytes behind two NOPs.
    const OPTION: [u8; OPTION_LEN] = [1, 1, 254, 6, 0xe2, 0xd4, 0xc3, 0xd9];

    /// A TCP header in a buffer, and its length.
    fn header(options: &[u8]) -> ([u8; MAX_HEADER], usize) {
        let mut bytes = [0; MAX_HEADER];
        let len = MIN_HEADER + options.len();
        bytes[12] = ((len / 4) << 4) as u8;
        bytes[13] = SYN;
        bytes[MIN_HEADER..len].copy_from_slice(options);
        (bytes, len)
    }

    fn scan_of(options: &[u8]) -> Options {
        let (bytes, len) = header(options);
        scan(&bytes[..len], &OPTION)
    }

    /// Sum of all words, folded; 0xffff for a packet with a correct checksum.
    fn sum(bytes: &[u8], start: u32) -> u16 {
        let mut sum = start;
        for word in bytes.chunks(2) {
            sum += u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// The sum of the pseudo header of an IPv4 or IPv6 packet.
    fn pseudo(packet: &[u8], ip: IpVersion, tcp: usize) -> u32 {
        let addresses = match ip {
            IpVersion::V4 => &packet[12..20],
            IpVersion::V6 => &packet[8..40],
        };
        u32::from(sum(addresses, 6 + (packet.len() - tcp) as u32))
    }

    /// A packet with correct checksums; `noise` fills the rest. Returns its length.
    fn build(packet: &mut [u8; 120], ip: IpVersion, options: usize, noise: u32) -> (usize, usize) {
        let tcp = match ip {
            IpVersion::V4 => 20,
            IpVersion::V6 => 40,
        };
        let len = tcp + MIN_HEADER + options;
        let mut state = noise | 1;
        for byte in packet[..len].iter_mut() {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            *byte = state as u8;
        }
        match ip {
            IpVersion::V4 => {
                packet[0] = 0x45;
                packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
                packet[10..12].copy_from_slice(&[0, 0]);
                let check = !sum(&packet[..20], 0);
                packet[10..12].copy_from_slice(&check.to_be_bytes());
            }
            IpVersion::V6 => packet[4..6].copy_from_slice(&((len - tcp) as u16).to_be_bytes()),
        }
        packet[tcp + 12] = (((len - tcp) / 4) << 4) as u8 | packet[tcp + 12] & 0x0f;
        packet[tcp + 16..tcp + 18].copy_from_slice(&[0, 0]);
        let check = !sum(&packet[tcp..len], pseudo(&packet[..len], ip, tcp));
        packet[tcp + 16..tcp + 18].copy_from_slice(&check.to_be_bytes());
        (tcp, len)
    }

    #[test]
    fn option_is_found_where_it_is() {
        assert!(scan_of(&OPTION).wanted);
        assert!(scan_of(&[2, 4, 5, 0xb4, 1, 1, 254, 6, 0xe2, 0xd4, 0xc3, 0xd9]).wanted);
        assert!(scan_of(&[254, 6, 0xe2, 0xd4, 0xc3, 0xd9, 1, 0]).wanted);
        assert!(scan_of(&[254, 8, 0xe2, 0xd4, 0xc3, 0xd9, 0, 0]).wanted);
    }

    #[test]
    fn what_only_looks_like_the_option_is_not_it() {
        // Odd, shorter, another magic number, inside another option, behind the end.
        assert!(!scan_of(&[254, 7, 0xe2, 0xd4, 0xc3, 0xd9, 0, 0]).wanted);
        assert!(!scan_of(&[254, 4, 0xe2, 0xd4, 1, 1, 1, 1]).wanted);
        assert!(!scan_of(&[1, 1, 254, 6, 0xe2, 0xd4, 0xc3, 0xd8]).wanted);
        assert!(!scan_of(&[8, 8, 254, 6, 0xe2, 0xd4, 0xc3, 0xd9]).wanted);
        assert!(!scan_of(&[0, 1, 254, 6, 0xe2, 0xd4, 0xc3, 0xd9]).wanted);
    }

    #[test]
    fn broken_lists_are_reported_and_end_the_walk() {
        let lists: [&[u8]; 4] = [
            &[2, 0, 1, 1],
            &[2, 1, 1, 1],
            &[1, 1, 1, 2],
            &[1, 1, 254, 7, 0xe2, 0xd4, 0xc3, 0xd9],
        ];
        for list in lists {
            assert!(scan_of(list).broken);
        }
        let option_then_junk = [254, 6, 0xe2, 0xd4, 0xc3, 0xd9, 2, 9];
        assert!(scan_of(&option_then_junk).broken);
        assert!(!scan_of(&option_then_junk).wanted);
    }

    #[test]
    fn signed_segments_are_recognised() {
        let mut md5 = [1; 20];
        md5[0] = KIND_MD5;
        md5[1] = 18;
        assert!(scan_of(&md5).signed);
        let mut ao = [1; 16];
        ao[0] = KIND_AO;
        ao[1] = 16;
        assert!(scan_of(&ao).signed);
        assert!(!scan_of(&OPTION).signed);
    }

    #[test]
    fn opening_segments_are_told_apart() {
        let (bytes, _) = header(&[]);
        let mut fixed = [0; MIN_HEADER];
        fixed.copy_from_slice(&bytes[..MIN_HEADER]);
        assert!(opening(&fixed) == Some(Opening::Syn));
        fixed[13] = SYN | ACK | 0xc0;
        assert!(opening(&fixed) == Some(Opening::SynAck));
        for flags in [
            ACK,
            RST,
            RST | ACK,
            SYN | RST,
            SYN | FIN,
            0,
            SYN | ACK | RST,
        ] {
            fixed[13] = flags;
            assert!(opening(&fixed).is_none());
        }
        fixed[12] = 0x40;
        assert!(header_len(&fixed).is_none());
    }

    #[test]
    fn appending_keeps_checksums_and_lengths_right() {
        for ip in [IpVersion::V4, IpVersion::V6] {
            for noise in 0..500 {
                let mut packet = [0; 120];
                let options = 4 * (noise as usize % 9);
                let (tcp, len) = build(&mut packet, ip, options, noise);
                let new = len + OPTION_LEN;
                assert!(append(&mut packet[..new], ip, tcp, &OPTION, false).is_some());
                assert_eq!(
                    sum(&packet[tcp..new], pseudo(&packet[..new], ip, tcp)),
                    0xffff
                );
                assert_eq!(usize::from(packet[tcp + 12] >> 4) * 4, new - tcp);
                assert_eq!(packet[len..new], OPTION);
                if ip == IpVersion::V4 {
                    assert_eq!(sum(&packet[..20], 0), 0xffff);
                    assert_eq!(u16::from_be_bytes([packet[2], packet[3]]), new as u16);
                } else {
                    assert_eq!(
                        u16::from_be_bytes([packet[4], packet[5]]),
                        (new - tcp) as u16
                    );
                }
            }
        }
    }

    #[test]
    fn appending_to_a_partial_checksum_changes_the_pseudo_header() {
        for ip in [IpVersion::V4, IpVersion::V6] {
            for noise in 0..100 {
                let mut packet = [0; 120];
                let (tcp, len) = build(&mut packet, ip, 20, noise);
                let before = sum(&[], pseudo(&packet[..len], ip, tcp));
                packet[tcp + 16..tcp + 18].copy_from_slice(&before.to_be_bytes());
                let new = len + OPTION_LEN;
                assert!(append(&mut packet[..new], ip, tcp, &OPTION, true).is_some());
                let after = sum(&[], pseudo(&packet[..new], ip, tcp));
                let field = u16::from_be_bytes([packet[tcp + 16], packet[tcp + 17]]);
                assert_eq!(field, after);
            }
        }
    }

    #[test]
    fn appending_refuses_headers_without_room() {
        let mut packet = [0; 120];
        let (tcp, len) = build(&mut packet, IpVersion::V4, 36, 1);
        let before = packet;
        assert!(append(&mut packet[..len + 8], IpVersion::V4, tcp, &OPTION, false).is_none());
        assert!(append(&mut packet[..30], IpVersion::V4, 20, &OPTION, false).is_none());
        assert!(append(&mut packet[..5], IpVersion::V4, 0, &OPTION, false).is_none());
        assert!(append(&mut packet[..80], IpVersion::V6, 20, &OPTION, false).is_none());
        assert!(packet == before);
    }
}

// SPDX-License-Identifier: GPL-2.0

//! TCP segments and their options, read and rebuilt.

/// The SMC option as Linux writes it: two NOPs, kind 254, length 6, the magic.
pub(crate) const SMC_OPTION: [u8; 8] = [0x01, 0x01, 0xfe, 0x06, 0xe2, 0xd4, 0xc3, 0xd9];
/// Largest room for options in a TCP header.
pub(crate) const MAX_OPTIONS: usize = 40;

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const TCP: u8 = 6;

/// Where the parts of a packet are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    v6: bool,
    tcp_at: usize,
    data_at: usize,
    flags: u8,
    /// Source port.
    pub(crate) sport: u16,
    /// Destination port.
    pub(crate) dport: u16,
}

fn be16(b: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*b.get(at)?, *b.get(at + 1)?]))
}

impl Segment {
    /// Finds the TCP header of an IPv4 or IPv6 packet; `None` for anything else.
    pub(crate) fn parse(p: &[u8]) -> Option<Segment> {
        let (v6, tcp_at) = match p.first()? >> 4 {
            4 if *p.get(9)? == TCP => (false, usize::from(p[0] & 0x0f) * 4),
            // Extension headers do not occur on the handshakes under test.
            6 if *p.get(6)? == TCP => (true, 40),
            _ => return None,
        };
        let doff = usize::from(*p.get(tcp_at + 12)? >> 4) * 4;
        let data_at = tcp_at + doff;
        if doff < 20 || data_at > p.len() || tcp_at < 20 {
            return None;
        }
        Some(Segment {
            v6,
            tcp_at,
            data_at,
            flags: p[tcp_at + 13],
            sport: be16(p, tcp_at)?,
            dport: be16(p, tcp_at + 2)?,
        })
    }

    /// A SYN that opens a connection.
    pub(crate) fn is_syn(&self) -> bool {
        self.flags & (SYN | ACK) == SYN
    }

    /// The answer to a SYN.
    pub(crate) fn is_syn_ack(&self) -> bool {
        self.flags & (SYN | ACK) == SYN | ACK
    }

    /// The options of the packet this was parsed from.
    pub(crate) fn options<'a>(&self, p: &'a [u8]) -> &'a [u8] {
        &p[self.tcp_at + 20..self.data_at]
    }

    /// The two addresses, sender's first.
    fn addresses<'a>(&self, p: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        if self.v6 {
            (&p[8..24], &p[24..40])
        } else {
            (&p[12..16], &p[16..20])
        }
    }

    /// What identifies the connection, as seen by the sender of the SYN.
    pub(crate) fn connection(&self, p: &[u8]) -> Vec<u8> {
        let (src, dst) = self.addresses(p);
        let (a, b) = ((src, self.sport), (dst, self.dport));
        let (a, b) = if self.is_syn_ack() { (b, a) } else { (a, b) };
        [a.0, &a.1.to_be_bytes(), b.0, &b.1.to_be_bytes()].concat()
    }

    /// The same packet with other options, lengths and checksums made right.
    ///
    /// The options are padded to a multiple of four; `None` when they do not fit.
    pub(crate) fn with_options(&self, p: &[u8], options: &[u8]) -> Option<Vec<u8>> {
        let room = options.len().next_multiple_of(4);
        if room > MAX_OPTIONS {
            return None;
        }
        let mut out = p[..self.tcp_at + 20].to_vec();
        out.extend_from_slice(options);
        out.resize(self.tcp_at + 20 + room, 0);
        let data_at = out.len();
        out.extend_from_slice(&p[self.data_at..]);
        out[self.tcp_at + 12] = (((20 + room) / 4) as u8) << 4 | p[self.tcp_at + 12] & 0x0f;
        let total = out.len();
        if self.v6 {
            out[4..6].copy_from_slice(&((total - 40) as u16).to_be_bytes());
        } else {
            out[2..4].copy_from_slice(&(total as u16).to_be_bytes());
            out[10..12].fill(0);
            let sum = fold(sum16(0, &out[..self.tcp_at]));
            out[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        debug_assert!(data_at <= total);
        let sum = self.tcp_checksum(&mut out);
        out[self.tcp_at + 16..self.tcp_at + 18].copy_from_slice(&sum.to_be_bytes());
        Some(out)
    }

    /// The checksum the TCP header must carry; the old one is cleared.
    fn tcp_checksum(&self, p: &mut [u8]) -> u16 {
        p[self.tcp_at + 16..self.tcp_at + 18].fill(0);
        let (src, dst) = self.addresses(p);
        let tcp_len = p.len() - self.tcp_at;
        let mut sum = sum16(0, src);
        sum = sum16(sum, dst);
        sum += u32::from(TCP) + tcp_len as u32;
        fold(sum16(sum, &p[self.tcp_at..]))
    }
}

fn sum16(mut sum: u32, bytes: &[u8]) -> u32 {
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    }
    sum
}

fn fold(mut sum: u32) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Splits options into their elements; padding after the end mark is dropped.
fn elements(options: &[u8]) -> Vec<&[u8]> {
    let mut out = Vec::new();
    let mut rest = options;
    while let Some(&kind) = rest.first() {
        let len = match kind {
            0 => break,
            1 => 1,
            _ => usize::from(*rest.get(1).unwrap_or(&0)),
        };
        if len == 0 || len > rest.len() || (kind != 1 && len < 2) {
            break;
        }
        out.push(&rest[..len]);
        rest = &rest[len..];
    }
    out
}

fn is_smc(element: &[u8]) -> bool {
    element.len() >= 6 && element[0] == 0xfe && element[2..6] == SMC_OPTION[4..]
}

/// True when the options carry the SMC option.
pub(crate) fn has_smc(options: &[u8]) -> bool {
    elements(options).into_iter().any(is_smc)
}

/// The options without the SMC option; other elements keep their order.
pub(crate) fn without_smc(options: &[u8]) -> Vec<u8> {
    elements(options)
        .into_iter()
        .filter(|e| !is_smc(e))
        .collect::<Vec<_>>()
        .concat()
}

/// The options with the SMC option at their end; `None` when it does not fit.
pub(crate) fn with_smc(options: &[u8]) -> Option<Vec<u8>> {
    let mut out = elements(options).concat();
    out.extend_from_slice(&SMC_OPTION);
    (out.len() <= MAX_OPTIONS).then_some(out)
}

/// The options with NOPs in all the room that is left.
pub(crate) fn crowded(options: &[u8]) -> Vec<u8> {
    let mut out = elements(options).concat();
    out.resize(MAX_OPTIONS, 1);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: [u8; 4] = [2, 4, 0x05, 0xb4];

    fn syn(v6: bool, options: &[u8], data: &[u8]) -> Vec<u8> {
        let mut p = if v6 { vec![0u8; 40] } else { vec![0u8; 20] };
        let tcp_len = 20 + options.len() + data.len();
        if v6 {
            p[0] = 0x60;
            p[4..6].copy_from_slice(&(tcp_len as u16).to_be_bytes());
            p[6] = TCP;
            p[8..40].fill(7);
        } else {
            p[0] = 0x45;
            p[2..4].copy_from_slice(&((20 + tcp_len) as u16).to_be_bytes());
            p[9] = TCP;
            p[12..20].copy_from_slice(&[10, 9, 0, 2, 10, 9, 0, 1]);
        }
        let mut tcp = vec![0u8; 20];
        tcp[..4].copy_from_slice(&[0x11, 0x22, 0x1b, 0x58]);
        tcp[12] = (((20 + options.len()) / 4) as u8) << 4;
        tcp[13] = SYN;
        p.extend_from_slice(&tcp);
        p.extend_from_slice(options);
        p.extend_from_slice(data);
        p
    }

    /// Sums to zero exactly when the checksum in the packet is right.
    fn residue(p: &[u8], s: &Segment) -> u16 {
        let (src, dst) = s.addresses(p);
        let sum = sum16(sum16(0, src), dst) + u32::from(TCP) + (p.len() - s.tcp_at) as u32;
        fold(sum16(sum, &p[s.tcp_at..]))
    }

    #[test]
    fn adding_and_stripping_are_inverse() {
        for v6 in [false, true] {
            let p = syn(v6, &MSS, b"data");
            let s = Segment::parse(&p).unwrap();
            assert!(s.is_syn() && !s.is_syn_ack());
            assert_eq!((s.sport, s.dport), (0x1122, 7000));
            let added = s
                .with_options(&p, &with_smc(s.options(&p)).unwrap())
                .unwrap();
            let t = Segment::parse(&added).unwrap();
            assert_eq!(residue(&added, &t), 0);
            assert!(has_smc(t.options(&added)) && added.ends_with(b"data"));
            assert_eq!(added.len(), p.len() + 8);
            let bare = t
                .with_options(&added, &without_smc(t.options(&added)))
                .unwrap();
            let u = Segment::parse(&bare).unwrap();
            assert!(!has_smc(u.options(&bare)));
            assert_eq!(residue(&bare, &u), 0);
            assert!(bare.ends_with(b"data"));
        }
    }

    #[test]
    fn ipv4_header_is_consistent() {
        let p = syn(false, &MSS, b"");
        let s = Segment::parse(&p).unwrap();
        let out = s.with_options(&p, &crowded(s.options(&p))).unwrap();
        assert_eq!(be16(&out, 2), Some(80));
        assert_eq!(fold(sum16(0, &out[..20])), 0);
        assert_eq!(out[32] >> 4, 15);
        assert_eq!(with_smc(s.options(&p)).unwrap().len(), 12);
        let full = Segment::parse(&out).unwrap();
        assert!(with_smc(full.options(&out)).is_none());
    }

    #[test]
    fn broken_options_and_packets_end_the_walk() {
        assert_eq!(elements(&[2, 0, 1, 1]).len(), 0);
        assert_eq!(elements(&[2, 4, 5]).len(), 0);
        assert_eq!(elements(&[1, 0, 1]).len(), 1);
        assert_eq!(elements(&[254, 1, 3]).len(), 0);
        for len in 0..40 {
            assert_eq!(Segment::parse(&syn(false, &MSS, b"")[..len]), None);
        }
        let mut udp = syn(false, &MSS, b"");
        udp[9] = 17;
        assert_eq!(Segment::parse(&udp), None);
    }

    #[test]
    fn a_connection_has_one_name_in_both_directions() {
        let p = syn(false, &MSS, b"");
        let mut q = p.clone();
        q[12..20].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
        q[20..24].copy_from_slice(&[0x1b, 0x58, 0x11, 0x22]);
        q[33] = SYN | ACK;
        let (s, t) = (Segment::parse(&p).unwrap(), Segment::parse(&q).unwrap());
        assert!(t.is_syn_ack());
        assert_eq!(s.connection(&p), t.connection(&q));
    }
}

// SPDX-License-Identifier: GPL-2.0

//! TCP segments without data, as they are on the wire.

use std::net::IpAddr;

/// Bytes of the fixed part of a header.
const HEADER: usize = 20;
/// Number of TCP in IP headers.
const PROTOCOL: u8 = 6;

/// Flag that begins a connection.
const SYN: u8 = 0x02;
/// Flag that ends it at once.
const RST: u8 = 0x04;
/// Flag that acknowledges.
const ACK: u8 = 0x10;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    /// Address and port here.
    pub(super) own: (IpAddr, u16),
    /// Address and port of the peer.
    pub(super) peer: (IpAddr, u16),
}

/// What a peer answered to a SYN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It accepts the connection, with these options.
    Accepted(Vec<u8>),
    /// It refuses it.
    Refused,
}

/// A SYN with options, whose length is a multiple of four.
pub(super) fn syn(ends: &Ends, sequence: u32, options: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + options.len());
    out.extend(ends.own.1.to_be_bytes());
    out.extend(ends.peer.1.to_be_bytes());
    out.extend(sequence.to_be_bytes());
    out.extend([0; 4]);
    // CAST: There are at most 40 bytes of options.
    let words = ((HEADER + options.len()) / 4) as u8;
    out.extend([words << 4, SYN]);
    out.extend(u16::MAX.to_be_bytes());
    out.extend([0; 4]);
    out.extend(options);
    let sum = checksum(ends, &out);
    out[16..18].copy_from_slice(&sum.to_be_bytes());
    out
}

/// The answer to the SYN with this sequence number, if `segment` is it.
pub(super) fn answer(ends: &Ends, sequence: u32, segment: &[u8]) -> Option<Answer> {
    let header = segment.get(..HEADER)?;
    let u16_at = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    if (u16_at(0), u16_at(2)) != (ends.peer.1, ends.own.1) {
        return None;
    }
    let acknowledged = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
    let flags = header[13];
    if flags & ACK == 0 || acknowledged != sequence.wrapping_add(1) {
        return None;
    }
    if flags & RST != 0 {
        return Some(Answer::Refused);
    }
    if flags & SYN == 0 {
        return None;
    }
    let length = usize::from(header[12] >> 4) * 4;
    segment
        .get(HEADER..length)
        .map(|options| Answer::Accepted(options.to_vec()))
}

/// The segment in a packet from a raw socket: those for IPv4 have the IP header as well.
pub(super) fn payload(own: IpAddr, packet: &[u8]) -> Option<&[u8]> {
    match own {
        IpAddr::V4(_) => packet.get(usize::from(packet.first()? & 0x0f) * 4..),
        IpAddr::V6(_) => Some(packet),
    }
}

/// The checksum over a segment and its pseudo header.
fn checksum(ends: &Ends, segment: &[u8]) -> u16 {
    let mut bytes = Vec::with_capacity(40 + segment.len());
    for address in [ends.own.0, ends.peer.0] {
        match address {
            IpAddr::V4(address) => bytes.extend(address.octets()),
            IpAddr::V6(address) => bytes.extend(address.octets()),
        }
    }
    // CAST: A header has at most 60 bytes.
    bytes.extend((segment.len() as u32).to_be_bytes());
    bytes.extend([0, 0, 0, PROTOCOL]);
    bytes.extend(segment);
    let sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    // CAST: It was folded into 16 bits.
    !(folded as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> Ends {
        Ends {
            own: ("192.0.2.1".parse().expect("an address"), 1000),
            peer: ("192.0.2.2".parse().expect("an address"), 80),
        }
    }

    #[test]
    fn a_syn_sums_up_to_nothing() {
        let segment = syn(&ends(), 7, &[1, 1, 1, 1]);
        assert_eq!(segment.len(), 24);
        assert_eq!(segment[12] >> 4, 6);
        // With the checksum in its place the sum over all is zero.
        assert_eq!(checksum(&ends(), &segment), 0);
        let v6 = Ends {
            own: ("2001:db8::1".parse().expect("an address"), 1000),
            peer: ("2001:db8::2".parse().expect("an address"), 80),
        };
        assert_eq!(checksum(&v6, &syn(&v6, 7, &[])), 0);
    }

    #[test]
    fn only_the_answer_counts() {
        let ends = ends();
        let back = Ends {
            own: ends.peer,
            peer: ends.own,
        };
        let mut segment = syn(&back, 99, &[254, 6, 0xe2, 0xd4, 0xc3, 0xd9, 0, 0]);
        // A SYN is no answer.
        assert_eq!(answer(&ends, 7, &segment), None);
        segment[13] |= ACK;
        segment[8..12].copy_from_slice(&8_u32.to_be_bytes());
        let accepted = Answer::Accepted(vec![254, 6, 0xe2, 0xd4, 0xc3, 0xd9, 0, 0]);
        assert_eq!(answer(&ends, 7, &segment), Some(accepted));
        assert_eq!(answer(&ends, 8, &segment), None, "another SYN's");
        segment[13] = ACK | RST;
        assert_eq!(answer(&ends, 7, &segment), Some(Answer::Refused));
        assert_eq!(answer(&ends, 7, &segment[..19]), None, "cut");
    }

    #[test]
    fn ip_headers_are_passed_over() {
        let own: IpAddr = "192.0.2.1".parse().expect("an address");
        let mut packet = vec![0x45; 20];
        packet.push(9);
        assert_eq!(payload(own, &packet), Some(&[9][..]));
        assert_eq!(payload(own, &[]), None);
        assert_eq!(payload(own, &[0x4f, 0]), None);
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Packet capture files and the TCP segments in them.

use std::net::{IpAddr, SocketAddr};

/// Length of the capture file's header.
const FILE_HEADER: usize = 24;
/// Length of the header before each packet.
const RECORD_HEADER: usize = 16;
/// Ethernet frames.
const LINKTYPE_ETHERNET: u32 = 1;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const PROTOCOL_TCP: u8 = 6;
/// The SMC option's kind and, after its length byte, the number that marks it as SMC's.
const EXPERIMENTAL_OPTION: u8 = 254;
const SMC_OPTION: [u8; 4] = [0xe2, 0xd4, 0xc3, 0xd9];

/// A TCP segment as captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Sender.
    pub from: SocketAddr,
    /// Receiver.
    pub to: SocketAddr,
    /// Sequence number of the first payload byte, or of the SYN.
    pub sequence: u32,
    /// SYN flag.
    pub syn: bool,
    /// ACK flag.
    pub ack: bool,
    /// Payload length on the wire.
    pub length: u32,
    /// The part of the payload that was captured.
    pub payload: &'a [u8],
    /// The segment carries the SMC option.
    pub smc_option: bool,
}

/// Returns the TCP segments of a capture file, in the order in which they were captured.
///
/// Other packets and packets cut off inside their headers are passed over; an unfinished last
/// record, left by a capture that was stopped, ends the list.
///
/// # Errors
///
/// A sentence for the user when the file is no capture of Ethernet frames.
pub fn segments(file: &[u8]) -> Result<Vec<Segment<'_>>, String> {
    let order = ByteOrder::of(file).ok_or("the capture file has no known format")?;
    let link_type = order.u32(file, 20).ok_or("the capture file is empty")? & 0xffff;
    if link_type != LINKTYPE_ETHERNET {
        return Err(format!(
            "the capture has link type {link_type}: capture on one Ethernet interface"
        ));
    }
    let mut segments = Vec::new();
    let mut rest = file.get(FILE_HEADER..).unwrap_or_default();
    while let Some(captured) = order.u32(rest, 8) {
        let end = RECORD_HEADER.saturating_add(captured as usize);
        let Some(frame) = rest.get(RECORD_HEADER..end) else {
            break;
        };
        segments.extend(ethernet(frame));
        rest = &rest[end..];
    }
    Ok(segments)
}

/// The byte order in which the capture file was written.
#[derive(Clone, Copy)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn of(file: &[u8]) -> Option<Self> {
        // Times in microseconds or nanoseconds; the times are not used here.
        match file.get(..4)? {
            [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => Some(ByteOrder::Little),
            [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => Some(ByteOrder::Big),
            _ => None,
        }
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let field = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(match self {
            ByteOrder::Little => u32::from_le_bytes(field),
            ByteOrder::Big => u32::from_be_bytes(field),
        })
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes(field.try_into().ok()?))
}

fn ethernet(frame: &[u8]) -> Option<Segment<'_>> {
    match be16(frame, 12)? {
        ETHERTYPE_IPV4 => ipv4(frame.get(14..)?),
        ETHERTYPE_IPV6 => ipv6(frame.get(14..)?),
        _ => None,
    }
}

fn ipv4(packet: &[u8]) -> Option<Segment<'_>> {
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let total = usize::from(be16(packet, 2)?);
    let fragment = be16(packet, 6)? & 0x1fff;
    if packet.get(9)? != &PROTOCOL_TCP || fragment != 0 {
        return None;
    }
    let address = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
        Some(IpAddr::from(bytes))
    };
    let length = total.checked_sub(header)?;
    tcp(address(12)?, address(16)?, packet.get(header..)?, length)
}

fn ipv6(packet: &[u8]) -> Option<Segment<'_>> {
    // Extension headers do not occur on the links that are looked at.
    if packet.get(6)? != &PROTOCOL_TCP {
        return None;
    }
    let address = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; 16] = packet.get(at..at + 16)?.try_into().ok()?;
        Some(IpAddr::from(bytes))
    };
    let length = usize::from(be16(packet, 4)?);
    tcp(address(8)?, address(24)?, packet.get(40..)?, length)
}

/// Reads a TCP header; `length` is that of the header and payload on the wire.
fn tcp(from: IpAddr, to: IpAddr, bytes: &[u8], length: usize) -> Option<Segment<'_>> {
    let header = usize::from(bytes.get(12)? >> 4) * 4;
    let flags = *bytes.get(13)?;
    let length = length.checked_sub(header)?;
    // A frame can be padded beyond its packet.
    let payload = bytes.get(header..).unwrap_or_default();
    let payload = &payload[..payload.len().min(length)];
    Some(Segment {
        from: SocketAddr::new(from, be16(bytes, 0)?),
        to: SocketAddr::new(to, be16(bytes, 2)?),
        sequence: ByteOrder::Big.u32(bytes, 4)?,
        syn: flags & 0x02 != 0,
        ack: flags & 0x10 != 0,
        length: length as u32,
        payload,
        smc_option: has_smc_option(bytes.get(20..header).unwrap_or_default()),
    })
}

fn has_smc_option(mut options: &[u8]) -> bool {
    while let [kind, rest @ ..] = options {
        match kind {
            0 => return false,
            1 => options = rest,
            _ => {
                let length = rest.first().map_or(0, |&length| usize::from(length));
                let Some(body) = options.get(2..length) else {
                    return false;
                };
                if *kind == EXPERIMENTAL_OPTION && body.starts_with(&SMC_OPTION) {
                    return true;
                }
                options = &options[length..];
            }
        }
    }
    false
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A capture file with the given frames.
    pub(crate) fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
        let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        file.resize(FILE_HEADER, 0);
        file[20] = 1;
        for frame in frames {
            file.extend([0; 8]);
            file.extend((frame.len() as u32).to_le_bytes());
            file.extend((frame.len() as u32).to_le_bytes());
            file.extend(frame);
        }
        file
    }

    /// An Ethernet frame from host `from` to host `to` (last address byte and port).
    pub(crate) fn frame(
        from: (u8, u16),
        to: (u8, u16),
        sequence: u32,
        flags: u8,
        options: &[u8],
        payload: &[u8],
    ) -> Vec<u8> {
        let header = 20 + options.len();
        let total = 20 + header + payload.len();
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend((total as u16).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 9, 0, from.0, 10, 9, 0, to.0]);
        frame.extend(from.1.to_be_bytes());
        frame.extend(to.1.to_be_bytes());
        frame.extend(sequence.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend([(header as u8 / 4) << 4, flags, 0, 0, 0, 0, 0, 0]);
        frame.extend(options);
        frame.extend(payload);
        frame
    }

    pub(crate) const SMC: [u8; 8] = [1, 1, 254, 6, 0xe2, 0xd4, 0xc3, 0xd9];

    #[test]
    fn a_segment_is_read_whole() {
        let file = pcap(&[frame((1, 80), (2, 90), 7, 0x12, &SMC, b"hello")]);
        let segments = segments(&file).expect("the file is good");
        assert_eq!(
            segments,
            [Segment {
                from: ([10, 9, 0, 1], 80).into(),
                to: ([10, 9, 0, 2], 90).into(),
                sequence: 7,
                syn: true,
                ack: true,
                length: 5,
                payload: b"hello",
                smc_option: true,
            }]
        );
    }

    #[test]
    fn cut_and_padded_frames_keep_their_length() {
        let mut cut = frame((1, 80), (2, 90), 7, 0x10, &[], &[9; 100]);
        cut.truncate(60);
        let mut padded = frame((1, 80), (2, 90), 7, 0x10, &[], b"");
        padded.resize(60, 0xaa);
        let file = pcap(&[cut, padded]);
        let segments = segments(&file).expect("the file is good");
        assert_eq!((segments[0].length, segments[0].payload.len()), (100, 6));
        assert_eq!((segments[1].length, segments[1].payload.len()), (0, 0));
    }

    #[test]
    fn other_packets_are_passed_over() {
        let mut udp = frame((1, 80), (2, 90), 7, 0x10, &[], b"x");
        udp[23] = 17;
        let mut arp = frame((1, 80), (2, 90), 7, 0x10, &[], b"x");
        arp[13] = 6;
        let file = pcap(&[udp, arp, vec![], vec![0; 13]]);
        assert_eq!(segments(&file), Ok(vec![]));
    }

    #[test]
    fn a_stopped_capture_ends_the_list() {
        let one = frame((1, 80), (2, 90), 7, 0x10, &[], b"x");
        let file = pcap(&[one.clone(), one]);
        for length in FILE_HEADER..file.len() {
            let found = segments(&file[..length])
                .expect("the header is there")
                .len();
            assert_eq!(
                found,
                usize::from(length >= FILE_HEADER + (file.len() - FILE_HEADER) / 2)
            );
        }
        assert!(segments(b"").is_err());
        assert!(segments(b"text file of some length").is_err());
    }

    #[test]
    fn the_option_is_found_only_where_it_is() {
        assert!(has_smc_option(&SMC));
        assert!(has_smc_option(&[
            2, 4, 5, 0xb4, 254, 6, 0xe2, 0xd4, 0xc3, 0xd9
        ]));
        for other in [
            &[][..],
            &[1, 1, 1],
            &[0, 254, 6, 0xe2, 0xd4, 0xc3, 0xd9],
            &[254, 6, 0xe2, 0xd4, 0xc3],
            &[254, 4, 0xe2, 0xd4],
            &[254, 6, 0xe2, 0xd4, 0xc3, 0xc4],
            &[254, 0],
            &[254],
            &[3, 1, 254, 6, 0xe2, 0xd4, 0xc3, 0xd9],
        ] {
            assert!(!has_smc_option(other), "{other:?}");
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! What a packet capture says about the TCP connections in it.

use std::collections::HashMap;
use std::net::SocketAddr;

use crate::packet::{self, Segment};
use crate::scan::{Counts, Scanner};

/// One TCP connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The end that sent the SYN.
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
    /// SYN and SYN-ACK both carried the SMC option.
    pub offered: bool,
    /// Handshake and payload, both directions together.
    pub counts: Counts,
}

/// Sums over all connections of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Connections that were established.
    pub connections: u64,
    /// Of these, the ones whose ends both offered SMC.
    pub offered: u64,
    /// Of these, the ones in which an end declined.
    pub declined: u64,
    /// Bytes of the handshake.
    pub handshake: u64,
    /// Bytes that were neither handshake nor retransmission.
    pub payload: u64,
}

/// Judges every TCP connection of a capture file, in the order of their SYNs.
///
/// # Errors
///
/// A sentence for the user when the file is no capture of Ethernet frames.
pub fn connections(file: &[u8]) -> Result<Vec<Connection>, String> {
    let mut table = Table::default();
    for segment in packet::segments(file)? {
        table.segment(&segment);
    }
    Ok(table.finished())
}

/// Adds up connections.
pub fn summary(connections: &[Connection]) -> Summary {
    let mut sum = Summary::default();
    for connection in connections {
        sum.connections += 1;
        sum.offered += u64::from(connection.offered);
        sum.declined += u64::from(connection.counts.declined);
        sum.handshake += connection.counts.handshake;
        sum.payload += connection.counts.payload;
    }
    sum
}

/// A connection under observation.
struct Followed {
    client: SocketAddr,
    server: SocketAddr,
    option_in_syn: bool,
    option_in_syn_ack: bool,
    established: bool,
    from_client: Scanner,
    from_server: Scanner,
}

/// All connections, and for each pair of ends the latest of theirs: ports are used again.
#[derive(Default)]
struct Table {
    all: Vec<Followed>,
    latest: HashMap<(SocketAddr, SocketAddr), usize>,
}

impl Table {
    fn segment(&mut self, segment: &Segment<'_>) {
        let forward = self.latest.get(&(segment.from, segment.to)).copied();
        let backward = self.latest.get(&(segment.to, segment.from)).copied();
        if segment.syn && !segment.ack {
            let is_repeated = forward.is_some_and(|index| !self.all[index].established);
            if !is_repeated {
                self.begin(segment);
            }
            return;
        }
        match (forward, backward) {
            (Some(index), _) => {
                let followed = &mut self.all[index];
                let scanner = &mut followed.from_client;
                scanner.segment(segment.sequence, segment.length, segment.payload);
            }
            (None, Some(index)) => {
                let followed = &mut self.all[index];
                if segment.syn {
                    followed.established = true;
                    followed.option_in_syn_ack = segment.smc_option;
                    followed.from_server.syn(segment.sequence);
                } else {
                    let scanner = &mut followed.from_server;
                    scanner.segment(segment.sequence, segment.length, segment.payload);
                }
            }
            // The capture began in the middle of this connection.
            (None, None) => {
                self.begin(segment);
                let followed = self.all.last_mut();
                if let Some(followed) = followed {
                    followed.established = segment.length > 0;
                    let scanner = &mut followed.from_client;
                    scanner.segment(segment.sequence, segment.length, segment.payload);
                }
            }
        }
    }

    fn begin(&mut self, segment: &Segment<'_>) {
        let mut from_client = Scanner::default();
        if segment.syn {
            from_client.syn(segment.sequence);
        }
        self.latest.remove(&(segment.to, segment.from));
        self.latest
            .insert((segment.from, segment.to), self.all.len());
        self.all.push(Followed {
            client: segment.from,
            server: segment.to,
            option_in_syn: segment.smc_option,
            option_in_syn_ack: false,
            established: false,
            from_client,
            from_server: Scanner::default(),
        });
    }

    fn finished(self) -> Vec<Connection> {
        let judge = |followed: Followed| {
            let (one, two) = (followed.from_client.counts(), followed.from_server.counts());
            Connection {
                client: followed.client,
                server: followed.server,
                offered: followed.option_in_syn && followed.option_in_syn_ack,
                counts: Counts {
                    handshake: one.handshake + two.handshake,
                    payload: one.payload + two.payload,
                    declined: one.declined || two.declined,
                },
            }
        };
        let seen = self.all.into_iter().filter(|followed| followed.established);
        seen.map(judge).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::tests::{frame, pcap, SMC};

    const CLIENT: (u8, u16) = (2, 40_000);
    const SERVER: (u8, u16) = (1, 6379);

    fn clc(kind: u8, length: u16) -> Vec<u8> {
        let mut bytes = vec![0xe2, 0xd4, 0xc3, 0xd9, kind];
        bytes.extend(length.to_be_bytes());
        bytes.resize(usize::from(length), 0);
        bytes
    }

    /// SYN, SYN-ACK and the given payloads from client and server.
    fn exchange(options: &[u8], client: &[u8], server: &[u8]) -> Vec<Vec<u8>> {
        vec![
            frame(CLIENT, SERVER, 10, 0x02, options, b""),
            frame(SERVER, CLIENT, 50, 0x12, options, b""),
            frame(CLIENT, SERVER, 11, 0x10, &[], b""),
            frame(CLIENT, SERVER, 11, 0x18, &[], client),
            frame(SERVER, CLIENT, 51, 0x18, &[], server),
        ]
    }

    fn sums(frames: &[Vec<u8>]) -> Summary {
        summary(&connections(&pcap(frames)).expect("the file is good"))
    }

    #[test]
    fn an_smc_connection_has_no_payload() {
        let client = [clc(1, 124), clc(3, 108)].concat();
        let sums = sums(&exchange(&SMC, &client, &clc(2, 108)));
        let expected = Summary {
            connections: 1,
            offered: 1,
            declined: 0,
            handshake: 340,
            payload: 0,
        };
        assert_eq!(sums, expected);
    }

    #[test]
    fn a_declined_connection_shows() {
        let client = [&clc(1, 124)[..], b"PING\r\n"].concat();
        let sums = sums(&exchange(&SMC, &client, &clc(4, 28)));
        assert_eq!((sums.declined, sums.handshake, sums.payload), (1, 152, 6));
    }

    #[test]
    fn a_plain_connection_is_all_payload() {
        let sums = sums(&exchange(&[], b"PING\r\n", b"+PONG\r\n"));
        assert_eq!((sums.connections, sums.offered), (1, 0));
        assert_eq!((sums.handshake, sums.payload), (0, 13));
    }

    #[test]
    fn a_port_used_again_is_another_connection() {
        let first = exchange(&SMC, &clc(1, 124), b"");
        let second = exchange(&[], b"data", b"");
        let sums = sums(&[first, second].concat());
        assert_eq!((sums.connections, sums.offered), (2, 1));
        assert_eq!((sums.handshake, sums.payload), (124, 4));
    }

    #[test]
    fn unanswered_and_half_seen_connections() {
        let refused = [
            frame(CLIENT, SERVER, 10, 0x02, &SMC, b""),
            frame(SERVER, CLIENT, 0, 0x14, &[], b""),
        ];
        assert_eq!(sums(&refused), Summary::default());
        let middle = [
            frame(CLIENT, SERVER, 500, 0x18, &[], b"abc"),
            frame(SERVER, CLIENT, 900, 0x18, &[], b"de"),
        ];
        assert_eq!(sums(&middle).payload, 5);
        let repeated_syn = [
            frame(CLIENT, SERVER, 10, 0x02, &[], b""),
            frame(CLIENT, SERVER, 10, 0x02, &[], b""),
            frame(SERVER, CLIENT, 50, 0x12, &[], b""),
        ];
        assert_eq!(sums(&repeated_syn).connections, 1);
    }
}

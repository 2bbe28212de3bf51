// SPDX-License-Identifier: GPL-2.0

//! One connection as this peer keeps it: where both ends stand in their rings.

use crate::link::{Link, RING, SEND_BYTES};
use smc_proto::ids::AlertToken;
use smc_proto::wire::cdc::{CdcMessage, ConnFlags, ProdFlags, RawCursor};
use smc_proto::wire::clc::RdmaEndpoint;
use std::time::{Duration, Instant};
use testlib::pattern::{fill, first_difference};
use testlib::sock::Sock;

/// Longest time for an echo to come back.
pub(crate) const ECHO_LIMIT: Duration = Duration::from_secs(15);

/// A connection.
pub(crate) struct Conn {
    pub(crate) sock: Sock,
    /// The other side's end.
    pub(crate) peer: RdmaEndpoint,
    pub(crate) ring: usize,
    token: AlertToken,
    pub(crate) seq: u16,
    /// Bytes written to the other side.
    pub(crate) written: u64,
    /// Bytes of those that it has consumed.
    pub(crate) consumed: u64,
    /// Bytes that the other side has written.
    pub(crate) arrived: u64,
    /// Bytes of those that were taken.
    pub(crate) taken: u64,
    /// Close flags of the other side.
    pub(crate) flags: ConnFlags,
    /// Close flags of this side.
    pub(crate) own_flags: ConnFlags,
    key: u64,
}

/// A cursor after so many bytes in a ring of this length.
pub(crate) fn cursor(bytes: u64, len: u64) -> RawCursor {
    RawCursor {
        wrap: (bytes / len) as u16,
        count: (bytes % len) as u32,
    }
}

/// How far a cursor has moved from `before`, or why it must not.
fn step(what: &str, raw: RawCursor, before: u64, len: u64, limit: u64) -> Result<u64, String> {
    let old = cursor(before, len);
    if u64::from(raw.count) >= len {
        return Err(format!("{what} cursor {raw:?} lies outside of {len} bytes"));
    }
    let wraps = u64::from(raw.wrap.wrapping_sub(old.wrap));
    let moved = (wraps * len + u64::from(raw.count)).checked_sub(u64::from(old.count));
    match moved {
        Some(n) if n <= limit => Ok(n),
        _ => Err(format!(
            "{what} cursor went from {old:?} to {raw:?}, limit {limit}"
        )),
    }
}

impl Conn {
    pub(crate) fn new(sock: Sock, peer: RdmaEndpoint, ring: usize, key: u64) -> Conn {
        Conn {
            sock,
            peer,
            ring,
            token: crate::clc::token(ring),
            seq: 0,
            written: 0,
            consumed: 0,
            arrived: 0,
            taken: 0,
            flags: ConnFlags::NONE,
            own_flags: ConnFlags::NONE,
            key,
        }
    }

    /// Bytes of the other side's ring.
    pub(crate) fn peer_len(&self) -> u64 {
        u64::from(self.peer.buf_size.bytes())
    }

    /// Bytes that may still be written.
    pub(crate) fn room(&self) -> u64 {
        self.peer_len() - (self.written - self.consumed)
    }

    /// Address in the other side's ring after so many bytes.
    pub(crate) fn peer_address(&self, bytes: u64) -> u64 {
        let index = u64::from(self.peer.rmbe_index.zero_based());
        self.peer.rmb_addr.0 + index * self.peer_len() + bytes % self.peer_len()
    }

    /// The message that a good peer would send now.
    pub(crate) fn cdc(&mut self) -> CdcMessage {
        self.seq = self.seq.wrapping_add(1);
        CdcMessage {
            seq: self.seq,
            token: self.peer.token,
            prod: cursor(self.written, self.peer_len()),
            cons: cursor(self.taken, RING as u64),
            prod_flags: ProdFlags::NONE,
            conn_flags: self.own_flags,
        }
    }

    /// Sends a message that may differ from what a good peer would send.
    pub(crate) fn send_cdc(
        &mut self,
        link: &mut Link,
        change: impl FnOnce(&mut CdcMessage),
    ) -> Result<(), String> {
        let mut message = self.cdc();
        change(&mut message);
        link.send(&message.emit())
    }

    /// Writes bytes into the other side's ring without telling it.
    pub(crate) fn write_quietly(&mut self, link: &mut Link, data: &[u8]) -> Result<(), String> {
        let mut rest = data;
        while !rest.is_empty() {
            let to_end = self.peer_len() - self.written % self.peer_len();
            let n = rest.len().min(SEND_BYTES).min(to_end as usize);
            let addr = self.peer_address(self.written);
            link.post_write(addr, self.peer.rkey.0, &rest[..n])?;
            self.written += n as u64;
            rest = &rest[n..];
        }
        Ok(())
    }

    /// Writes the next bytes of this connection's stream and tells the other side.
    pub(crate) fn write(&mut self, link: &mut Link, len: u64) -> Result<(), String> {
        let mut data = vec![0; len as usize];
        fill(self.key, self.written, &mut data);
        self.write_quietly(link, &data)?;
        self.send_cdc(link, |_| {})
    }

    /// Takes the other side's messages.
    pub(crate) fn update(&mut self, link: &mut Link) -> Result<(), String> {
        link.pump()?;
        let Some(queue) = link.cdc.get_mut(&self.token.0) else {
            return Ok(());
        };
        while let Some(message) = queue.pop_front() {
            self.flags = self.flags.with(message.conn_flags);
            if self.flags.contains(ConnFlags::ABORT) {
                continue;
            }
            let (peer_len, len) = (self.peer_len(), RING as u64);
            let room = len - (self.arrived - self.taken);
            self.arrived += step("producer", message.prod, self.arrived, len, room)?;
            let unread = self.written - self.consumed;
            self.consumed += step("consumer", message.cons, self.consumed, peer_len, unread)?;
        }
        Ok(())
    }

    /// Waits until `done` holds.
    pub(crate) fn wait(
        &mut self,
        link: &mut Link,
        limit: Duration,
        done: impl Fn(&Conn) -> bool,
    ) -> Result<bool, String> {
        let end = Instant::now() + limit;
        loop {
            self.update(link)?;
            if done(self) {
                return Ok(true);
            }
            if Instant::now() >= end {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_micros(300));
        }
    }

    /// The bytes that arrived and were not taken.
    pub(crate) fn peek(&self, link: &Link) -> Vec<u8> {
        let n = (self.arrived - self.taken) as usize;
        let at = (self.taken % RING as u64) as usize;
        let first = n.min(RING - at);
        let mut data = link.ring(self.ring, at, first);
        data.extend(link.ring(self.ring, 0, n - first));
        data
    }

    /// Reads the echo of what was written up to `total` bytes, and compares it.
    pub(crate) fn read_echo(&mut self, link: &mut Link, total: u64) -> Result<(), String> {
        let end = Instant::now() + ECHO_LIMIT;
        while self.taken < total {
            self.update(link)?;
            let data = self.peek(link);
            if let Some(at) = first_difference(self.key, self.taken, &data) {
                return Err(format!(
                    "byte {} of the echo is wrong",
                    self.taken + at as u64
                ));
            }
            self.taken += data.len() as u64;
            if !data.is_empty() {
                self.send_cdc(link, |_| {})?;
            } else if self.flags.contains(ConnFlags::ABORT) {
                return Err("the other side reset the connection".into());
            } else if Instant::now() > end {
                return Err(format!(
                    "{} of {total} bytes were echoed in time; {:?}",
                    self.taken,
                    link.broken()
                ));
            } else {
                std::thread::sleep(Duration::from_micros(300));
            }
        }
        Ok(())
    }

    /// Sends `len` bytes to an application that echoes, and reads them back.
    pub(crate) fn echo(&mut self, link: &mut Link, len: u64) -> Result<(), String> {
        let total = self.written + len;
        while self.written < total {
            let n = self.room().min(total - self.written).min(8192);
            if n > 0 {
                self.write(link, n)?;
            }
            self.read_echo(link, self.written)?;
        }
        Ok(())
    }

    /// Sends back what arrives until the other side is done; gives the number of bytes.
    pub(crate) fn serve(&mut self, link: &mut Link, limit: Duration) -> Result<u64, String> {
        let end = Instant::now() + limit;
        while Instant::now() < end {
            self.update(link)?;
            let data = self.peek(link);
            let n = data.len().min(self.room() as usize);
            if n > 0 {
                self.write_quietly(link, &data[..n])?;
                self.taken += n as u64;
                self.send_cdc(link, |_| {})?;
            } else if !self.flags.is_empty() {
                return Ok(self.taken);
            }
            std::thread::sleep(Duration::from_micros(300));
        }
        Err(format!("{} bytes arrived, and then no end", self.taken))
    }

    /// Ends the connection as a good peer does that has read everything.
    pub(crate) fn close(&mut self, link: &mut Link) -> Result<(), String> {
        self.own_flags = ConnFlags::SENDING_DONE.with(ConnFlags::CLOSED);
        self.send_cdc(link, |_| {})?;
        let over = ConnFlags::CLOSED;
        if self.wait(link, ECHO_LIMIT, |c| {
            c.flags.contains(over) || c.flags.contains(ConnFlags::ABORT)
        })? {
            Ok(())
        } else {
            Err("the other side does not answer the close".into())
        }
    }

    /// The other side must reset this connection; this side agrees.
    pub(crate) fn expect_reset(&mut self, link: &mut Link) -> Result<(), String> {
        if !self.wait(link, ECHO_LIMIT, |c| c.flags.contains(ConnFlags::ABORT))? {
            return Err(format!(
                "the connection was not reset; broken link: {:?}",
                link.broken()
            ));
        }
        self.own_flags = ConnFlags::ABORT;
        self.send_cdc(link, |_| {})?;
        crate::clc::await_tcp_end(&self.sock, ECHO_LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_of_the_other_side_are_checked() {
        let raw = |wrap, count| RawCursor { wrap, count };
        assert_eq!(cursor(250, 100), raw(2, 50));
        assert_eq!(step("a", raw(3, 10), 250, 100, 100), Ok(60));
        assert_eq!(step("a", raw(2, 50), 250, 100, 0), Ok(0));
        assert!(step("a", raw(2, 49), 250, 100, 100).is_err());
        assert!(step("a", raw(3, 51), 250, 100, 100).is_err());
        assert!(step("a", raw(2, 100), 250, 100, 100).is_err());
        assert!(step("a", raw(2, 60), 250, 100, 9).is_err());
        assert_eq!(step("a", raw(0, 1), 65536 * 100 - 1, 100, 100), Ok(2));
    }
}

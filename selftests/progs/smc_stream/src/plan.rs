// SPDX-License-Identifier: GPL-2.0

//! What a run does. The client sends the plan to the server, and both derive
//! every size and choice from it, so that each knows what the other will do.

use std::str::FromStr;
use testlib::pattern::{stream_key, Rng};

/// Greeting at the start of each connection, before the connection's number.
pub(crate) const MAGIC: [u8; 8] = *b"SMCTEST1";
/// Bytes of greeting and number together.
pub(crate) const HEADER_LEN: usize = 16;

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
        pub(crate) enum $name { $($(#[$vdoc])* #[value(name = $text)] $variant),+ }

        impl $name {
            pub(crate) fn text(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl FromStr for $name {
            type Err = String;
            fn from_str(s: &str) -> Result<Self, String> {
                match s {
                    $($text => Ok($name::$variant),)+
                    other => Err(format!("the peer's plan says '{other}', which is unknown here")),
                }
            }
        }
    };
}

choice! {
    /// What the connections are used for.
    Mode {
        /// All connections at once, the same amount of data on each.
        Fixed = "fixed",
        /// Connections of random sizes opened and closed all the time.
        Churn = "churn",
        /// Request, end of sending, answer, close.
        HalfClose = "half-close",
        /// One process of each pair is killed in the middle of the stream.
        Kill = "kill",
        /// One side resets its connections in the middle of the stream.
        Abort = "abort",
        /// An answer followed by an immediate close.
        ShortReply = "short-reply",
        /// Urgent bytes between ordinary ones.
        Oob = "oob",
    }
}

choice! {
    /// How a side drives its sockets.
    Io {
        /// Blocking calls, two threads for each connection.
        Blocking = "blocking",
        /// One thread, non-blocking calls, edge-triggered epoll.
        Epoll = "epoll",
    }
}

choice! {
    /// How blocking receivers read.
    Recv {
        /// `recv` without flags.
        Plain = "plain",
        /// A mixture of PEEK, WAITALL, TRUNC and DONTWAIT.
        Flags = "flags",
        /// `recv` without flags, after a pause each time, so that the sender is held up.
        Slow = "slow",
    }
}

choice! {
    /// Which process of a pair is killed, or resets.
    Victim {
        /// The connecting side.
        Client = "client",
        /// The accepting side.
        Server = "server",
    }
}

impl Victim {
    pub(crate) fn side(self) -> Side {
        match self {
            Victim::Client => Side::Client,
            Victim::Server => Side::Server,
        }
    }
}

/// The side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// Everything both sides need to know.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) mode: Mode,
    pub(crate) seed: u64,
    pub(crate) conns: u64,
    pub(crate) parallel: u64,
    pub(crate) bytes: u64,
    pub(crate) bidir: bool,
    pub(crate) msg_min: u64,
    pub(crate) msg_max: u64,
    pub(crate) sndbuf: u64,
    pub(crate) rcvbuf: u64,
    pub(crate) server_io: Io,
    pub(crate) recv: Recv,
    pub(crate) victim: Victim,
    pub(crate) timeout: u64,
    /// This end's own choices, of which the other end does not know.
    pub(crate) own: Own,
}

/// How one end carries out its part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Own {
    /// Nothing is ended before all of it was sent.
    pub(crate) drain: bool,
    /// Connections that are being set up at one time; 0 is any number.
    pub(crate) connecting: u64,
}

impl Plan {
    /// The plan as one line of text.
    pub(crate) fn to_line(&self) -> String {
        format!(
            "PLAN {} {} {} {} {} {} {} {} {} {} {} {} {} {}",
            self.mode.text(),
            self.seed,
            self.conns,
            self.parallel,
            self.bytes,
            u8::from(self.bidir),
            self.msg_min,
            self.msg_max,
            self.sndbuf,
            self.rcvbuf,
            self.server_io.text(),
            self.recv.text(),
            self.victim.text(),
            self.timeout
        )
    }

    /// Reads the line written by [`Plan::to_line`].
    ///
    /// # Errors
    ///
    /// A sentence when the line is not such a plan.
    pub(crate) fn from_line(line: &str) -> Result<Plan, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |i: usize| -> Result<u64, String> {
            words
                .get(i)
                .and_then(|w| w.parse().ok())
                .ok_or_else(|| format!("field {i} of the peer's plan is no number: {line}"))
        };
        if words.len() != 15 || words[0] != "PLAN" {
            return Err(format!("the peer sent '{line}' where a plan was expected"));
        }
        Ok(Plan {
            mode: words[1].parse()?,
            seed: number(2)?,
            conns: number(3)?,
            parallel: number(4)?,
            bytes: number(5)?,
            bidir: number(6)? != 0,
            msg_min: number(7)?,
            msg_max: number(8)?,
            sndbuf: number(9)?,
            rcvbuf: number(10)?,
            server_io: words[11].parse()?,
            recv: words[12].parse()?,
            victim: words[13].parse()?,
            timeout: number(14)?,
            own: Own::default(),
        })
    }

    /// The script of one connection.
    pub(crate) fn script(&self, id: u64) -> Script {
        let mut rng = Rng::new(stream_key(self.seed, id, 7));
        let (c2s, s2c) = match self.mode {
            Mode::Fixed | Mode::Kill | Mode::Abort => {
                (self.bytes, if self.bidir { self.bytes } else { 0 })
            }
            Mode::Churn => {
                let a = rng.log_range(1, self.bytes);
                let b = rng.log_range(1, self.bytes);
                match rng.range(0, 3) {
                    0 => (a, 0),
                    1 => (0, b),
                    _ => (a, b),
                }
            }
            Mode::HalfClose => (rng.log_range(1, self.bytes), rng.log_range(1, self.bytes)),
            Mode::ShortReply => (0, rng.log_range(1, self.bytes)),
            Mode::Oob => (self.bytes, 0),
        };
        let orderly = self.mode != Mode::Churn;
        Script {
            c2s: Stream {
                key: stream_key(self.seed, id, 0),
                len: c2s,
            },
            s2c: Stream {
                key: stream_key(self.seed, id, 1),
                len: s2c,
            },
            client_shuts_down: orderly || rng.one_in(2),
            server_shuts_down: orderly || rng.one_in(2),
            kill_after_ms: rng.range(5, 1500),
            client_seed: rng.next_u64(),
            server_seed: rng.next_u64(),
        }
    }
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) key: u64,
    pub(crate) len: u64,
}

/// What happens on one connection, known to both sides.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) c2s: Stream,
    pub(crate) s2c: Stream,
    /// The client ends with `shutdown` and reads to the end; otherwise it closes
    /// as soon as it has sent and received everything.
    pub(crate) client_shuts_down: bool,
    /// The same for the server.
    pub(crate) server_shuts_down: bool,
    pub(crate) kill_after_ms: u64,
    pub(crate) client_seed: u64,
    pub(crate) server_seed: u64,
}

impl Script {
    /// The stream that `side` sends.
    pub(crate) fn out(&self, side: Side) -> Stream {
        match side {
            Side::Client => self.c2s,
            Side::Server => self.s2c,
        }
    }

    /// The stream that `side` receives.
    pub(crate) fn inp(&self, side: Side) -> Stream {
        match side {
            Side::Client => self.s2c,
            Side::Server => self.c2s,
        }
    }

    /// Whether `side` ends with `shutdown`.
    pub(crate) fn shuts_down(&self, side: Side) -> bool {
        match side {
            Side::Client => self.client_shuts_down,
            Side::Server => self.server_shuts_down,
        }
    }

    /// Random numbers for the local choices of `side`.
    pub(crate) fn rng(&self, side: Side) -> Rng {
        Rng::new(match side {
            Side::Client => self.client_seed,
            Side::Server => self.server_seed,
        })
    }
}

/// The bytes a client sends first on a connection.
pub(crate) fn header(id: u64) -> [u8; HEADER_LEN] {
    let mut h = [0u8; HEADER_LEN];
    h[..8].copy_from_slice(&MAGIC);
    h[8..].copy_from_slice(&id.to_le_bytes());
    h
}

/// The connection's number out of its first bytes.
///
/// # Errors
///
/// A sentence when the bytes are not a header: data was lost or invented.
pub(crate) fn parse_header(h: &[u8; HEADER_LEN], conns: u64) -> Result<u64, String> {
    let mut id = [0u8; 8];
    id.copy_from_slice(&h[8..]);
    let id = u64::from_le_bytes(id);
    if h[..8] != MAGIC || id >= conns {
        return Err(format!(
            "the first bytes of a connection are wrong: {h:02x?}"
        ));
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            mode: Mode::Churn,
            seed: 5,
            conns: 9,
            parallel: 3,
            bytes: 1000,
            bidir: true,
            msg_min: 1,
            msg_max: 77,
            sndbuf: 0,
            rcvbuf: 16384,
            server_io: Io::Epoll,
            recv: Recv::Flags,
            victim: Victim::Server,
            timeout: 8,
            own: Own::default(),
        }
    }

    #[test]
    fn a_plan_survives_its_line() {
        let p = plan();
        let q = Plan::from_line(&p.to_line()).unwrap();
        assert_eq!(format!("{p:?}"), format!("{q:?}"));
        assert!(Plan::from_line("PLAN churn 1").is_err());
    }

    #[test]
    fn headers_are_checked() {
        assert_eq!(parse_header(&header(4), 5), Ok(4));
        assert!(parse_header(&header(5), 5).is_err());
        assert!(parse_header(&[0; HEADER_LEN], 5).is_err());
    }

    #[test]
    fn scripts_differ_between_connections_but_not_between_sides() {
        let p = plan();
        assert_eq!(format!("{:?}", p.script(1)), format!("{:?}", p.script(1)));
        assert_ne!(p.script(1).c2s.key, p.script(2).c2s.key);
        assert_ne!(p.script(1).c2s.key, p.script(1).s2c.key);
    }
}

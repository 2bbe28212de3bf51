// SPDX-License-Identifier: GPL-2.0

//! Reading from a connection into user memory.
//!
//! The socket's receive mutex is held to look and to copy, so there is one reader, and let go of to
//! sleep. The connection's lock is held only to look at cursors and to move them, never while bytes
//! are copied.

use kernel::{
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use smc_kapi::net::{
    msg::flags,
    sock::{
        shutdown,
        Flag, //
    },
    MsgDest,
    Sock, //
};
use smc_proto::{
    conn::Conn,
    cursor::Span,
    urgent::UrgentError, //
};

use super::{
    vanish::reset_jiffies,
    Connection, //
};
use crate::smc::sock::wait::wait_until;

/// How a read is to be done.
struct Read<'a> {
    conn: &'a Arc<Connection>,
    /// One reader at a time looks and copies; nobody sleeps with it.
    turn: &'a Mutex<()>,
    sock: &'a Sock,
    how: u32,
    /// Bytes the caller asked for.
    len: usize,
    /// Bytes after which the call need not wait for more.
    target: usize,
    /// Bytes from the head of the ring on that a peek leaves out, by `SO_PEEK_OFF`.
    offset: usize,
    copied: usize,
}

/// What a look at the connection says about going on.
enum Step {
    Copy([Span; 2]),
    Done,
    Wait,
}

impl Connection {
    /// Reads up to `len` bytes. May sleep; `turn` is the receive mutex of the socket.
    ///
    /// # Errors
    ///
    /// As `recvmsg()` on TCP: `EAGAIN`, `ERESTARTSYS` or `EINTR`, the error of the connection,
    /// `EFAULT`, `EINVAL`.
    pub(crate) fn recv(
        self: &Arc<Self>,
        sock: &Sock,
        msg: &mut MsgDest<'_>,
        len: usize,
        how: u32,
        turn: &Mutex<()>,
    ) -> Result<usize> {
        if how & flags::OOB != 0 {
            return self.recv_urgent(sock, msg, len, how);
        }
        let peek = how & flags::PEEK != 0;
        let mut read = Read {
            conn: self,
            turn,
            sock,
            how,
            len,
            target: sock.rcvlowat(how & flags::WAITALL != 0, len),
            offset: if peek { sock.peek_offset() } else { 0 },
            copied: 0,
        };
        let result = read.run(msg);
        if read.copied > 0 {
            sock.move_peek_offset(read.copied, peek);
        }
        result
    }

    /// Reads the urgent byte.
    fn recv_urgent(
        self: &Arc<Self>,
        sock: &Sock,
        msg: &mut MsgDest<'_>,
        len: usize,
        how: u32,
    ) -> Result<usize> {
        if sock.flag(Flag::UrgInline) {
            return Err(EINVAL);
        }
        self.count_urgent();
        let peek = how & flags::PEEK != 0;
        let byte = self.with(|conn| conn.read_urgent(peek)).ok_or(ENOTCONN)?;
        match byte {
            Ok(byte) => {
                msg.add_flags(flags::OOB);
                if len == 0 {
                    msg.add_flags(flags::TRUNC);
                    return Ok(0);
                }
                if !how & flags::TRUNC != 0 && msg.iter().copy_to_iter(&[byte]) != 1 {
                    return Err(EFAULT);
                }
                Ok(1)
            }
            Err(UrgentError::NotYet) => Err(EAGAIN),
            Err(UrgentError::Nothing) => Err(EINVAL),
        }
    }
}

impl Read<'_> {
    fn run(&mut self, msg: &mut MsgDest<'_>) -> Result<usize> {
        let mut timeout = self.sock.rcvtimeo(self.how & flags::DONTWAIT != 0);
        let mut turn = self.turn.lock();
        loop {
            match self.next_step(timeout == 0)? {
                Step::Copy(spans) => {
                    let wanted = spans[0].len as usize + spans[1].len as usize;
                    let n = self.copy(msg, &spans);
                    self.copied += n;
                    let at_mark = self.take(n);
                    if n < wanted {
                        return if self.copied > 0 {
                            Ok(self.copied)
                        } else {
                            Err(EFAULT)
                        };
                    }
                    if at_mark {
                        break;
                    }
                }
                Step::Done => break,
                Step::Wait => {
                    drop(turn);
                    let conn = self.conn;
                    let seen = self.copied_ahead();
                    let sock = self.sock;
                    // Not even a call that does not block answers between a reset and the data
                    // that came before it.
                    let mut last_words = reset_jiffies();
                    let limit = match timeout {
                        0 => &mut last_words,
                        _ => &mut timeout,
                    };
                    let ready = wait_until(sock, limit, || {
                        conn.has_news_for_reader(seen) || sock.shutdown_mask() & shutdown::RCV != 0
                    });
                    if let Err(error) = ready {
                        return if self.copied > 0 {
                            Ok(self.copied)
                        } else {
                            Err(error)
                        };
                    }
                    turn = self.turn.lock();
                }
            }
        }
        Ok(self.copied)
    }

    /// Bytes at the head of the ring that a peek has behind it.
    fn copied_ahead(&self) -> u32 {
        if self.how & flags::PEEK != 0 {
            // A peek never sees more than the ring, which is below 4 GiB.
            u32::try_from(self.offset + self.copied).unwrap_or(u32::MAX)
        } else {
            0
        }
    }

    fn next_step(&self, nonblocking: bool) -> Result<Step> {
        // Who asks for nothing waits for something to come, too.
        if self.copied >= self.len && self.len > 0 {
            return Ok(Step::Done);
        }
        let skip = self.copied_ahead();
        let left = u32::try_from(self.len - self.copied).unwrap_or(u32::MAX);
        let peek = self.how & flags::PEEK != 0;
        let (spans, readable, end, finished, passed) = self
            .conn
            .with(|conn| {
                if self.copied == 0 {
                    self.conn.count_read(conn.readable(), self.len);
                }
                let max = core::cmp::min(left, conn.piece_to_read());
                (
                    conn.recv_spans(skip, max),
                    conn.readable(),
                    is_end(conn),
                    conn.stream_has_ended(),
                    conn.passed_urgent(),
                )
            })
            .ok_or(ENOTCONN)?;
        if passed && self.copied == 0 && !peek {
            // Whoever reads on behind the mark has had the chance to read the byte there.
            self.conn.change(Conn::forget_urgent);
        }
        if spans[0].len != 0 {
            return Ok(Step::Copy(spans));
        }
        if self.copied >= self.target && self.copied > 0 || self.len == 0 && readable > skip {
            return Ok(Step::Done);
        }
        if self.copied > 0 && self.sock.err() != 0 {
            // The next call reports it.
            return Ok(Step::Done);
        }
        if finished {
            // For readers, an error that came after the end of the stream is none.
            return Ok(Step::Done);
        }
        if end {
            self.conn.report_error();
            if self.copied > 0 {
                return Ok(Step::Done);
            }
        }
        self.sock.take_err()?;
        if end || self.sock.shutdown_mask() & shutdown::RCV != 0 {
            return Ok(Step::Done);
        }
        if nonblocking && !self.conn.awaits_last_words() {
            return if self.copied > 0 {
                Ok(Step::Done)
            } else {
                Err(EAGAIN)
            };
        }
        Ok(Step::Wait)
    }

    /// Copies the spans to the user; returns how many bytes went.
    fn copy(&self, msg: &mut MsgDest<'_>, spans: &[Span; 2]) -> usize {
        let mut done = 0;
        for span in spans.iter().filter(|span| span.len != 0) {
            let len = span.len as usize;
            let n = if self.how & flags::TRUNC != 0 {
                len
            } else {
                self.conn.rmb().copy_to_iter(span.offset, len, msg.iter())
            };
            done += n;
            if n < len {
                break;
            }
        }
        done
    }

    /// Takes `n` bytes off the ring unless this is a peek; returns whether the urgent mark was
    /// reached.
    fn take(&self, n: usize) -> bool {
        if self.how & flags::PEEK != 0 {
            return false;
        }
        let mut at_mark = false;
        self.conn.change(|conn| {
            // CAST: `n` is at most the length of the ring.
            at_mark = conn.consume(n as u32).at_mark;
        });
        at_mark
    }
}

impl Connection {
    /// Whether a reader that has seen `skip` readable bytes has something to look at.
    pub(crate) fn has_news_for_reader(&self, skip: u32) -> bool {
        self.with(|conn| conn.readable() > skip || is_end(conn))
            .unwrap_or(true)
    }
}

fn is_end(conn: &Conn) -> bool {
    conn.is_end_of_data() || conn.error().is_some()
}

/// Whether a reader with this low mark has something to do: the end counts as enough, and no more is
/// asked for than half of the buffer.
pub(crate) fn has_enough(conn: &Conn, mark: usize) -> bool {
    let readable = conn.readable() as usize;
    readable >= core::cmp::min(mark, conn.rx().size() as usize / 2) || is_end(conn)
}

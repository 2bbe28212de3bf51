// SPDX-License-Identifier: GPL-2.0

//! Writing to a connection from user memory.
//!
//! The socket's send mutex is held to look and to copy, so there is one writer, and let go of to
//! sleep; the connection's lock is held only to look at cursors, to move them and to post, never
//! while bytes are copied.

use kernel::{
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use smc_kapi::net::{
    msg::flags,
    sock::shutdown,
    Msg,
    Sock, //
};
use smc_proto::conn::{
    Conn,
    SendError, //
};

use super::Connection;
use crate::smc::sock::wait::wait_until;

impl Connection {
    /// Writes all `len` bytes, as TCP does, unless the socket does not block or something fails.
    /// May sleep; `turn` is the send mutex of the socket.
    ///
    /// # Errors
    ///
    /// As `sendmsg()` on TCP: `EPIPE`, `EAGAIN`, `ERESTARTSYS` or `EINTR`, the error of the
    /// connection, `EFAULT`. Bytes written before the error count: it is then reported by the next
    /// call.
    pub(crate) fn send(
        self: &Arc<Self>,
        sock: &Sock,
        msg: &mut Msg<'_>,
        len: usize,
        corked: bool,
        turn: &Mutex<()>,
    ) -> Result<usize> {
        let corked = corked || msg.flags() & flags::MORE != 0;
        self.set_corked(corked);
        let sent = self.send_all(sock, msg, len, corked, turn);
        if !matches!(sent, Ok(done) if done == len) {
            // The rest does not come now, so what is there does not wait for it.
            self.change(|conn| conn.set_more_coming(false));
        }
        sent
    }

    /// Copies until all `len` bytes are in the ring.
    fn send_all(
        self: &Arc<Self>,
        sock: &Sock,
        msg: &mut Msg<'_>,
        len: usize,
        corked: bool,
        turn: &Mutex<()>,
    ) -> Result<usize> {
        let how = msg.flags();
        let urgent = how & flags::OOB != 0;
        let mut timeout = sock.sndtimeo(how & flags::DONTWAIT != 0);
        let mut done = 0;
        let mut guard = turn.lock();
        if len == 0 {
            // Nothing can be said, too, only where something could.
            return self.check_open(sock, 0).map(|()| 0);
        }
        while done < len {
            match self.send_some(sock, msg, len, done, urgent, corked) {
                Ok(0) => {
                    self.count_full_ring();
                    self.with(Conn::writer_sleeps);
                }
                Ok(n) => {
                    done += n;
                    if corked {
                        self.set_corked(true);
                        self.limit_cork();
                    }
                    continue;
                }
                Err(error) => return partial(done, error),
            }
            // What fills the ring is worth sending.
            self.set_corked(false);
            // Room that came before the note would be told to nobody.
            let has_news = || {
                sock.note_no_space();
                self.has_news_for_writer(urgent)
            };
            if timeout == 0 {
                if has_news() {
                    continue;
                }
                return partial(done, EAGAIN);
            }
            drop(guard);
            let ready = wait_until(sock, &mut timeout, has_news);
            if let Err(error) = ready {
                return partial(done, error);
            }
            guard = turn.lock();
        }
        Ok(done)
    }

    /// Reports the error of the connection, or that this end has shut its writing side. `done` bytes went
    /// before.
    fn check_open(&self, sock: &Sock, done: usize) -> Result {
        if self.error().is_some() {
            return Err(self.broken(sock, done));
        }
        if done == 0 {
            sock.take_err()?;
        } else if sock.err() != 0 {
            return Err(EPIPE);
        }
        if sock.shutdown_mask() & shutdown::SEND != 0 {
            return Err(EPIPE);
        }
        Ok(())
    }

    /// What a call says that finds the connection ended: the error, once, and `EPIPE` from then on. A
    /// call of which `done` bytes went says that, and leaves the error to the next one.
    fn broken(&self, sock: &Sock, done: usize) -> Error {
        self.report_error();
        if done > 0 {
            return EPIPE;
        }
        sock.take_err().err().unwrap_or(EPIPE)
    }

    /// Copies what there is room for of what is left of `len` bytes behind the first `done`, and posts
    /// it; 0 when there is no room.
    fn send_some(
        self: &Arc<Self>,
        sock: &Sock,
        msg: &mut Msg<'_>,
        len: usize,
        done: usize,
        urgent: bool,
        corked: bool,
    ) -> Result<usize> {
        self.check_open(sock, done)?;
        let left = u32::try_from(len - done).unwrap_or(u32::MAX);
        let mut in_vain = false;
        let spans = self
            .with(|conn| {
                match conn.may_send() {
                    // It is copied like other data, which shows whether it can be.
                    Err(SendError::PeerClosed) => in_vain = true,
                    may => may?,
                }
                if urgent && conn.urgent_busy() {
                    return Ok(conn.reserve(0));
                }
                let spans = conn.reserve(core::cmp::min(left, conn.piece_to_send()));
                if spans[0].len != 0 {
                    // What still waits goes together with what is copied now.
                    conn.set_more_coming(true);
                }
                Ok(spans)
            })
            .ok_or(ENOTCONN)?
            .map_err(|_: SendError| self.broken(sock, done))?;
        let wanted = spans[0].len as usize + spans[1].len as usize;
        if wanted == 0 {
            return Ok(0);
        }
        let mut copied = 0;
        for span in spans.iter().filter(|span| span.len != 0) {
            let len = span.len as usize;
            let n = self.send.copy_from_iter(span.offset, len, msg.iter());
            copied += n;
            if n < len {
                break;
            }
        }
        if copied == 0 {
            return Err(EFAULT);
        }
        if in_vain {
            self.update(Conn::sent_in_vain);
            return Ok(copied);
        }
        let all = copied as u32 == left;
        let mut held = false;
        self.change(|conn| {
            held = conn.written(copied as u32, all);
            if urgent && all {
                conn.mark_urgent();
                held = false;
                conn.set_more_coming(false);
            }
        });
        if held && !corked {
            self.wait_for_writer();
        }
        if copied < wanted {
            return partial(copied, EFAULT);
        }
        Ok(copied)
    }

    /// Whether a sleeping writer has something to look at.
    fn has_news_for_writer(&self, urgent: bool) -> bool {
        self.with(|conn| {
            let room = conn.is_writable() && !(urgent && conn.urgent_busy());
            room || conn.may_send().is_err()
        })
        .unwrap_or(true)
    }
}

/// Bytes that went count more than the error that stopped the rest.
fn partial(done: usize, error: Error) -> Result<usize> {
    if done > 0 {
        Ok(done)
    } else {
        Err(error)
    }
}

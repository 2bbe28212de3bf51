// SPDX-License-Identifier: GPL-2.0

//! Data of a kernel TCP socket: on behalf of user space, and of the kernel's own.

use super::{
    msg::{
        flags,
        Msg,
        MsgDest,
        SpliceDest, //
    },
    poll::{
        PollMask,
        PollRequest, //
    },
    sock::{
        interrupted,
        signal_pending,
        to_len,
        FOREVER, //
    },
    tcp::TcpSocket,
    tcp_queue::FileLoan, //
};
use crate::sys;
use core::{
    mem,
    ptr, //
};
use kernel::{
    prelude::*,
    time::msecs_to_jiffies,
    types::Opaque, //
};

impl TcpSocket {
    /// `sendmsg` with the caller's own message.
    ///
    /// # Errors
    ///
    /// Those of the system call.
    pub fn sendmsg(&self, msg: &mut Msg<'_>, len: usize) -> Result<usize> {
        let sendmsg = self.ops().sendmsg.ok_or(EOPNOTSUPP)?;
        let _queue = self.use_queue();
        // SAFETY: The message is that of a running operation.
        to_len(unsafe { sendmsg(self.socket, msg.as_ptr(), len) } as isize)
    }

    /// `recvmsg` with the caller's own message.
    ///
    /// # Errors
    ///
    /// Those of the system call.
    pub fn recvmsg(&self, msg: &mut MsgDest<'_>, len: usize, flags: u32) -> Result<usize> {
        let recvmsg = self.ops().recvmsg.ok_or(EOPNOTSUPP)?;
        let _queue = self.use_queue();
        // SAFETY: The message is that of a running operation.
        to_len(unsafe { recvmsg(self.socket, msg.as_ptr(), len, flags as c_int) } as isize)
    }

    /// `splice` from the connection into a pipe.
    ///
    /// # Errors
    ///
    /// Those of the system call.
    pub fn splice_read(&self, dest: SpliceDest<'_>) -> Result<usize> {
        let splice = self.ops().splice_read.ok_or(EOPNOTSUPP)?;
        // SAFETY: The socket is that of a running operation.
        let file = unsafe { (*dest.socket).file };
        if file.is_null() {
            return Err(EBADF);
        }
        let _queue = self.use_queue();
        // SAFETY: The file of a running operation.
        let _loan = unsafe { FileLoan::new(self, file) };
        // SAFETY: The pointers are those of a running operation.
        to_len(unsafe { splice(self.socket, dest.pos, dest.pipe, dest.len, dest.flags) })
    }

    /// Tells TCP that a `splice` into it ended early.
    pub fn splice_eof(&self) {
        if let Some(splice_eof) = self.ops().splice_eof {
            // SAFETY: The socket is valid.
            unsafe { splice_eof(self.socket) };
        }
    }

    /// The events TCP would report. Registers nothing: the caller did so on the queue this socket
    /// shares.
    pub fn poll_mask(&self, request: &PollRequest<'_>) -> PollMask {
        let Some(poll) = self.ops().poll else {
            return PollMask::NONE;
        };
        // SAFETY: The file is that of a running operation; without table nothing is registered.
        PollMask::from_bits(unsafe { poll(request.file(), self.socket, ptr::null_mut()) })
    }

    /// `ioctl`.
    ///
    /// # Errors
    ///
    /// Those of the system call, `ENOIOCTLCMD` for a command TCP does not know.
    pub fn ioctl(&self, cmd: u32, arg: usize) -> Result<i32> {
        let ioctl = self.ops().ioctl.ok_or(ENOIOCTLCMD)?;
        // SAFETY: The socket is valid, user addresses are checked when they are used.
        let ret = unsafe { ioctl(self.socket, cmd, arg) };
        to_len(ret as isize).map(|ret| ret as i32)
    }

    /// `ioctl` of a 32-bit program.
    ///
    /// # Errors
    ///
    /// As [`TcpSocket::ioctl`].
    #[cfg(CONFIG_COMPAT)]
    pub fn compat_ioctl(&self, cmd: u32, arg: usize) -> Result<i32> {
        let ioctl = self.ops().compat_ioctl.ok_or(ENOIOCTLCMD)?;
        // SAFETY: The socket is valid, user addresses are checked when they are used.
        let ret = unsafe { ioctl(self.socket, cmd, arg) };
        to_len(ret as isize).map(|ret| ret as i32)
    }

    /// How many bytes could be read now.
    pub fn readable_len(&self) -> usize {
        let Some(peek_len) = self.ops().peek_len else {
            return 0;
        };
        // SAFETY: The socket is valid.
        to_len(unsafe { peek_len(self.socket) } as isize).unwrap_or(0)
    }

    /// Sends all of `data`, waiting for room as long as the socket's send time-out says.
    ///
    /// # Errors
    ///
    /// Those of `send`. Part of the data may have been sent then.
    pub fn send_all(&self, data: &[u8]) -> Result {
        let mut rest = data;
        while !rest.is_empty() {
            let sent = self.send_some(rest)?;
            rest = rest.get(sent..).unwrap_or(&[]);
        }
        Ok(())
    }

    /// Sends what there is room for, waiting for some.
    fn send_some(&self, data: &[u8]) -> Result<usize> {
        let mut msg = empty_message();
        msg.msg_flags = flags::NOSIGNAL;
        let mut vec = sys::kvec {
            iov_base: data.as_ptr().cast_mut().cast(),
            iov_len: data.len(),
        };
        let _queue = self.use_queue();
        // SAFETY: Message and vector are valid during the call; sending only reads the data.
        let sent = unsafe { sys::kernel_sendmsg(self.socket, &mut msg, &mut vec, 1, data.len()) };
        to_len(sent as isize)
    }

    /// Copies what is at the head of the receive queue without taking it. Does not wait.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if there is nothing, else those of `recv`. 0 means that the peer closed.
    pub fn peek(&self, buf: &mut [u8]) -> Result<usize> {
        self.recv(buf, flags::PEEK | flags::DONTWAIT)
    }

    /// Takes what there is. Does not wait.
    ///
    /// # Errors
    ///
    /// As [`TcpSocket::peek`].
    pub fn recv_some(&self, buf: &mut [u8]) -> Result<usize> {
        self.recv(buf, flags::DONTWAIT)
    }

    fn recv(&self, buf: &mut [u8], flags: u32) -> Result<usize> {
        let mut msg = empty_message();
        let mut vec = sys::kvec {
            iov_base: buf.as_mut_ptr().cast(),
            iov_len: buf.len(),
        };
        let _queue = self.use_queue();
        let _offset = self.sock().suspend_peek_offset();
        // SAFETY: Message, vector and buffer are valid during the call.
        let got = unsafe {
            sys::kernel_recvmsg(
                self.socket,
                &mut msg,
                &mut vec,
                1,
                buf.len(),
                flags as c_int,
            )
        };
        to_len(got as isize)
    }

    /// Fills `buf`, within `timeout_ms` milliseconds.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT` if the time was not enough, `ECONNRESET` if the peer closed before, `EINTR` or
    /// a restart error if a signal came, else those of `recv`. Part of the data may be lost then.
    pub fn recv_exact(&self, buf: &mut [u8], timeout_ms: u32) -> Result {
        if self.recv_within(buf, timeout_ms)? < buf.len() {
            return Err(ETIMEDOUT);
        }
        Ok(())
    }

    /// Fills `buf` as far as the data that come within `timeout_ms` milliseconds reach; returns how
    /// many bytes that were.
    ///
    /// # Errors
    ///
    /// As [`TcpSocket::recv_exact`], but for the time-out.
    pub fn recv_within(&self, buf: &mut [u8], timeout_ms: u32) -> Result<usize> {
        let mut left = msecs_to_jiffies(timeout_ms) as c_long;
        let mut at = 0;
        while let Some(rest) = buf.get_mut(at..).filter(|rest| !rest.is_empty()) {
            match self.recv_some(rest) {
                Ok(0) => return Err(ECONNRESET),
                Ok(got) => at += got,
                Err(EAGAIN) => match self.wait_readable(&mut left) {
                    Err(ETIMEDOUT) => break,
                    waited => waited?,
                },
                Err(error) => return Err(error),
            }
        }
        Ok(at)
    }

    /// Sleeps until there is something to read, or the connection ended.
    fn wait_readable(&self, timeout: &mut c_long) -> Result {
        if *timeout == 0 {
            return Err(ETIMEDOUT);
        }
        let _queue = self.use_queue();
        let queue = self.queue();
        let entry = Opaque::<sys::wait_queue_entry>::uninit();
        // SAFETY: `_queue` keeps the queue in place, and `entry` is taken off it below.
        unsafe { sys::smc_rs_helper_wait_entry_add(queue, entry.get()) };
        let mut result = Ok(());
        if self.readable_len() == 0 && !self.ended() {
            if signal_pending() {
                result = Err(interrupted(FOREVER));
            } else {
                // SAFETY: The entry is on a queue.
                *timeout = unsafe { sys::smc_rs_helper_wait_woken(entry.get(), *timeout) };
            }
        }
        // SAFETY: Added above.
        unsafe { sys::smc_rs_helper_wait_entry_remove(queue, entry.get()) };
        result
    }

    /// Whether nothing more can come.
    fn ended(&self) -> bool {
        self.sock().err() != 0
            || self.sock().shutdown_mask() & super::sock::shutdown::RCV != 0
            || self.state() == super::tcp::TcpState::Close
    }

    /// The queue TCP wakes. It stays while a guard of [`TcpSocket::use_queue`] exists.
    fn queue(&self) -> *mut sys::socket_wq {
        let sk = self.sk();
        // SAFETY: The socket is valid; the queue of a socket with file-less `struct socket` is set
        // until it is released.
        unsafe { (*sk).__bindgen_anon_1.sk_wq }
    }
}

/// A message without address, control data and buffers.
fn empty_message() -> sys::msghdr {
    // SAFETY: All fields are numbers, pointers that may be null, or unions of these.
    unsafe { mem::zeroed() }
}

// SPDX-License-Identifier: GPL-2.0

//! Option numbers the `libc` crate lacks, and the two option calls.

use crate::sock::cvt;
use std::io;
use std::os::fd::RawFd;

/// `ioctl` request: bytes that can be read now.
pub const SIOCINQ: libc::c_ulong = 0x541b;
/// `ioctl` request: bytes that the peer has not taken yet.
pub const SIOCOUTQ: libc::c_ulong = 0x5411;
/// `ioctl` request: bytes that have not been sent yet.
pub const SIOCOUTQNSD: libc::c_ulong = 0x894b;
/// `ioctl` request: is the next byte the urgent one.
pub const SIOCATMARK: libc::c_ulong = 0x8905;
/// TCP option: name of an upper layer protocol.
pub const TCP_ULP: i32 = 31;
/// TCP option: data in the SYN on the next connect.
pub const TCP_FASTOPEN_CONNECT: i32 = 30;
/// TCP option: MD5 signatures (RFC 2385).
pub const TCP_MD5SIG: i32 = 14;

/// One call to an option function.
pub(crate) enum Value<'a> {
    Set(i32, i32, &'a [u8]),
    Get(i32, i32, &'a mut [u8], i32),
}

/// Performs the call; for a read the result is the length the kernel reported.
pub(crate) fn check(fd: RawFd, value: Value<'_>) -> io::Result<usize> {
    match value {
        Value::Set(level, name, v) => {
            // SAFETY: pointer and length describe the slice.
            cvt(unsafe {
                libc::setsockopt(
                    fd,
                    level,
                    name,
                    v.as_ptr().cast(),
                    v.len() as libc::socklen_t,
                )
            } as isize)
        }
        Value::Get(level, name, buf, optlen) => {
            // A length above the buffer would let the kernel write past it.
            assert!(optlen < 0 || optlen as usize <= buf.len());
            let mut len = optlen as libc::socklen_t;
            // SAFETY: the kernel writes at most `optlen` bytes, and nothing for a negative one.
            cvt(
                unsafe { libc::getsockopt(fd, level, name, buf.as_mut_ptr().cast(), &raw mut len) }
                    as isize,
            )?;
            Ok(len as usize)
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Names of numbers, for records that can be read.

use crate::call::Call;
use nix::errno::Errno;
use std::fmt;
use std::io;

/// Everything `poll()` can be asked for.
pub(crate) const ALL_EVENTS: i16 = libc::POLLIN
    | libc::POLLPRI
    | libc::POLLOUT
    | libc::POLLRDHUP
    | libc::POLLRDNORM
    | libc::POLLRDBAND
    | libc::POLLWRNORM
    | libc::POLLWRBAND;

const EVENTS: &[(i32, &str)] = &[
    (libc::POLLIN as i32, "IN"),
    (libc::POLLPRI as i32, "PRI"),
    (libc::POLLOUT as i32, "OUT"),
    (libc::POLLERR as i32, "ERR"),
    (libc::POLLHUP as i32, "HUP"),
    (libc::POLLNVAL as i32, "NVAL"),
    (libc::POLLRDNORM as i32, "RDNORM"),
    (libc::POLLRDBAND as i32, "RDBAND"),
    (libc::POLLWRNORM as i32, "WRNORM"),
    (libc::POLLWRBAND as i32, "WRBAND"),
    (libc::POLLRDHUP as i32, "RDHUP"),
];

const MSG: &[(i32, &str)] = &[
    (libc::MSG_OOB, "OOB"),
    (libc::MSG_PEEK, "PEEK"),
    (libc::MSG_DONTROUTE, "DONTROUTE"),
    (libc::MSG_CTRUNC, "CTRUNC"),
    (libc::MSG_TRUNC, "TRUNC"),
    (libc::MSG_DONTWAIT, "DONTWAIT"),
    (libc::MSG_EOR, "EOR"),
    (libc::MSG_WAITALL, "WAITALL"),
    (libc::MSG_CONFIRM, "CONFIRM"),
    (libc::MSG_ERRQUEUE, "ERRQUEUE"),
    (libc::MSG_NOSIGNAL, "NOSIGNAL"),
    (libc::MSG_MORE, "MORE"),
    (libc::MSG_ZEROCOPY, "ZEROCOPY"),
    (libc::MSG_FASTOPEN, "FASTOPEN"),
    (libc::MSG_CMSG_CLOEXEC, "CMSG_CLOEXEC"),
];

fn flags(value: i32, names: &[(i32, &str)]) -> String {
    let mut left = value;
    let mut words = Vec::new();
    for (bit, name) in names {
        if left & bit != 0 {
            words.push((*name).to_owned());
            left &= !bit;
        }
    }
    if left != 0 {
        words.push(format!("{left:#x}"));
    }
    if words.is_empty() {
        return "0".into();
    }
    words.join("|")
}

/// The bits of a poll mask.
pub(crate) fn mask(bits: i16) -> String {
    flags(i32::from(bits), EVENTS)
}

/// `MSG_*` flags.
pub(crate) fn msg_flags(bits: i32) -> String {
    flags(bits, MSG)
}

/// The name of an error number.
pub(crate) fn errno(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(0) => "no error".into(),
        Some(524) => "ENOTSUPP".into(),
        Some(number) if Errno::from_raw(number) == Errno::UnknownErrno => format!("error {number}"),
        Some(number) => format!("{:?}", Errno::from_raw(number)),
        None => error.to_string(),
    }
}

fn how(how: i32) -> String {
    match how {
        libc::SHUT_RD => "RD".into(),
        libc::SHUT_WR => "WR".into(),
        libc::SHUT_RDWR => "RDWR".into(),
        other => other.to_string(),
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Call::Send(len, how) => write!(f, "send {len} {}", msg_flags(*how)),
            Call::SendTo(to, len, how) => write!(f, "sendto {to:?} {len} {}", msg_flags(*how)),
            Call::SendMsg(how) => write!(f, "sendmsg {}", msg_flags(*how)),
            Call::Recv(len, how) => write!(f, "recv {len} {}", msg_flags(*how)),
            Call::RecvMsg(len, how) => write!(f, "recvmsg {len} {}", msg_flags(*how)),
            Call::Shutdown(dir) => write!(f, "shutdown {}", how(*dir)),
            Call::Connect(to) => write!(f, "connect {to:?}"),
            Call::Bind(to) => write!(f, "bind {to:?}"),
            Call::Get(level, name, len) => write!(f, "getsockopt {level} {name} room {len}"),
            Call::GetLen(level, name, len) => {
                write!(f, "getsockopt {level} {name} room {len}, length")
            }
            Call::Set(level, name, value) => write!(f, "setsockopt {level} {name} = {value}"),
            Call::SetLen(level, name, len) => write!(f, "setsockopt {level} {name} of {len} bytes"),
            Call::SetText(level, name, text) => {
                write!(f, "setsockopt {level} {name} = '{text}'")
            }
            Call::GetText(level, name, room) => {
                write!(f, "getsockopt {level} {name} room {room}, text")
            }
            Call::Ioctl(request) => write!(f, "ioctl {request:#x}"),
            Call::Error => write!(f, "SO_ERROR"),
            other => write!(f, "{}", format!("{other:?}").to_lowercase()),
        }
    }
}

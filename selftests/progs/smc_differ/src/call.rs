// SPDX-License-Identifier: GPL-2.0

//! The calls of a scenario, and what is recorded of them.

use crate::name::{errno, mask, msg_flags};
use crate::ring::Op;
use crate::stage::{Accepted, Place};
use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;
use testlib::event::poll_one;
use testlib::extra::{sendfile, splice};
use testlib::msg;
use testlib::process::{pipe, signals_caught};
use testlib::sock::{RawAddr, Sock};

/// An address for `connect()`, `bind()` or `sendto()`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum To {
    /// The listener at the other end.
    Server,
    /// A port on which nobody listens.
    Closed,
    /// An address that never answers.
    Silent,
    /// An address to which there is no route.
    NoRoute,
    /// The own address, any port.
    Own,
    /// Any address, any port.
    Any,
    /// An address that this end does not have.
    Foreign,
    /// The address of the server with port 0.
    PortZero,
    /// A multicast address and a port.
    Multicast,
    /// A multicast address, any port.
    Group,
    /// `AF_UNSPEC`.
    Unspec,
    /// `AF_UNIX`.
    Unix,
    /// Family 43 in the address.
    Smc,
    /// The listener's address, cut to so many bytes.
    Short(u32),
    /// The broadcast address of the network.
    Broadcast,
    /// An address to which the administrator has forbidden to send.
    Forbidden,
}

/// One call on a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Connect(To),
    Bind(To),
    Listen(i32),
    Accept(i32),
    Send(usize, i32),
    SendTo(To, usize, i32),
    SendMsg(i32),
    SendMany,
    Write(usize),
    Writev,
    SendFile(usize),
    SpliceTo(usize),
    /// Sends until it would block, and says whether it did.
    Fill,
    Recv(usize, i32),
    RecvMsg(usize, i32),
    RecvMany,
    Read(usize),
    Readv,
    SpliceFrom(usize),
    /// The same into a pipe that may block, with flags.
    SpliceWith(usize, u32),
    /// Receives until there is nothing more, and says how it ended.
    Drain,
    /// `send()` from an address that cannot be read.
    SendBad,
    /// `recv()` to an address that cannot be written.
    RecvBad,
    Poll,
    Shutdown(i32),
    Name,
    Peer,
    /// Level, name, length offered; the value is recorded.
    Get(i32, i32, usize),
    /// Level, name, length offered; of the value only the length is recorded.
    GetLen(i32, i32, usize),
    /// Level, name, value of four bytes.
    Set(i32, i32, i32),
    /// Level, name, length; the bytes are 1, 0, 0 ...
    SetLen(i32, i32, usize),
    /// Level, name, value; level, name, room.
    SetText(i32, i32, &'static str),
    GetText(i32, i32, usize),
    /// Seconds of `SO_LINGER`.
    Linger(i32),
    Error,
    /// `SO_RCVTIMEO` or `SO_SNDTIMEO`, milliseconds.
    Timeout(i32, u64),
    /// The state that `TCP_INFO` tells.
    TcpState,
    Ioctl(libc::c_ulong),
    Nonblock(bool),
    Fcntl(i32, i32),
    /// How often a signal was delivered.
    Signals(i32),
    /// Whether it was.
    Signalled(i32),
    Dup,
    /// Through io_uring; the second one may sleep.
    Ring(Op),
    RingWait(Op),
}

const FILL: usize = 8 << 20;

pub(crate) fn said<T>(result: io::Result<T>, show: impl FnOnce(T) -> String) -> String {
    match result {
        Ok(value) => show(value),
        Err(error) => errno(&error),
    }
}

fn count(result: io::Result<usize>) -> String {
    said(result, |n| n.to_string())
}

fn done<T>(result: io::Result<T>) -> String {
    said(result, |_| "0".into())
}

/// Bytes of the pattern that every sender sends: letters, so that records can be read.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| b'a' + (i % 26) as u8).collect()
}

/// How many bytes buffers hold is not compared.
const MANY: usize = 4096;

fn amount(n: usize) -> String {
    if n > MANY {
        return "many".into();
    }
    n.to_string()
}

/// Received bytes, in full or by length and sum.
pub(crate) fn bytes(data: &[u8]) -> String {
    if data.len() > MANY {
        return "many".into();
    }
    if data.len() <= 40 {
        return format!("{} '{}'", data.len(), data.escape_ascii());
    }
    let sum = data.iter().fold(0_u64, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(*byte))
    });
    format!("{} sum {sum:x}", data.len())
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Call {
    /// Carries the call out and says what came of it.
    pub(crate) fn perform(&self, sock: &Sock, place: &Place, more: &Accepted) -> String {
        match *self {
            Call::Connect(to) => done(sock.connect_raw(&place.address(to))),
            Call::Bind(to) => done(sock.bind_raw(&place.address(to))),
            Call::Listen(backlog) => done(sock.listen(backlog)),
            Call::Accept(flags) => accept(sock, place, flags, more),
            Call::Shutdown(how) => done(sock.shutdown(how)),
            Call::Poll => said(poll_one(sock, crate::name::ALL_EVENTS, 0), mask),
            Call::Ring(op) => op.perform(sock, place, more, false),
            Call::RingWait(op) => op.perform(sock, place, more, true),
            Call::Name => name(sock.name_raw(), place),
            Call::Peer => name(sock.peer_raw(), place),
            Call::Nonblock(on) => done(sock.set_nonblocking(on)),
            Call::Fcntl(cmd, arg) => said(sock.fcntl(cmd, arg), |v| format!("{v:#x}")),
            Call::Signals(signal) => signals_caught(signal).to_string(),
            Call::Signalled(signal) => (signals_caught(signal) > 0).to_string(),
            Call::Dup => said(sock.dup(), |copy| {
                more.lock().expect("no panic before").push(copy);
                "0".into()
            }),
            Call::Ioctl(request) => said(sock.ioctl_int(request), |v| {
                usize::try_from(v).map_or_else(|_| v.to_string(), amount)
            }),
            Call::Get(..)
            | Call::GetLen(..)
            | Call::Set(..)
            | Call::SetLen(..)
            | Call::SetText(..)
            | Call::GetText(..)
            | Call::Linger(_)
            | Call::Timeout(..)
            | Call::TcpState
            | Call::Error => self.option(sock),
            _ => self.transfer(sock, place),
        }
    }

    fn option(&self, sock: &Sock) -> String {
        let mut value = [0_u8; 512];
        match *self {
            Call::Get(level, name, len) => {
                said(sock.get_bytes(level, name, &mut value, len as i32), |n| {
                    format!("{n} {}", hex(&value[..n.min(len)]))
                })
            }
            Call::GetLen(level, name, len) => {
                count(sock.get_bytes(level, name, &mut value, len as i32))
            }
            Call::Set(level, name, value) => done(sock.set_int(level, name, value)),
            Call::SetLen(level, name, len) => {
                value[0] = 1;
                done(sock.set_bytes(level, name, &value[..len]))
            }
            Call::SetText(level, name, text) => done(sock.set_bytes(level, name, text.as_bytes())),
            Call::GetText(level, name, len) => {
                said(sock.get_bytes(level, name, &mut value, len as i32), |n| {
                    format!("{n} '{}'", value[..n.min(len)].escape_ascii())
                })
            }
            Call::Timeout(name, ms) => done(sock.set_timeout(name, Duration::from_millis(ms))),
            Call::TcpState => {
                let info = sock.get_bytes(libc::IPPROTO_TCP, libc::TCP_INFO, &mut value, 8);
                said(info, |n| format!("{n} {}", value[0]))
            }
            Call::Linger(seconds) => done(sock.set_linger(seconds >= 0, seconds.max(0))),
            _ => said(sock.take_error(), |n| {
                errno(&io::Error::from_raw_os_error(n))
            }),
        }
    }

    fn transfer(&self, sock: &Sock, place: &Place) -> String {
        match *self {
            Call::Send(len, flags) => count(sock.send(&pattern(len), flags)),
            Call::SendTo(to, len, flags) => {
                let addr = place.address(to);
                match addr.decode() {
                    Ok(addr) => count(sock.send_to(&pattern(len), flags, addr)),
                    Err(_) => "this address has no form for sendto()".into(),
                }
            }
            Call::SendMsg(flags) => {
                count(msg::sendmsg(sock, &[b"first", b"", b"second"], flags, None))
            }
            Call::SendMany => count(msg::sendmmsg(sock, &[b"one", b"two", b"three"], 0)),
            Call::Write(len) => count(msg::write(sock, &pattern(len))),
            Call::Writev => count(msg::writev(sock, &[b"left", b"right"])),
            Call::SendFile(len) => send_file(sock, len),
            Call::SpliceTo(len) => splice_to(sock, len),
            Call::Fill => fill(sock),
            Call::SendBad => count(sock.send_from_address(8, 100, 0)),
            Call::RecvBad => count(sock.recv_into_null(100, 0)),
            _ => self.receive(sock),
        }
    }

    fn receive(&self, sock: &Sock) -> String {
        let mut data = vec![0_u8; 1 << 20];
        match *self {
            Call::Recv(len, flags) => said(sock.recv(&mut data[..len], flags), |n| {
                bytes(&data[..n.min(len)]) + &beyond(n, len)
            }),
            Call::RecvMsg(len, flags) => {
                let (front, rest) = data[..len].split_at_mut(len / 2);
                said(msg::recvmsg(sock, &mut [front, rest], flags), |m| {
                    let name = m.name_len;
                    let flags = msg_flags(m.flags);
                    format!(
                        "{} flags {flags} name {name} {:?}",
                        bytes(&data[..m.len.min(len)]),
                        m.controls
                    )
                })
            }
            Call::RecvMany => {
                let (a, rest) = data.split_at_mut(4);
                let (b, rest) = rest.split_at_mut(4);
                let result = msg::recvmmsg(sock, &mut [a, b, &mut rest[..4]], libc::MSG_WAITFORONE);
                said(result, |lens| format!("{lens:?} {}", bytes(&data[..12])))
            }
            Call::Read(len) => said(msg::read(sock, &mut data[..len]), |n| bytes(&data[..n])),
            Call::Readv => {
                let (a, rest) = data.split_at_mut(3);
                said(msg::readv(sock, &mut [a, &mut rest[..20]]), |n| {
                    bytes(&data[..n])
                })
            }
            Call::SpliceFrom(len) => splice_from(sock, len, libc::SPLICE_F_NONBLOCK),
            Call::SpliceWith(len, flags) => splice_from(sock, len, flags),
            _ => drain(sock, &mut data),
        }
    }
}

/// More was reported than there was room for, as `MSG_TRUNC` may do.
fn beyond(n: usize, room: usize) -> String {
    if n > room {
        format!(" of {n}")
    } else {
        String::new()
    }
}

fn accept(sock: &Sock, place: &Place, flags: i32, more: &Accepted) -> String {
    said(sock.accept(flags), |(child, addr)| {
        let mode = said(child.fcntl(libc::F_GETFL, 0), |v| format!("{v:#o}"));
        let exec = said(child.fcntl(libc::F_GETFD, 0), |v| v.to_string());
        more.lock().expect("no panic before").push(child);
        format!("fd {mode} {exec} from {}", place.show(&addr))
    })
}

fn name(result: io::Result<RawAddr>, place: &Place) -> String {
    said(result, |addr| format!("{} {}", addr.len, place.show(&addr)))
}

fn send_file(sock: &Sock, len: usize) -> String {
    match File::open("/proc/self/exe") {
        Ok(file) => count(sendfile(sock, &file, 0, len)),
        Err(error) => format!("no file: {error}"),
    }
}

fn splice_to(sock: &Sock, len: usize) -> String {
    let Ok((out, input)) = pipe() else {
        return "no pipe".into();
    };
    if msg::write(&input, &pattern(len)).is_err() {
        return "the pipe cannot be written".into();
    }
    count(splice(&out, sock, len, libc::SPLICE_F_NONBLOCK))
}

fn splice_from(sock: &Sock, len: usize, flags: u32) -> String {
    let Ok((out, input)) = pipe() else {
        return "no pipe".into();
    };
    let result = splice(sock, &input, len, flags);
    drop(input);
    said(result, |n| {
        let mut data = Vec::new();
        match File::from(out).read_to_end(&mut data) {
            Ok(_) => format!("{n} {}", bytes(&data)),
            Err(error) => format!("{n}, then {error}"),
        }
    })
}

/// How much goes is a matter of buffers; that it ends is recorded, and how.
fn fill(sock: &Sock) -> String {
    let data = pattern(26 * 1024);
    let mut sent = 0;
    while sent < FILL {
        match sock.send(&data, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) {
            Ok(n) => sent += n,
            Err(error) => {
                return format!(
                    "{} {}",
                    if sent > 0 { "some" } else { "nothing" },
                    errno(&error)
                )
            }
        }
    }
    "never full".into()
}

fn drain(sock: &Sock, data: &mut [u8]) -> String {
    let mut all = Vec::new();
    loop {
        match sock.recv(data, libc::MSG_DONTWAIT) {
            Ok(0) => return format!("{} end", bytes(&all)),
            Ok(n) => all.extend_from_slice(&data[..n]),
            // The rest of much comes once there is room for it.
            Err(_)
                if all.len() > MANY
                    && poll_one(sock, libc::POLLIN, 300)
                        .is_ok_and(|got| got & libc::POLLIN != 0) => {}
            Err(error) => return format!("{} {}", bytes(&all), errno(&error)),
        }
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Calls made through io_uring.

use crate::call::{bytes, pattern, said, To};
use crate::name::{mask, ALL_EVENTS};
use crate::stage::{Accepted, Place};
use std::time::Duration;
use testlib::sock::Sock;
use testlib::uring;

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Send(usize, i32),
    Recv(usize, i32),
    Accept,
    Connect(To),
    /// Waits for one of these bits, and records all that are there.
    Poll(i16),
    Shutdown(i32),
}

/// What has not ended by then is cancelled.
const SOON: Duration = Duration::from_millis(60);
/// For operations that something wakes.
const LATER: Duration = Duration::from_secs(3);

impl Op {
    /// Carries the operation out and says what came of it; `patient` if it may sleep.
    pub(crate) fn perform(
        &self,
        sock: &Sock,
        place: &Place,
        more: &Accepted,
        patient: bool,
    ) -> String {
        let limit = if patient { LATER } else { SOON };
        match *self {
            Op::Send(len, flags) => ended(uring::send(sock, &pattern(len), flags, limit), |n| {
                n.to_string()
            }),
            Op::Recv(len, flags) => {
                let mut data = vec![0; len];
                let result = uring::recv(sock, &mut data, flags, limit);
                ended(result, |n| bytes(&data[..n.min(len)]))
            }
            Op::Accept => ended(uring::accept(sock, libc::SOCK_NONBLOCK, limit), |child| {
                more.lock().expect("no panic before").push(child);
                "accepted".into()
            }),
            Op::Connect(to) => ended(uring::connect(sock, &place.address(to), limit), |_| {
                "0".into()
            }),
            Op::Poll(events) => ended(uring::poll(sock, events, limit), |bits| {
                mask(bits & (ALL_EVENTS | libc::POLLERR | libc::POLLHUP))
            }),
            Op::Shutdown(how) => ended(uring::shutdown(sock, how, limit), |_| "0".into()),
        }
    }
}

fn ended<T>(result: std::io::Result<Option<T>>, show: impl FnOnce(T) -> String) -> String {
    said(result, |outcome| {
        outcome.map_or_else(|| "sleeps".into(), show)
    })
}

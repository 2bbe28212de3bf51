// SPDX-License-Identifier: GPL-2.0

//! Trace points. They cost next to nothing while nobody looks at them.

use crate::{
    net::{
        NetId,
        Sock,
        TcpSocket, //
    },
    sys, //
};
use kernel::prelude::*;

/// Room for a text with its NUL.
const ROOM: usize = 96;

/// A text as C takes it; a longer one is cut.
fn text(text: &str) -> [u8; ROOM] {
    let mut out = [0; ROOM];
    for (to, from) in out.iter_mut().zip(text.bytes().take(ROOM - 1)) {
        *to = from;
    }
    out
}

/// Whether somebody looks at messages.
pub fn messages() -> bool {
    // SAFETY: No requirements.
    unsafe { sys::smc_rs_helper_trace_messages() }
}

/// A program wrote `len` bytes.
pub fn sendmsg(sock: &Sock, net: NetId, len: usize, device: &str) {
    let device = text(device);
    // SAFETY: The socket is borrowed, the text ends with a NUL.
    unsafe {
        sys::smc_rs_helper_trace_sendmsg(sock.as_ptr(), net.cookie(), len, device.as_ptr().cast())
    };
}

/// A program asked for `len` bytes.
pub fn recvmsg(sock: &Sock, net: NetId, len: usize, device: &str) {
    let device = text(device);
    // SAFETY: The socket is borrowed, the text ends with a NUL.
    unsafe {
        sys::smc_rs_helper_trace_recvmsg(sock.as_ptr(), net.cookie(), len, device.as_ptr().cast())
    };
}

/// A socket stays on TCP.
pub fn fallback(tcp: &TcpSocket, net: NetId, reason: u32) {
    let tcp = tcp.sock().as_ptr();
    // CAST: Shown as the kernel always did.
    // SAFETY: The socket is borrowed; only its address is looked at.
    unsafe { sys::smc_rs_helper_trace_fallback(tcp, tcp, net.cookie(), reason as c_int) };
}

/// The link of a group goes down.
pub fn link_down(group: u32, net: NetId, device: &str, why: &str) {
    let (device, why) = (text(device), text(why));
    // SAFETY: The texts end with a NUL.
    unsafe {
        sys::smc_rs_helper_trace_link_down(
            group,
            net.cookie(),
            0,
            device.as_ptr().cast(),
            why.as_ptr().cast(),
        )
    };
}

// SPDX-License-Identifier: GPL-2.0

//! Trace points. While nobody looks at one it costs a branch that is patched in place: its switch is
//! asked before anything is gathered for it.

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

/// Functions that say whether somebody looks at a trace point, by the name of its key.
macro_rules! switches {
    ($($(#[$attr:meta])* $name:ident: $key:ident;)*) => {$(
        $(#[$attr])*
        #[inline(always)]
        pub fn $name() -> bool {
            #[cfg(CONFIG_TRACEPOINTS)]
            {
                use kernel::{
                    bindings::tracepoint,
                    jump_label::static_branch_unlikely, //
                };

                #[allow(improper_ctypes, reason = "only its address is taken")]
                extern "C" {
                    static $key: tracepoint;
                }
                // SAFETY: The key is that of a trace point that the C part of this module defines.
                unsafe { static_branch_unlikely!($key, tracepoint, key) }
            }
            #[cfg(not(CONFIG_TRACEPOINTS))]
            false
        }
    )*};
}

switches! {
    /// Whether somebody looks at [`sendmsg`].
    watches_sendmsg: __tracepoint_smc_tx_sendmsg;
    /// Whether somebody looks at [`recvmsg`].
    watches_recvmsg: __tracepoint_smc_rx_recvmsg;
    /// Whether somebody looks at [`fallback`].
    watches_fallback: __tracepoint_smc_switch_to_fallback;
    /// Whether somebody looks at [`link_down`].
    watches_link_down: __tracepoint_smcr_link_down;
    /// Whether somebody looks at [`handshake_step`].
    watches_handshake_step: __tracepoint_smc_handshake_step;
    /// Whether somebody looks at [`handshake_end`].
    watches_handshake_end: __tracepoint_smc_handshake_end;
}

/// A program wrote `len` bytes.
pub fn sendmsg(sock: &Sock, net: NetId, len: usize, device: &str) {
    let device = text(device);
    // SAFETY: The socket is borrowed, the text ends with a NUL.
    unsafe {
        sys::smc_rs_helper_trace_sendmsg(sock.as_ptr(), net.cookie(), len, device.as_ptr().cast())
    };
}

/// A program read `len` bytes.
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

/// The link of a group, which had `state` until now, goes down.
pub fn link_down(group: u32, net: NetId, state: u8, device: &str, why: &str) {
    let (device, why) = (text(device), text(why));
    // SAFETY: The texts end with a NUL.
    unsafe {
        sys::smc_rs_helper_trace_link_down(
            group,
            net.cookie(),
            c_int::from(state),
            device.as_ptr().cast(),
            why.as_ptr().cast(),
        )
    };
}

/// Where a handshake takes place.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// Its connection.
    pub tcp: &'a TcpSocket,
    /// The namespace of that.
    pub net: NetId,
    /// This is the server's side.
    pub server: bool,
}

/// How a handshake ended. Numbers are shown as they are, but for `result`, which the header of the
/// trace points has words for.
#[derive(Clone, Copy)]
pub struct Outcome {
    /// What became of the connection.
    pub result: u8,
    /// Why, by our judgement; 0 for nothing to say.
    pub reason: u32,
    /// Why, by the peer's.
    pub peer_reason: u32,
    /// An errno, or 0.
    pub error: i32,
}

/// A step of a handshake is over, `us` microseconds after the one before. The header of the trace
/// points has words for the numbers of steps.
pub fn handshake_step(place: Place<'_>, step: u8, us: u64) {
    let sock = place.tcp.sock().as_ptr();
    // SAFETY: The socket is borrowed, and is one of TCP.
    unsafe {
        sys::smc_rs_helper_trace_handshake_step(sock, place.net.cookie(), place.server, step, us)
    };
}

/// A handshake is over, `us` microseconds after it began.
pub fn handshake_end(place: Place<'_>, outcome: Outcome, us: u64) {
    let sock = place.tcp.sock().as_ptr();
    // SAFETY: As above.
    unsafe {
        sys::smc_rs_helper_trace_handshake_end(
            sock,
            place.net.cookie(),
            place.server,
            outcome.result,
            outcome.reason,
            outcome.peer_reason,
            outcome.error,
            us,
        )
    };
}

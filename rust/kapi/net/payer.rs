// SPDX-License-Identifier: GPL-2.0

//! Who pays for the memory of a socket.
//!
//! C header: [`include/net/sock.h`](srctree/include/net/sock.h)

use super::{
    sock::Sock,
    tcp::TcpSocket, //
};
use crate::{
    mem::Payer,
    sys, //
};

impl Sock {
    /// The memory control group of whoever made the socket. Nobody pays where that is the root of all
    /// groups, or where the system does not charge for sockets. Any context.
    pub fn payer(&self) -> Payer {
        // SAFETY: The socket is valid by the type invariant, and the reference is given up.
        unsafe { Payer::from_raw(sys::smc_rs_helper_sock_payer(self.as_ptr())) }
    }
}

impl TcpSocket {
    /// From now on who pays for `owner` pays for this socket as well, and for what it has received
    /// already, unless somebody does already: nobody does for a connection that a kernel thread has
    /// accepted. Nobody else may use the socket yet. May sleep.
    pub fn charge_to(&self, owner: &Sock) {
        // SAFETY: Both sockets are valid; the socket lock of this one is not held, because nobody
        // else uses it.
        unsafe { sys::smc_rs_helper_sock_pay_for(owner.as_ptr(), self.sk()) };
    }
}

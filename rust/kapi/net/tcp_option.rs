// SPDX-License-Identifier: GPL-2.0

//! An option of 8 bytes in the opening segments of TCP connections, by which the two ends find out
//! whether both can do more than TCP.
//!
//! A connecting socket that called [`TcpSocket::offer_option`] sends the option in its SYN; a
//! listening one sends it in the SYN-ACK if the SYN had it. [`TcpSocket::option_seen`] tells the
//! client, [`TcpSocket::peer_offered_option`] the server, whether the other side did the same.
//!
//! There are two ways to get the option into the packets. Where TCP itself knows it
//! (`CONFIG_SMC`), TCP is told; elsewhere netfilter hooks do it, see `tcp_hooks.rs`. The
//! functions are the same.
//!
//! The option is left out, and the connection goes on without, where there is no room for it in the
//! TCP header, where the segment is signed or carries data, and in answers that are SYN cookies.

use super::{
    ns::{
        Net,
        NetId,
        NetRef, //
    },
    tcp::TcpSocket,
    tcp_events,
    tcp_header::OPTION_LEN,
    tcp_hooks::{
        self,
        HOOKS, //
    },
    tcp_linger, //
};
use crate::sys;
use kernel::{
    error::to_result,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    types::Opaque, //
};

/// The means to send and see the option in one network namespace.
///
/// Nothing is installed, and packets take no other way than usual, when there has been no
/// [`OptionUse`] for a few seconds.
#[pin_data]
pub struct OptionHooks {
    option: &'static [u8; OPTION_LEN],
    #[pin]
    ops: Opaque<[sys::nf_hook_ops; HOOKS]>,
    #[pin]
    users: Mutex<Users>,
}

/// Who uses the hooks.
struct Users {
    /// The namespace they were first used in.
    net: Option<NetId>,
    /// Number of uses; the hooks are registered while it is not 0, and some time longer.
    count: usize,
}

// SAFETY: `ops` is only touched by who registers or unregisters the hooks, and these are serialised
// by `users` and the lock of the list of lingering hooks.
unsafe impl Send for OptionHooks {}
// SAFETY: As above.
unsafe impl Sync for OptionHooks {}

impl OptionHooks {
    /// Prepares a namespace. `option` is what goes into the header, NOPs for alignment included.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(option: &'static [u8; OPTION_LEN]) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                option,
                ops <- Opaque::ffi_init(move |ops: *mut [sys::nf_hook_ops; HOOKS]| {
                    // SAFETY: `ops` is valid for writing.
                    unsafe { ops.write(tcp_hooks::table(option)) }
                }),
                users <- new_mutex!(Users { net: None, count: 0 }, "tcp_option_users"),
            }),
            GFP_KERNEL,
        )
    }

    /// Makes the option work in `net` while the result exists. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if these hooks were used in another namespace before, `ENOMEM`.
    pub fn start_use(self: &Arc<Self>, net: &Net) -> Result<OptionUse> {
        let mut users = self.users.lock();
        if *users.net.get_or_insert(net.id()) != net.id() {
            return Err(EINVAL);
        }
        if users.count == 0 && !tcp_linger::revive(self, net) {
            self.register(net)?;
        }
        users.count += 1;
        drop(users);
        Ok(OptionUse {
            hooks: self.clone(),
            net: net.to_ref(),
        })
    }

    fn register(&self, net: &Net) -> Result {
        // SAFETY: The table is pinned and stays until it is unregistered.
        to_result(unsafe {
            sys::nf_register_net_hooks(
                net.as_ptr(),
                self.ops.get().cast(),
                tcp_hooks::needed() as c_uint,
            )
        })?;
        // SAFETY: No requirements.
        unsafe { sys::smc_rs_helper_tcp_native_option_use(1) };
        Ok(())
    }

    /// Undoes `register`. May sleep.
    pub(crate) fn unregister(&self, net: &Net) {
        // SAFETY: Registered by `register` with the same arguments.
        unsafe {
            sys::smc_rs_helper_tcp_native_option_use(-1);
            sys::nf_unregister_net_hooks(
                net.as_ptr(),
                self.ops.get().cast(),
                tcp_hooks::needed() as c_uint,
            );
        }
    }
}

/// Keeps the option working in a namespace. Dropping it may sleep.
pub struct OptionUse {
    hooks: Arc<OptionHooks>,
    net: NetRef,
}

impl Drop for OptionUse {
    fn drop(&mut self) {
        let mut users = self.hooks.users.lock();
        users.count -= 1;
        if users.count == 0 && !tcp_linger::keep(&self.hooks, &self.net) {
            self.hooks.unregister(&self.net);
        }
    }
}

impl OptionUse {
    /// The option.
    pub fn option(&self) -> &'static [u8; OPTION_LEN] {
        self.hooks.option
    }
}

impl TcpSocket {
    /// Offers the option when this socket connects. To be called before that.
    ///
    /// # Errors
    ///
    /// `EBUSY` if somebody else has taken over the callbacks of the socket, `ENOMEM`.
    pub fn offer_option(&self) -> Result {
        // SAFETY: The socket is a TCP socket.
        unsafe { sys::smc_rs_helper_tcp_native_option_set(self.sk(), true) };
        tcp_events::set_offer(self.sock(), true)
    }

    /// Answers the option on connections that this socket, which is to listen, is asked for.
    ///
    /// # Errors
    ///
    /// Those of [`TcpSocket::offer_option`].
    pub fn answer_option(&self) -> Result {
        self.save_syn()?;
        self.offer_option()
    }

    /// Pauses answering the option, or goes on with it. Does nothing where a program wants to see
    /// SYN packets itself: what it is shown would say that they were answered. May sleep.
    ///
    /// # Errors
    ///
    /// Those of `setsockopt`.
    pub fn suspend_answers(&self, suspend: bool) -> Result {
        // SAFETY: The function has no requirements.
        if unsafe { sys::smc_rs_helper_tcp_native_option() } {
            // SAFETY: The socket is a TCP socket.
            unsafe { sys::smc_rs_helper_tcp_native_option_set(self.sk(), !suspend) };
            return Ok(());
        }
        if self.saved_syn_is_ours() {
            self.keep_saving_syn(!suspend)?;
        }
        Ok(())
    }

    /// Ends offering and answering.
    pub fn withdraw_option(&self) {
        // SAFETY: The socket is a TCP socket.
        unsafe { sys::smc_rs_helper_tcp_native_option_set(self.sk(), false) };
        // This fails only for a socket that never offered anything.
        let _ = tcp_events::set_offer(self.sock(), false);
    }

    /// Whether the answer to our SYN had the option. To be asked once connected.
    pub fn option_seen(&self) -> bool {
        // SAFETY: The socket is a TCP socket; the functions have no other requirements.
        unsafe {
            if sys::smc_rs_helper_tcp_native_option() {
                return sys::smc_rs_helper_tcp_native_option_seen(self.sk());
            }
        }
        tcp_events::option_seen(self.sock())
    }

    /// Whether the SYN of this accepted connection had the option, which means that our answer had
    /// it as well. To be asked once: the saved SYN is then freed, unless the user wants it.
    pub fn peer_offered_option(&self, option: &[u8; OPTION_LEN]) -> bool {
        // SAFETY: The socket is a TCP socket; the functions have no other requirements.
        unsafe {
            if sys::smc_rs_helper_tcp_native_option() {
                return sys::smc_rs_helper_tcp_native_option_kept(self.sk());
            }
        }
        let lock = self.sock().lock();
        let (mut len, mut offset) = (0, 0);
        // SAFETY: The socket is a TCP socket, and its lock is held until the headers are freed.
        let offered = unsafe {
            let syn = sys::smc_rs_helper_tcp_saved_syn(self.sk(), &mut len, &mut offset);
            tcp_hooks::syn_has_option(syn, len, offset, option)
        };
        if self.saved_syn_is_ours() {
            // SAFETY: As above.
            unsafe { sys::smc_rs_helper_tcp_saved_syn_free(self.sk()) };
        }
        drop(lock);
        offered
    }
}

// SPDX-License-Identifier: GPL-2.0

//! Netfilter hooks that put an option into the opening segments of marked TCP sockets, and notice
//! it in the answers they get.
//!
//! Outgoing packets are changed before all other hooks, so that connection tracking, filters and
//! address translation see them as they leave; incoming ones are looked at after all other hooks
//! have let them pass. Forwarded packets do not come here.
//!
//! C header: [`include/linux/netfilter.h`](srctree/include/linux/netfilter.h)

use super::{
    tcp_events,
    tcp_header::{
        ack_number,
        append,
        header_len,
        opening,
        ports,
        scan,
        IpVersion,
        Opening,
        Options,
        MAX_HEADER,
        MIN_HEADER,
        OPTION_LEN, //
    }, //
};
use crate::sys;
use core::{
    ptr::addr_of,
    slice, //
};
use kernel::prelude::*;

/// Whether TCP itself knows the option, so that the hooks have little to do.
fn native() -> bool {
    // SAFETY: No requirements.
    unsafe { sys::smc_rs_helper_tcp_native_option() }
}

/// How often an opening segment with the option may be lost before it is sent without: something on
/// the way may throw away segments with options it does not know.
const MAX_RETRIES: c_uint = 1;

/// Number of hooks that a namespace can have.
pub(crate) const HOOKS: usize = 4;

/// Number of hooks at the beginning of the table that a namespace needs.
pub(crate) fn needed() -> usize {
    if native() {
        2
    } else {
        HOOKS
    }
}

/// A hook function.
type Hook =
    unsafe extern "C" fn(*mut c_void, *mut sys::sk_buff, *const sys::nf_hook_state) -> c_uint;

/// The hooks, with `option` as the option to add and to look for. Where TCP itself knows the option,
/// the first two hooks only take it away from a socket whose opening segments are lost.
pub(crate) fn table(option: &'static [u8; OPTION_LEN]) -> [sys::nf_hook_ops; HOOKS] {
    let entry = |hook, pf: u32, hooknum, priority| sys::nf_hook_ops {
        hook,
        priv_: option.as_ptr().cast_mut().cast(),
        pf: pf as u8,
        hooknum,
        priority,
        ..pin_init::zeroed()
    };
    let (v4, v6) = (sys::NFPROTO_IPV4, sys::NFPROTO_IPV6);
    let (first, last) = (c_int::MIN, c_int::MAX);
    let (hook_in, hook_out) = (
        sys::nf_inet_hooks_NF_INET_LOCAL_IN,
        sys::nf_inet_hooks_NF_INET_LOCAL_OUT,
    );
    let (send_v4, send_v6): (Hook, Hook) = if native() {
        (out_native, out_native)
    } else {
        (out_v4, out_v6)
    };
    [
        entry(Some(send_v4), v4, hook_out, first),
        entry(Some(send_v6), v6, hook_out, first),
        entry(Some(in_v4), v4, hook_in, last),
        entry(Some(in_v6), v6, hook_in, last),
    ]
}

/// A packet in a hook.
///
/// # Invariants
///
/// The buffer is valid and belongs to the hook while it runs.
struct Packet(*mut sys::sk_buff);

impl Packet {
    /// Copies bytes, counted from the IP header.
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.read_to(offset, &mut bytes).then_some(bytes)
    }

    fn read_to(&self, offset: usize, to: &mut [u8]) -> bool {
        // SAFETY: The buffer is valid by the type invariant; the function checks its length.
        unsafe {
            sys::smc_rs_helper_skb_copy(
                self.0,
                offset as c_uint,
                to.as_mut_ptr().cast(),
                to.len() as c_uint,
            )
        }
    }

    /// Walks the options of the TCP header at `offset`, of which the fixed part is `fixed`. Also
    /// returns its length.
    fn scan(
        &self,
        offset: usize,
        fixed: &[u8; MIN_HEADER],
        option: &[u8; OPTION_LEN],
    ) -> Option<(Options, usize)> {
        let len = header_len(fixed)?;
        let mut header = [0; MAX_HEADER];
        let header = header.get_mut(..len)?;
        self.read_to(offset, header)
            .then(|| (scan(header, option), len))
    }

    /// Length from the IP header on.
    fn len(&self) -> usize {
        // SAFETY: The buffer is valid by the type invariant.
        unsafe { sys::smc_rs_helper_skb_len(self.0) as usize }
    }
}

/// Which opening segments of this packet's socket are to have the option.
///
/// A SYN-ACK is sent by a request socket, of which the listener is asked; it gets the option only
/// if the SYN it answers had it, which the listener keeps because it saves SYN packets.
fn wants_option(packet: &Packet, option: &[u8; OPTION_LEN]) -> Option<Opening> {
    // SAFETY: The packet is valid and holds its socket.
    let sk = unsafe { sys::smc_rs_helper_skb_fullsock(packet.0) };
    if !sk.is_null() {
        // SAFETY: A full socket, held by the packet.
        return unsafe { tcp_events::offers_option(sk) }.then_some(Opening::Syn);
    }
    // SAFETY: The packet is valid and holds its socket.
    let listener = unsafe { sys::smc_rs_helper_skb_listener(packet.0) };
    // SAFETY: A request socket holds its listener.
    if listener.is_null() || !unsafe { tcp_events::offers_option(listener) } {
        return None;
    }
    let (mut len, mut offset) = (0, 0);
    // SAFETY: The packet is that of a request socket.
    let syn = unsafe { sys::smc_rs_helper_skb_saved_syn(packet.0, &mut len, &mut offset) };
    // SAFETY: The saved headers have `len` bytes and are freed a grace period after they were
    // taken away, while hooks run under RCU.
    unsafe { syn_has_option(syn, len, offset, option) }.then_some(Opening::SynAck)
}

/// Whether saved SYN headers contain `option`.
///
/// # Safety
///
/// `syn` is null or valid for `len` bytes.
pub(crate) unsafe fn syn_has_option(
    syn: *const u8,
    len: u32,
    offset: u32,
    option: &[u8; OPTION_LEN],
) -> bool {
    if syn.is_null() || len <= offset {
        return false;
    }
    let len = ((len - offset) as usize).min(MAX_HEADER);
    // SAFETY: As promised by the caller.
    let header = unsafe { slice::from_raw_parts(syn.add(offset as usize), len) };
    scan(header, option).wanted
}

/// Adds the option to an outgoing packet if it is to have it.
fn outgoing(packet: &Packet, ip: IpVersion, option: &[u8; OPTION_LEN]) -> Option<()> {
    let wanted = wants_option(packet, option)?;
    // SAFETY: The packet is valid.
    let tcp = unsafe { sys::smc_rs_helper_skb_transport_offset(packet.0) };
    let tcp = usize::try_from(tcp).ok()?;
    let fixed = packet.read::<MIN_HEADER>(tcp)?;
    if opening(&fixed)? != wanted {
        return None;
    }
    // SAFETY: The packet is valid and has a TCP socket, or it would not be wanted.
    if unsafe { sys::smc_rs_helper_skb_open_retries(packet.0) } > MAX_RETRIES {
        return None;
    }
    let (found, len) = packet.scan(tcp, &fixed, option)?;
    let fits = len + OPTION_LEN <= MAX_HEADER;
    // Data in a SYN belong to fast open, and what is signed must not be changed.
    let has_data = packet.len() != tcp + len;
    if found.wanted || found.signed || found.broken || !fits || has_data {
        return None;
    }
    let headers = tcp + len;
    // SAFETY: The packet is valid and belongs to the hook.
    let start = unsafe {
        sys::smc_rs_helper_skb_open_gap(
            packet.0,
            tcp as c_uint,
            headers as c_uint,
            OPTION_LEN as c_uint,
        )
    };
    if start.is_null() {
        return None;
    }
    // SAFETY: The gap made the headers writable and that much longer.
    let bytes = unsafe { slice::from_raw_parts_mut(start, headers + OPTION_LEN) };
    // SAFETY: The packet is valid.
    let partial = unsafe { sys::smc_rs_helper_skb_csum_partial(packet.0) };
    append(bytes, ip, tcp, option, partial)
}

/// Notes whether an incoming SYN-ACK for a connecting socket of ours has the option.
fn incoming(
    packet: &Packet,
    tcp: usize,
    option: &[u8; OPTION_LEN],
    lookup: impl FnOnce(u16, u16) -> *mut sys::sock,
) -> Option<()> {
    let fixed = packet.read::<MIN_HEADER>(tcp)?;
    if opening(&fixed)? != Opening::SynAck {
        return None;
    }
    let seen = packet.scan(tcp, &fixed, option)?.0.wanted;
    // SAFETY: The packet is valid and holds its socket.
    let early = unsafe { sys::smc_rs_helper_skb_fullsock(packet.0) };
    if !early.is_null() {
        // SAFETY: A full socket, held by the packet.
        unsafe { note(early, &fixed, seen) };
        return Some(());
    }
    let (source, dest) = ports(&fixed);
    let sk = lookup(source, dest);
    if !sk.is_null() {
        // SAFETY: The look-up took a reference; what is not a full socket has another state.
        unsafe {
            note(sk, &fixed, seen);
            sys::smc_rs_helper_sock_gen_put(sk);
        }
    }
    Some(())
}

/// Notes what a SYN-ACK says, if it is the one `sk` waits for: it must acknowledge the SYN, as
/// anybody could send one that does not. The number to compare with is that of the next byte to be
/// written: "next to be sent" is advanced after the SYN has left, which is too late on a fast path.
///
/// # Safety
///
/// `sk` is held.
unsafe fn note(sk: *mut sys::sock, fixed: &[u8; MIN_HEADER], seen: bool) {
    // SAFETY: The state is in the part that all kinds of sockets have.
    let state = unsafe { addr_of!((*sk).__sk_common.skc_state).read_volatile() };
    if u32::from(state) != sys::TCP_SYN_SENT {
        return;
    }
    // SAFETY: In this state it is a full TCP socket.
    unsafe {
        if tcp_events::offers_option(sk)
            && sys::smc_rs_helper_tcp_write_seq(sk) == ack_number(fixed)
        {
            tcp_events::note_option(sk, seen);
        }
    }
}

/// The option in a hook's private pointer.
///
/// # Safety
///
/// `priv_` is from [`table`].
unsafe fn option_of(priv_: *mut c_void) -> &'static [u8; OPTION_LEN] {
    // SAFETY: As promised by the caller.
    unsafe { &*priv_.cast() }
}

/// # Safety
///
/// This and the functions below are called by netfilter only.
unsafe extern "C" fn out_v4(
    priv_: *mut c_void,
    skb: *mut sys::sk_buff,
    _state: *const sys::nf_hook_state,
) -> c_uint {
    // SAFETY: `priv_` is from the table.
    let option = unsafe { option_of(priv_) };
    // INVARIANT: The packet is that of the hook.
    outgoing(&Packet(skb), IpVersion::V4, option);
    sys::NF_ACCEPT
}

/// # Safety
///
/// Only netfilter calls this, for a hook of the table below.
unsafe extern "C" fn out_v6(
    priv_: *mut c_void,
    skb: *mut sys::sk_buff,
    _state: *const sys::nf_hook_state,
) -> c_uint {
    // SAFETY: `priv_` is from the table.
    let option = unsafe { option_of(priv_) };
    // INVARIANT: The packet is that of the hook.
    outgoing(&Packet(skb), IpVersion::V6, option);
    sys::NF_ACCEPT
}

/// Where TCP itself puts the option into opening segments: after as many losses as in [`outgoing`]
/// the next one is to be sent without.
///
/// # Safety
///
/// Only netfilter calls this, for a hook of the table below.
unsafe extern "C" fn out_native(
    _priv: *mut c_void,
    skb: *mut sys::sk_buff,
    _state: *const sys::nf_hook_state,
) -> c_uint {
    // SAFETY: The packet is valid and holds its socket, which sends the packet under its lock; it
    // has retries once it is known to be a TCP socket of ours.
    unsafe {
        let sk = sys::smc_rs_helper_skb_fullsock(skb);
        if !sk.is_null()
            && tcp_events::offers_option(sk)
            && u32::from(addr_of!((*sk).__sk_common.skc_state).read_volatile()) == sys::TCP_SYN_SENT
            && sys::smc_rs_helper_skb_open_retries(skb) >= MAX_RETRIES
        {
            sys::smc_rs_helper_tcp_native_option_set(sk, false);
        }
    }
    sys::NF_ACCEPT
}

/// # Safety
///
/// Only netfilter calls this, for a hook of the table below.
unsafe extern "C" fn in_v4(
    priv_: *mut c_void,
    skb: *mut sys::sk_buff,
    state: *const sys::nf_hook_state,
) -> c_uint {
    // SAFETY: `priv_` is from the table.
    let option = unsafe { option_of(priv_) };
    // INVARIANT: The packet is that of the hook.
    let packet = Packet(skb);
    if let Some(ip) = packet.read::<20>(0) {
        if u32::from(ip[9]) == sys::IPPROTO_TCP {
            let lookup = |source: u16, dest: u16| {
                let from = u32::from_ne_bytes([ip[12], ip[13], ip[14], ip[15]]);
                let to = u32::from_ne_bytes([ip[16], ip[17], ip[18], ip[19]]);
                // SAFETY: The state is valid while the hook runs.
                unsafe {
                    sys::smc_rs_helper_tcp_lookup_v4(
                        (*state).net,
                        skb,
                        from,
                        source.to_be(),
                        to,
                        dest,
                    )
                }
            };
            incoming(&packet, usize::from(ip[0] & 0xf) * 4, option, lookup);
        }
    }
    sys::NF_ACCEPT
}

/// # Safety
///
/// Only netfilter calls this, for a hook of the table below.
unsafe extern "C" fn in_v6(
    priv_: *mut c_void,
    skb: *mut sys::sk_buff,
    state: *const sys::nf_hook_state,
) -> c_uint {
    // SAFETY: `priv_` is from the table.
    let option = unsafe { option_of(priv_) };
    // INVARIANT: The packet is that of the hook.
    let packet = Packet(skb);
    // SAFETY: The IPv6 header of an incoming packet is linear.
    let tcp = unsafe { sys::smc_rs_helper_skb_ipv6_tcp_offset(skb) };
    if let (Ok(tcp), Some(ip)) = (usize::try_from(tcp), packet.read::<40>(0)) {
        let lookup = |source: u16, dest: u16| {
            // CAST: An IPv6 address has no alignment that the bytes do not have.
            let (from, to) = (ip[8..24].as_ptr().cast(), ip[24..40].as_ptr().cast());
            // SAFETY: The addresses are copied; the state is valid while the hook runs.
            unsafe {
                sys::smc_rs_helper_tcp_lookup_v6((*state).net, skb, from, source.to_be(), to, dest)
            }
        };
        incoming(&packet, tcp, option, lookup);
    }
    sys::NF_ACCEPT
}

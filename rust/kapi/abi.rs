// SPDX-License-Identifier: GPL-2.0

//! Compares the layout of C structures as the C compiler sees it with the generated bindings.
//!
//! The two read the same headers with different compilers and options; a difference would corrupt
//! memory, so the module refuses to load.

use crate::sys;
use kernel::prelude::*;

/// A size or offset as Rust sees it, in the order of the C table.
const RUST: &[(&CStr, usize)] = &[
    (c"struct sock", size_of::<sys::sock>()),
    (
        c"sock.sk_wq",
        core::mem::offset_of!(sys::sock, __bindgen_anon_1),
    ),
    (
        c"sock.sk_socket",
        core::mem::offset_of!(sys::sock, sk_socket),
    ),
    (c"sock.sk_err", core::mem::offset_of!(sys::sock, sk_err)),
    (
        c"sock.sk_shutdown",
        core::mem::offset_of!(sys::sock, sk_shutdown),
    ),
    (
        c"sock.sk_user_data",
        core::mem::offset_of!(sys::sock, sk_user_data),
    ),
    (
        c"sock.sk_data_ready",
        core::mem::offset_of!(sys::sock, sk_data_ready),
    ),
    (
        c"sock.sk_state_change",
        core::mem::offset_of!(sys::sock, sk_state_change),
    ),
    (
        c"sock.sk_error_report",
        core::mem::offset_of!(sys::sock, sk_error_report),
    ),
    (
        c"sock.sk_destruct",
        core::mem::offset_of!(sys::sock, sk_destruct),
    ),
    (c"sock.sk_ino", core::mem::offset_of!(sys::sock, sk_ino)),
    (c"struct socket", size_of::<sys::socket>()),
    (c"socket.ops", core::mem::offset_of!(sys::socket, ops)),
    (c"socket.wq", core::mem::offset_of!(sys::socket, wq)),
    (c"struct socket_wq", size_of::<sys::socket_wq>()),
    (c"struct proto", size_of::<sys::proto>()),
    (
        c"proto.obj_size",
        core::mem::offset_of!(sys::proto, obj_size),
    ),
    (c"proto.owner", core::mem::offset_of!(sys::proto, owner)),
    (c"proto.name", core::mem::offset_of!(sys::proto, name)),
    (c"struct proto_ops", size_of::<sys::proto_ops>()),
    (
        c"proto_ops.sendmsg",
        core::mem::offset_of!(sys::proto_ops, sendmsg),
    ),
    (
        c"proto_ops.splice_read",
        core::mem::offset_of!(sys::proto_ops, splice_read),
    ),
    (
        c"proto_ops.peek_len",
        core::mem::offset_of!(sys::proto_ops, peek_len),
    ),
    (
        c"struct net_proto_family",
        size_of::<sys::net_proto_family>(),
    ),
    (c"struct inet_protosw", size_of::<sys::inet_protosw>()),
    (c"struct inet_sock", size_of::<sys::inet_sock>()),
    (
        c"inet_sock.pinet6",
        core::mem::offset_of!(sys::inet_sock, pinet6),
    ),
    (c"struct ipv6_pinfo", size_of::<sys::ipv6_pinfo>()),
    (
        c"struct pernet_operations",
        size_of::<sys::pernet_operations>(),
    ),
    (c"struct nf_hook_ops", size_of::<sys::nf_hook_ops>()),
    (
        c"nf_hook_ops.priority",
        core::mem::offset_of!(sys::nf_hook_ops, priority),
    ),
    (c"struct nf_hook_state", size_of::<sys::nf_hook_state>()),
    (c"struct msghdr", size_of::<sys::msghdr>()),
    (
        c"msghdr.msg_iter",
        core::mem::offset_of!(sys::msghdr, msg_iter),
    ),
    (
        c"msghdr.msg_flags",
        core::mem::offset_of!(sys::msghdr, msg_flags),
    ),
    (
        c"struct proto_accept_arg",
        size_of::<sys::proto_accept_arg>(),
    ),
    (
        c"struct wait_queue_entry",
        size_of::<sys::wait_queue_entry>(),
    ),
    (c"struct rw_semaphore", size_of::<sys::rw_semaphore>()),
    (c"struct inode", size_of::<sys::inode>()),
    (c"inode.i_ino", core::mem::offset_of!(sys::inode, i_ino)),
    (c"sockptr_t", size_of::<sys::sockptr_t>()),
    (c"struct genl_family", size_of::<sys::genl_family>()),
    (
        c"genl_family.ops",
        core::mem::offset_of!(sys::genl_family, ops),
    ),
    (c"struct genl_ops", size_of::<sys::genl_ops>()),
    (c"struct genl_info", size_of::<sys::genl_info>()),
    (
        c"genl_info.attrs",
        core::mem::offset_of!(sys::genl_info, attrs),
    ),
    (c"struct nla_policy", size_of::<sys::nla_policy>()),
    (
        c"struct netlink_callback",
        size_of::<sys::netlink_callback>(),
    ),
];

/// Checks all entries. To be called before anything else of this crate is used.
///
/// # Errors
///
/// `ENOEXEC` if there is a difference; the log says where.
pub fn check() -> Result {
    // SAFETY: No requirements.
    if unsafe { sys::smc_rs_helper_abi_len() } != RUST.len() {
        pr_err!("The tables of structure layouts have different lengths: rebuild the module.\n");
        return Err(ENOEXEC);
    }
    let mut result = Ok(());
    for (index, (name, here)) in RUST.iter().enumerate() {
        // SAFETY: The index is within the table.
        let there = unsafe { sys::smc_rs_helper_abi_value(index) };
        if there != *here {
            let name = name.to_str().unwrap_or("?");
            pr_err!("{name}: the C compiler says {there}, the bindings {here}: rebuild the module for this kernel.\n");
            result = Err(ENOEXEC);
        }
    }
    result
}

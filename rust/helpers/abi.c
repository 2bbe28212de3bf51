// SPDX-License-Identifier: GPL-2.0
/* Layout of the structures that Rust reads and writes itself, in the order of rust/kapi/abi.rs. */
#include <linux/fs.h>
#include <linux/ipv6.h>
#include <linux/net.h>
#include <linux/netfilter.h>
#include <linux/netlink.h>
#include <linux/rwsem.h>
#include <linux/stddef.h>
#include <linux/wait.h>
#include <net/genetlink.h>
#include <net/inet_sock.h>
#include <net/net_namespace.h>
#include <net/protocol.h>
#include <net/sock.h>
#include "smc_rs.h"

static const size_t abi[] = {
	sizeof(struct sock),
	offsetof(struct sock, sk_wq),
	offsetof(struct sock, sk_socket),
	offsetof(struct sock, sk_err),
	offsetof(struct sock, sk_shutdown),
	offsetof(struct sock, sk_user_data),
	offsetof(struct sock, sk_data_ready),
	offsetof(struct sock, sk_state_change),
	offsetof(struct sock, sk_error_report),
	offsetof(struct sock, sk_destruct),
	offsetof(struct sock, sk_ino),
	sizeof(struct socket),
	offsetof(struct socket, ops),
	offsetof(struct socket, wq),
	sizeof(struct socket_wq),
	sizeof(struct proto),
	offsetof(struct proto, obj_size),
	offsetof(struct proto, owner),
	offsetof(struct proto, name),
	sizeof(struct proto_ops),
	offsetof(struct proto_ops, sendmsg),
	offsetof(struct proto_ops, splice_read),
	offsetof(struct proto_ops, peek_len),
	sizeof(struct net_proto_family),
	sizeof(struct inet_protosw),
	sizeof(struct inet_sock),
	offsetof(struct inet_sock, pinet6),
	sizeof(struct ipv6_pinfo),
	sizeof(struct pernet_operations),
	sizeof(struct nf_hook_ops),
	offsetof(struct nf_hook_ops, priority),
	sizeof(struct nf_hook_state),
	sizeof(struct msghdr),
	offsetof(struct msghdr, msg_iter),
	offsetof(struct msghdr, msg_flags),
	sizeof(struct proto_accept_arg),
	sizeof(struct wait_queue_entry),
	sizeof(struct rw_semaphore),
	sizeof(struct inode),
	offsetof(struct inode, i_ino),
	sizeof(sockptr_t),
	sizeof(struct genl_family),
	offsetof(struct genl_family, ops),
	sizeof(struct genl_ops),
	sizeof(struct genl_info),
	offsetof(struct genl_info, attrs),
	sizeof(struct nla_policy),
	sizeof(struct netlink_callback),
};

size_t smc_rs_helper_abi_len(void)
{
	return ARRAY_SIZE(abi);
}

size_t smc_rs_helper_abi_value(size_t index)
{
	return index < ARRAY_SIZE(abi) ? abi[index] : 0;
}

// SPDX-License-Identifier: GPL-2.0
/* Shims for linux/sock_diag.h: lists of sockets. */
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <net/inet_sock.h>
#include <net/netlink.h>
#include <net/sock.h>
#include "smc_rs.h"

int smc_rs_helper_diag_start(struct sk_buff *skb, const struct nlmsghdr *nlh,
			     int (*dump)(struct sk_buff *skb, struct netlink_callback *cb))
{
	/* No least size: what a part may have is what the reader has room for, a page at least. */
	struct netlink_dump_control control = { .dump = dump };

	return netlink_dump_start(sock_net(skb->sk)->diag_nlsk, skb, nlh, &control);
}

struct net *smc_rs_helper_diag_net(const struct netlink_callback *cb)
{
	return sock_net(cb->skb->sk);
}

const void *smc_rs_helper_diag_request(const struct nlmsghdr *nlh, size_t *len)
{
	*len = nlmsg_len(nlh);
	return nlmsg_data(nlh);
}

u32 smc_rs_helper_diag_uid(const struct netlink_callback *cb, const struct sock *sk)
{
	return from_kuid_munged(sk_user_ns(NETLINK_CB(cb->skb).sk), sk_uid(sk));
}

void *smc_rs_helper_diag_begin(struct sk_buff *skb, const struct netlink_callback *cb,
			       const void *head, size_t len)
{
	struct nlmsghdr *nlh = nlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
					 cb->nlh->nlmsg_type, len, NLM_F_MULTI);

	if (nlh)
		memcpy(nlmsg_data(nlh), head, len);
	return nlh;
}

void smc_rs_helper_diag_end(struct sk_buff *skb, void *nlh)
{
	nlmsg_end(skb, nlh);
}

void smc_rs_helper_diag_cancel(struct sk_buff *skb, void *nlh)
{
	nlmsg_cancel(skb, nlh);
}

void smc_rs_helper_diag_cookie(struct sock *sk, u32 cookie[2])
{
	sock_diag_save_cookie(sk, cookie);
}

void smc_rs_helper_diag_addresses(const struct sock *sk, struct inet_diag_sockid *id)
{
	id->idiag_sport = htons(READ_ONCE(sk->sk_num));
	id->idiag_dport = READ_ONCE(sk->sk_dport);
	id->idiag_if = READ_ONCE(sk->sk_bound_dev_if);
#if IS_ENABLED(CONFIG_IPV6)
	if (READ_ONCE(sk->sk_family) == AF_INET6) {
		memcpy(id->idiag_src, &sk->sk_v6_rcv_saddr, sizeof(id->idiag_src));
		memcpy(id->idiag_dst, &sk->sk_v6_daddr, sizeof(id->idiag_dst));
		return;
	}
#endif
	id->idiag_src[0] = READ_ONCE(sk->sk_rcv_saddr);
	id->idiag_dst[0] = READ_ONCE(sk->sk_daddr);
}

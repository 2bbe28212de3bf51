// SPDX-License-Identifier: GPL-2.0
/* Shims for looking at and widening TCP headers in a netfilter hook. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/mutex.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <net/inet6_hashtables.h>
#include <net/inet_hashtables.h>
#include <net/inet_sock.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/request_sock.h>
#include <net/route.h>
#include <net/tcp.h>
#include "smc_rs.h"

unsigned int smc_rs_helper_skb_len(const struct sk_buff *skb)
{
	return skb->len;
}

struct sock *smc_rs_helper_skb_fullsock(const struct sk_buff *skb)
{
	return skb->sk && sk_fullsock(skb->sk) ? skb->sk : NULL;
}

unsigned int smc_rs_helper_skb_open_retries(const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;

	if (READ_ONCE(sk->sk_state) == TCP_NEW_SYN_RECV)
		return inet_reqsk(sk)->num_timeout;
	return inet_csk(sk)->icsk_retransmits;
}

int smc_rs_helper_skb_transport_offset(const struct sk_buff *skb)
{
	return skb_transport_header_was_set(skb) ? skb_transport_offset(skb) : -1;
}

struct sock *smc_rs_helper_skb_listener(const struct sk_buff *skb)
{
	if (!skb->sk || READ_ONCE(skb->sk->sk_state) != TCP_NEW_SYN_RECV)
		return NULL;
	return inet_reqsk(skb->sk)->rsk_listener;
}

const u8 *smc_rs_helper_skb_saved_syn(const struct sk_buff *skb, u32 *len, u32 *tcp_offset)
{
	const struct saved_syn *syn = READ_ONCE(inet_reqsk(skb->sk)->saved_syn);

	if (!syn)
		return NULL;
	*tcp_offset = syn->mac_hdrlen + syn->network_hdrlen;
	*len = tcp_saved_syn_len(syn);
	return syn->data;
}

int smc_rs_helper_skb_ipv6_tcp_offset(const struct sk_buff *skb)
{
	u8 nexthdr = ipv6_hdr(skb)->nexthdr;
	__be16 fragment;
	int offset = sizeof(struct ipv6hdr);

	if (nexthdr != IPPROTO_TCP)
		offset = ipv6_skip_exthdr(skb, offset, &nexthdr, &fragment);
	return nexthdr == IPPROTO_TCP ? offset : -1;
}

bool smc_rs_helper_skb_copy(const struct sk_buff *skb, unsigned int offset, void *to,
			    unsigned int len)
{
	return !skb_copy_bits(skb, offset, to, len);
}

u8 *smc_rs_helper_skb_open_gap(struct sk_buff *skb, unsigned int tcp_offset,
			       unsigned int header_len, unsigned int gap)
{
	if (!pskb_may_pull(skb, header_len) || skb_cow_head(skb, gap))
		return NULL;
	skb_push(skb, gap);
	memmove(skb->data, skb->data + gap, header_len);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, tcp_offset);
	if (skb->ip_summed == CHECKSUM_PARTIAL)
		skb->csum_start -= gap;
	return skb->data;
}

bool smc_rs_helper_skb_csum_partial(const struct sk_buff *skb)
{
	return skb->ip_summed == CHECKSUM_PARTIAL;
}

struct sock *smc_rs_helper_tcp_lookup_v4(struct net *net, const struct sk_buff *skb,
					 __be32 saddr, __be16 sport, __be32 daddr, u16 dport)
{
	return __inet_lookup_established(net, saddr, sport, daddr, dport, inet_iif(skb),
					 inet_sdif(skb));
}

struct sock *smc_rs_helper_tcp_lookup_v6(struct net *net, const struct sk_buff *skb,
					 const struct in6_addr *saddr, __be16 sport,
					 const struct in6_addr *daddr, u16 dport)
{
#if IS_ENABLED(CONFIG_IPV6)
	return __inet6_lookup_established(net, saddr, sport, daddr, dport, inet6_iif(skb),
					  inet6_sdif(skb));
#else
	return NULL;
#endif
}

void smc_rs_helper_sock_gen_put(struct sock *sk)
{
	sock_gen_put(sk);
}

static DEFINE_MUTEX(linger_mutex);

static void linger_expired(struct work_struct *work)
{
	smc_rs_linger_expired();
}

static DECLARE_DELAYED_WORK(linger_work, linger_expired);

void smc_rs_helper_linger_lock(void)
{
	mutex_lock(&linger_mutex);
}

void smc_rs_helper_linger_unlock(void)
{
	mutex_unlock(&linger_mutex);
}

void smc_rs_helper_linger_arm(unsigned int ms)
{
	/* Does nothing if the work is waiting already: it looks at everything. */
	schedule_delayed_work(&linger_work, msecs_to_jiffies(ms));
}

void smc_rs_helper_linger_cancel(void)
{
	cancel_delayed_work_sync(&linger_work);
}

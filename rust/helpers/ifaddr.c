// SPDX-License-Identifier: GPL-2.0

/* Addresses of the interface that a TCP connection leaves through. */

#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <net/dst.h>
#include <net/if_inet6.h>
#include <net/inet_sock.h>
#include <net/sock.h>

#include "smc_rs.h"

int smc_rs_helper_ipv4_subnet(struct sock *sk, u8 *subnet, u8 *len)
{
	struct dst_entry *dst = sk_dst_get(sk);
	const struct in_ifaddr *ifa;
	struct in_device *in_dev;
	int ret = -ENOENT;

	if (!dst)
		return -ENOTCONN;
	rcu_read_lock();
	in_dev = __in_dev_get_rcu(dst_dev_rcu(dst));
	if (in_dev) {
		in_dev_for_each_ifa_rcu(ifa, in_dev) {
			__be32 net = ifa->ifa_address & ifa->ifa_mask;

			if (!inet_ifa_match(inet_sk(sk)->inet_saddr, ifa))
				continue;
			memcpy(subnet, &net, sizeof(net));
			*len = ifa->ifa_prefixlen;
			ret = 0;
			break;
		}
	}
	rcu_read_unlock();
	dst_release(dst);
	return ret;
}

int smc_rs_helper_ipv6_prefixes(struct sock *sk, struct smc_rs_ipv6_prefix *out, int room)
{
	struct dst_entry *dst = sk_dst_get(sk);
	const struct inet6_ifaddr *ifa;
	struct inet6_dev *in6_dev;
	int n = 0;

	if (!dst)
		return -ENOTCONN;
	rcu_read_lock();
	in6_dev = __in6_dev_get(dst_dev_rcu(dst));
	if (in6_dev) {
		list_for_each_entry_rcu(ifa, &in6_dev->addr_list, if_list) {
			struct in6_addr prefix;

			if (ipv6_addr_type(&ifa->addr) & IPV6_ADDR_LINKLOCAL)
				continue;
			if (n == room)
				break;
			ipv6_addr_prefix(&prefix, &ifa->addr, ifa->prefix_len);
			memcpy(out[n].prefix, &prefix, sizeof(prefix));
			out[n].len = ifa->prefix_len;
			n++;
		}
	}
	rcu_read_unlock();
	dst_release(dst);
	return n;
}

void smc_rs_helper_broken_pipe(struct sock *sk, int flags)
{
	if (!(flags & MSG_NOSIGNAL))
		send_sig(SIGPIPE, current, 0);
}

// SPDX-License-Identifier: GPL-2.0
/* Shims for the inline functions of net/netlink.h and net/genetlink.h. */
#include <net/genetlink.h>
#include <net/net_namespace.h>
#include <net/netlink.h>
#include "smc_rs.h"

struct net *smc_rs_helper_genl_info_net(const struct genl_info *info)
{
	return genl_info_net(info);
}

const struct genl_info *smc_rs_helper_genl_info_dump(struct netlink_callback *cb)
{
	return genl_info_dump(cb);
}

const void *smc_rs_helper_nla_data(const struct nlattr *attr, size_t *len)
{
	*len = nla_len(attr);
	return nla_data(attr);
}

struct sk_buff *smc_rs_helper_genlmsg_new(size_t len)
{
	return genlmsg_new(len, GFP_KERNEL);
}

void smc_rs_helper_nlmsg_free(struct sk_buff *skb)
{
	nlmsg_free(skb);
}

void smc_rs_helper_genlmsg_end(struct sk_buff *skb, void *hdr)
{
	genlmsg_end(skb, hdr);
}

void smc_rs_helper_genlmsg_cancel(struct sk_buff *skb, void *hdr)
{
	genlmsg_cancel(skb, hdr);
}

int smc_rs_helper_genlmsg_reply(struct sk_buff *skb, struct genl_info *info)
{
	return genlmsg_reply(skb, info);
}

int smc_rs_helper_genl_list_end(struct sk_buff *skb, const struct genl_info *info)
{
	if (!nlmsg_put(skb, info->snd_portid, info->snd_seq, NLMSG_DONE, 0, NLM_F_MULTI))
		return -EMSGSIZE;
	return 0;
}

struct nlattr *smc_rs_helper_nla_nest_start(struct sk_buff *skb, int type)
{
	return nla_nest_start(skb, type);
}

void smc_rs_helper_nla_nest_end(struct sk_buff *skb, struct nlattr *start)
{
	nla_nest_end(skb, start);
}

void smc_rs_helper_nla_nest_cancel(struct sk_buff *skb, struct nlattr *start)
{
	nla_nest_cancel(skb, start);
}

int smc_rs_helper_nla_put_u64(struct sk_buff *skb, int type, u64 value, int pad)
{
	return nla_put_u64_64bit(skb, type, value, pad);
}

/*
 * The kernel keeps one mark for the listeners of all namespaces, so that none
 * has to be looked for as long as nobody listens anywhere.
 */
bool smc_rs_helper_genl_event_wanted(const struct genl_family *family)
{
	return genl_has_listeners(family, &init_net, 0) > 0;
}

/* The namespace of that number, if it is there. Under RCU. */
static struct net *net_of_cookie(u64 cookie)
{
	struct net *net;

	for_each_net_rcu(net) {
		if (net->net_cookie == cookie)
			return net;
	}
	return NULL;
}

struct sk_buff *smc_rs_helper_genl_event_new(void)
{
	return genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_ATOMIC);
}

void smc_rs_helper_genl_event(const struct genl_family *family, u64 net_cookie,
			      struct sk_buff *skb)
{
	struct net *net;

	rcu_read_lock();
	net = net_of_cookie(net_cookie);
	if (net)
		genlmsg_multicast_netns(family, net, skb, 0, 0, GFP_ATOMIC);
	else
		nlmsg_free(skb);
	rcu_read_unlock();
}

void smc_rs_helper_genl_family_flags(struct genl_family *family)
{
	family->netnsok = true;
	/* Nothing here relies on the one lock of all families. */
	family->parallel_ops = true;
}

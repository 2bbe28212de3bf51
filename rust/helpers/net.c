// SPDX-License-Identifier: GPL-2.0
/* Shims for network namespaces and for a few calls outside networking. */
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/netdevice.h>
#include <linux/random.h>
#include <linux/seq_file_net.h>
#include <linux/utsname.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include "smc_rs.h"

struct net *smc_rs_helper_get_net(struct net *net)
{
	return get_net(net);
}

void smc_rs_helper_put_net(struct net *net)
{
	put_net(net);
}

void *smc_rs_helper_net_generic(const struct net *net, unsigned int id)
{
	return net_generic(net, id);
}

u64 smc_rs_helper_net_cookie(const struct net *net)
{
	return net->net_cookie;
}

struct proc_dir_entry *smc_rs_helper_proc_net(struct net *net)
{
	return net->proc_net;
}

struct net *smc_rs_helper_seq_file_single_net(struct seq_file *seq)
{
	return seq_file_single_net(seq);
}

/* The device at the bottom of a stack; of several side by side the first. Under RCU. */
static struct net_device *lowest(struct net_device *dev)
{
	struct list_head *at = &dev->adj_list.lower;
	struct net_device *lower;

	while ((lower = netdev_next_lower_dev_rcu(dev, &at))) {
		dev = lower;
		at = &dev->adj_list.lower;
	}
	return dev;
}

/* Whether the device is the one of that name in that namespace. Under RCU. */
static bool is_named(struct net_device *dev, u64 net_cookie, const char *name)
{
	struct net *net = dev_net_rcu(dev);

	return net->net_cookie == net_cookie && dev_get_by_name_rcu(net, name) == dev;
}

int smc_rs_helper_interface_layer(struct net *net, int ifindex, u64 net_cookie, const char *name)
{
	struct net_device *dev, *other;
	int layer = -1;

	rcu_read_lock();
	dev = dev_get_by_index_rcu(net, ifindex);
	if (!dev)
		goto out;
	if (is_named(lowest(dev), net_cookie, name)) {
		layer = 0;
	} else if (is_named(dev, net_cookie, name)) {
		layer = 1;
	} else if (net->net_cookie == net_cookie) {
		other = dev_get_by_name_rcu(net, name);
		if (other && netdev_has_upper_dev_all_rcu(other, dev))
			layer = 2;
	}
out:
	rcu_read_unlock();
	return layer;
}

void smc_rs_helper_host_name(char *name, size_t len)
{
	/*
	 * The lock of the name is not exported. A name that is changed at this
	 * moment comes out mixed, but with its end.
	 */
	strscpy_pad(name, init_uts_ns.name.nodename, len);
}

unsigned int smc_rs_helper_num_online_cpus(void)
{
	return num_online_cpus();
}

u64 smc_rs_helper_now_ms(void)
{
	return ktime_to_ms(ktime_get());
}

void smc_rs_helper_random_bytes(void *buf, size_t len)
{
	get_random_bytes(buf, len);
}

void smc_rs_helper_might_sleep(void)
{
	might_sleep();
}

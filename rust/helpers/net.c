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

bool smc_rs_helper_interface_is_below(struct net *net, const char *name, int ifindex)
{
	struct net_device *lower, *upper;
	bool below = false;

	rcu_read_lock();
	lower = dev_get_by_name_rcu(net, name);
	upper = dev_get_by_index_rcu(net, ifindex);
	if (lower && upper)
		below = lower == upper || netdev_has_upper_dev_all_rcu(lower, upper);
	rcu_read_unlock();
	return below;
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

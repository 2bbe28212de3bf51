/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Headers whose contents the safe wrappers use. What of them becomes Rust is
 * said in bindgen_allow.
 */
#include <linux/errqueue.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/inetdevice.h>
#include <linux/irq_poll.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/poll.h>
#include <linux/proc_fs.h>
#include <linux/sock_diag.h>
#include <linux/splice.h>
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <linux/sockios.h>
#include <linux/sysctl.h>
#include <linux/tcp.h>
#include <linux/timer.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/addrconf.h>
#include <net/genetlink.h>
#include <net/inet_common.h>
#include <net/inet_connection_sock.h>
#include <net/inet_hashtables.h>
#include <net/inet6_hashtables.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/protocol.h>
#include <net/request_sock.h>
#include <net/sock.h>
#include <net/tcp.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>
#include "smc_rs.h"

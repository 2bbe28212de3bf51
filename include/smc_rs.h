/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Prototypes of the C shims in rust/helpers, read by the compiler and by
 * bindgen alike.
 */
#ifndef SMC_RS_H
#define SMC_RS_H

#include <linux/inet_diag.h>
#include <linux/poll.h>
#include <linux/rwsem.h>
#include <linux/seq_file.h>
#include <linux/skbuff.h>
#include <linux/sockptr.h>
#include <net/genetlink.h>
#include <net/sock.h>

/* rust/helpers/net.c */
struct net *smc_rs_helper_get_net(struct net *net);
void smc_rs_helper_put_net(struct net *net);
void *smc_rs_helper_net_generic(const struct net *net, unsigned int id);
u64 smc_rs_helper_net_cookie(const struct net *net);
struct proc_dir_entry *smc_rs_helper_proc_net(struct net *net);
struct net *smc_rs_helper_seq_file_single_net(struct seq_file *seq);
int smc_rs_helper_interface_layer(struct net *net, int ifindex, u64 net_cookie, const char *name);
void smc_rs_helper_host_name(char *name, size_t len);
unsigned int smc_rs_helper_num_online_cpus(void);
u64 smc_rs_helper_now_ms(void);
void smc_rs_helper_random_bytes(void *buf, size_t len);
void smc_rs_helper_might_sleep(void);

/* rust/helpers/sock.c */
void smc_rs_helper_lock_sock(struct sock *sk);
void smc_rs_helper_release_sock(struct sock *sk);
void smc_rs_helper_sock_hold(struct sock *sk);
void smc_rs_helper_sock_put(struct sock *sk);
struct net *smc_rs_helper_sock_net(const struct sock *sk);
struct sock *smc_rs_helper_sk_alloc(struct net *net, int family, struct proto *prot, int kern);
void smc_rs_helper_sock_orphan(struct sock *sk);
void smc_rs_helper_sock_graft(struct sock *sk, struct socket *parent);
void smc_rs_helper_sock_prot_inuse_add(struct net *net, struct proto *prot, int val);
int smc_rs_helper_sock_error(struct sock *sk);
bool smc_rs_helper_sock_flag(const struct sock *sk, int flag);
void smc_rs_helper_sock_set_flag(struct sock *sk, int flag);
void smc_rs_helper_sock_reset_flag(struct sock *sk, int flag);
struct mem_cgroup *smc_rs_helper_sock_payer(const struct sock *sk);
void smc_rs_helper_sock_pay_for(const struct sock *owner, struct sock *sk);
u32 smc_rs_helper_sock_uid(const struct sock *sk);
struct inode *smc_rs_helper_sock_inode(struct socket *sock);
void smc_rs_helper_callback_read_lock(struct sock *sk);
void smc_rs_helper_callback_read_unlock(struct sock *sk);
void smc_rs_helper_callback_write_lock(struct sock *sk);
void smc_rs_helper_callback_write_unlock(struct sock *sk);
void smc_rs_helper_set_wait_queue(struct sock *sk, struct socket_wq *wq);
void smc_rs_helper_wait_entry_add(struct socket_wq *wq, struct wait_queue_entry *entry);
void smc_rs_helper_wait_entry_remove(struct socket_wq *wq, struct wait_queue_entry *entry);
long smc_rs_helper_wait_woken(struct wait_queue_entry *entry, long timeout);
bool smc_rs_helper_signal_pending(void);
void smc_rs_helper_sk_own_lock_class(struct sock *sk);
void smc_rs_helper_sk_wake_connected(const struct sock *sk);
bool smc_rs_helper_exiting(void);
void smc_rs_helper_poll_wait(struct file *file, struct socket *sock, struct poll_table_struct *wait);
void smc_rs_helper_set_async_nospace(struct socket *sock);
void smc_rs_helper_sk_note_no_space(struct sock *sk);
void smc_rs_helper_sk_wake_writable(struct sock *sk);
int smc_rs_helper_copy_from_sockptr(void *dst, const sockptr_t *src, size_t offset, size_t size);
void smc_rs_helper_init_rwsem(struct rw_semaphore *sem);
void smc_rs_helper_sock_copy_options(struct sock *to, const struct sock *from);

/* rust/helpers/tcp.c */
int smc_rs_helper_socket_setsockopt(struct socket *sock, int level, int name,
				    const sockptr_t *val, unsigned int len);
int smc_rs_helper_socket_setsockopt_int(struct socket *sock, int level, int name, int val);
int smc_rs_helper_socket_getsockopt(struct socket *sock, int level, int name,
				    char __user *val, int __user *len);
bool smc_rs_helper_tcp_has_ipsec_policy(struct sock *sk);
bool smc_rs_helper_tcp_has_signature(const struct sock *sk);
bool smc_rs_helper_tcp_has_fastopen(const struct sock *sk);
bool smc_rs_helper_tcp_may_fastopen(const struct sock *sk);
bool smc_rs_helper_tcp_reports_inq(const struct sock *sk);
int smc_rs_helper_tcp_egress_ifindex(struct sock *sk);
u32 smc_rs_helper_tcp_urgent_mark(const struct sock *sk, bool *present);
u32 smc_rs_helper_tcp_write_seq(const struct sock *sk);
const u8 *smc_rs_helper_tcp_saved_syn(const struct sock *sk, u32 *len, u32 *tcp_offset);
void smc_rs_helper_tcp_saved_syn_free(struct sock *sk);
bool smc_rs_helper_tcp_native_option(void);
void smc_rs_helper_tcp_native_option_use(int users);
void smc_rs_helper_tcp_native_option_set(struct sock *sk, bool on);
bool smc_rs_helper_tcp_native_option_seen(const struct sock *sk);
bool smc_rs_helper_tcp_native_option_kept(const struct sock *sk);

/* rust/helpers/nf.c */
unsigned int smc_rs_helper_skb_len(const struct sk_buff *skb);
struct sock *smc_rs_helper_skb_fullsock(const struct sk_buff *skb);
int smc_rs_helper_skb_transport_offset(const struct sk_buff *skb);
unsigned int smc_rs_helper_skb_open_retries(const struct sk_buff *skb);
struct sock *smc_rs_helper_skb_listener(const struct sk_buff *skb);
const u8 *smc_rs_helper_skb_saved_syn(const struct sk_buff *skb, u32 *len, u32 *tcp_offset);
int smc_rs_helper_skb_ipv6_tcp_offset(const struct sk_buff *skb);
bool smc_rs_helper_skb_copy(const struct sk_buff *skb, unsigned int offset, void *to,
			    unsigned int len);
u8 *smc_rs_helper_skb_open_gap(struct sk_buff *skb, unsigned int tcp_offset,
			       unsigned int header_len, unsigned int gap);
bool smc_rs_helper_skb_csum_partial(const struct sk_buff *skb);
struct sock *smc_rs_helper_tcp_lookup_v4(struct net *net, const struct sk_buff *skb,
					 __be32 saddr, __be16 sport, __be32 daddr, u16 dport);
struct sock *smc_rs_helper_tcp_lookup_v6(struct net *net, const struct sk_buff *skb,
					 const struct in6_addr *saddr, __be16 sport,
					 const struct in6_addr *daddr, u16 dport);
void smc_rs_helper_sock_gen_put(struct sock *sk);
void smc_rs_helper_linger_lock(void);
void smc_rs_helper_linger_unlock(void);
void smc_rs_helper_linger_arm(unsigned int ms);
void smc_rs_helper_linger_cancel(void);
void smc_rs_linger_expired(void);

/* Locking, work queues, pages, RDMA verbs. */
#include "smc_rs_rdma.h"

/* rust/helpers/genl.c */
struct net *smc_rs_helper_genl_info_net(const struct genl_info *info);
const struct genl_info *smc_rs_helper_genl_info_dump(struct netlink_callback *cb);
const void *smc_rs_helper_nla_data(const struct nlattr *attr, size_t *len);
struct sk_buff *smc_rs_helper_genlmsg_new(size_t len);
void smc_rs_helper_nlmsg_free(struct sk_buff *skb);
void smc_rs_helper_genlmsg_end(struct sk_buff *skb, void *hdr);
void smc_rs_helper_genlmsg_cancel(struct sk_buff *skb, void *hdr);
int smc_rs_helper_genlmsg_reply(struct sk_buff *skb, struct genl_info *info);
int smc_rs_helper_genl_list_end(struct sk_buff *skb, const struct genl_info *info);
struct nlattr *smc_rs_helper_nla_nest_start(struct sk_buff *skb, int type);
void smc_rs_helper_nla_nest_end(struct sk_buff *skb, struct nlattr *start);
void smc_rs_helper_nla_nest_cancel(struct sk_buff *skb, struct nlattr *start);
int smc_rs_helper_nla_put_u64(struct sk_buff *skb, int type, u64 value, int pad);
void smc_rs_helper_genl_family_flags(struct genl_family *family);

bool smc_rs_helper_genl_event_wanted(const struct genl_family *family);
struct sk_buff *smc_rs_helper_genl_event_new(void);
void smc_rs_helper_genl_event(const struct genl_family *family, u64 net_cookie,
			      struct sk_buff *skb);

/* rust/helpers/trace.c */
void smc_rs_helper_trace_fallback(const struct sock *sk, const struct sock *tcp, u64 net_cookie,
				  int reason);
void smc_rs_helper_trace_sendmsg(const struct sock *sk, u64 net_cookie, size_t len,
				 const char *device);
void smc_rs_helper_trace_recvmsg(const struct sock *sk, u64 net_cookie, size_t len,
				 const char *device);
void smc_rs_helper_trace_link_down(u32 group, u64 net_cookie, int state, const char *device,
				   const char *why);
void smc_rs_helper_trace_handshake_step(const struct sock *sk, u64 net_cookie, bool server,
					u8 step, u64 us);
void smc_rs_helper_trace_handshake_end(const struct sock *sk, u64 net_cookie, bool server,
				       u8 result, u32 reason, u32 peer_reason, int error, u64 us);

/* rust/helpers/diag.c */
int smc_rs_helper_diag_start(struct sk_buff *skb, const struct nlmsghdr *nlh,
			     int (*dump)(struct sk_buff *skb, struct netlink_callback *cb));
struct net *smc_rs_helper_diag_net(const struct netlink_callback *cb);
const void *smc_rs_helper_diag_request(const struct nlmsghdr *nlh, size_t *len);
u32 smc_rs_helper_diag_uid(const struct netlink_callback *cb, const struct sock *sk);
void *smc_rs_helper_diag_begin(struct sk_buff *skb, const struct netlink_callback *cb,
			       const void *head, size_t len);
void smc_rs_helper_diag_end(struct sk_buff *skb, void *nlh);
void smc_rs_helper_diag_cancel(struct sk_buff *skb, void *nlh);
void smc_rs_helper_diag_cookie(struct sock *sk, u32 cookie[2]);
void smc_rs_helper_diag_addresses(const struct sock *sk, struct inet_diag_sockid *id);

/* rust/helpers/sysctl.c */
u32 smc_rs_helper_jiffies_to_ms(unsigned long jiffies);

/* rust/helpers/abi.c */
size_t smc_rs_helper_abi_len(void);
size_t smc_rs_helper_abi_value(size_t index);

/* params.c */
const char *smc_rs_helper_text_param(void);

/* ifaddr.c */
struct smc_rs_ipv6_prefix {
	u8 prefix[16];
	u8 len;
};

int smc_rs_helper_ipv4_subnet(struct sock *sk, u8 *subnet, u8 *len);
int smc_rs_helper_ipv6_prefixes(struct sock *sk, struct smc_rs_ipv6_prefix *out, int room);
void smc_rs_helper_broken_pipe(struct sock *sk, int flags);

#endif

// SPDX-License-Identifier: GPL-2.0
/* Shims for what TCP sockets keep in fields and inline functions. */
#include <linux/net.h>
#include <linux/sockptr.h>
#include <linux/tcp.h>
#include <net/dst.h>
#include <net/inet_connection_sock.h>
#include <net/sock.h>
#include <net/tcp.h>
#include "smc_rs.h"

int smc_rs_helper_socket_setsockopt(struct socket *sock, int level, int name,
				    const sockptr_t *val, unsigned int len)
{
	const struct proto_ops *ops = READ_ONCE(sock->ops);

	if (level == SOL_SOCKET)
		return sock_setsockopt(sock, level, name, *val, len);
	if (!ops->setsockopt)
		return -EOPNOTSUPP;
	return ops->setsockopt(sock, level, name, *val, len);
}

int smc_rs_helper_socket_setsockopt_int(struct socket *sock, int level, int name, int val)
{
	sockptr_t ptr = KERNEL_SOCKPTR(&val);

	return smc_rs_helper_socket_setsockopt(sock, level, name, &ptr, sizeof(val));
}

int smc_rs_helper_socket_getsockopt(struct socket *sock, int level, int name,
				    char __user *val, int __user *len)
{
	const struct proto_ops *ops = READ_ONCE(sock->ops);
	sockopt_t opt;
	int err;

	if (ops->getsockopt)
		return ops->getsockopt(sock, level, name, val, len);
	if (!ops->getsockopt_iter)
		return -EOPNOTSUPP;

	err = sockopt_init_user(&opt, val, len);
	if (err)
		return err;
	err = ops->getsockopt_iter(sock, level, name, &opt);
	if (put_user(opt.optlen, len))
		return -EFAULT;
	return err;
}

bool smc_rs_helper_tcp_has_ipsec_policy(struct sock *sk)
{
	bool found = false;
#ifdef CONFIG_XFRM
	struct dst_entry *dst = sk_dst_get(sk);

	found = rcu_access_pointer(sk->sk_policy[0]) ||
		rcu_access_pointer(sk->sk_policy[1]) ||
		(dst && dst_xfrm(dst));
	dst_release(dst);
#endif
	return found;
}

bool smc_rs_helper_tcp_has_signature(const struct sock *sk)
{
	bool found = false;
#ifdef CONFIG_TCP_MD5SIG
	found |= !!rcu_access_pointer(tcp_sk(sk)->md5sig_info);
#endif
#ifdef CONFIG_TCP_AO
	found |= !!rcu_access_pointer(tcp_sk(sk)->ao_info);
#endif
	return found;
}

bool smc_rs_helper_tcp_has_fastopen(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->fastopen_req || tp->fastopen_connect || tp->fastopen_no_cookie ||
	       tp->syn_fastopen || tp->syn_fastopen_child ||
	       READ_ONCE(inet_csk(sk)->icsk_accept_queue.fastopenq.max_qlen);
}

bool smc_rs_helper_tcp_may_fastopen(const struct sock *sk)
{
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_fastopen) & TFO_CLIENT_ENABLE;
}

bool smc_rs_helper_tcp_reports_inq(const struct sock *sk)
{
	return tcp_sk(sk)->recvmsg_inq;
}

int smc_rs_helper_tcp_egress_ifindex(struct sock *sk)
{
	struct dst_entry *dst;
	int ifindex = 0;

	rcu_read_lock();
	dst = __sk_dst_get(sk);
	if (dst)
		ifindex = READ_ONCE(dst_dev_rcu(dst)->ifindex);
	rcu_read_unlock();
	return ifindex;
}

u32 smc_rs_helper_tcp_urgent_mark(const struct sock *sk, bool *present)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	*present = READ_ONCE(tp->urg_data) != 0;
	return READ_ONCE(tp->urg_seq);
}

u32 smc_rs_helper_tcp_write_seq(const struct sock *sk)
{
	return READ_ONCE(tcp_sk(sk)->write_seq);
}

const u8 *smc_rs_helper_tcp_saved_syn(const struct sock *sk, u32 *len, u32 *tcp_offset)
{
	const struct saved_syn *syn = tcp_sk(sk)->saved_syn;

	if (!syn)
		return NULL;
	*tcp_offset = syn->mac_hdrlen + syn->network_hdrlen;
	*len = tcp_saved_syn_len(syn);
	return syn->data;
}

void smc_rs_helper_tcp_saved_syn_free(struct sock *sk)
{
	struct saved_syn *syn = tcp_sk(sk)->saved_syn;

	tcp_sk(sk)->saved_syn = NULL;
	/* A SYN-ACK being sent again may still be looking at it. */
	kvfree_rcu_mightsleep(syn);
}

#if IS_ENABLED(CONFIG_SMC)

bool smc_rs_helper_tcp_native_option(void)
{
	return true;
}

void smc_rs_helper_tcp_native_option_use(int users)
{
	if (users > 0)
		static_branch_inc(&tcp_have_smc);
	else
		static_branch_dec(&tcp_have_smc);
}

void smc_rs_helper_tcp_native_option_set(struct sock *sk, bool on)
{
	tcp_sk(sk)->syn_smc = on;
}

bool smc_rs_helper_tcp_native_option_seen(const struct sock *sk)
{
	/* Says what the SYN-ACK had, also if the socket no longer sends it. */
	return tcp_sk(sk)->rx_opt.smc_ok;
}

bool smc_rs_helper_tcp_native_option_kept(const struct sock *sk)
{
	return tcp_sk(sk)->syn_smc;
}

#else

bool smc_rs_helper_tcp_native_option(void)
{
	return false;
}

void smc_rs_helper_tcp_native_option_use(int users)
{
}

void smc_rs_helper_tcp_native_option_set(struct sock *sk, bool on)
{
}

bool smc_rs_helper_tcp_native_option_seen(const struct sock *sk)
{
	return false;
}

bool smc_rs_helper_tcp_native_option_kept(const struct sock *sk)
{
	return false;
}

#endif

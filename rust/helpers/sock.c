// SPDX-License-Identifier: GPL-2.0
/* Shims for the inline functions of net/sock.h. */
#include <linux/memcontrol.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/rwsem.h>
#include <linux/sched/signal.h>
#include <linux/sockptr.h>
#include <linux/wait.h>
#include <net/proto_memory.h>
#include <net/sock.h>
#include "smc_rs.h"

void smc_rs_helper_lock_sock(struct sock *sk)
{
	lock_sock(sk);
}

void smc_rs_helper_release_sock(struct sock *sk)
{
	release_sock(sk);
}

void smc_rs_helper_sock_hold(struct sock *sk)
{
	sock_hold(sk);
}

void smc_rs_helper_sock_put(struct sock *sk)
{
	sock_put(sk);
}

struct net *smc_rs_helper_sock_net(const struct sock *sk)
{
	return sock_net(sk);
}

struct sock *smc_rs_helper_sk_alloc(struct net *net, int family, struct proto *prot, int kern)
{
	return sk_alloc(net, family, GFP_KERNEL, prot, kern);
}

void smc_rs_helper_sock_orphan(struct sock *sk)
{
	sock_orphan(sk);
}

void smc_rs_helper_sock_graft(struct sock *sk, struct socket *parent)
{
	sock_graft(sk, parent);
}

void smc_rs_helper_sock_prot_inuse_add(struct net *net, struct proto *prot, int val)
{
	/* The counters are per CPU and want a caller that stays where it is. */
	local_bh_disable();
	sock_prot_inuse_add(net, prot, val);
	local_bh_enable();
}

int smc_rs_helper_sock_error(struct sock *sk)
{
	return sock_error(sk);
}

bool smc_rs_helper_sock_flag(const struct sock *sk, int flag)
{
	return sock_flag(sk, flag);
}

void smc_rs_helper_sock_set_flag(struct sock *sk, int flag)
{
	sock_set_flag(sk, flag);
}

void smc_rs_helper_sock_reset_flag(struct sock *sk, int flag)
{
	sock_reset_flag(sk, flag);
}

/* The control group that pays for the socket's memory, with a reference, or NULL. */
struct mem_cgroup *smc_rs_helper_sock_payer(const struct sock *sk)
{
	struct mem_cgroup *payer = mem_cgroup_from_sk(sk);

	if (payer)
		smc_rs_helper_payer_get(payer);
	return payer;
}

/*
 * From now on `owner`'s control group pays for the socket, if none does yet, as
 * after accept() by the owner. What the socket has already is charged: that is
 * done with an allocation of as much, which counts for the protocol as well and
 * is taken back there. Interrupts of the network charge without regard to limits
 * and without reclaim, and so does this.
 */
void smc_rs_helper_sock_pay_for(const struct sock *owner, struct sock *sk)
{
#ifdef CONFIG_MEMCG
	struct mem_cgroup *payer = mem_cgroup_from_sk(owner);
	int pages;

	if (!payer || !sk_has_account(sk))
		return;
	lock_sock(sk);
	if (mem_cgroup_from_sk(sk))
		goto out;
	smc_rs_helper_payer_get(payer);
	sk->sk_memcg = payer;
	pages = sk_mem_pages(sk->sk_forward_alloc + sk_rmem_alloc_get(sk) + sk->sk_wmem_queued);
	if (pages <= 0)
		goto out;
	local_bh_disable();
	if (__sk_mem_schedule(sk, pages << PAGE_SHIFT, SK_MEM_RECV)) {
		sk_forward_alloc_add(sk, -(pages << PAGE_SHIFT));
		if (!sk->sk_bypass_prot_mem)
			sk_memory_allocated_sub(sk, pages);
	} else {
		/* TCP has too much memory as a whole. */
		sk->sk_memcg = NULL;
		smc_rs_helper_payer_put(payer);
	}
	local_bh_enable();
out:
	release_sock(sk);
#endif
}

u32 smc_rs_helper_sock_uid(const struct sock *sk)
{
	return from_kuid_munged(sock_net(sk)->user_ns, sk_uid(sk));
}

struct inode *smc_rs_helper_sock_inode(struct socket *sock)
{
	return SOCK_INODE(sock);
}

void smc_rs_helper_callback_read_lock(struct sock *sk)
{
	read_lock_bh(&sk->sk_callback_lock);
}

void smc_rs_helper_callback_read_unlock(struct sock *sk)
{
	read_unlock_bh(&sk->sk_callback_lock);
}

void smc_rs_helper_callback_write_lock(struct sock *sk)
{
	write_lock_bh(&sk->sk_callback_lock);
}

void smc_rs_helper_callback_write_unlock(struct sock *sk)
{
	write_unlock_bh(&sk->sk_callback_lock);
}

void smc_rs_helper_set_wait_queue(struct sock *sk, struct socket_wq *wq)
{
	rcu_assign_pointer(sk->sk_wq, wq);
}

void smc_rs_helper_wait_entry_add(struct socket_wq *wq, struct wait_queue_entry *entry)
{
	init_wait_func(entry, woken_wake_function);
	add_wait_queue(&wq->wait, entry);
}

void smc_rs_helper_wait_entry_remove(struct socket_wq *wq, struct wait_queue_entry *entry)
{
	remove_wait_queue(&wq->wait, entry);
}

long smc_rs_helper_wait_woken(struct wait_queue_entry *entry, long timeout)
{
	return wait_woken(entry, TASK_INTERRUPTIBLE, timeout);
}

bool smc_rs_helper_signal_pending(void)
{
	return signal_pending(current);
}

void smc_rs_helper_sk_own_lock_class(struct sock *sk)
{
	static struct lock_class_key slock_key, key;

	sock_lock_init_class_and_name(sk, "slock-outer", &slock_key, "sk_lock-outer", &key);
}

void smc_rs_helper_sk_wake_connected(const struct sock *sk)
{
	sk_wake_async(sk, SOCK_WAKE_IO, POLL_OUT);
}

bool smc_rs_helper_exiting(void)
{
	return current->flags & PF_EXITING;
}

void smc_rs_helper_poll_wait(struct file *file, struct socket *sock,
			     struct poll_table_struct *wait)
{
	sock_poll_wait(file, sock, wait);
}

void smc_rs_helper_set_async_nospace(struct socket *sock)
{
	set_bit(SOCKWQ_ASYNC_NOSPACE, &sock->wq.flags);
	set_bit(SOCK_NOSPACE, &sock->flags);
	/* The caller looks for room again after this. */
	smp_mb__after_atomic();
}

void smc_rs_helper_sk_note_no_space(struct sock *sk)
{
	read_lock_bh(&sk->sk_callback_lock);
	if (sk->sk_socket)
		smc_rs_helper_set_async_nospace(sk->sk_socket);
	read_unlock_bh(&sk->sk_callback_lock);
}

void smc_rs_helper_sk_wake_writable(struct sock *sk)
{
	struct socket_wq *wq;
	struct socket *sock;

	rcu_read_lock();
	sock = READ_ONCE(sk->sk_socket);
	wq = rcu_dereference(sk->sk_wq);
	if (sock && wq && test_bit(SOCK_NOSPACE, &sock->flags)) {
		clear_bit(SOCK_NOSPACE, &sock->flags);
		if (skwq_has_sleeper(wq))
			wake_up_interruptible_poll(&wq->wait,
						   EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND);
		if (!(sk->sk_shutdown & SEND_SHUTDOWN))
			sk_wake_async_rcu(sk, SOCK_WAKE_SPACE, POLL_OUT);
	}
	rcu_read_unlock();
}

int smc_rs_helper_copy_from_sockptr(void *dst, const sockptr_t *src, size_t offset,
				    size_t size)
{
	return copy_from_sockptr_offset(dst, *src, offset, size) ? -EFAULT : 0;
}

void smc_rs_helper_init_rwsem(struct rw_semaphore *sem)
{
	init_rwsem(sem);
}

void smc_rs_helper_sock_copy_options(struct sock *to, const struct sock *from)
{
	const unsigned long flags = BIT(SOCK_URGINLINE) | BIT(SOCK_KEEPOPEN) |
				    BIT(SOCK_LINGER) | BIT(SOCK_BROADCAST) |
				    BIT(SOCK_DBG) | BIT(SOCK_LOCALROUTE) |
				    BIT(SOCK_RXQ_OVFL) | BIT(SOCK_ZEROCOPY) |
				    BIT(SOCK_RCVMARK) | BIT(SOCK_RCVPRIORITY) |
				    BIT(SOCK_RCVTSTAMP) | BIT(SOCK_RCVTSTAMPNS) |
				    BIT(SOCK_TSTAMP_NEW);

	to->sk_flags = (to->sk_flags & ~flags) | (from->sk_flags & flags);
	to->sk_reuse = from->sk_reuse;
	to->sk_reuseport = from->sk_reuseport;
	to->sk_bound_dev_if = READ_ONCE(from->sk_bound_dev_if);
	to->sk_rcvtimeo = READ_ONCE(from->sk_rcvtimeo);
	to->sk_sndtimeo = READ_ONCE(from->sk_sndtimeo);
	to->sk_rcvlowat = READ_ONCE(from->sk_rcvlowat);
	to->sk_peek_off = READ_ONCE(from->sk_peek_off);
	to->sk_lingertime = READ_ONCE(from->sk_lingertime);
	to->sk_mark = READ_ONCE(from->sk_mark);
	to->sk_priority = READ_ONCE(from->sk_priority);
	to->sk_max_pacing_rate = READ_ONCE(from->sk_max_pacing_rate);
	to->sk_incoming_cpu = READ_ONCE(from->sk_incoming_cpu);
	to->sk_userlocks = from->sk_userlocks & (SOCK_SNDBUF_LOCK | SOCK_RCVBUF_LOCK);
	if (to->sk_userlocks & SOCK_SNDBUF_LOCK)
		to->sk_sndbuf = READ_ONCE(from->sk_sndbuf);
	if (to->sk_userlocks & SOCK_RCVBUF_LOCK)
		to->sk_rcvbuf = READ_ONCE(from->sk_rcvbuf);
#ifdef CONFIG_NET_RX_BUSY_POLL
	to->sk_ll_usec = READ_ONCE(from->sk_ll_usec);
#endif
}

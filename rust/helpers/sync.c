// SPDX-License-Identifier: GPL-2.0
/* Shims for inline functions around locking, work queues and context. */
#include <linux/bottom_half.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "smc_rs.h"

void smc_rs_helper_spin_lock_bh(spinlock_t *lock)
{
	spin_lock_bh(lock);
}

int smc_rs_helper_spin_trylock_bh(spinlock_t *lock)
{
	return spin_trylock_bh(lock);
}

void smc_rs_helper_spin_unlock_bh(spinlock_t *lock)
{
	spin_unlock_bh(lock);
}

void smc_rs_helper_local_bh_disable(void)
{
	local_bh_disable();
}

void smc_rs_helper_local_bh_enable(void)
{
	local_bh_enable();
}

bool smc_rs_helper_in_task(void)
{
	return in_task();
}

void smc_rs_helper_cond_resched(void)
{
	cond_resched();
}

struct workqueue_struct *
smc_rs_helper_alloc_workqueue(const char *name, unsigned int flags,
			      int max_active)
{
	return alloc_workqueue("%s", flags, max_active, name);
}

void smc_rs_helper_flush_workqueue(struct workqueue_struct *wq)
{
	__flush_workqueue(wq);
}

// SPDX-License-Identifier: GPL-2.0
/* Shims for page allocation and for memory that a device may write. */
#include <linux/gfp.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "smc_rs.h"

void smc_rs_helper_payer_get(struct mem_cgroup *payer)
{
#ifdef CONFIG_MEMCG
	css_get(&payer->css);
#endif
}

void smc_rs_helper_payer_put(struct mem_cgroup *payer)
{
	mem_cgroup_put(payer);
}

#ifdef CONFIG_MEMCG
/*
 * While this lasts, what is allocated with __GFP_ACCOUNT is charged to another
 * group than the running task's. Whoever runs is not the one who uses too much,
 * and may hold locks that others wait for: it is not slowed down for the group's
 * soft limit, neither now nor later.
 */
struct payment {
	struct mem_cgroup *active;
	unsigned int over_high;
};

static struct payment begin_payment(struct mem_cgroup *payer)
{
	struct payment before = {
		.active = set_active_memcg(payer),
		.over_high = current->memcg_nr_pages_over_high,
	};

	current->memcg_nr_pages_over_high = 0;
	return before;
}

static void end_payment(struct payment before)
{
	current->memcg_nr_pages_over_high = before.over_high;
	set_active_memcg(before.active);
}

/*
 * Pages that are charged. First without, then with reclaim in the group, whose
 * limit page cache fills as a matter of course. With __GFP_NORETRY the charge
 * fails before anything is killed.
 */
static struct page *alloc_charged(int nid, gfp_t gfp, unsigned int order)
{
	struct page *page;

	gfp |= __GFP_ACCOUNT;
	page = alloc_pages_node(nid, gfp & ~__GFP_DIRECT_RECLAIM, order);
	return page ?: alloc_pages_node(nid, gfp, order);
}

/*
 * Page cache, which the group gives up for what it is charged. Its pages are in the
 * classic lists or in those of generations, and each kind has its own counts.
 */
static unsigned long page_cache_in(const struct mem_cgroup_per_node *node, int zone)
{
	unsigned long pages = READ_ONCE(node->lru_zone_size[zone][LRU_INACTIVE_FILE]) +
			      READ_ONCE(node->lru_zone_size[zone][LRU_ACTIVE_FILE]);
#ifdef CONFIG_LRU_GEN
	int gen;

	for (gen = 0; gen < MAX_NR_GENS; gen++)
		pages += max(READ_ONCE(node->lruvec.lrugen.nr_pages[gen][LRU_GEN_FILE][zone]), 0L);
#endif
	return pages;
}

static unsigned long page_cache_of(const struct mem_cgroup *group)
{
	unsigned long pages = 0;
	int nid, zone;

	for_each_online_node(nid)
		for (zone = 0; zone < MAX_NR_ZONES; zone++)
			pages += page_cache_in(group->nodeinfo[nid], zone);
	return pages;
}

/*
 * Whether the processes of the group, and of those that it is part of, are left
 * enough: a quarter of the limit or 16 MiB. The group's own page cache gives way,
 * what other groups below the same limit have is not looked at. A process that
 * does not get a page is killed, while the caller can do with less.
 */
static bool may_have(struct mem_cgroup *payer, unsigned long pages)
{
	struct mem_cgroup *group;

	for (group = payer; group; group = parent_mem_cgroup(group)) {
		unsigned long max = READ_ONCE(group->memory.max);
		unsigned long left = umin(max / 4, SZ_16M >> PAGE_SHIFT);
		unsigned long used = page_counter_read(&group->memory) + pages;

		if (used + left > max && used + left > max + page_cache_of(payer))
			return false;
	}
	return true;
}

static struct page *alloc_paid(struct mem_cgroup *payer, int nid, gfp_t gfp, unsigned int order)
{
	struct payment before;
	struct page *page;

	if (!may_have(payer, 1UL << order))
		return NULL;
	before = begin_payment(payer);
	page = alloc_charged(nid, gfp | __GFP_COMP, order);
	end_payment(before);
	return page;
}

/* Only as many as there are. */
static unsigned int fill_paid(struct mem_cgroup *payer, int nid, gfp_t gfp,
			      unsigned int count, struct page **pages)
{
	struct payment before;
	unsigned int have;

	if (!may_have(payer, count))
		return 0;
	before = begin_payment(payer);
	for (have = 0; have < count; have++) {
		pages[have] = alloc_charged(nid, gfp, 0);
		if (!pages[have])
			break;
	}
	end_payment(before);
	return have;
}
#else
static struct page *alloc_paid(struct mem_cgroup *payer, int nid, gfp_t gfp, unsigned int order)
{
	return NULL;
}

static unsigned int fill_paid(struct mem_cgroup *payer, int nid, gfp_t gfp,
			      unsigned int count, struct page **pages)
{
	return 0;
}
#endif

/* One compound page, zeroed, and only if it is easy to have. */
struct page *smc_rs_helper_alloc_run(struct mem_cgroup *payer, int nid, gfp_t gfp,
				     unsigned int order)
{
	gfp |= __GFP_ZERO | __GFP_NOWARN | __GFP_NORETRY;
	if (payer)
		return alloc_paid(payer, nid, gfp, order);
	return alloc_pages_node(nid, gfp | __GFP_COMP, order);
}

void smc_rs_helper_free_pages(struct page *page, unsigned int order)
{
	__free_pages(page, order);
}

void *smc_rs_helper_page_address(struct page *page)
{
	return page_address(page);
}

/* The allocator may give a part of the pages at a time. */
static unsigned int fill(int nid, gfp_t gfp, unsigned int count, struct page **pages)
{
	unsigned int had, have = 0;

	do {
		had = have;
		have = alloc_pages_bulk_node(gfp, nid, count, pages);
	} while (have < count && have > had);
	return have;
}

/*
 * Zeroed pages from anywhere, mapped one behind the other, and only if each is
 * easy to have.
 */
void *smc_rs_helper_alloc_mapped_run(struct mem_cgroup *payer, int nid, gfp_t gfp,
				     unsigned int count)
{
	struct page **pages = kvcalloc(count, sizeof(*pages), GFP_KERNEL);
	void *addr = NULL;
	unsigned int have;

	if (!pages)
		return NULL;
	gfp |= __GFP_ZERO | __GFP_NOWARN | __GFP_NORETRY;
	have = payer ? fill_paid(payer, nid, gfp, count, pages) : fill(nid, gfp, count, pages);
	/* The mapping takes over the pages and their list. */
	if (have == count)
		addr = vmap(pages, count, VM_MAP_PUT_PAGES, PAGE_KERNEL);
	if (!addr) {
		release_pages(pages, have);
		kvfree(pages);
	}
	return addr;
}

void smc_rs_helper_free_mapped_run(void *addr)
{
	vfree(addr);
}

/*
 * Called through a shim so that no compiler reasons about memory that changes
 * under it.
 */
void smc_rs_helper_copy(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
}

void smc_rs_helper_clear(void *to, size_t len)
{
	memset(to, 0, len);
}

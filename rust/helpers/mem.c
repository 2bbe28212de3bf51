// SPDX-License-Identifier: GPL-2.0
/* Shims for page allocation and for memory that a device may write. */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "smc_rs.h"

/* One compound page, zeroed, and only if it is easy to have. */
struct page *smc_rs_helper_alloc_run(int nid, gfp_t gfp, unsigned int order)
{
	gfp |= __GFP_COMP | __GFP_ZERO | __GFP_NOWARN | __GFP_NORETRY;
	return alloc_pages_node(nid, gfp, order);
}

void smc_rs_helper_free_pages(struct page *page, unsigned int order)
{
	__free_pages(page, order);
}

void *smc_rs_helper_page_address(struct page *page)
{
	return page_address(page);
}

/*
 * Zeroed pages from anywhere, mapped one behind the other, and only if each is
 * easy to have. The allocator may give a part of them at a time.
 */
void *smc_rs_helper_alloc_mapped_run(int nid, gfp_t gfp, unsigned int count)
{
	struct page **pages = kvcalloc(count, sizeof(*pages), GFP_KERNEL);
	unsigned int had = 0, have = 0;
	void *addr = NULL;

	if (!pages)
		return NULL;
	gfp |= __GFP_ZERO | __GFP_NOWARN | __GFP_NORETRY;
	do {
		had = have;
		have = alloc_pages_bulk_node(gfp, nid, count, pages);
	} while (have < count && have > had);
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

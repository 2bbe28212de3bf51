// SPDX-License-Identifier: GPL-2.0
/* Shims for page allocation and for memory that a device may write. */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/string.h>

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

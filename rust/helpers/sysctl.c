// SPDX-License-Identifier: GPL-2.0
/* Shims for linux/sysctl.h and the unit of its times. */
#include <linux/jiffies.h>
#include "smc_rs.h"

u32 smc_rs_helper_jiffies_to_ms(unsigned long jiffies)
{
	return jiffies_to_msecs(jiffies);
}

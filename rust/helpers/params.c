// SPDX-License-Identifier: GPL-2.0

/* The module's text parameter; the Rust module macro takes numbers only. */

#include <linux/moduleparam.h>

#include "smc_rs.h"

#define TEXT_LEN 256

static char ueid[TEXT_LEN];
module_param_string(ueid, ueid, TEXT_LEN, 0444);
MODULE_PARM_DESC(ueid,
		 "User-defined enterprise IDs that are set at load, separated by commas");

const char *smc_rs_helper_text_param(void)
{
	return ueid;
}

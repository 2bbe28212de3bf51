#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# smc_rs meets the SMC that comes with the kernel.
#
# vm: --kernel reference --module smc_rs,smc --topology hosts --timeout 3600

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/matrix.sh"

announce "smc_rs" "smc"
matrix
done_testing

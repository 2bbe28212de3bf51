#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# smc_rs on the packaged kernel meets itself on one whose TCP knows the option.
#
# vm: --kernel stock,reference --module smc_rs --topology hosts --timeout 3600

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/matrix.sh"

announce "stock smc_rs" "smc_rs"
matrix
done_testing

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The control: what the SMC that comes with the kernel does with itself.
#
# vm: --kernel reference --module smc --topology hosts --timeout 3600

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/matrix.sh"

announce "smc" "smc"
matrix
done_testing

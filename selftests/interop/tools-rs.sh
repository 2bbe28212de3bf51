#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What tools.sh does, on smc_rs.
#
# vm: --kernel reference --module smc_rs --topology hosts --timeout 900
# slow: the tools are tested on smc_rs in every run

. "$(dirname "$0")/tools.sh"

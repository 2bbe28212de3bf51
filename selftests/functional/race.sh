#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Things that happen at the same time and do not go together: every call returns,
# and afterwards connections work and all that was closed is gone.
#
# SMC_RACE_SECONDS says how long each race lasts, if not 5 s, or 15 in the long form.
#
# vm: --topology pair --timeout 1800
# slow: several races of some seconds each, made for the kernels with checkers

. "$(dirname "$0")/../lib.sh"
need_module

subtest "races" smc_race --seed "$SEED" --seconds "${SMC_RACE_SECONDS:-$(by_form 5 15)}"
check "all connections are gone within 20 s" wait_for 20 quiet a b
check "the processors are idle afterwards" cpu_idle
check "the module can be unloaded" wait_for 20 modprobe -r smc_rs
done_testing

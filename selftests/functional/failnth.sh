#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Memory runs out at each point where the module asks for some, one after the other:
# an error or a connection on TCP follows, no crash, no call that hangs, no leak.
# A kernel that looks for leaks does so at the end, as for every test.
#
# vm: --topology pair --timeout 3600
# kernel: debug,kasan
# slow: hundreds of connections under the kernel's checkers

. "$(dirname "$0")/../lib.sh"
need_module

smc_failnth supported || bail "this kernel cannot inject faults"
subtest "while the module is loaded" smc_failnth run
check "all connections are gone within 20 s" wait_for 20 quiet a b
check "the module can be unloaded" wait_for 20 modprobe -r smc_rs
subtest "while it is being loaded" smc_failnth load "$(modinfo -n smc_rs)" ueid=SMC-RS-TEST
check "afterwards connections use SMC-R" smcr smc_stream both --server-ns a --client-ns b --family smc \
	--addr "$A" --port 7000 --seed "$SEED" --conns 4 --bytes 100K --bidir --timeout 60
done_testing

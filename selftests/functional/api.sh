#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The socket interface, call by call: on SMC-R, on SMC that falls back for want
# of an RDMA device, on SMC with IPv6 addresses, on SMC as a protocol of the internet
# family, and on TCP as the measure.
#
# vm: --topology pair --timeout 900
# waits

. "$(dirname "$0")/../lib.sh"
need_module

subtest "the checks themselves pass on TCP" \
	smc_api --family tcp --server-ns a --client-ns b --addr "$A"
subtest "SMC-R" \
	smc_api --family smc --server-ns a --client-ns b --addr "$A" --expect smcr
# The first namespace has no RDMA device.
subtest "fallback without an RDMA device" smc_api --family smc --expect fallback
subtest "IPv6" smc_api --family smc6 --server-ns a --client-ns b --addr "$A6"
subtest "IPPROTO_SMC" \
	smc_api --family smc-inet --server-ns a --client-ns b --addr "$A" --expect smcr
check "all connections are gone within 20 s" gone 20 a b
check "and all sockets" wait_for 20 no_sockets a b
check "the processors are idle afterwards" cpu_idle
done_testing

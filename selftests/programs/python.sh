#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# CPython's own tests of its network modules: over SMC the same ones must pass as on TCP.
#
# vm: --topology pair --timeout 3000 --memory 3G --programs
#
# PYTHON_TESTS names other modules, PYTHON_OPTIONS other options of smc_run.

. "$(dirname "$0")/lib.sh"
need python3
[ -e /usr/lib/python3.13/test/test_socket.py ] || bail "CPython's tests are missing: run 'scripts/setup --programs', and selftests/vm with --programs"

# Those of other protocols are left out: some wait for ever where the kernel has no such protocol.
OTHERS="--ignore *UDPLITE* --ignore *SCTP*"
MODULES=${PYTHON_TESTS:-test_socket test_selectors test_asyncio test_ssl test_ftplib test_httplib test_xmlrpc}

# The tests connect to the own host: to the address of namespace a, through its loopback
# device, which needs an RDMA device then.
loopback() {
	ip netns exec a rdma link add rxelo type rxe netdev lo && rdma dev set rxelo netns a
}

# tests FILE MODULE: a report in FILE; the tests' own verdict does not matter.
tests() {
	local report=$1 module=$2 output=${1%.xml}.out
	set -f
	# shellcheck disable=SC2086
	timeout 900 ip netns exec a $RUN python3 -m test --timeout 150 $OTHERS --junit-xml "$report" "$module" >"$output" 2>&1
	set +f
	[ -s "$report" ] || {
		grep "test/test_" "$output" | head -8
		tail -3 "$output"
		return 1
	}
}

compare() {
	local module=$1 before
	RUN=
	check "$module on TCP" tests "$WORK/tcp.$module.xml" "$module" || return
	before=$(counter a connections_smcr)
	RUN="smc_run ${PYTHON_OPTIONS:-}"
	check "$module over SMC" tests "$WORK/smc.$module.xml" "$module" || return
	note "$module: $(($(counter a connections_smcr) - before)) connections ends over SMC-R"
	subtest "$module: the same" "$(dirname "$0")/outcomes.py" "$WORK/tcp.$module.xml" "$WORK/smc.$module.xml" \
		"$(dirname "$0")/python.list"
}

check "an RDMA device for the loopback device" loopback
for module in $MODULES; do
	compare "$module"
done
done_testing

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Random requests over generic netlink and sock_diag from five processes, of which one
# has no rights and one those of a container's root, while connections and namespaces
# come and go. Good requests are answered meanwhile and afterwards; the kernel's log has
# no complaint, which is for selftests/vm to see.
#
# vm: --topology pair --timeout 300
# slow: random requests leave settings behind that take long to judge on a busy machine

. "$(dirname "$0")/../lib.sh"
need_module
SECONDS_LONG=${NLFUZZ_SECONDS:-20}
note "SMC_TEST_SEED=$SEED"

echo_server a smc "$A" 7000
# Connections under load, whatever they use: identifiers and networks change all the time.
traffic() {
	while [ ! -e "$WORK/end" ]; do
		ping_from_b smc "$A" 7000 --count 20 --timeout 30 >/dev/null 2>&1 && echo . >>"$WORK/pings"
		in_a smcr ueid add SMC-RS-TEST 2>/dev/null
		sleep 0.1
	done
}
spaces() {
	local n=0
	while [ ! -e "$WORK/end" ]; do
		ip netns add "fuzz$n"
		ip netns exec "fuzz$n" smc_pnet -a -I lo NETX
		ip netns exec "fuzz$n" smcss -a >/dev/null
		ip netns delete "fuzz$n"
		n=$((n + 1))
		echo "$n" >"$WORK/spaces"
	done
}
traffic &
traffic=$!
spaces 2>"$WORK/spaces.err" &
spaces=$!

fuzz() {
	"$@" >"$WORK/fuzz$n" 2>&1 &
	fuzzers+=("$!")
	n=$((n + 1))
}
fuzzers=() n=0
fuzz smc_nlfuzz --seed "$SEED" --seconds "$SECONDS_LONG"
fuzz ip netns exec a smc_nlfuzz --seed "$((SEED + 1))" --seconds "$SECONDS_LONG"
fuzz ip netns exec b smc_nlfuzz --seed "$((SEED + 2))" --seconds "$SECONDS_LONG"
fuzz ip netns exec a setpriv --reuid 65534 --regid 65534 --clear-groups \
	smc_nlfuzz --seed "$((SEED + 3))" --seconds "$SECONDS_LONG" --unprivileged
fuzz unshare --user --map-root-user --net smc_nlfuzz --seed "$((SEED + 4))" --seconds "$SECONDS_LONG" --unprivileged
for at in "${!fuzzers[@]}"; do
	wait "${fuzzers[$at]}"
	status=$?
	sed -n 's/^# //p' "$WORK/fuzz$at" | cut -c1-300 | while read -r line; do note "process $at: $line"; done
	result $status "random requests of process $at do no harm" "$WORK/fuzz$at"
done
: >"$WORK/end"
wait "$traffic" "$spaces"
note "$(wc -l <"$WORK/pings") connections, $(cat "$WORK/spaces") namespaces meanwhile"
check "connections were served meanwhile" test -s "$WORK/pings"
check "namespaces came and went meanwhile" test -s "$WORK/spaces"

# What the requests have set is set back; then everything is as before.
in_a smcr ueid flush
smc_pnet -f
in_a smc_pnet -f
in_b smc_pnet -f
for ns in a b; do
	ip netns exec $ns sh -c 'echo 0 >/proc/sys/net/smc/limit_smc_hs'
done
check "an identifier can be set" in_a smcr ueid add SMC-RS-TEST
check "connections use SMC-R again" wait_for 20 smcr ping_from_b smc "$A" 7000 --timeout 30
stop_all
check "the connections are gone" wait_for 30 quiet a b
check "the processors are idle" cpu_idle
done_testing

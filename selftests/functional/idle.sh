#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Connections that do nothing cost nothing: no processor time, no packets, and no
# more memory than their buffers; closed ones give it back.
#
# vm: --topology pair --timeout 300
# waits

. "$(dirname "$0")/../lib.sh"
need_module
CONNECTIONS=60

echo_server a smc "$A" 7000
held() {
	[ "$(counter b connections_active)" -ge "$CONNECTIONS" ]
}
packets() {
	in_b awk '/veth0:/ { print $3 + $11 }' /proc/net/dev
}

before=$(both fallback_total)
for ((n = 0; n < CONNECTIONS; n++)); do
	start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000 --hold 60000 \
		--timeout 120
done
check "$CONNECTIONS connections are open" wait_for 40 held
check "none of them fell back" test "$(both fallback_total)" -eq "$before"
check "the processors are idle" cpu_idle 6
first=$(packets)
sleep 10
# Keepalive of the link and of the neighbour tables, not of each connection.
check "hardly any packets are sent" test $(($(packets) - first)) -lt "$CONNECTIONS"
note "packets in 10 s: $(($(packets) - first)), memory_bytes: $(both memory_bytes)"
stop_all
check "closed connections are gone within 20 s" gone 20 a b
no_memory() {
	[ "$(both memory_bytes)" -eq 0 ]
}
check "their memory is given back within 30 s" wait_for 30 no_memory
note "memory_bytes: $(both memory_bytes)"
done_testing

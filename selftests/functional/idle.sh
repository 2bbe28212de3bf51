#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A thousand connections that do nothing cost nothing: no processor time, no packets,
# no timers, and no more memory than their buffers; closed ones give it back.
#
# vm: --topology pair --timeout 400
# waits

. "$(dirname "$0")/../lib.sh"
need_module
CONNECTIONS=$(by_kernel 1000 200)
TRACING=/sys/kernel/tracing

echo_server a smc "$A" 7000
held() {
	[ "$(counter b connections_active)" -ge "$CONNECTIONS" ]
}
packets() {
	in_b awk '/veth0:/ { print $3 + $11 }' /proc/net/dev
}

# timers: how many expired in ten seconds, but for those of programs that sleep.
timers() {
	local event=$TRACING/events/timer/timer_expire_entry
	: >"$TRACING/trace"
	echo 1 >"$event/enable"
	sleep 10
	echo 0 >"$event/enable"
	grep timer_expire_entry "$TRACING/trace" | grep -vc process_timeout
}

check "the processors are idle before" cpu_idle 6
without=$(timers)
before=$(both fallback_total)
start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000 --count 1 \
	--conns "$CONNECTIONS" --hold 120000 --timeout 240
check "$CONNECTIONS connections are open" wait_for 120 held
check "none of them fell back" test "$(both fallback_total)" -eq "$before"
check "the processors are idle" cpu_idle 6
first=$(packets)
sleep 10
sent=$(($(packets) - first))
# Keepalive of the links and of the neighbour tables, not of each connection.
check "hardly any packets are sent" test "$sent" -lt 60
with=$(timers)
# Each link group looks at what is idle now and then.
check "hardly more timers expire than without" test $((with - without)) -lt $((CONNECTIONS / 4))
note "timers in 10 s: $with, without connections $without; first contacts: $(both first_contacts)"
note "packets in 10 s: $sent, memory_bytes: $(both memory_bytes)"
stop_all
check "closed connections are gone within 20 s" gone 20 a b
no_memory() {
	[ "$(both memory_bytes)" -eq 0 ]
}
check "their memory is given back within 30 s" wait_for 30 no_memory
note "memory_bytes: $(both memory_bytes)"
done_testing

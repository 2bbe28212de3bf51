#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Peers that send every kind of bad CLC message, as clients and as servers. Each
# must end in a decline, in TCP, or in a reset of that one connection; good
# clients get through meanwhile and right afterwards, nothing stays behind, and
# the processors are idle.
#
# vm: --topology pair --timeout 900
# waits

. "$(dirname "$0")/../lib.sh"
need_module

echo_server a smc "$A" 7000
middlebox a add 7000
good() {
	ping_from_b smc "$A" 7000 --timeout 20 "$@"
}
check "a good client uses SMC-R" smcr good

# Good clients while bad ones are at work: every one must be served.
good_clients 0.2 good --count 1
memory=$(both memory_bytes)
subtest "bad clients" in_b clc_peer client --addr "$A" --own "$B" --port 7000 --jobs 6
check "a good client uses SMC-R at once" smcr good
stop_good_clients

check "silent clients by the hundred do not keep a good one waiting" \
	in_b clc_peer flood --addr "$A" --port 7000 --count 300 -- \
	smc_stream ping --family smc --addr "$A" --port 7000 --timeout 15
# A worker of the kernel for each would be one that nobody else gets.
check "clients that begin a message and do not go on occupy no workers" \
	in_b clc_peer flood --begin --addr "$A" --port 7000 --count 300 -- bash -c \
	'sleep 2; n=$(ps -eo comm | grep -c ^kworker); echo "$n workers"; [ "$n" -lt 200 ]'
stop_middlebox a

# A silent client keeps a place in the backlog for six seconds, but no worker and no buffer: where
# the backlog has room for all of them, others are served in five seconds. The plain client comes
# over the loopback device, where no middlebox makes it look like one with SMC.
flooded=$WORK/flooded
flood() {
	in_b clc_peer flood --addr "$A" --port 7010 --count 2000 -- sh -ec "
		smc_stream ping --family smc --addr $A --port 7010 --timeout 5
		ip netns exec a smc_stream ping --family tcp --addr $A --port 7010 --timeout 5
		ip netns exec a cat /proc/net/smc_rs >$flooded"
}
no_buffers() {
	[ "$(value_of memory_bytes <"$flooded")" -le $((before + 1048576)) ]
}
echo_server a smc "$A" 7010 --backlog 4096
middlebox a add 7010
before=$(counter a memory_bytes)
check "two thousand silent clients keep neither a good one nor one on TCP waiting" flood
check "they have no buffers" no_buffers
stop_middlebox a
check "the processors are idle after bad clients" cpu_idle

middlebox b add 7100
subtest "bad servers" in_a clc_peer server --addr "$A" --port 7100 -- \
	ip netns exec b smc_stream ping --family smc --addr "$A" --port 7100 --timeout 30
stop_middlebox b
check "a good client still uses SMC-R" smcr good
check "the processors are idle after bad servers" cpu_idle

settled() {
	quiet a b && [ "$(both memory_bytes)" -le $((memory + 65536)) ]
}
check "connections and memory of bad peers are gone within 40 s" wait_for 40 settled
note "memory_bytes before $memory, after $(both memory_bytes)"
done_testing

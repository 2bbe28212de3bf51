#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A peer with a real RDMA link that breaks every rule of CLC, LLC and CDC, as
# client and as server. What it did wrong must end that connection or that link;
# good connections go on beside it, nothing is written outside of the buffers,
# the kernel's log is not flooded, nothing stays behind, and the processors are
# idle. peer_slow.sh has the cases that wait for time-outs or send a lot.
#
# vm: --topology pair --timeout 900

. "$(dirname "$0")/../lib.sh"
need_module
all=${PEER_ALL:-}

echo_server a smc "$A" 7000
middlebox a add 7000
good() {
	ping_from_b smc "$A" 7000 --timeout 30 "$@"
}
check "a good client uses SMC-R" smcr good

# A good client of this kernel that lives as long as the bad ones do, and others
# that come and go.
start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000 --count 100000000 \
	--timeout 850
long=$started
good_clients 0.5 good --count 1
memory=$(both memory_bytes)
lines=$(dmesg | wc -l)
start=$SECONDS
subtest "bad clients" in_b smc_peer client --addr "$A" --own "$B" --port 7000 --jobs 6 ${all:+--all}
took=$((SECONDS - start))
check "a good client uses SMC-R at once" smcr good
stop_good_clients
note "bad clients took $took s"
check "a good connection has lasted all the time" kill -0 "$long"
stop "$long"

# The fewest slots that a link can have: one that is lost would stop it.
in_a sysctl -qw net.smc.smcr_max_send_wr=2
subtest "connections wait for the only slot for messages" \
	in_b smc_peer client --addr "$A" --own "$B" --port 7000 --case waiting-connections
in_a sysctl -qw net.smc.smcr_max_send_wr=16
stop_middlebox a

# Ten lines of each kind in five seconds, of about twelve kinds; far fewer than
# there were messages.
few_lines() {
	local now
	now=$(dmesg | grep -c 'smc_rs: ')
	echo "$now lines in $took s"
	[ "$now" -le $((100 + 30 * took)) ]
}
check "the kernel's log is not flooded" few_lines
note "$(($(dmesg | wc -l) - lines)) lines in the kernel's log"
check "the processors are idle after bad clients" cpu_idle

middlebox b add 7100
subtest "bad servers" in_a smc_peer server --addr "$A" --port 7100 ${all:+--all} -- \
	ip netns exec b smc_stream ping --family smc --addr "$A" --port 7100 --timeout 30
stop_middlebox b
check "a good client still uses SMC-R" smcr good
check "the processors are idle after bad servers" cpu_idle

settled() {
	quiet a b && [ "$(both memory_bytes)" -le $((memory + 65536)) ]
}
check "connections and memory of bad peers are gone within 90 s" wait_for 90 settled
note "memory_bytes before $memory, after $(both memory_bytes)"

# Version 1. Without the switch for tests it cannot use the identifiers of software devices.
stop_all
check "the module takes the switch" \
	wait_for 20 sh -c 'modprobe -r smc_rs && modprobe smc_rs v1_over_rocev2=1'
echo_server a smc "$A" 7000
middlebox a add 7000
subtest "bad clients of version 1" in_b smc_peer client --v1 --addr "$A" --own "$B" --port 7000
stop_middlebox a
middlebox b add 7100
subtest "bad servers of version 1" in_a smc_peer server --v1 --addr "$A" --port 7100 -- \
	ip netns exec b smc_stream ping --family smc --addr "$A" --port 7100 --timeout 30
stop_middlebox b
check "connections of version 1 are gone within 20 s" gone 20 a b
done_testing

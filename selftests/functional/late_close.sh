#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A connection that a program closes while the other side keeps its end open. After a minute nothing
# waits for that side any more, but it may still write, so that nobody else gets the buffer. When it
# closes at last, place and buffer are free again.
#
# vm: --topology pair --timeout 300
# waits

. "$(dirname "$0")/../lib.sh"
need_module
ENDS=$(dirname "$0")/ends.py

# counts: connections that the client's host shows, and those that have a place in its link group.
counts() {
	echo "$(counter b connections_active) $(sed -n 's/^lgr .* conns=\([0-9]*\) .*/\1/p' \
		"/proc/${inside[b]}/net/smc_rs")"
}
closed() {
	grep -q 'state=PEERCLOSEWAIT1' "/proc/${inside[b]}/net/smc_rs"
}

start ip netns exec a smc_run python3 "$ENDS" server "$A" 7000
wait_port a 7000
start ip netns exec b smc_run python3 "$ENDS" close "$A" 7000
check "a program has closed its end" wait_for 15 closed
sleep 30
check "the other end is waited for" is "1 1" counts
check "this ends" wait_for 60 quiet b
check "the connection keeps its place" is "0 1" counts
stop_all
check "the other end is closed, and the place is free" wait_for 8 is "0 0" counts
check "nothing is left" gone 20 a b
done_testing

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Nobody is woken for nothing: a program that waits for an answer sleeps once for each, although its
# own message is acknowledged first, which makes room for writers that there are none of.
#
# vm: --topology pair --timeout 300

. "$(dirname "$0")/../lib.sh"
need_module

# sleeps FAMILY PORT: sets $trips to the round trips of a second, and $sleeps to how often the program
# went to sleep.
sleeps() {
	read -r trips sleeps < <(in_b python3 -c '
import json, resource, subprocess, sys
ran = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=True)
print(json.loads(ran.stdout)["round_trips"], resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw)
' smc_bench latency --family "$1" --connect "$A:$2" --size 1 --seconds 2)
	note "$1: $trips round trips, $sleeps times asleep"
}

for family in tcp smc; do
	port=$([ $family = tcp ] && echo 7001 || echo 7002)
	start ip netns exec a smc_bench serve --family $family --bind "$A:$port"
	wait_port a "$port"
	sleeps $family "$port"
	check "there are round trips on $family" test "$trips" -gt 100
	check "a program on $family sleeps once for each answer" test $((sleeps * 2)) -lt $((trips * 3))
done
check "they were over SMC-R" test "$(counter b connections_smcr)" -gt 0
stop_all
done_testing

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# RDMA devices that go away while they are used: connections end with an error,
# calls return, removal does not hang, and a device that comes back is used.
#
# vm: --topology pair --timeout 600
# waits

. "$(dirname "$0")/../lib.sh"
need_module

echo_server a smc "$A" 7000
good() {
	ping_from_b smc "$A" 7000 --timeout 20 "$@"
}

# removal NAMESPACE DEVICE: in less than 10 s.
removal() {
	timeout 10 ip netns exec "$1" rdma link delete "$2"
}

# A stream that would run for long; both ends must end with an error, not with
# wrong data, soon after the device is gone.
broken_stream() {
	local ns=$1 device=$2 port=$3 job status start
	smc_stream both --server-ns a --client-ns b --family smc --addr "$A" --port "$port" \
		--seed "$SEED" --conns 6 --bytes 1G --bidir --timeout 60 >"$WORK/stream" 2>&1 &
	job=$!
	sleep 2
	if [ "$(counter "$ns" connections_active)" -lt 6 ]; then
		echo "the streams do not run"
		cat "$WORK/stream"
		return 1
	fi
	start=$SECONDS
	removal "$ns" "$device" || { echo "the device could not be removed within 10 s"; return 1; }
	wait "$job"
	status=$?
	cat "$WORK/stream"
	[ "$status" -ne 0 ] || { echo "the streams did not end with an error"; return 1; }
	[ $((SECONDS - start)) -le 20 ] || { echo "they ended after $((SECONDS - start)) s"; return 1; }
	if grep -qE 'was sent"|time is over|nothing moved' "$WORK/stream"; then
		echo "data was wrong, or a call did not return"
		return 1
	fi
}

check "before, connections use SMC-R" smcr good
check "the client's device goes away under traffic" broken_stream b rxe1 7100
check "connections fall back without it" falls_back "b" good
check "it comes back" add_rxe b rxe1
check "and is used" wait_for 15 smcr good
check "the server's device goes away under traffic" broken_stream a rxe0 7200
check "it comes back" add_rxe a rxe0
check "and is used" wait_for 15 smcr good

# A device made anew numbers its queue pairs from the start: the one that the client's old link
# led to is there again, for another group, while the client still believes in the old one.
numbers_again() {
	local status old
	remove_rxe a rxe0 && add_rxe a rxe0 || return 1
	wait_for 15 smcr good || return 1
	made=$(counter b connections_smcr)
	start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000 --hold 60000 --watch \
		--timeout 90
	old=$started
	wait_for 10 held || { echo "the connection is not held"; return 1; }
	remove_rxe a rxe0 && add_rxe a rxe0 || return 1
	smcr good --count 1 && smcr good --count 4
	status=$?
	wait_for 20 ended "$old" || { echo "the old link's connection goes on"; status=1; }
	stop "$old"
	return $status
}
held() {
	[ "$(counter b connections_smcr)" -gt "$made" ]
}
ended() {
	! kill -0 "$1"
}
check "queue pairs with the numbers of lost ones are told apart" numbers_again

# Removal at any moment of handshakes.
storm() {
	local n errors=0 job
	for n in 1 2 3 4 5 6; do
		(
			while [ ! -e "$WORK/calm" ]; do
				good --count 1 --timeout 20 >"$WORK/storm.$n" 2>&1
				status=$?
				# A connection may break, but it may not hang or lie.
				if [ "$status" -ne 0 ] && grep -qE 'was sent"|in time' "$WORK/storm.$n"; then
					cat "$WORK/storm.$n" >>"$WORK/storm.bad"
				fi
			done
		) &
		job[n]=$!
	done
	for n in 1 2 3 4 5 6 7 8; do
		sleep 0.$((n * 7 % 10))
		removal b rxe1 || errors=1
		sleep 0.2
		add_rxe b rxe1 || errors=1
	done
	: >"$WORK/calm"
	wait "${job[@]}"
	[ ! -e "$WORK/storm.bad" ] || { cat "$WORK/storm.bad"; return 1; }
	return "$errors"
}
check "the device goes away and comes back during handshakes" storm
check "afterwards connections use SMC-R" wait_for 20 smcr good

# The port goes down and up again under an open connection.
flap() {
	local job
	in_b smc_stream ping --family smc --addr "$A" --port 7000 --count 2 --hold 4000 --timeout 30 \
		>"$WORK/flap" 2>&1 &
	job=$!
	sleep 1
	in_b ip link set veth0 down
	sleep 1
	in_b ip link set veth0 up
	# Either it survives or it ends with an error; both within the limit.
	timeout 40 tail --pid="$job" -f /dev/null
	wait "$job"
	cat "$WORK/flap"
	! grep -qE 'was sent"' "$WORK/flap"
}
check "the network device goes down and up" flap
in_b ip addr add fd09::2/64 dev veth0 nodad 2>/dev/null
check "afterwards connections use SMC-R again" wait_for 30 smcr good
check "all connections are gone within 20 s" gone 20 a b
check "the processors are idle afterwards" cpu_idle
done_testing

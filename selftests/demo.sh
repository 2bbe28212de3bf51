#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs redis and iperf3 between the network namespaces a (server) and b (client), first on TCP
# and then under smc_run, and proves from kernel counters and a packet capture that the second
# run moved its bytes by RDMA. Runs inside the virtual machine:
#
#   selftests/vm --topology pair -- /src/selftests/demo.sh [--json FILE] [--keep FOLDER]
#
# Exit status: 0 all bytes went by RDMA, 1 they did not, 2 the demo could not be run.
set -u

SERVER_IP=10.9.0.1
CLIENT_IP=10.9.0.2
REDIS_PORT=6379
IPERF_PORT=5201
REDIS_REQUESTS=${REDIS_REQUESTS:-2000}
IPERF_SECONDS=${IPERF_SECONDS:-5}

work=
children=()

fail() {
	echo "demo: $*" >&2
	exit 2
}

say() {
	printf '%4ds  %s\n' "$SECONDS" "$*"
}

usage() {
	sed -n '4,10s/^# \{0,1\}//p' "$0"
}

# Ends the processes that this script started, in the order in which they were started.
stop_children() {
	local pid
	for pid in "${children[@]}"; do
		kill -TERM "$pid" 2>/dev/null
	done
	for pid in "${children[@]}"; do
		wait "$pid" 2>/dev/null
	done
	children=()
}

clean_up() {
	stop_children
	if [ -n "$work" ] && [ -z "$keep" ]; then
		rm -rf "$work"
	fi
}

# start NAMESPACE LOG COMMAND... runs in the background until stop_children.
start() {
	local namespace=$1 log=$2
	shift 2
	ip netns exec "$namespace" "$@" >"$log" 2>&1 &
	children+=($!)
}

# Waits until a TCP port of namespace a is listened on. Connecting instead would count as a
# connection of its own.
wait_for_port() {
	local tries=100
	while [ "$((tries--))" -gt 0 ]; do
		[ -n "$(ip netns exec a ss -Hltn "sport = :$1")" ] && return 0
		sleep 0.1
	done
	return 1
}

# wait_for_text TEXT FILE
wait_for_text() {
	local tries=100
	while [ "$((tries--))" -gt 0 ]; do
		grep -q "$1" "$2" 2>/dev/null && return 0
		sleep 0.1
	done
	return 1
}

# run_programs FOLDER [WRAPPER] runs both pairs of programs and leaves their results.
run_programs() {
	local folder=$1 wrapper=${2:-}
	start a "$folder/redis-server.log" $wrapper redis-server --bind "$SERVER_IP" \
		--port "$REDIS_PORT" --save "" --appendonly no --protected-mode no
	start a "$folder/iperf3-server.log" $wrapper iperf3 --server --bind "$SERVER_IP" \
		--port "$IPERF_PORT"
	wait_for_port "$REDIS_PORT" || fail "redis-server did not start: $(tail -n 1 "$folder/redis-server.log")"
	wait_for_port "$IPERF_PORT" || fail "iperf3 did not start: $(tail -n 1 "$folder/iperf3-server.log")"

	say "  redis-benchmark: $REDIS_REQUESTS requests of each kind, 10 connections"
	timeout 120 ip netns exec b $wrapper redis-benchmark -h "$SERVER_IP" -p "$REDIS_PORT" \
		-n "$REDIS_REQUESTS" -c 10 -t set,get -d 1024 --csv \
		>"$folder/redis.csv" 2>"$folder/redis.err" ||
		say "  redis-benchmark failed: $(tail -n 1 "$folder/redis.err")"
	say "  iperf3: $IPERF_SECONDS seconds"
	timeout 120 ip netns exec b $wrapper iperf3 --client "$SERVER_IP" --port "$IPERF_PORT" \
		--bind "$CLIENT_IP" --time "$IPERF_SECONDS" --json \
		>"$folder/iperf3.json" 2>"$folder/iperf3.err" ||
		say "  iperf3 failed: $(tail -n 1 "$folder/iperf3.err")"
}

# Starts the capture of all TCP packets on the client's end of the link. RDMA packets are UDP.
start_capture() {
	local interface
	interface=$(ip -n b -o -4 address show to "$CLIENT_IP" | awk '{ print $2; exit }')
	interface=${interface%@*}
	[ -n "$interface" ] || fail "no interface in namespace b has the address $CLIENT_IP: run this by selftests/vm --topology pair."
	start b "$work/smc/tcpdump.log" tcpdump -i "$interface" -s 1024 -B 16384 -Z root \
		-w "$work/smc/tcp.pcap" tcp
	wait_for_text 'listening on' "$work/smc/tcpdump.log" ||
		fail "tcpdump did not start: $(tail -n 1 "$work/smc/tcpdump.log")"
}

snapshot() {
	local namespace
	for namespace in a b; do
		ip netns exec "$namespace" smc_proof snapshot "$work/smc/$namespace/$1" ||
			fail "the statistics of namespace $namespace cannot be read."
	done
}

# Keeps reading the kernel's connection lists.
start_watch() {
	local namespace
	for namespace in a b; do
		start "$namespace" "$work/smc/$namespace/during" smc_proof watch
	done
}

json=
keep=
while [ $# -gt 0 ]; do
	case $1 in
	--json | --keep)
		[ $# -ge 2 ] || fail "$1 needs a value."
		[ "$1" = --json ] && json=$2 || keep=$2
		shift
		;;
	-h | --help)
		usage
		exit 0
		;;
	*) fail "the option $1 is unknown: see demo.sh --help." ;;
	esac
	shift
done

for tool in redis-server redis-benchmark iperf3 tcpdump ss smc_run smc_proof; do
	command -v "$tool" >/dev/null || fail "$tool is missing: run this by selftests/vm."
done
for namespace in a b; do
	ip netns exec "$namespace" true 2>/dev/null ||
		fail "there is no network namespace $namespace: run this by selftests/vm --topology pair."
done

trap clean_up EXIT
trap 'exit 2' INT TERM
if [ -n "$keep" ]; then
	work=$keep
else
	work=$(mktemp -d) || fail "no folder for temporary files can be made."
fi
mkdir -p "$work/plain" "$work/smc/a" "$work/smc/b"

say "Unmodified programs on TCP"
run_programs "$work/plain"
stop_children

say "The same programs under smc_run"
start_capture
snapshot before
start_watch
run_programs "$work/smc" smc_run
snapshot after
# The last segments of closed connections are still on their way to the capture.
sleep 1
stop_children

smc_proof demo "$work" ${json:+--json "$json"}

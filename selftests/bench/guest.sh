#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Measures TCP, SMC-R and raw RDMA inside the virtual machine; selftests/bench.sh starts it.
#
# usage: guest.sh TOPOLOGY FOLDER
#
# pair:  the server is in namespace a, the client in b
# hosts: the server is host 2, the client host 1
#
# SMC_BENCH_ROUNDS, SMC_BENCH_SECONDS, SMC_BENCH_IDLE and SMC_BENCH_WAIT in the environment say
# how often and how long to measure, how many idle connections to open, and how long to wait for
# their memory. Throughput is measured three times as often, in turns of about half of that time:
# what a host has left over for the machines changes by a fifth from one second to the next.
#
# Exit status: 0 all was measured, 1 a measurement failed or a connection fell back to TCP.
set -u

topology=$1
folder=$2
rounds=${SMC_BENCH_ROUNDS:-3}
seconds=${SMC_BENCH_SECONDS:-3}
idle=${SMC_BENCH_IDLE:-200}
wait=${SMC_BENCH_WAIT:-30}
stream_seconds=$(((seconds + 1) / 2))

TCP_PORT=7001
SMC_PORT=7002
BW_PORT=18515
LAT_1_PORT=18516
LAT_4096_PORT=18517
BW_ITERATIONS=150
LAT_ITERATIONS=1000

children=()
failed=0

say() {
	printf '%4ds  %s\n' "$SECONDS" "$*"
}

# A measurement that failed spoils the result, but not the other measurements.
bad() {
	echo "bench: $*" >&2
	failed=1
}

case $topology in
pair)
	server_ip=10.9.0.1 client_ip=10.9.0.2 ends=2 is_server=1 is_client=1
	server=(ip netns exec a) client=(ip netns exec b)
	meet() { :; }
	;;
hosts)
	server_ip=10.9.0.2 client_ip=10.9.0.1 ends=1
	[ "$SMC_HOST" = 2 ] && is_server=1 || is_server=
	[ "$SMC_HOST" = 1 ] && is_client=1 || is_client=
	server=() client=()
	meet() { vm-sync "$1" 1200; }
	;;
*)
	echo "bench: the topology $topology is unknown: use pair or hosts." >&2
	exit 2
	;;
esac

# Ends what this script started: the loops before what they run, or they would start it again.
stop_children() {
	local pid running
	for pid in "${children[@]}"; do
		running=$(pgrep -P "$pid")
		kill -TERM "$pid" $running
	done
	wait
	children=()
} 2>/dev/null

# rdma_options IP prints what perftest must know about the RDMA device with this address. Runs
# where the device is.
rdma_options() {
	local gid file device index
	gid=$(printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' ${1//./ })
	for file in /sys/class/infiniband/*/ports/1/gids/*; do
		if [ "$(cat "$file" 2>/dev/null)" = "$gid" ]; then
			device=${file#/sys/class/infiniband/}
			index=${file##*/}
			echo "-F -d ${device%%/*} -x $index"
			return 0
		fi
	done
	return 1
}
export -f rdma_options

# serve_perftest PORT COMMAND... serves one client after the other.
serve_perftest() {
	local port=$1
	shift
	while :; do
		"${server[@]}" "$@" $server_rdma -p "$port" >/dev/null 2>&1 || sleep 0.2
	done
}

start_servers() {
	"${server[@]}" smc_bench serve --family tcp --bind "$server_ip:$TCP_PORT" &
	children+=($!)
	"${server[@]}" smc_bench serve --family smc --bind "$server_ip:$SMC_PORT" &
	children+=($!)
	server_rdma=$("${server[@]}" bash -c "rdma_options $server_ip") ||
		bad "no RDMA device has the address $server_ip."
	serve_perftest $BW_PORT ib_write_bw -s 65536 -n $BW_ITERATIONS --report_gbits &
	children+=($!)
	serve_perftest $LAT_1_PORT ib_write_lat -s 1 -n $LAT_ITERATIONS &
	children+=($!)
	serve_perftest $LAT_4096_PORT ib_write_lat -s 4096 -n $LAT_ITERATIONS &
	children+=($!)
	sleep 2
}

# measure FAMILY TEST [OPTIONS...] adds one line to the results.
measure() {
	local family=$1 test=$2 port=$TCP_PORT line
	shift 2
	[ "$family" = smc ] && port=$SMC_PORT
	if line=$("${client[@]}" smc_bench "$test" --family "$family" --connect "$server_ip:$port" "$@"); then
		echo "$line" >>"$folder/results.jsonl"
	else
		bad "the measurement \"$test $*\" over $family failed."
	fi
}

# raw FILE PORT COMMAND... runs perftest's client; its server may still be coming up.
raw() {
	local file=$1 port=$2 try
	shift 2
	for try in 1 2 3 4 5; do
		timeout 120 "${client[@]}" "$@" $client_rdma -p "$port" "$server_ip" >"$file" 2>&1 && return 0
		sleep 0.5
	done
	bad "perftest failed: $(tail -n 1 "$file")"
	return 1
}

raw_stream() {
	raw "$folder/raw-bw-$1.txt" $BW_PORT ib_write_bw -s 65536 -n $BW_ITERATIONS --report_gbits
}

measure_raw() {
	local round=$1
	raw "$folder/raw-lat-1-$round.txt" $LAT_1_PORT ib_write_lat -s 1 -n $LAT_ITERATIONS
	raw "$folder/raw-lat-4096-$round.txt" $LAT_4096_PORT ib_write_lat -s 4096 -n $LAT_ITERATIONS
}

family_stream() {
	measure "$1" stream --size 65536 --seconds "$stream_seconds"
}

measure_family() {
	measure "$1" latency --size 1 --seconds "$seconds"
	measure "$1" latency --size 4096 --seconds "$seconds"
	measure "$1" connect --seconds "$seconds"
}

# The kernel's memory is read best before anything else has used some.
measure_memory() {
	local family
	for family in tcp smc; do
		say "memory of $idle idle connections over $family"
		sync
		echo 3 >/proc/sys/vm/drop_caches
		measure "$family" idle --connections "$idle" --ends "$ends" \
			--wait "$([ "$family" = smc ] && echo "$wait" || echo 2)"
	done
}

run_client() {
	local round
	rm -rf "$folder"
	mkdir -p "$folder"
	client_rdma=$("${client[@]}" bash -c "rdma_options $client_ip") ||
		bad "no RDMA device has the address $client_ip."
	measure_memory
	# The order changes from round to round, so that a drift meets all alike.
	for ((round = 1; round <= 3 * rounds; round++)); do
		say "throughput, round $round of $((3 * rounds))"
		if ((round % 2)); then
			family_stream tcp
			family_stream smc
			raw_stream "$round"
		else
			raw_stream "$round"
			family_stream smc
			family_stream tcp
		fi
	done
	for ((round = 1; round <= rounds; round++)); do
		say "latency and connections, round $round of $rounds"
		if ((round % 2)); then
			measure_family tcp
			measure_family smc
			measure_raw "$round"
		else
			measure_raw "$round"
			measure_family smc
			measure_family tcp
		fi
	done
	smc_bench report "$folder" --topology "$topology" --json "$folder.json" | tee "$folder.txt"
	[ "${PIPESTATUS[0]}" = 0 ] || bad "there is no report."
}

trap stop_children EXIT
[ -n "$is_server" ] && start_servers
meet bench-servers
[ -n "$is_client" ] && run_client
meet bench-end
exit "$failed"

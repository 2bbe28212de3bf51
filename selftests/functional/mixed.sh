#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Everything at once for a long time: streams of random kinds whose bytes are checked,
# calls on sockets that many threads share, listings, requests without rights, settings
# that change, namespaces that come and go, and now and then a device that goes away.
# Streams are right, or end with an error if a device went while they ran; nothing
# hangs, and what the kernel has to say about it, selftests/vm finds.
#
# SMC_MIXED_SECONDS says how long, if not 60 s, or half an hour in the long form.
#
# vm: --topology pair --timeout 3600
# slow: half an hour of load, made for the kernels with checkers

. "$(dirname "$0")/../lib.sh"
need_module
LONG=${SMC_MIXED_SECONDS:-$(by_form 60 1800)}
note "SMC_TEST_SEED=$SEED, $LONG s"
END=$((SECONDS + LONG))
# How often a device has gone or come so far: an odd number while one goes or is gone.
echo 0 >"$WORK/removals"

# device_went BEFORE: whether a device was away at some time since BEFORE was read from there.
device_went() {
	[ $(($1 % 2)) -eq 1 ] || [ "$1" != "$(<"$WORK/removals")" ]
}

on() {
	[ "$SECONDS" -lt "$END" ]
}

# one_of WORD...: sets $chosen by chance.
one_of() {
	shift $((RANDOM % $#))
	chosen=$1
}

# count_for NAME: once more.
count_for() {
	echo . >>"$WORK/count.$1"
}

# fault WHAT [LOG]: with the kernel's time and what it has to say.
fault() {
	{
		printf '[%s] %s\n' "$(cut -d' ' -f1 /proc/uptime)" "$1"
		[ -z "${2:-}" ] || tail -n 5 "$2" | cut -c1-600
		kernel_view
	} >>"$WORK/faults"
}

# A port for each stream at a time. More than a kernel can do would end in nothing but time-outs and
# connections that fall back.
read -ra ports <<<"$(by_kernel "7100 7200 7300" 7100)"

# A stream of a random kind in $kind.
random_stream() {
	one_of "--conns 3 --bytes 400K --bidir --msg-max 1M" \
		"--conns 2 --bytes 200K --bidir --msg-max 300K --sndbuf 16K --rcvbuf 16K" \
		"--conns 2 --bytes 500K --bidir --msg-max 1M --sndbuf 1M --rcvbuf 512K" \
		"--conns 2 --bytes 200K --bidir --recv flags --rcvbuf 64K" \
		"--conns 2 --bytes 200K --bidir --recv slow --rcvbuf 32K" \
		"--io epoll --server-io epoll --conns 6 --bytes 100K --bidir" \
		"--mode churn --conns 40 --parallel 8 --bytes 20K" \
		"--mode half-close --conns 8 --parallel 4 --bytes 64K" \
		"--mode short-reply --conns 20 --parallel 4 --bytes 32K" \
		"--mode oob --conns 2 --bytes 5K" \
		"--mode kill --victim client --conns 4 --bytes 1G --bidir" \
		"--mode kill --victim server --conns 4 --bytes 1G --bidir"
	kind=$chosen
}

streams() {
	local port=$1 before status log=$WORK/stream.$1 family kind
	RANDOM=$((SEED + port))
	while on; do
		one_of "smc --addr $A" "smc6 --addr $A6" "smc --addr $A"
		family=$chosen
		random_stream
		before=$(<"$WORK/removals")
		# shellcheck disable=SC2086
		timeout -k 5 400 smc_stream both --server-ns a --client-ns b --family $family --port "$port" \
			--seed $((SEED + RANDOM)) --timeout 300 $kind >"$log" 2>&1
		status=$?
		count_for streams
		if grep -qE 'was sent"|time is over|nothing moved' "$log" || [ "$status" -ge 124 ]; then
			fault "wrong data, or a call that did not return: $kind" "$log"
		elif [ "$status" -ne 0 ] && ! device_went "$before"; then
			fault "status $status although no device went: $kind" "$log"
		fi
	done
}

# All calls on all sockets, with other seeds each time. That nothing was done in ten seconds says
# something about the machine only, and what is left afterwards, or cannot be opened, about the device
# that is away: its peers learn that from the test of their links.
calls() {
	RANDOM=$((SEED + 1))
	local before
	while on; do
		before=$(<"$WORK/removals")
		smc_race --only "all calls on all" --seconds 10 --seed $((SEED + RANDOM)) >"$WORK/calls" 2>&1 ||
			grep -q 'nothing was done' "$WORK/calls" ||
			{ grep -q 'afterwards: ' "$WORK/calls" && device_went "$before"; } ||
			fault "all calls on all sockets" "$WORK/calls"
		count_for calls
	done
}

listings() {
	while on; do
		for ns in a b; do
			ip netns exec $ns smcss -a -D
			ip netns exec $ns smcr -d linkgroup
			ip netns exec $ns smcr -d stats
			ip netns exec $ns smcr device
			cat "/proc/${inside[$ns]}/net/smc_rs"
		done >/dev/null 2>"$WORK/listings"
		count_for listings
		sleep 0.5
	done
}

without_rights() {
	RANDOM=$((SEED + 2))
	while on; do
		ip netns exec a setpriv --reuid 65534 --regid 65534 --clear-groups \
			smc_nlfuzz --seed $((SEED + RANDOM)) --seconds 10 --unprivileged >"$WORK/fuzz" 2>&1 ||
			fault "random requests without rights" "$WORK/fuzz"
		count_for fuzz
		sleep 2
	done
}

settings() {
	RANDOM=$((SEED + 3))
	local ns
	while on; do
		for ns in a b; do
			one_of "wmem 16384" "wmem 65536" "wmem 262144" "rmem 16384" "rmem 65536" "rmem 524288" \
				"autocorking_size 0" "autocorking_size 65536" "smcr_max_conns_per_lgr 16" \
				"smcr_max_conns_per_lgr 255" "smcr_testlink_time 1" "smcr_testlink_time 30"
			# shellcheck disable=SC2086
			set -- $chosen
			ip netns exec $ns sh -c "echo $2 >/proc/sys/net/smc/$1" || fault "setting $chosen"
		done
		count_for settings
		sleep 1
	done
}

spaces() {
	while on; do
		ip netns add mixed
		ip netns exec mixed ip link set lo up
		ip netns exec mixed smc_stream both --family smc --addr 127.0.0.1 --conns 2 --bytes 10K --timeout 60 \
			>"$WORK/spaces" 2>&1 || fault "connections inside a namespace" "$WORK/spaces"
		ip netns delete mixed
		count_for spaces
		sleep 1
	done
}

# Twice a minute or so; what it says counts before it goes and after it came.
removals() {
	RANDOM=$((SEED + 4))
	local n=0 ns device
	while on; do
		sleep $((15 + RANDOM % 20))
		on || break
		one_of "a rxe0" "b rxe1"
		read -r ns device <<<"$chosen"
		n=$((n + 1))
		echo $n >"$WORK/removals"
		timeout 60 ip netns exec "$ns" rdma link delete "$device" || fault "$device cannot be removed"
		sleep 0.$((RANDOM % 10))
		add_rxe "$ns" "$device" || fault "$device cannot be made again"
		n=$((n + 1))
		echo $n >"$WORK/removals"
		count_for removals
	done
}

: >"$WORK/faults"
jobs=()
for job in "${ports[@]/#/streams }" calls listings without_rights settings spaces removals; do
	# shellcheck disable=SC2086
	$job 2>>"$WORK/background" &
	jobs+=($!)
done
wait "${jobs[@]}"
for job in streams calls listings fuzz settings spaces; do
	done_so_often=$(wc -l <"$WORK/count.$job")
	note "$job: $done_so_often times"
	check "$job went on" test "$done_so_often" -gt 0
done
note "$(both connections_smcr) ends of connections over SMC-R, $(both fallback_total) fell back"
result "$([ ! -s "$WORK/faults" ]; echo $?)" "all were right" "$WORK/faults"
for ns in a b; do
	ip netns exec $ns sh -c 'cd /proc/sys/net/smc; echo 65536 >wmem; echo 65536 >rmem; echo 65536 >autocorking_size
		echo 255 >smcr_max_conns_per_lgr; echo 30 >smcr_testlink_time'
done
check "all connections are gone within 40 s" gone 40 a b
check "connections use SMC-R" wait_for 20 smcr smc_stream both --server-ns a --client-ns b --family smc \
	--addr "$A" --port 7000 --seed "$SEED" --conns 4 --bytes 100K --bidir --timeout 60
check "the processors are idle afterwards" cpu_idle
check "the module can be unloaded" wait_for 30 modprobe -r smc_rs
done_testing

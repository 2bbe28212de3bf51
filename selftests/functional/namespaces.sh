#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Containers: connections over their own routes and a gateway; nothing of theirs stays
# when they go; a new namespace takes no lock of the network and leaves no memory behind.
#
# vm: --topology pair --timeout 600
# slow: makes hundreds of connections and many namespaces

. "$(dirname "$0")/../lib.sh"
need_module
ROUNDS=$(by_form 200 2000)

# 1. Two containers with a gateway between them, which alone knows both networks. The far ends
# of their devices are in the gateway: they go when the containers are really gone.
make() {
	local side ns
	ip netns add gate && ip -n gate link set lo up && in_gate sysctl -qw net.ipv4.ip_forward=1 || return 1
	for side in 1 2; do
		ns=box$side
		ip netns add $ns && ip -n $ns link set lo up &&
			ip link add to$side netns gate type veth peer name eth0 netns $ns &&
			ip -n gate addr add 10.8.$side.1/24 dev to$side && ip -n gate link set to$side up &&
			ip -n $ns addr add 10.8.$side.2/24 dev eth0 && ip -n $ns link set eth0 up &&
			ip -n $ns route add default via 10.8.$side.1 || return 1
		ip netns exec $ns rdma link add rxe_$side type rxe netdev eth0 && rdma dev set rxe_$side netns $ns ||
			return 1
	done
}
in_gate() {
	ip netns exec gate "$@"
}
view() {
	ip netns exec "$1" cat /proc/net/smc_rs | value_of "$2"
}
over_the_gateway() {
	local before
	before=$(view box2 connections_smcr)
	ip netns exec box2 smc_stream ping --family smc --addr 10.8.1.2 --port 7000 --timeout 20 &&
		[ "$(view box2 connections_smcr)" -gt "$before" ]
}
check "two containers and a gateway" make
refuse "the initial namespace has no way to them" ip route get 10.8.1.2
start ip netns exec box1 smc_stream echo --family smc --addr 10.8.1.2 --port 7000
wait_port box1 7000
check "connections over the gateway use SMC-R" wait_for 30 over_the_gateway

# 2. Routes and neighbours of connections.
cat >"$WORK/often.py" <<'END'
import socket, sys
for _ in range(int(sys.argv[2])):
    with socket.create_connection((sys.argv[1], 7000)) as peer:
        peer.sendall(b"x")
        assert peer.recv(1) == b"x"
END
often() {
	ip netns exec box2 smc_run python3 "$WORK/often.py" 10.8.1.2 "$1"
}
# kept: entries of the caches of routes and neighbours, of all namespaces.
kept() {
	local file
	for file in rt_cache arp_cache; do
		echo $((16#$(awk 'NR == 2 { print $1 }' /proc/net/stat/$file)))
	done
}
check "connections one after the other" often 20
sleep 3
mapfile -t before < <(kept)
first=$(view box2 connections_smcr)
check "$ROUNDS more" often "$ROUNDS"
check "all of them over SMC-R" is "$ROUNDS" echo $(($(view box2 connections_smcr) - first))
sleep 3
mapfile -t after < <(kept)
note "routes ${before[0]} then ${after[0]}, neighbours ${before[1]} then ${after[1]}"
check "no routes are kept for them" test $((after[0] - before[0])) -lt $((ROUNDS / 4))
check "nor neighbours" test $((after[1] - before[1])) -lt 20

# 3. The containers go, with a connection and its link group.
start ip netns exec box2 smc_stream ping --family smc --addr 10.8.1.2 --port 7000 --hold 100000 --timeout 120
held() {
	[ "$(view box2 connections_active)" -eq 1 ]
}
check "a connection is open" wait_for 20 held
stop_all
ip netns delete box1
ip netns delete box2
far_ends() {
	! ip -n gate -o link show | grep -q ' to[12]@'
}
check "the containers are gone within 60 s" wait_for 60 far_ends
ip -n gate -o link show | grep ' to[12]@' | sed 's/^/# /'
ip netns delete gate
refuse "no device waits for its references" sh -c 'dmesg | grep "waiting for .* to become free"'

# 4. What making a namespace does inside of the module: no lock of the network.
tracing=/sys/kernel/tracing
mountpoint -q $tracing || mount -t tracefs tracefs $tracing
tracer() {
	echo "$1" >$tracing/tracing_on
}
if grep -qw function $tracing/available_tracers; then
	tracer 0
	echo 16384 >$tracing/buffer_size_kb
	printf '%s\n' rtnl_lock rtnl_trylock rtnl_lock_killable __rtnl_net_lock rtnl_net_lock \
		register_net_sysctl_sz unregister_net_sysctl_table >"$WORK/functions"
	grep -xF -f "$WORK/functions" $tracing/available_filter_functions >$tracing/set_ftrace_filter
	echo 1 >$tracing/options/func_stack_trace
	# With places come the names of modules.
	echo 1 >$tracing/options/sym-offset
	echo function >$tracing/current_tracer
	: >$tracing/trace
	tracer 1
	for n in 1 2 3 4 5 6 7 8 9 10; do
		unshare --net true
	done
	sleep 3
	tracer 0
	# Each entry with its stack in a line of its own.
	awk '/<stack trace>/ { next } /^ *=> / { line = line $0; next } { print line; line = $0 } END { print line }' \
		$tracing/trace >"$WORK/trace"
	echo nop >$tracing/current_tracer
	echo 0 >$tracing/options/func_stack_trace
	echo 0 >$tracing/options/sym-offset
	echo >$tracing/set_ftrace_filter
	note "$(grep -c 'rtnl' "$WORK/trace") times somebody took the RTNL," \
		"$(grep -c smc_rs "$WORK/trace") entries are of the module"
	check "the module's work for each namespace is traced" test \
		"$(grep -c 'register_net_sysctl_sz.*\[smc_rs\]' "$WORK/trace")" -ge 10
	taken() {
		grep 'rtnl_.*lock' "$WORK/trace" | cut -c1-500 | tail -5
		grep -q 'rtnl_.*lock.*copy_net_ns' "$WORK/trace"
	}
	check "so is whoever takes the RTNL for one" taken
	refuse "the module does not" grep 'rtnl_.*lock.*\[smc_rs\]' "$WORK/trace"
else
	skip "locks for a new namespace" "this kernel cannot trace functions"
fi

# 5. Memory of each processor: what is allocated in a round, by whomever, is freed again.
echo_server a smc "$A" 7000
smcr_once() {
	smcr ping_from_b smc "$A" 7000
}
no_groups() {
	local ns
	for ns in a b; do
		[ "$(counter $ns link_groups)" = 0 ] || return 1
	done
}
# Link groups end with the devices at both ends; a namespace goes with what it had.
round() {
	wait_for 20 smcr_once && remove_rxe b rxe1 && remove_rxe a rxe0 && wait_for 60 no_groups &&
		add_rxe b rxe1 && add_rxe a rxe0 &&
		unshare --net sh -c 'ip link set lo up; smcss -a; python3 -c "import socket; socket.socket(43, socket.SOCK_STREAM)"'
}
turns() {
	local n
	for ((n = 0; n < $1; n++)); do
		round || return 1
	done
}
percpu() {
	awk '$1 == "Percpu:" { print $2 }' /proc/meminfo
}
if [ -d $tracing/events/percpu ]; then
	check "link groups and namespaces come and go" turns 2
	: >$tracing/trace
	echo 1 >$tracing/events/percpu/percpu_alloc_percpu/enable
	echo 1 >$tracing/events/percpu/percpu_free_percpu/enable
	tracer 1
	start_kib=$(percpu)
	TURNS=6
	check "$TURNS more times" turns $TURNS
	sleep 5
	tracer 0
	echo 0 >$tracing/events/percpu/enable
	# ptr= is the name of what was allocated: by call site, how many are still there.
	sed -nE 's/.*percpu_(alloc|free)_percpu: (.*)/\1 \2/p' $tracing/trace >"$WORK/percpu"
	awk '{ ptr = ""; site = ""
			for (i = 2; i <= NF; i++) {
				if ($i ~ /^ptr=/) ptr = $i
				if ($i ~ /^call_site=/) site = $i
			} }
		$1 == "alloc" { at[ptr] = site; made[site]++ }
		$1 == "free" { delete at[ptr] }
		END {
			for (ptr in at) left[at[ptr]]++
			for (site in made) print left[site] + 0, made[site], site
		}' "$WORK/percpu" | sort -rn >"$WORK/left"
	note "Percpu was $start_kib KiB and is $(percpu) KiB; most is left of:"
	head -4 "$WORK/left" | sed 's/^/#   /'
	check "allocations were seen" test "$(awk '{ sum += $2 } END { print sum + 0 }' "$WORK/left")" -ge $TURNS
	check "nothing is left once for each round" awk -v turns=$TURNS '$1 >= turns { print; bad = 1 } END { exit bad }' "$WORK/left"
else
	skip "memory of each processor" "this kernel does not trace it"
fi
stop_all
check "the connections are gone" gone 30 a b

# 6. Sockets are closed with data on their way that nobody acknowledges, and their namespace is
# deleted: TCP's timers run in it until it gives up. Over TCP, and over SMC-R.
ip netns add yard
ip -n yard link set lo up
start ip netns exec yard smc_stream echo --family smc --addr 0.0.0.0 --port 7000
wait_port yard 7000
cat >"$WORK/leave.py" <<'END'
import socket, subprocess, sys
peer = socket.create_connection((sys.argv[1], 7000))
peer.sendall(b"x")
assert peer.recv(1) == b"x"
subprocess.run(["nft", "add table inet cut; add chain inet cut out { type filter hook output priority 0; policy drop; }"],
    check=True)
peer.sendall(bytes(20000))
peer.close()
END
# leaf NUMBER KIND: a namespace that comes and goes.
leaf() {
	ip netns add leaf && ip -n leaf link set lo up &&
		ip link add to$1 netns yard type veth peer name eth0 netns leaf &&
		ip -n yard addr add 10.7.$1.1/24 dev to$1 && ip -n yard link set to$1 up &&
		ip -n leaf addr add 10.7.$1.2/24 dev eth0 && ip -n leaf link set eth0 up || return 1
	if [ "$2" = smcr ]; then
		ip netns exec yard rdma link add rxe_y$1 type rxe netdev to$1 && rdma dev set rxe_y$1 netns yard &&
			ip netns exec leaf rdma link add rxe_l$1 type rxe netdev eth0 && rdma dev set rxe_l$1 netns leaf ||
			return 1
	fi
	ip netns exec leaf sysctl -qw net.ipv4.tcp_orphan_retries=2
	ip netns exec leaf smc_run python3 "$WORK/leave.py" 10.7.$1.1 || return 1
	[ "$(view leaf connections_smcr) $2" != "0 smcr" ] && ip netns delete leaf
}
leaves() {
	local n
	for ((n = 1; n <= LEAVES; n += 2)); do
		leaf $n tcp && leaf $((n + 1)) smcr || return 1
	done
}
LEAVES=$(by_form 6 40)
check "$LEAVES namespaces are deleted with unacknowledged data" leaves
leaves_gone() {
	! ip -n yard -o link show | grep ' to[0-9]*@'
}
check "all of them are gone within 120 s" wait_for 120 leaves_gone
stop_all
ip netns delete yard
refuse "still no device waits for its references" sh -c 'dmesg | grep "waiting for .* to become free"'
check "no socket is left" wait_for 20 no_sockets a b
done_testing

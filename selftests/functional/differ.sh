#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Socket scenarios, each on TCP, on SMC-R and on sockets that fell back: what a
# program sees must be the same. The short form plays one scenario in forty, those
# that the seed picks. DIFFER_OPTIONS chooses others, for instance --only=bind.
#
# vm: --topology pair --timeout 2400

. "$(dirname "$0")/../lib.sh"
need_module

# A second pair of namespaces, without RDMA devices.
plain_pair() {
	ip -batch - <<-BATCH || return
		netns add c
		netns add d
		link add veth0 netns c type veth peer name veth0 netns d
	BATCH
	plain_end c 1 && plain_end d 2
}

plain_end() {
	ip -n "$1" -batch - <<-BATCH
		link set lo up
		addr add 10.8.0.$2/24 dev veth0
		addr add fd08::$2/64 dev veth0 nodad
		link set veth0 up
	BATCH
}

# Packets to the address that ends in 253 go to a host that is not there.
silent_host() {
	local number=$1 ns
	shift
	for ns; do
		ip -n "$ns" neigh add "10.$number.0.253" lladdr 02:00:00:00:00:fd dev veth0 nud permanent
		ip -n "$ns" neigh add "fd0$number::fd" lladdr 02:00:00:00:00:fd dev veth0 nud permanent
	done
}

# Packets to the address that ends in 252 are forbidden.
forbidden_host() {
	local number=$1 ns
	shift
	for ns; do
		ip -n "$ns" route add prohibit "10.$number.0.252/32"
	done
}

differ() {
	smc_differ --rdma "a,$A,$A6,b,$B,fd09::2" --plain c,10.8.0.1,fd08::1,d,10.8.0.2,fd08::2 "$@"
}

# one_in NUMBER: in the short form, one scenario in so many.
one_in() {
	by_form "--one-in $1 --seed $SEED" ""
}

check "a network without RDMA devices" plain_pair
silent_host 9 a b
silent_host 8 c d
forbidden_host 9 a b
forbidden_host 8 c d
# shellcheck disable=SC2046
subtest "the same on TCP, on SMC-R and after a fallback" differ ${DIFFER_OPTIONS-$(one_in 40)}

# What the peer says over the link comes before what its TCP says.
late_tcp() {
	local ns
	for ns in a b; do
		ip netns exec "$ns" tc qdisc add dev veth0 root handle 1: prio &&
			ip netns exec "$ns" tc qdisc add dev veth0 parent 1:3 handle 30: netem delay 60ms &&
			ip netns exec "$ns" tc filter add dev veth0 parent 1: protocol ip prio 1 \
				u32 match ip protocol 6 0xff flowid 1:3 || return
	done
}

check "segments of TCP are late" late_tcp
# shellcheck disable=SC2046
subtest "the same after a reset whose segment is late" differ --only Reset: $(one_in 12)
subtest "the same for what begins while the socket connects" differ --only "while connecting"
check "all connections are gone within 20 s" wait_for 20 quiet a b
check "the processors are idle afterwards" cpu_idle
done_testing

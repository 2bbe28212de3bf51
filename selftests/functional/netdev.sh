#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Network devices that are removed while connections are made over them, and
# connections over stacked ones, whose lower devices come and go.
#
# vm: --topology pair --timeout 400
# slow: makes and removes devices for half a minute

. "$(dirname "$0")/../lib.sh"
need_module
LONG=${NETDEV_SECONDS:-15}

# A second pair, with RDMA devices.
make_pair() {
	ip link add veth1 netns a type veth peer name veth1 netns b &&
		ip -n a addr add 10.9.1.1/24 dev veth1 && ip -n b addr add 10.9.1.2/24 dev veth1 &&
		ip -n a link set veth1 up && ip -n b link set veth1 up || return 1
	local ns
	for ns in a b; do
		ip netns exec $ns rdma link add rxe_$ns type rxe netdev veth1 && rdma dev set rxe_$ns netns $ns ||
			return 1
	done
}
remove_pair() {
	ip -n a link del veth1
}
no_devices() {
	local ns
	for ns in a b; do
		! ip netns exec $ns rdma link show | grep -q rxe_ || return 1
	done
}

# 1. The device goes while connections are made and used.
check "a second pair is made" make_pair
echo_server a smc 0.0.0.0 7000
check "connections over it use SMC-R" wait_for 20 smcr ping_from_b smc 10.9.1.1 7000
clients() {
	while [ ! -e "$WORK/end" ]; do
		timeout 5 ip netns exec b smc_stream ping --family smc --addr 10.9.1.1 --port 7000 --count 3 \
			--timeout 4 >/dev/null 2>&1 && echo . >>"$WORK/pings"
	done
}
clients &
first=$!
clients &
second=$!
rounds=0
end=$((SECONDS + LONG))
while [ $SECONDS -lt $end ]; do
	remove_pair && wait_for 20 no_devices && make_pair || break
	rounds=$((rounds + 1))
	sleep 1
done 2>"$last"
: >"$WORK/end"
wait "$first" "$second"
note "$rounds times, $(wc -l <"$WORK/pings") connections meanwhile"
result "$([ $SECONDS -ge $end ] && [ $rounds -gt 0 ]; echo $?)" "the network device goes and comes" "$last"
check "with the device back, connections use SMC-R" wait_for 20 smcr ping_from_b smc 10.9.1.1 7000
check "others did all the time" smcr ping_from_b smc "$A" 7000

# 2. Devices without a member, below which there is nothing to look for: they carry nothing, so a
# detour sends by the pair what connections send by them. Answers come by the pair.
echo_server b smc 0.0.0.0 7000
detour() {
	ip -n b link add "${1}1" type "$1" && ip -n b link set "${1}1" up &&
		ip -n b addr add 10.9.3.2/24 dev "${1}1" &&
		ip -n b neigh add 10.9.3.1 lladdr "$(in_a cat /sys/class/net/veth1/address)" dev "${1}1" &&
		in_b tc qdisc add dev "${1}1" clsact &&
		in_b tc filter add dev "${1}1" egress matchall action mirred egress redirect dev veth1
}
from_b() {
	ping_from_b smc 10.9.3.1 7000 --timeout 20
}
from_a() {
	in_a smc_stream ping --family smc --addr 10.9.3.2 --port 7000 --timeout 20
}
if modprobe -q cls_matchall && modprobe -q act_mirred; then
	ip -n a addr add 10.9.3.1/24 dev veth1
	smc_pnet -a -D rxe0 NETL
	smc_pnet -a -D rxe1 NETL
	for kind in bond team bridge dummy; do
		check "TCP goes over a device without a member: $kind" detour $kind
		check "a client finds no RDMA device below it: $kind" wait_for 20 falls_back "b 0x03030000 client" from_b
		check "nor does a server: $kind" wait_for 20 falls_back "b 0x03030000 server" from_a
		in_b smc_pnet -a -I lo NETL
		check "nor with the name of another device: $kind" falls_back "b 0x03030000 client" from_b
		in_a smc_pnet -a -I veth1 NETL
		in_b smc_pnet -a -I "${kind}1" NETL
		check "its own name leads to one: $kind" wait_for 20 smcr from_b
		in_a smc_pnet -f
		in_b smc_pnet -f
		check "it goes: $kind" ip -n b link del "${kind}1"
	done
	smc_pnet -f
	ip -n a addr del 10.9.3.1/24 dev veth1
else
	skip "devices without a member" "this kernel cannot redirect packets"
fi

# 3. Stacked devices: with a member, and gone. RoCE packets for their addresses arrive on them, which
# software RDMA devices do not look at: the link is not confirmed.
over() {
	falls_back "b 0x02010000 client" ping_from_b smc "$1" 7000 --timeout 20
}
stack() {
	ip -n a addr flush dev veth1 && ip -n b addr flush dev veth1 &&
		ip -n a addr add "10.9.$1.1/24" dev veth1 || return 1
	ip -n b link set veth1 down && ip -n b link set veth1 master "$2" && ip -n b link set veth1 up &&
		ip -n b addr add "10.9.$1.2/24" dev "$2" && ip -n b link set "$2" up
}
unstack() {
	ip -n b link set veth1 nomaster
}
clients_of_bond() {
	while [ ! -e "$WORK/bond-end" ]; do
		timeout 5 ip netns exec b smc_stream ping --family smc --addr 10.9.2.1 --port 7000 --count 1 \
			--timeout 4 >/dev/null 2>&1 && echo . >>"$WORK/bond-pings"
	done
}
# Handshakes under way lose what is below their device: between SYN and Proposal, and later.
member_goes() {
	local end=$((SECONDS + LONG))
	while [ $SECONDS -lt $end ]; do
		sleep 0.$((RANDOM % 8 + 1))
		unstack && sleep 0.$((RANDOM % 5)) && ip -n b link set veth1 down &&
			ip -n b link set veth1 master bond1 && ip -n b link set veth1 up || return 1
	done
}
if ip -n b link add bond1 type bond 2>/dev/null; then
	check "a bond gets a member" stack 2 bond1
	check "connections over the bond work on TCP, and say why" wait_for 30 over 10.9.2.1
	# With a name in the table each connection has its layers looked at.
	in_b smc_pnet -a -I lo NETL
	clients_of_bond &
	first=$!
	clients_of_bond &
	second=$!
	check "the bond's member leaves and comes while connections are made" member_goes
	: >"$WORK/bond-end"
	wait "$first" "$second"
	note "$(wc -l <"$WORK/bond-pings") connections meanwhile"
	check "some of them were made" test -s "$WORK/bond-pings"
	in_b smc_pnet -f
	check "with the member back, connections over the bond work on TCP, and say why" wait_for 30 over 10.9.2.1
	check "the member leaves" unstack
	check "the bond goes" ip -n b link del bond1
else
	skip "bond" "this kernel has no bonds"
fi
if ip -n b link add bridge1 type bridge 2>/dev/null; then
	check "a bridge gets a member" stack 4 bridge1
	check "connections over the bridge work on TCP, and say why" wait_for 30 over 10.9.4.1
	start ip netns exec b smc_stream ping --family smc --addr 10.9.4.1 --port 7000 --hold 60000 --timeout 60
	sleep 1
	check "the bridge goes, with a connection over it" ip -n b link del bridge1
else
	skip "bridge" "this kernel has no bridges"
fi
check "the pair goes" remove_pair
check "so do its RDMA devices" wait_for 20 no_devices
stop_all
check "the connections are gone" gone 60 a b
echo_server a smc "$A" 7001
check "connections use SMC-R afterwards" wait_for 20 smcr ping_from_b smc "$A" 7001
done_testing

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Which RDMA device and which link group a connection gets: over stacked network devices of
# every kind, with names of networks on each layer, when devices are renamed, moved and
# taken away at both ends at once, beside other peers and other identifiers.
#
# vm: --topology pair --timeout 600
# slow: makes and removes devices for a minute

. "$(dirname "$0")/../lib.sh"
need_module

echo_server a smc 0.0.0.0 7000
ping_over() {
	ping_from_b smc "$1" 7000 --timeout 20
}
# hold ADDRESS [NAMESPACE]: a connection that stays; its process is in $started.
hold() {
	start ip netns exec "${2:-b}" smc_stream ping --family smc --addr "$1" --port 7000 --hold 200000 --timeout 240
}
# sees NAMESPACE EXPRESSION WANTED: of the connections x there.
sees() {
	is "$3" ip netns exec "$1" sh -c "smcss --json | python3 -SE -c 'import json, sys; x = json.load(sys.stdin); print($2)'"
}
# groups NAMESPACE EXPRESSION WANTED: of its link groups x.
groups() {
	is "$3" ip netns exec "$1" sh -c "command smcr --json linkgroup | python3 -SE -c 'import json, sys; x = json.load(sys.stdin); print($2)'"
}

# 1. Stacked devices beside the plain one: data goes, over SMC-R or TCP, and nothing breaks.
# stack NAME OPTION...: such a device in both namespaces, with addresses in 10.9.$net.0/24.
net=20
stack() {
	local ns own=1
	net=$((net + 1))
	for ns in a b; do
		ip -n $ns link add stack0 "$@" && ip -n $ns addr add 10.9.$net.$own/24 dev stack0 &&
			ip -n $ns link set stack0 up || return 1
		own=2
	done
}
unstack() {
	ip -n a link del stack0 && ip -n b link del stack0
}
vxlan() {
	net=$((net + 1))
	ip -n a link add stack0 type vxlan id 7 local $A remote $B dstport 4789 "$@" &&
		ip -n b link add stack0 type vxlan id 7 local $B remote $A dstport 4789 "$@" &&
		ip -n a addr add 10.9.$net.1/24 dev stack0 && ip -n b addr add 10.9.$net.2/24 dev stack0 &&
		ip -n a link set stack0 up && ip -n b link set stack0 up
}
# A team carries nothing before it was told how. That takes generic netlink.
cat >"$WORK/team.py" <<'END'
import socket, struct
def attr(kind, value):
    return struct.pack("=HH", len(value) + 4, kind) + value + bytes(-len(value) % 4)
def ask(kind, body):
    asker.send(struct.pack("=IHHII", 16 + len(body), kind, 5, 1, 0) + body)
    answer = asker.recv(65536)
    kind, = struct.unpack_from("=H", answer, 4)
    error = struct.unpack_from("=i", answer, 16)[0] if kind == 2 else 0
    assert error == 0, error
    return answer[20:]
asker = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
answer = ask(16, bytes([3, 1, 0, 0]) + attr(2, b"team\0"))
while struct.unpack_from("=HH", answer)[1] != 1:
    answer = answer[struct.unpack_from("=H", answer)[0] + 3 & ~3:]
family, = struct.unpack_from("=H", answer, 4)
index = struct.pack("=I", socket.if_nametoindex("team0"))
option = attr(1, b"mode\0") + attr(3, b"\5") + attr(4, b"roundrobin\0")
ask(family, bytes([1, 1, 0, 0]) + attr(1, index) + attr(2, attr(1, option)))
END
# An end with the member veth2, whose RDMA device makes the team one to choose by.
team() {
	local ns own=1
	net=$((net + 1))
	ip link add veth2 netns a type veth peer name veth2 netns b || return 1
	for ns in a b; do
		ip -n $ns link add team0 type team && ip netns exec $ns python3 "$WORK/team.py" &&
			ip -n $ns link set veth2 master team0 && ip -n $ns addr add 10.9.$net.$own/24 dev team0 &&
			ip -n $ns link set veth2 up && ip -n $ns link set team0 up &&
			ip netns exec $ns rdma link add rxe_t$own type rxe netdev veth2 &&
			rdma dev set rxe_t$own netns $ns || return 1
		own=2
	done
}
unteam() {
	ip -n a link del team0 && ip -n b link del team0 && ip -n a link del veth2
}
# over "REASON SIDE" KIND: connections work, on TCP for this reason. A GID of theirs is on the device
# below, where packets of RoCE do not arrive: then the link is not confirmed. A team's may be of
# one end only at first.
over() {
	check "over $2 connections work on TCP, and say why" wait_for 20 falls_back "b $1" ping_over 10.9.$net.1
}
check "a VLAN device is made" stack link veth0 type vlan id 7
check "over VLAN 7 connections use SMC-R" wait_for 20 smcr ping_over 10.9.$net.1
hold 10.9.$net.1
check "and their link group says so" wait_for 20 groups b '[g["vlan"] for g in x if g["connections"]]' "[7]"
check "the device goes with a connection over it" unstack
stop_all
echo_server a smc 0.0.0.0 7000
check "a device is made: macvlan" stack link veth0 type macvlan mode bridge
over "0x02010000 client" macvlan
check "it goes: macvlan" unstack
check "a device is made: vxlan" vxlan
over "0x03030000 client" vxlan
check "it goes: vxlan" unstack
check "a device is made: vxlan on a device" vxlan dev veth0
over "0x02010000 client" "vxlan on a device"
check "it goes: vxlan on a device" unstack
if modprobe -q team_mode_roundrobin; then
	check "a device is made: team" team
	over "" "a team"
	check "it goes: team" unteam
else
	skip "team" "this kernel has no teams"
fi
check "connections over the plain device use SMC-R" wait_for 20 smcr ping_over $A

# 2. Names of networks on each layer: TCP goes over the second pair, and the name leads to
# the RDMA devices of the first one.
for ns in a b; do
	[ $ns = a ] && ip link add veth1 netns a type veth peer name veth1 netns b
	ip -n $ns link set veth1 up
done
ip -n a addr add 10.9.1.1/24 dev veth1
ip -n a link add link veth1 name vlan9 type vlan id 9
ip -n a addr add 10.9.9.1/24 dev vlan9
ip -n a link set vlan9 up
ip -n b link add bond1 type bond
ip -n b link set veth1 down
ip -n b link set veth1 master bond1
ip -n b link set bond1 up
ip -n b addr add 10.9.1.2/24 dev bond1
ip -n b link add link bond1 name vlan9 type vlan id 9
ip -n b addr add 10.9.9.2/24 dev vlan9
ip -n b link set vlan9 up
smc_pnet -a -D rxe0 NETL
smc_pnet -a -D rxe1 NETL
in_a smc_pnet -a -I veth1 NETL
check "without a name the second pair has TCP only" wait_for 30 falls_back "b 0x03030000 client" ping_over 10.9.1.1
# named DEVICE ADDRESS WHAT...: with a name on this device, connections find the RDMA device.
named() {
	in_b smc_pnet -a -I "$1" NETL
	check "a name on the $3 is found" wait_for 20 smcr ping_over "$2"
	in_b smc_pnet -f
}
named veth1 10.9.1.1 "member of the bond"
named bond1 10.9.1.1 "bond"
named veth1 10.9.9.1 "member of the bond below the VLAN"
named bond1 10.9.9.1 "bond below the VLAN"
named vlan9 10.9.9.1 "VLAN on the bond"
# Of two names the older one leads nowhere.
in_b smc_pnet -a -I vlan9 NETX
in_b smc_pnet -a -I veth1 NETL
check "the name of the lowest device counts" wait_for 20 smcr ping_over 10.9.9.1
in_b smc_pnet -f
in_b smc_pnet -a -I bond1 NETX
in_b smc_pnet -a -I vlan9 NETL
check "then that of the VLAN itself, before those between" wait_for 20 smcr ping_over 10.9.9.1
in_b smc_pnet -f
in_b smc_pnet -a -I vlan9 NETL
check "a name on the VLAN is not one of what is below it" falls_back "b 0x03030000 client" ping_over 10.9.1.1
in_b smc_pnet -f
in_b smc_pnet -a -I bond1 NETX
check "a name that no RDMA device has leaves connections on TCP" falls_back "b 0x03030000 client" ping_over 10.9.1.1
in_b smc_pnet -f
check "a bridge takes the bond's place" sh -c 'ip -n b link del bond1; ip -n b link add bridge1 type bridge &&
	ip -n b link set veth1 master bridge1 && ip -n b link set veth1 up && ip -n b link set bridge1 up &&
	ip -n b addr add 10.9.1.2/24 dev bridge1'
check "without a name it has TCP only" wait_for 30 falls_back "b 0x03030000 client" ping_over 10.9.1.1
named veth1 10.9.1.1 "port of the bridge"
named bridge1 10.9.1.1 "bridge"
in_a smc_pnet -f
smc_pnet -f

# 3. Names and places of devices change.
check "the second pair gets RDMA devices" sh -c 'ip -n b link del bridge1; ip -n b link set veth1 up
	ip -n b addr add 10.9.1.2/24 dev veth1
	for ns in a b; do
		ip netns exec $ns rdma link add rxe_$ns type rxe netdev veth1 && rdma dev set rxe_$ns netns $ns || exit 1
	done'
check "they are used" wait_for 20 smcr ping_over 10.9.1.1
check "the network device gets another name" sh -c \
	'ip -n b link set veth1 down && ip -n b link set veth1 name other1 && ip -n b link set other1 up'
check "its RDMA device shows it" wait_for 10 sh -c 'ip netns exec b smcr -d device | grep -q "^other1 .*rxe_b "'
check "and is used" wait_for 20 smcr ping_over 10.9.1.1
check "the RDMA device gets another name" ip netns exec b rdma dev set rxe_b name rxe_c
check "it is shown with that" wait_for 10 sh -c 'ip netns exec b smcr device | grep -q " rxe_c "'
in_b smc_pnet -a -I other1 NETR
smc_pnet -a -D rxe_c NETR
check "and found by that" wait_for 20 smcr ping_over 10.9.1.1
in_b smc_pnet -f
smc_pnet -f
ip netns add c
hold 10.9.1.1
check "a connection is open" wait_for 20 groups b 'sum(g["connections"] for g in x)' 1
check "the network device moves to another namespace" timeout 20 ip -n b link set other1 netns c
without() {
	! ip netns exec b rdma link show | grep -q rxe_c
}
check "its RDMA device is gone from where it was" wait_for 20 without
ip -n c addr add 10.9.1.3/24 dev other1
ip -n c link set lo up
ip -n c link set other1 up
check "it gets a new one there" sh -c \
	'ip netns exec c rdma link add rxe_n type rxe netdev other1 && rdma dev set rxe_n netns c'
from_c() {
	local before
	before=$(value_of connections_smcr <<<"$(ip netns exec c cat /proc/net/smc_rs)")
	ip netns exec c smc_stream ping --family smc --addr 10.9.1.1 --port 7000 --timeout 20 &&
		[ "$(value_of connections_smcr <<<"$(ip netns exec c cat /proc/net/smc_rs)")" -gt "$before" ]
}
check "connections from there use SMC-R" wait_for 30 from_c
if modprobe -q siw && ip netns exec a rdma link add siw0 type siw netdev veth0 2>/dev/null; then
	rdma dev set siw0 netns a
	refuse "a device without RoCE is not shown" sh -c 'ip netns exec a smcr device | grep -q siw0'
	check "nor used" smcr ping_over $A
	in_a rdma link delete siw0
else
	skip "a device without RoCE" "this kernel has no siw"
fi
stop_all
check "the connections are gone" gone 60 a b

# 4. Link groups: one for each peer, VLAN and identifier, and no more.
echo_server a smc 0.0.0.0 7000
total() {
	groups a 'sorted(g["connections"] for g in x if g["server"] and g["connections"])' "$1"
}
# A peer behind the same port, of the same host.
ip -n b link add other0 link veth0 type macvlan mode bridge
ip -n b link set other0 netns c
ip -n c addr add 10.9.0.3/24 dev other0
ip -n c link set other0 up
ip netns exec c rdma link add rxe_m type rxe netdev other0
rdma dev set rxe_m netns c
# falls_back_in_c: a connection from there stays on TCP, as there is no device of its network.
falls_back_in_c() {
	local before
	reasons() {
		value_of fallback 0x03030000 client <<<"$(ip netns exec c cat /proc/net/smc_rs)"
	}
	before=$(reasons)
	ip netns exec c smc_stream ping --family smc --addr "$A" --port 7000 --timeout 20 && [ "$(reasons)" -gt "$before" ]
}
in_b smc_pnet -a -I veth0 NETX
check "a name of the device below in another namespace counts" wait_for 20 falls_back_in_c
in_b smc_pnet -f
hold $A
hold $A c
check "two peers have a link group each" wait_for 30 total "[1, 1]"
hold $A
check "a second connection of one peer is in its group" wait_for 30 total "[1, 2]"
for vlan in 7 8; do
	for ns in a b; do
		ip -n $ns link add link veth0 name vlan$vlan type vlan id $vlan
		ip -n $ns addr add 10.9.$vlan.$([ $ns = a ] && echo 1 || echo 2)/24 dev vlan$vlan
		ip -n $ns link set vlan$vlan up
	done
done
sleep 1
hold 10.9.7.1
check "a VLAN has a group of its own" wait_for 30 total "[1, 1, 2]"
hold 10.9.8.1
check "so has another VLAN" wait_for 30 total "[1, 1, 1, 2]"
hold 10.9.8.1
check "whose second connection joins it" wait_for 30 total "[1, 1, 2, 2]"
check "the client knows them by their VLANs" groups b \
	'sorted((g["vlan"], g["connections"]) for g in x if g["connections"])' "[(0, 2), (7, 1), (8, 2)]"
smc_ueid add OTHER-1
smc_ueid del SMC-RS-TEST
hold $A
check "another identifier has a group of its own" wait_for 30 total "[1, 1, 1, 2, 2]"
smc_ueid add SMC-RS-TEST
smc_ueid del OTHER-1
hold $A
check "with the first one again, its group is joined" wait_for 30 total "[1, 1, 1, 2, 3]"
check "nothing fell back" sees b '[s["mode"] for s in x].count("TCP")' 0
stop_all
check "the connections are gone" gone 60 a b
for vlan in 7 8; do
	ip -n a link del vlan$vlan
	ip -n b link del vlan$vlan
done
ip netns delete c
# The other end of its network device goes with it.
c_gone() {
	! ip -n a -o link show | grep -q ' veth1@' && ! rdma link show | grep -q 'rxe_[mn]'
}
began=$SECONDS
check "the namespace goes with its devices" wait_for 60 c_gone
note "after $((SECONDS - began)) s"

# 5. The devices of both ends go at once, each twice, under connections of which one direction
# has ended, while lists are read.
cat >"$WORK/half.py" <<'END'
import socket, sys, threading
host, count, side = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def end(peer):
    try:
        while peer.recv(100):
            pass
        peer.recv(1)
        print("end", flush=True)
    except OSError as error:
        print("error", error.errno, flush=True)
if side == "server":
    listener = socket.create_server((host, 7001), backlog=64)
    peers = [listener.accept()[0] for _ in range(count)]
    for peer in peers[::2]:
        peer.recv(1)
    print("ready", flush=True)
    # These still receive, the others' peers do.
    threads = [threading.Thread(target=end, args=(peer,)) for peer in peers[1::2]]
else:
    peers = [socket.create_connection((host, 7001)) for _ in range(count)]
    for peer in peers[::2]:
        peer.shutdown(socket.SHUT_WR)
    print("ready", flush=True)
    threads = [threading.Thread(target=end, args=(peer,)) for peer in peers]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
END
HALF=8
ip netns exec a smc_run python3 "$WORK/half.py" "$A" $HALF server >"$WORK/half.a" 2>&1 &
pids+=($!)
wait_port a 7001
ip netns exec b smc_run python3 "$WORK/half.py" "$A" $HALF client >"$WORK/half.b" 2>&1 &
pids+=($!)
check "one direction has ended of half of $HALF connections" wait_for 30 grep -q ready "$WORK/half.a"
check "they are over SMC-R" sees b '[s["mode"] for s in x].count("SMCR")' $HALF
lists() {
	while [ ! -e "$WORK/end" ]; do
		ip netns exec "$1" smcss -a -d -R && ip netns exec "$1" smcr -dd linkgroup link-show || return 1
	done >/dev/null
}
rm -f "$WORK/end"
lists a &
list_a=$!
lists b &
list_b=$!
all_go() {
	local jobs=() ns began=$SECONDS
	for ns in a b a b; do
		timeout 60 ip netns exec $ns rdma link delete $([ $ns = a ] && echo rxe0 || echo rxe1) &
		jobs+=($!)
	done
	wait "${jobs[@]}"
	echo "after $((SECONDS - began)) s"
	[ $((SECONDS - began)) -lt "$(by_kernel 10 40)" ] && ! in_a rdma link show | grep -q rxe0 && ! in_b rdma link show | grep -q rxe1
}
check "the devices of both ends go at once" all_go
note "$(tail -1 "$last")"
# Whoever still receives gets an error: the stream did not end.
errors() {
	is "$2 0" sh -c "echo \$(grep -c ^error '$WORK/half.$1') \$(grep -c ^end '$WORK/half.$1')"
}
check "the clients get errors" wait_for 20 errors b $HALF
check "so do the servers that still receive" wait_for 20 errors a $((HALF / 2))
: >"$WORK/end"
wait $list_a
result $? "lists are complete meanwhile"
wait $list_b
result $? "at the other end, too"
check "the devices come back" sh -c "$(declare -f add_rxe); add_rxe a rxe0 && add_rxe b rxe1"
echo_server a smc "$A" 7002
check "and are used" wait_for 20 smcr ping_from_b smc "$A" 7002
stop_all
check "the connections are gone" gone 60 a b
done_testing

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tools, and the table of networks: what it holds, who may change it, and how
# it chooses devices.
#
# vm: --topology pair --timeout 400

. "$(dirname "$0")/../lib.sh"
need_module

rows() {
	[ "$(ip netns exec "$1" smc_pnet | tr '\n' ';')" = "$2" ] || {
		echo "the table is $(ip netns exec "$1" smc_pnet | tr '\n' ';'), not $2"
		return 1
	}
}

# 1. The table.
check "the table is empty" rows a ""
check "flushing it is no error" in_a smc_pnet -f
check "a network device gets a network" in_a smc_pnet -a -I veth0 neta
check "the name is in upper case" rows a "NETA veth0 n/a 255;"
refuse "a device has one network only" in_a smc_pnet -a -I veth0 NETB
check "other namespaces do not see the row" rows b ""
refuse "RDMA devices are set in the initial namespace only" in_a smc_pnet -a -D rxe0 NETA
check "an RDMA port gets a network" smc_pnet -a -D rxe0 -P 1 NETA
check "so does another port" smc_pnet -a -D rxe0 -P 2 NETC
refuse "there is no port 3" smc_pnet -a -D rxe0 -P 3 NETA
for name in "" "A B" "A-B" ABCDEFGHIJKLMNOPQ "Ä"; do
	refuse "'$name' is no name" smc_pnet -a -I dummy9 "$name"
done
show() {
	[ "$(smc_pnet -s "$1" | tr '\n' ';')" = "$2" ] || {
		echo "the rows of $1 are $(smc_pnet -s "$1" | tr '\n' ';'), not $2"
		return 1
	}
}
check "the rows of one network are shown" show netc "NETC n/a rxe0 2;"
check "a row is removed" smc_pnet -d NETC
refuse "it is gone then" smc_pnet -d NETC

# 2. Devices and link groups show their networks.
check "the device shows its network" sh -c 'ip netns exec a smcr device | grep -q "rxe0 .*\*NETA"'
check "another device has none" sh -c 'ip netns exec b smcr --json device | grep -q "\"pnet_id\":\"\""'
echo_server a smc "$A" 7000
start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000 --hold 60000 --timeout 60
check "a link group shows its network" wait_for 20 sh -c 'ip netns exec a smcr linkgroup | grep -q "SERV .* NETA"'
stop_all

# 3. The table chooses devices.
echo_server a smc "$A" 7000
check "with a port on the network, connections use SMC-R" smcr ping_from_b smc "$A" 7000
check "the port is taken off the network" smc_pnet -f
check "without one they stay on TCP" falls_back "a 0x03030000 server" ping_from_b smc "$A" 7000
check "the client is told" falls_back "b 0x05000000 client" ping_from_b smc "$A" 7000
check "the network device is taken off too" in_a smc_pnet -f
check "then the port on the same network device serves" smcr ping_from_b smc "$A" 7000

# 4. A stacked device has the network of the one below.
in_a ip link add link veth0 name vlan7 type vlan id 7
in_b ip link add link veth0 name vlan7 type vlan id 7
in_a ip addr add 10.9.7.1/24 dev vlan7
in_b ip addr add 10.9.7.2/24 dev vlan7
in_a ip link set vlan7 up
in_b ip link set vlan7 up
in_a smc_pnet -a -I veth0 NETV
in_b smc_pnet -a -I veth0 NETV
smc_pnet -a -D rxe0 NETV
smc_pnet -a -D rxe1 NETV
echo_server a smc 10.9.7.1 7001
check "a connection over a VLAN device uses the network below" smcr ping_from_b smc 10.9.7.1 7001
start ip netns exec b smc_stream ping --family smc --addr 10.9.7.1 --port 7001 --hold 60000 --timeout 60
check "its link group shows the VLAN" wait_for 20 sh -c 'ip netns exec b smcr linkgroup | grep -q "CLNT .* 0x7 "'
stop_all
in_a ip link del vlan7
in_b ip link del vlan7
smc_pnet -f
in_a smc_pnet -f
in_b smc_pnet -f

# 5. Namespaces take their rows along.
ip netns add c
check "a new namespace has no rows" rows c ""
ip netns exec c smc_pnet -a -I lo NETX
check "it can have some" rows c "NETX lo n/a 255;"
ip netns delete c

# 6. The front door.
check "status" sh -c 'ip netns exec a smc status | grep -q "^Device: rxe0 port 1 on veth0, active"'
check "nothing is missing here" in_a smc check
ip netns add d
refuse "without a device something is" ip netns exec d smc check
ip netns delete d
check "the device can be used" sh -c 'ip netns exec a smc devices | grep -q "^rxe0  *1  *ACTIVE  *veth0  *10.9.0.1 .* yes$"'
echo_server a tcp "$A" 7002
start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7002 --hold 60000 --timeout 60
why() {
	in_b smc why "$A:7002" | grep -q "on TCP because the peer does not offer SMC" &&
		in_b smc why "$A:7002" | grep -q "smc_run"
}
check "why explains a fallback, with a hint" wait_for 15 why
start smc_stream both --server-ns a --client-ns b --family smc --addr "$A" --port 7400 --bytes 1G \
	--seed "$SEED" --timeout 60
moving() {
	in_b smc top -i 0.5 -n 1 | grep -q "SMCR rxe1 .*[KM] "
}
check "top shows a connection that moves" wait_for 20 moving
moving_link() {
	in_b smc top -i 0.5 -n 1 | grep -qE "^[0-9a-f]{8} +1 rxe1/1 .*[KM] "
}
check "top shows the rate of its link" wait_for 20 moving_link
top_json() {
	[ "$(in_b smc --json top -i 0.5 -n 1 | of_json "$1")" = True ]
}
check "top has it as JSON too" wait_for 20 top_json \
	'x["links"][0]["sent"] > 0 and x["connections"][0]["mode"] == "SMCR"'
stop_all
check "the connections are gone" gone 20 a b
of_eids() {
	[ "$(in_a "$1" --json "$2" | of_json 'x == ["'"$(in_a smc_ueid list)"'"]')" = True ]
}
check "identifiers as JSON" of_eids smc_ueid list
check "smcr has them so too" of_eids smcr ueid
chosen() {
	in_a smcr --json device ibdev "$1" | of_json "[device['name'] for device in x]"
}
check "JSON of one device" is "['rxe0']" chosen rxe0
check "JSON of a device that is not there" is "[]" chosen rxe7
# misused WORDS...: one sentence that leads to the usage.
misused() {
	in_a "$@" 2>"$last.said" && return 1
	cat "$last.said"
	[ "$(wc -l <"$last.said")" -eq 1 ] && grep -q "see \"$1 $2 help\"\.$" "$last.said" &&
		in_a "$1" "$2" help | grep -q "^Usage: $1 $2 "
}
for words in "smcr info now" "smcr linkgroup nothing" "smcr device nothing" "smcr stats twice" \
	"smcr ueid add" "smcd seid maybe" "smcd device ibdev x"; do
	# shellcheck disable=SC2086
	check "misused: $words" misused $words
done
done_testing

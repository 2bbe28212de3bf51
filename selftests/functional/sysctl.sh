#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# net.smc.*: names, ranges and defaults, each namespace its own, and what each
# setting does.
#
# vm: --topology pair --timeout 600

. "$(dirname "$0")/../lib.sh"
need_module

get() {
	ip netns exec "$1" cat "/proc/sys/net/smc/$2"
}
set_to() {
	ip netns exec "$1" sh -c "echo $3 >/proc/sys/net/smc/$2"
}
has() {
	[ "$(get "$1" "$2")" = "$3" ] || {
		echo "$2 of namespace $1 is $(get "$1" "$2"), not $3"
		return 1
	}
}

# Name, default, least, most; - where there is no such limit.
while read -r name initial least most; do
	check "$name is $initial at first" has a "$name" "$initial"
	if [ "$least" != - ]; then
		check "$name can be $least" set_to a "$name" "$least"
		check "$name is $least then" has a "$name" "$least"
		refuse "$name cannot be $((least - 1))" set_to a "$name" $((least - 1))
	fi
	if [ "$most" != - ]; then
		check "$name can be $most" set_to a "$name" "$most"
		refuse "$name cannot be $((most + 1))" set_to a "$name" $((most + 1))
		check "$name stays $most" has a "$name" "$most"
	fi
	check "$name of b is not changed by a" has b "$name" "$initial"
	check "$name is set back" set_to a "$name" "$initial"
done <<END
autocorking_size 65536 0 4294967295
smcr_buf_type 0 0 2
smcr_testlink_time 30 - -
wmem 65536 16384 1073741823
rmem 65536 16384 1073741823
smcr_max_links_per_lgr 2 1 2
smcr_max_conns_per_lgr 255 16 255
limit_smc_hs 0 0 1
smcr_max_send_wr 16 2 2048
smcr_max_recv_wr 48 2 2048
END
check "a new namespace has the defaults" sh -c 'unshare --net cat /proc/sys/net/smc/wmem | grep -qx 65536'
check "root of a container may set its own" unshare --user --map-root-user --net sh -c \
	'echo 32768 >/proc/sys/net/smc/wmem && grep -qx 32768 /proc/sys/net/smc/wmem'

# Buffers.
sizes() {
	ip netns exec "$1" smcss --json |
		of_json '*(f"{c["sndbuf_size"]} {c["rmbe_size"]}" for c in (s["connection"] for s in x)), sep="\n"'
}
have_sizes() {
	[ "$(sizes "$1")" = "$2" ] || {
		echo "sizes are $(sizes "$1"), not $2"
		return 1
	}
}
set_to b wmem 131072
set_to b rmem 262144
echo_server a smc "$A" 7000
start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000 --hold 60000 --timeout 120
client=$started
check "buffers have the sizes that were set" wait_for 15 have_sizes b "131072 262144"
check "those of the other namespace have not" have_sizes a "65536 65536"
stop "$client"
set_to b wmem 65536
set_to b rmem 65536
check "the connection is gone" gone 20 a b

# Connections of a link group.
groups() {
	ip netns exec b smcr --json linkgroup |
		of_json 'len(x), max((g["v2"]["max_connections"] for g in x), default=0)'
}
check "idle link groups end with their device" remove_rxe b rxe1
check "the device comes back" add_rxe b rxe1
set_to b smcr_max_conns_per_lgr 16
two_groups() {
	[ "$(groups)" = "2 16" ] || {
		groups
		return 1
	}
}
sleep 2
for ((n = 0; n < 20; n++)); do
	start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000 --hold 60000 --timeout 120
done
check "20 connections need two link groups of 16" wait_for 40 two_groups
# What one namespace has used up is not missing in another one, not even behind the same port.
ip netns add c
ip -n c link set lo up
ip -n b link add link veth0 name other0 type macvlan mode bridge
ip -n b link set other0 netns c
ip -n c addr add 10.9.0.3/24 dev other0
ip -n c link set other0 up
ip netns exec c rdma link add rxe2 type rxe netdev other0 && rdma dev set rxe2 netns c
be_inside c
from_c() {
	local before
	before=$(counter c connections_smcr)
	timeout 8 ip netns exec c smc_stream ping --family smc --addr "$A" --port 7000 &&
		[ "$(counter c connections_smcr)" -gt "$before" ] && [ "$(counter c fallback_total)" = 0 ]
}
check "another namespace gets its connections over SMC-R at once" from_c
check "in a link group with all its places" is 255 sh -c \
	"ip netns exec c smcr --json linkgroup | python3 -SE -c 'import json, sys; print(json.load(sys.stdin)[0][\"v2\"][\"max_connections\"])'"
check "and the first one has not lost any" two_groups
kill "${inside[c]}"
unset 'inside[c]'
ip netns delete c
set_to b smcr_max_conns_per_lgr 255
stop_all
check "the connections are gone" gone 30 a b

# Small writes go out at once when they are not to wait for each other. A slow network sees to it
# that all of them are made before the first is acknowledged.
WRITES=12
writes() {
	local before
	set_to b autocorking_size "$1"
	before=$(counter b cdc_sent)
	smc_stream both --server-ns a --client-ns b --family smc --addr "$A" --port $((7300 + $2)) \
		--bytes $((WRITES * 100)) --msg-min 100 --msg-max 100 --seed "$SEED" --timeout 120 >/dev/null ||
		return 1
	echo $(($(counter b cdc_sent) - before))
}
check "the network is slowed down" in_b tc qdisc add dev veth0 root netem delay 100ms
corked=$(writes 65536 0)
uncorked=$(writes 0 1)
in_b tc qdisc del dev veth0 root
set_to b autocorking_size 65536
note "messages for $WRITES writes: $corked, without autocorking $uncorked"
check "without autocorking there are more messages" test "$uncorked" -gt "$corked"

# Work requests: the smallest numbers still carry data.
remove_rxe b rxe1
add_rxe b rxe1
set_to a smcr_max_send_wr 2
set_to b smcr_max_send_wr 2
set_to b smcr_max_recv_wr 1024
# The server does not hear of a device that goes: it would answer with the group that was.
no_groups() {
	local ns
	for ns in a b; do
		[ "$(ip netns exec "$ns" awk '$1 == "link_groups" { print $2 }' /proc/net/smc_rs)" = 0 ] ||
			return 1
	done
}
check "the link groups have ended" wait_for 60 no_groups
waits=$(both slot_waits)
check "data flow with the fewest work requests" smcr smc_stream both --server-ns a --client-ns b \
	--family smc --addr "$A" --port 7200 --conns 8 --bytes 500K --bidir --seed "$SEED" --timeout 120
note "$(($(both slot_waits) - waits)) waits for a work request"
check "messages had to wait for them" test "$(both slot_waits)" -gt "$waits"
# new_groups: link groups end, with their connections and devices, at both ends.
new_groups() {
	stop_all
	remove_rxe a rxe0 && remove_rxe b rxe1 && wait_for 60 no_groups && add_rxe a rxe0 && add_rxe b rxe1
}
for ns in a b; do
	set_to $ns smcr_max_send_wr 16
	set_to $ns smcr_max_recv_wr 2
done
check "link groups end once more" new_groups
check "data flow with the fewest receives" smcr smc_stream both --server-ns a --client-ns b \
	--family smc --addr "$A" --port 7220 --conns 4 --bytes 200K --bidir --seed "$SEED" --timeout 120
for ns in a b; do
	set_to $ns smcr_max_recv_wr 48
done

# A silent link is probed: one message there and one back.
# probes SECONDS TIME: link messages of a new link that sees no other use for so long.
probes() {
	local before
	set_to a smcr_testlink_time "$2"
	set_to b smcr_testlink_time "$2"
	new_groups || return 1
	echo_server a smc "$A" 7000
	start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000 --hold 60000 --timeout 120
	wait_for 20 held || return 1
	sleep 1
	before=$(counter b llc_sent)
	sleep "$1"
	probes=$(($(counter b llc_sent) - before))
	note "$probes link messages in $1 s with a time of $2"
}
held() {
	[ "$(counter b connections_active)" = 1 ]
}
probes 8 1
check "a link that is silent for a second is probed" test "$probes" -ge 3
check "but not all the time" test "$probes" -le 20
probes 8 0
check "with 0 it never is" test "$probes" = 0
set_to a smcr_testlink_time 30
set_to b smcr_testlink_time 30
check "link groups end at last" new_groups

# Handshakes under load: with more clients that say nothing than a listener likes, others are not
# offered SMC.
echo_server a smc "$A" 7000
flood() {
	in_b clc_peer flood --addr "$A" --port 7000 --count 100 -- \
		smc_stream ping --family smc --addr "$A" --port 7000 --timeout 20
}
uses_smc() {
	local before
	before=$(counter b connections_smcr)
	"$@" && [ "$(counter b connections_smcr)" -gt "$before" ]
}
middlebox a add 7000
check "without a limit a client beside a hundred silent ones uses SMC-R" uses_smc flood
set_to a limit_smc_hs 1
check "with few handshakes nothing is shed" wait_for 30 smcr ping_from_b smc "$A" 7000
check "with many the client stays on TCP" wait_for 60 falls_back "b 0x03010000 client" flood
set_to a limit_smc_hs 0
check "without a limit again it uses SMC-R" wait_for 60 uses_smc flood
stop_middlebox a
stop_all
check "the processors are idle afterwards" cpu_idle
done_testing

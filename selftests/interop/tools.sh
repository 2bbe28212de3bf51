#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tools of this project on the SMC that comes with the kernel, and, by way of
# tools-rs.sh, the same on smc_rs: all of them work on both, and what one of them does not
# have is said in one sentence. Host 1 serves. (On one host the kernel's SMC would use the
# shared memory device that it makes for itself.)
#
# vm: --kernel reference --module smc --topology hosts --timeout 900
# slow: the tools are tested on smc_rs in every run

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../terminal.sh"
# Here it is the program that counts, not what other tests ask for by this name.
unset -f smcr
own=smc
[ -e /proc/net/smc_rs ] && own=smc_rs
note "the module is $own"

# shows PATTERN COMMAND...: it succeeds and prints such a line.
shows() {
	local pattern=$1
	shift
	"$@" >"$WORK/shown" 2>&1
	local status=$?
	cat "$WORK/shown"
	[ $status -eq 0 ] && grep -q -- "$pattern" "$WORK/shown"
}
# sentence COMMAND...: it fails with one sentence.
sentence() {
	"$@" >"$WORK/shown" 2>"$WORK/said" && return 1
	cat "$WORK/said"
	[ "$(wc -l <"$WORK/said")" -eq 1 ] && grep -q '\.$' "$WORK/said"
}

if [ "$SMC_HOST" = 1 ]; then
	for family in smc tcp; do
		start smc_stream echo --family "$family" --addr "$A" --port "$([ $family = smc ] && echo 7000 || echo 7002)"
	done
	check "the listener is shown" wait_for 30 shows "^LISTEN .*:7000" smcss -l
	vm-sync serving
	vm-sync done
	check "its connections were shown and counted" shows "SMC connections  *[1-9]" smcr -a stats
	stop_all
	done_testing
fi

# 1. What there is without connections.
check "the system" shows "^SMC Version: *2.1" smcr info
check "that of SMC-D" shows "^SMC-D Features: *$([ $own = smc ] && echo v1 v2)" smcd info
check "devices" shows "rxe0 .*ACTIVE" smcr device
check "details of devices" shows "rxe0 .*ACTIVE" smcr -d device
check "devices of SMC-D" smcd device
check "identifiers" shows "^SMC-RS-TEST" smcr ueid
check "as JSON" shows '"SMC-RS-TEST' smc_ueid list --json
check "an identifier is added" smcr ueid add TOOLS-1
check "it is shown" shows "^TOOLS-1" smcr ueid show
check "and deleted" smcr ueid del TOOLS-1
check "what is not there cannot be deleted" sentence smcr ueid del TOOLS-1
check "the system identifier" smcd seid
check "networks are added" smc_pnet -a -I eth0 NETA
check "not twice" sentence smc_pnet -a -I eth0 NETB
check "ports are put on networks" smc_pnet -a -D rxe0 -P 1 NETA
check "networks are shown" shows "^NETA eth0 n/a 255" smc_pnet
check "one network is shown" shows "^NETA n/a rxe0 1" smc_pnet -s NETA
check "networks are removed" smc_pnet -d NETA
check "all of them" smc_pnet -f

# 2. A connection over SMC-R and one on TCP.
vm-sync serving
for port in 7000 7002; do
	start smc_stream ping --family smc --addr "$A" --port $port --hold 300000 --timeout 400
done
check "the connection over SMC-R" wait_for 30 shows "^ACTIVE .*:7000 .* SMCR" smcss
check "its link" shows "rxe0 " smcss -R
check "its cursors" smcss -d
check "the connection on TCP, with the reason" shows ":7002 .* TCP 0x03010000" smcss -W
check "no connection over SMC-D" smcss -a -D
check "JSON of sockets" shows '"mode":"SMCR"' smcss --json -a
check "link groups" shows " CLNT " smcr linkgroup
check "details of link groups" shows "^EID " smcr -d linkgroup
check "links" shows "^[0-9a-f]* CLNT .*eth0 .*LINK_ACTIVE  *1" smcr linkgroup link-show
check "details of links" shows "rxe0 " smcr -dd linkgroup link-show
check "link groups of SMC-D" smcd linkgroup
check "counters" shows "SMC connections  *1$" smcr -a stats
check "counters with reasons" shows "PEER_NO_SMC  *1$" smcr -a -d stats
check "counters as JSON" shows '"SMC_CLNT_V2_SUCC_CNT":1' smcr -a stats json
check "counters of SMC-D" shows "SMC connections  *0" smcd -a stats

# 3. The front door.
check "status" shows "rxe0" smc status
check "why" shows "the peer does not offer SMC" smc why "$A:7002"
check "devices and their ports" shows "rxe0 " smc devices
check "check" shows "an enterprise identifier is set" smc check
check "check syn" shows "the server speaks SMC" smc check syn "$A:7000"
check "top" shows "SMCR" smc top -i 0.5 -n 1
if [ $own = smc ]; then
	check "there are no events to watch" sentence smc monitor -n 1
else
	start sh -c "exec smc --json monitor -n 1 >'$WORK/events' 2>'$WORK/monitor'"
	wait_for 10 grep -q waiting "$WORK/monitor"
	smc_stream ping --family smc --addr "$A" --port 7002 --timeout 20 >/dev/null
	check "events are watched" wait_for 10 grep -q '"kind":"fallback"' "$WORK/events"
fi

# 4. The live view on a terminal, beside a connection that moves data.
start smc_stream ping --family smc --addr "$A" --port 7000 --count 1000000 --size 64K --timeout 400
rate='[0-9.]+[KM]'
terminal 30 110 smc top
check "top on a terminal has the sums" \
	on_screen "^ Sent $rate/s  Received $rate/s  Connections: 2 over SMC-R, 1 on TCP"
check "its picture of what was sent" on_screen "^ Sent .* highest $rate bytes/s"
check "that of what was received" on_screen "^ Received .* highest $rate bytes/s"
check "the link and its rates" on_screen "^[0-9a-f]{8} +1 +rxe0/1 .* 2 +$rate +$rate"
show_screen
press c
check "the connections" on_screen "^ Connections: 3 ─"
check "the one that moves data" on_screen ":7000 +SMCR +rxe0 +$rate +$rate"
check "the one that does not" on_screen ":7000 +SMCR +rxe0 +0 +0 "
check "the one on TCP" on_screen ":7002 +TCP +- +-"
press End
check "the last one is marked" on_screen "^ Connections: 3 of 3 ─"
smc_stream ping --family smc --addr "$A" --port 7002 --timeout 20 >/dev/null
check "a fallback is seen" on_screen "^ Fallbacks ─.* highest [1-9][0-9]* in 1 s"
show_screen
stop "$started"
check "data that stops moving is seen" on_screen "^ Sent 0/s  Received 0/s  Connections: 1 over SMC-R, 1 on TCP"
press q
check "q ends it" left "exit status: 0"
vm-sync done
stop_all
done_testing

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# net.smc.smcr_buf_type: buffers of each type carry every byte, are what the
# setting says, and go back to the kernel with their link group.
#
# vm: --topology pair --timeout 900
# slow: four pairs of link groups, each on devices made anew

. "$(dirname "$0")/../lib.sh"
need_module
note "seed $SEED (SMC_TEST_SEED repeats a run)"

FAULTS=/sys/kernel/debug/fail_page_alloc

# new_groups A B: link groups end, and those to come have these types in namespaces a and b.
new_groups() {
	stop_all
	remove_rxe a rxe0 && remove_rxe b rxe1 || return 1
	echo "$1" | in_a tee /proc/sys/net/smc/smcr_buf_type
	echo "$2" | in_b tee /proc/sys/net/smc/smcr_buf_type
	add_rxe a rxe0 && add_rxe b rxe1 || return 1
	echo_server a smc "$A" 7000
	wait_for 30 smcr ping_from_b smc "$A" 7000 --timeout 60 || return 1
	# While it lasts the groups and their first buffers do.
	start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000 --hold 600000 --timeout 900
	wait_for 30 busy
}
busy() {
	[ "$(counter a connections_active)" -gt 0 ] && [ "$(counter b connections_active)" -gt 0 ]
}

groups() {
	in_a smcr --json linkgroup | of_json "$1"
	in_b smcr --json linkgroup | of_json "$1"
}
types() {
	groups '*(g["buffer_type"] for g in x)' | paste -sd ' '
}
# Bytes of all send and receive buffers, as generic netlink has them.
buffer_bytes() {
	echo $(($(groups 'sum(g["sndbuf_bytes"] + g["rmb_bytes"] for g in x)' | paste -sd +)))
}
# Bytes of those that consist of single pages, as the kernel has them.
virtual_bytes() {
	awk '/smc_rs_helper_alloc_mapped_run/ && match($0, /pages=[0-9]+/) {
			pages += substr($0, RSTART + 6, RLENGTH - 6) }
		END { print pages * 4096 }' /proc/vmallocinfo
}
all_virtual() {
	local all virtual
	all=$(buffer_bytes)
	virtual=$(virtual_bytes)
	[ "$all" -gt 0 ] && [ "$all" = "$virtual" ]
}
some_virtual() {
	[ "$(virtual_bytes)" -gt 0 ]
}
none_virtual() {
	is 0 virtual_bytes
}

port=7100
stream() {
	port=$((port + 10))
	smc_stream both --server-ns a --client-ns b --family smc --addr "$A" --port $port \
		--seed "$SEED" --timeout 200 "$@"
}
# Rings of all sizes, all of which wrap, and elements that are used again.
streams() {
	check "$1: small rings" smcr stream --conns 2 --bytes "$(by_form 500K 4M)" --bidir \
		--msg-max 100K --sndbuf 16K --rcvbuf 16K
	check "$1: large rings" smcr stream --bytes "$(by_form 2M 16M)" --bidir \
		--msg-max 3M --sndbuf 512K --rcvbuf 512K
	check "$1: PEEK, WAITALL, TRUNC and DONTWAIT" smcr stream --conns 2 --bytes "$(by_form 100K 1M)" \
		--bidir --recv flags --sndbuf 16K --rcvbuf 64K
	check "$1: connections come and go" smcr stream --mode churn --conns "$(by_form 40 200)" \
		--parallel 20 --bytes 32K
}

check "link groups are made with type 0" new_groups 0 0
check "both ends say so" is "0 0" types
check "their buffers are contiguous" none_virtual

check "link groups are made with type 1" new_groups 1 1
check "both ends say so" is "1 1" types
check "all of their buffers are virtual" wait_for 20 all_virtual
streams "type 1"
check "still all of their buffers are virtual" wait_for 20 all_virtual
echo 0 | in_a tee /proc/sys/net/smc/smcr_buf_type >/dev/null
check "a connection joins after the setting has changed" smcr ping_from_b smc "$A" 7000
check "a link group keeps its type" is "1 1" types

check "link groups are made with type 0 at one end and 1 at the other" new_groups 0 1
check "both ends say so" is "0 1" types
check "contiguous and virtual buffers" smcr stream --conns 2 --bytes 1M --bidir --msg-max 200K
check "link groups are made with type 2" new_groups 2 2
check "both ends say so" is "2 2" types
check "their buffers are contiguous, and nothing is left of the virtual ones" wait_for 10 none_virtual
check "type 2: large rings" smcr stream --bytes 1M --bidir --msg-max 1M --sndbuf 512K --rcvbuf 512K

# contiguous yes|no [ORDER]: whether the module is given so many (four) pages, as a power of two, or
# more that follow each other.
contiguous() {
	local low high
	read -r low high < <(awk '$4 == "[smc_rs]" && tolower($2) == "t" { print $1 }' /proc/kallsyms |
		sort | sed -n '1p;$p' | paste -sd ' ')
	echo N >$FAULTS/task-filter
	echo N >$FAULTS/ignore-gfp-wait
	echo "${2:-2}" >$FAULTS/min-order
	echo 32 >$FAULTS/stacktrace-depth
	echo 0 >$FAULTS/verbose
	printf '0x%s\n' "$low" >$FAULTS/require-start
	printf '0x%x\n' $((0x$high + 16384)) >$FAULTS/require-end
	echo 1 >$FAULTS/interval
	echo -1 >$FAULTS/times
	if [ "$1" = no ]; then echo 100; else echo 0; fi >$FAULTS/probability
}
# downgrades: buffers of b that are smaller than asked for.
downgrades() {
	in_b smcr -a stats json | tr -d '{}" ' | tr ',' '\n' | awk -F: '/BUF_DGRADE_CNT/ { sum += $2 } END { print sum + 0 }'
}
# Connections that stay take what buffers there are.
out_of_memory() {
	local n
	for ((n = 0; n < 20; n++)); do
		start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000 --hold 600000 --timeout 900
		sleep 1
		[ "$(counter a "fallback 0x01010000 server")" -eq 0 ] || return 0
	done
	fallbacks
	return 1
}
if [ -e $FAULTS/require-start ]; then
	check "contiguous memory is used up" contiguous no
	# Held, since buffers that nobody uses go away soon.
	in_b sh -c 'cd /proc/sys/net/smc && echo 262144 | tee wmem rmem' >/dev/null
	start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000 --hold 600000 --timeout 900
	check "type 2: virtual buffers are made" wait_for 60 some_virtual
	check "type 2: large rings out of single pages" smcr stream --conns 2 --bytes 1M --bidir \
		--msg-max 1M --sndbuf 512K --rcvbuf 128K
	check "there is contiguous memory again" contiguous yes
	in_b sh -c 'cd /proc/sys/net/smc && echo 65536 | tee wmem rmem' >/dev/null

	# Of type 0: smaller buffers while there are any, then TCP.
	check "link groups are made with type 0 once more" new_groups 0 0
	in_b sh -c 'cd /proc/sys/net/smc && echo 262144 | tee wmem rmem' >/dev/null
	check "stretches of more than 16 KiB are used up" contiguous no 3
	is_before=$(downgrades)
	check "connections go on" smcr ping_from_b smc "$A" 7000 --timeout 60
	check "their buffers count as smaller than wanted" test "$(downgrades)" -gt "$is_before"
	check "those of 16 KiB are used up" contiguous no 2
	check "connections stay on TCP for want of memory" out_of_memory
	check "the client is told" wait_for 10 sh -c \
		'ip netns exec b smcss --json | grep -q "\"peer_diagnosis\":{[^}]*\"name\":\"MEM\""'
	check "there is contiguous memory at last" contiguous yes
	in_b sh -c 'cd /proc/sys/net/smc && echo 65536 | tee wmem rmem' >/dev/null
	check "and connections use SMC-R" wait_for 20 smcr ping_from_b smc "$A" 7000 --timeout 60
else
	skip "type 2 without contiguous memory" "this kernel cannot inject faults"
fi

stop_all
remove_rxe a rxe0
remove_rxe b rxe1
check "the kernel has all virtual buffers back" wait_for 20 none_virtual
check "no buffer is accounted for" wait_for 20 is 0 both memory_bytes
done_testing

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Load, use and unload the module many times, 50 in the long form: nothing leaks, nothing is left. It
# cannot be unloaded while a socket is open. A second owner of the address family
# is refused in words, and TCP connections that have seen the module outlive it.
#
# vm: --topology pair --timeout 900

. "$(dirname "$0")/../lib.sh"
ROUNDS=${SMC_TEST_ROUNDS:-$(by_form 12 50)}
FIRST=$(by_form 4 10)
need_module

loaded() {
	[ -e /sys/module/smc_rs ]
}

traffic() {
	smcr smc_stream both --server-ns a --client-ns b --family smc --addr "$A" --port 7000 \
		--conns 4 --bytes 100K --bidir --timeout 60 --seed "$1"
}

# slabs FILE: objects in use and their size, after what is freed late is freed.
slabs() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sleep 1
	awk 'NR > 2 { print $1, $2, $4 }' /proc/slabinfo >"$1"
}

# growth FILE FILE: bytes that all slabs together grew by, and which did most.
growth() {
	awk 'NR == FNR { before[$1] = $2; next }
		{ grown = ($2 - before[$1]) * $3; sum += grown; if (grown > 4096) print grown, $1, $2 - before[$1] }
		END { print sum + 0, "all" }' "$1" "$2" | sort -rn
}

taint() {
	cat /proc/sys/kernel/tainted
}

unload() {
	rmmod smc_rs
}

check "traffic in the first round" traffic "$SEED"

# Each kind of socket keeps the module in its place.
echo_server a smc "$A" 7001
refuse "rmmod is refused while a listener is open" unload
check "and the listener still serves" ping_from_b smc "$A" 7001
start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7001 --hold 5000
sleep 1
stop "${pids[0]}"
refuse "rmmod is refused while a connection is open" unload
check "and the module is still there" loaded
stop_all
check "rmmod works once they are closed" wait_for 20 unload
check "nothing of it is left in /proc" test ! -e /proc/net/smc_rs
refuse "nothing of it is left among the slabs" grep -qi '^smc' /proc/slabinfo

tainted=$(taint)
errors=0
for ((round = 1; round <= ROUNDS; round++)); do
	if ! { modprobe smc_rs && traffic "$round" && unload; } >>"$last" 2>&1; then
		errors=$((errors + 1))
		note "round $round failed: $(tail -2 "$last" | cut -c1-400)"
		unload 2>/dev/null
	fi
	# The first rounds fill caches that stay, for example of the RDMA core.
	[ "$round" -ne "$FIRST" ] || slabs "$WORK/slabs.first"
done
result "$errors" "$ROUNDS rounds of load, traffic and unload"
slabs "$WORK/slabs.last"
growth "$WORK/slabs.first" "$WORK/slabs.last" >"$WORK/growth"
note "slabs that grew between round $FIRST and $ROUNDS, in bytes and objects:"
head -8 "$WORK/growth" | sed 's/^/#   /'
# What is left behind by each connection of every round shows here in 50 rounds, and what is
# left behind by each message in fewer. What the rest of the system does, processes and files
# above all, moves both ways and does not depend on the rounds.
bounded_growth() {
	awk -v rounds=$((ROUNDS > 50 ? ROUNDS - FIRST : 40)) '$2 ~ /^(kmalloc|sock_inode_cache|TCP|SMC|request_sock|net_namespace)/ &&
			$2 !~ /rcl/ && $3 > rounds * 4 { print "grew with the rounds:", $0; bad = 1 }
		$2 == "all" && $1 > rounds * 16384 { print "grew with the rounds:", $0; bad = 1 }
		END { exit bad }' "$WORK/growth"
}
check "slab memory does not grow with the rounds" bounded_growth
check "the kernel is tainted by nothing else than before" test "$(taint)" = "$tainted"

idle_unload() {
	modprobe smc_rs && unload
}
check "load and unload without use, ten times" bash -c "$(declare -f idle_unload unload)
	for i in 1 2 3 4 5 6 7 8 9 10; do idle_unload || exit 1; done"

# Unloading does not wait for the idle time of link groups.
quick_unload() {
	local start
	modprobe smc_rs && traffic 1 || return 1
	start=$(date +%s%N)
	unload || return 1
	echo "it took $((($(date +%s%N) - start) / 1000000)) ms"
	[ $((($(date +%s%N) - start) / 1000000)) -lt 10000 ]
}
check "unloading with an idle link group takes less than 10 s" quick_unload

# TCP gives connections that wait in a listener's queue to another listener of the port when the first
# closes. What the module put into them must not go with them.
moved() {
	modprobe smc_rs && in_a sysctl -qw net.ipv4.tcp_migrate_req=1 || return 1
	in_a timeout 60 python3 -SE - <<-'PYTHON'
		import socket, subprocess
		SMC, CLIENTS = 256, 40

		def listener(protocol):
		    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
		    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
		    sock.bind(("127.0.0.1", 7300))
		    return sock

		smc, tcp = listener(SMC), listener(0)
		tcp.listen(CLIENTS)
		smc.listen(1)
		clients = []
		for _ in range(CLIENTS):
		    client = socket.socket()
		    client.setblocking(False)
		    client.connect_ex(("127.0.0.1", 7300))
		    clients.append(client)
		# Those of the SMC listener wait until it is closed.
		tcp.settimeout(2)
		served = []
		def accept_all():
		    try:
		        while True:
		            served.append(tcp.accept()[0])
		    except TimeoutError:
		        pass
		accept_all()
		before = len(served)
		smc.close()
		accept_all()
		print(before, "connections, and", len(served) - before, "that were moved")
		assert len(served) > before
		subprocess.run(["modprobe", "-r", "smc_rs"], check=True)
		for client in clients:
		    try:
		        client.send(b"?")
		    except OSError:
		        pass
		for sock in served:
		    sock.settimeout(10)
		    assert sock.recv(1) == b"?"
	PYTHON
}
check "a connection that TCP moved to another listener outlives the module" moved

# The same module under another name wants the same address family.
second_owner() {
	local file
	file=$(modinfo -n smc_rs) || return 1
	case $file in
	*.xz) xz -dc "$file" ;;
	*) cat "$file" ;;
	esac | sed 's/smc_rs/smc_r2/g' >"$WORK/smc_r2.ko"
	dmesg -C
	if insmod "$WORK/smc_r2.ko" 2>"$WORK/insmod"; then
		echo "the second owner was loaded"
		rmmod smc_r2
		return 1
	fi
	cat "$WORK/insmod"
	dmesg | tail -3
	# The kernel gives init's EEXIST to user space as EBUSY: EEXIST says that the module is there.
	grep -q 'Device or resource busy' "$WORK/insmod" && dmesg | grep -qi 'smc_r2.*address family'
}
check "the module is loaded" modprobe smc_rs
check "a second owner of the address family is refused in words" second_owner
check "the first one still works" traffic 7
done_testing

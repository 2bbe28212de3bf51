#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Memory of buffers is charged to the control group of the socket's program, and only to it; it is
# given back, also when the group is gone; a group at its limit gets smaller buffers or TCP, and
# nothing is killed; the limit for locked memory plays no part.
#
# vm: --topology pair --timeout 600

. "$(dirname "$0")/../lib.sh"
need_module

MIB=$((1 << 20))
CGROUPS=/sys/fs/cgroup
NOBODY="setpriv --reuid 65534 --regid 65534 --clear-groups"

# group NAME: makes a control group. within NAME COMMAND...: becomes the command in it.
group() {
	mkdir "$CGROUPS/$1"
}
within() {
	local group=$1
	shift
	# shellcheck disable=SC2016
	exec sh -c 'echo 0 >"$0/cgroup.procs"; exec "$@"' "$CGROUPS/$group" "$@"
}
# charged NAME [KEY]: bytes that the group pays for, of this kind in its statistics.
charged() {
	awk -v key="${2:-kernel}" '$1 == key { print $2 }' "$CGROUPS/$1/memory.stat"
}
event() {
	awk -v key="$2" '$1 == key { print $2 }' "$CGROUPS/$1/memory.events"
}

# Connections with buffers of so many bytes, each used once; then they stay until the file is there.
cat >"$WORK/hold.py" <<'END'
import os, socket, sys, time
address, port, count, size, mark = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
def wait(what):
    while not os.path.exists(f"{mark}.{what}"):
        time.sleep(0.05)
def say(what):
    open(f"{mark}.{what}", "w").close()
def connect():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
    s.settimeout(30)
    s.connect((address, port))
    s.sendall(b"x")
    assert s.recv(1) == b"x"
    return s
# What Python itself needs for this, it has.
connect().close()
say("up")
wait("go")
held = [connect() for _ in range(count)]
say("held")
wait("end")
END
# hold NAME COUNT SIZE: a client in the group, as soon as it is ready to connect.
hold() {
	start within "$1" ip netns exec b smc_run python3 "$WORK/hold.py" "$A" 7000 "$2" "$3" "$WORK/$1"
	wait_for 60 test -e "$WORK/$1.up"
}
# connects NAME: lets it make its connections.
connects() {
	: >"$WORK/$1.go"
	wait_for "${2:-60}" test -e "$WORK/$1.held"
}
at_least() {
	[ "$1" -ge "$2" ] || { echo "$1 is less than $2"; return 1; }
}
at_most() {
	[ "$1" -le "$2" ] || { echo "$1 is more than $2"; return 1; }
}
# freed NAME: a group without processes pays for next to nothing.
freed() {
	at_most "$(charged "$1")" $((MIB / 2))
}
dying() {
	awk '$1 == "nr_dying_descendants" { print $2 }' $CGROUPS/cgroup.stat
}

grep -qw memory $CGROUPS/cgroup.controllers 2>/dev/null || bail "there are no control groups for memory"
check "groups for memory can be made" sh -c "echo +memory >$CGROUPS/cgroup.subtree_control"
echo_server a smc "$A" 7000
in_a sysctl -qw net.smc.rmem=262144 net.smc.wmem=262144
check "connections use SMC-R" wait_for 20 smcr ping_from_b smc "$A" 7000

# 1. What a group's connections have is charged to it, and nothing else is.
SIZE=$((256 << 10)) COUNT=6
group first
group second
check "a client in a group" smcr hold first $COUNT $SIZE
kernel=$(charged first)
current=$(cat $CGROUPS/first/memory.current)
buffers=$(counter b memory_bytes)
check "$COUNT connections with buffers of 256 KiB" smcr connects first
buffers=$(($(counter b memory_bytes) - buffers))
kernel=$(($(charged first) - kernel))
current=$(($(cat $CGROUPS/first/memory.current) - current))
note "buffers have $buffers bytes more, kernel memory of the group $kernel, the group $current"
check "there are as many buffers" at_least "$buffers" $(((COUNT - 1) * 2 * SIZE))
check "the group pays for them" at_least "$kernel" "$buffers"
check "and for little else" at_most "$kernel" $((buffers + 2 * MIB))
check "so its memory is more by as much" at_least "$current" "$buffers"
check "another group pays for nothing" is 0 charged second

# 2. Buffers that wait for their next connection are not given to another group's.
: >"$WORK/first.end"
check "the connections end" gone 20 a b
check "their buffers wait for others" at_least "$(counter b memory_bytes)" "$buffers"
check "a client in another group" smcr hold second $COUNT $SIZE
kernel=$(charged second)
check "its connections" smcr connects second
check "it pays for its own" at_least $(($(charged second) - kernel)) $(((COUNT - 1) * 2 * SIZE))
check "the first group gets its memory back" wait_for 60 freed first

# 3. A group can be removed while buffers are charged to it.
: >"$WORK/second.end"
check "its connections end, too" gone 20 a b
check "it pays for buffers still" at_least "$(charged second)" $((2 * SIZE))
check "both groups are removed" wait_for 10 rmdir $CGROUPS/first $CGROUPS/second
note "$(dying) removed groups are there still"
echo 3 >/proc/sys/vm/drop_caches
check "nothing is left of them" wait_for 60 is 0 dying

# 4. A group at its limit, with page cache in it.
group small
check "a client in a small group" smcr hold small 40 $((1 << 19))
echo $((24 * MIB)) >$CGROUPS/small/memory.max
start within small sh -c "cat /out/bin/* >/dev/null"
wait "$started"
note "the group has $(charged small file) bytes of page cache, $(cat $CGROUPS/small/memory.current) in all"
before_smcr=$(counter b connections_smcr) before_tcp=$(counter b fallback_total)
check "40 connections of a group that has room for a part of their buffers" connects small 200
smcr=$(($(counter b connections_smcr) - before_smcr)) tcp=$(($(counter b fallback_total) - before_tcp))
grep '^conn ' /proc/"${inside[b]}"/net/smc_rs | sed -E 's/.* sndbuf=([0-9]+) rmb=([0-9]+) .*/\1 \2/' |
	sort -n | uniq -c | sed 's/^/# connections with buffers of: /'
note "$smcr over SMC-R, $tcp on TCP; events: $(paste -sd ' ' $CGROUPS/small/memory.events)"
check "all of them are over SMC-R or on TCP" is 40 echo $((smcr + tcp))
check "page cache gave way to most" at_least "$smcr" 10
check "who got none says that memory was short" is "$tcp" counter b fallback 0x01010000 client
check "nothing was killed" is "0 0" echo "$(event small oom) $(event small oom_kill)"
: >"$WORK/small.end"
check "the connections end" gone 30 a b

# 5. A listener in a group at its limit.
group narrow
# Most of it is memory that cannot give way, so what page cache there is does not matter.
start within narrow python3 -c 'import time; x = b"x" * (24 << 20); time.sleep(600)'
wait_for 30 sh -c "[ \$(cat $CGROUPS/narrow/memory.current) -ge $((24 * MIB)) ]"
start within narrow ip netns exec a smc_stream echo --family smc --addr "$A" --port 7010
wait_port a 7010
echo $((MIB / 8 + $(cat $CGROUPS/narrow/memory.current))) >$CGROUPS/narrow/memory.max
check "the server's group has no room: TCP" falls_back "a 0x01010000 server" ping_from_b smc "$A" 7010
check "the client is told" falls_back "b 0x05000000 client" ping_from_b smc "$A" 7010
check "nothing was killed" is "0 0" echo "$(event narrow oom) $(event narrow oom_kill)"
echo max >$CGROUPS/narrow/memory.max
check "with room it is SMC-R" smcr ping_from_b smc "$A" 7010

# 6. What TCP has for a connection that was accepted and fell back.
group tcp
cat >"$WORK/deaf.py" <<'END'
import os, socket, sys, time
listener = socket.create_server((sys.argv[1], 7020))
peer, _ = listener.accept()
open(sys.argv[2] + ".accepted", "w").close()
while not os.path.exists(sys.argv[2] + ".read"):
    time.sleep(0.05)
while peer.recv(65536):
    pass
END
cat >"$WORK/talk.py" <<'END'
import os, socket, sys, time
peer = socket.create_connection((sys.argv[1], 7020))
peer.settimeout(1)
try:
    while True:
        peer.sendall(bytes(65536))
except TimeoutError:
    pass
open(sys.argv[2] + ".full", "w").close()
while not os.path.exists(sys.argv[2] + ".end"):
    time.sleep(0.05)
END
start within tcp ip netns exec a smc_run python3 "$WORK/deaf.py" "$A" "$WORK/tcp"
server=$started
wait_port a 7020
start ip netns exec b python3 "$WORK/talk.py" "$A" "$WORK/tcp"
check "a client on TCP sends more than is read" wait_for 30 test -e "$WORK/tcp.full"
# The kernel brings these statistics up to date every two seconds.
sockets_charged() {
	at_least "$(charged tcp sock)" $((64 << 10))
}
check "the server's group pays for it" wait_for 10 sockets_charged
note "$(charged tcp sock) bytes of sockets are charged"
: >"$WORK/tcp.read"
: >"$WORK/tcp.end"
check "both end" wait_for 20 sh -c "! kill -0 $server 2>/dev/null"
check "nothing is charged then" wait_for 20 is 0 charged tcp sock
refuse "nothing was given back twice" sh -c 'dmesg | grep "page_counter underflow"'

# 7. Memory that devices read and write is not locked memory of a user.
locked() {
	# shellcheck disable=SC2086
	in_b $NOBODY sh -c 'ulimit -l 0 && exec "$@"' sh "$@"
}
check "no locked memory is allowed" is 0 locked sh -c 'ulimit -l'
check "a user without rights gets SMC-R all the same" smcr locked smc_stream ping --family smc --addr "$A" \
	--port 7000 --conns 3
stop_all
check "all connections are gone" gone 30 a b
done_testing

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Processes that are killed are gone at once, whatever their sockets wait for: thousands of
# connections that nobody answers, or a peer that does not read.
#
# vm: --topology pair --timeout 300

. "$(dirname "$0")/../lib.sh"
need_module

# killed SECONDS PID: it is gone within this time.
killed() {
	local began
	began=$(date +%s%3N)
	kill -KILL "$2"
	wait "$2" 2>/dev/null
	began=$(($(date +%s%3N) - began))
	note "gone after $began ms"
	[ "$began" -le $(($1 * 1000)) ]
}
ready() {
	grep -q ready "$WORK/out"
}

# 1. Connections to a host that is not there.
MANY=$(by_kernel 10000 2000)
cat >"$WORK/many.py" <<'END'
import errno, resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
all = []
for _ in range(int(sys.argv[1])):
    s = socket.socket()
    s.setblocking(False)
    error = s.connect_ex(("10.9.0.253", 7000))
    assert error == errno.EINPROGRESS, error
    all.append(s)
print("ready", flush=True)
time.sleep(1000)
END
check "packets to a host that is not there are lost" \
	ip -n b neigh add 10.9.0.253 lladdr 02:00:00:00:00:fd dev veth0 nud permanent
ip netns exec b smc_run python3 "$WORK/many.py" "$MANY" >"$WORK/out" 2>&1 &
many=$!
pids+=("$many")
check "$MANY sockets connect" wait_for 120 ready
check "their process can be killed" killed "$(by_kernel 5 40)" "$many"
check "no socket is left" wait_for 20 no_sockets b

# 2. A peer that does not read: the ring of the sender is full, and its thread waits.
cat >"$WORK/full.py" <<'END'
import select, socket, sys, time
host, side = sys.argv[1:]
if side == "server":
    peer, _ = socket.create_server((host, 7000)).accept()
    peer.recv(1)
    time.sleep(1000)
peer = socket.create_connection((host, 7000))
peer.setblocking(False)
since = time.monotonic()
while time.monotonic() - since < 2:
    try:
        peer.send(bytes(100000))
        since = time.monotonic()
    except BlockingIOError:
        time.sleep(0.2)
peer.setblocking(True)
print("ready", flush=True)
peer.sendall(bytes(100000))
END
for victim in client server; do
	: >"$WORK/out"
	ip netns exec a smc_run python3 "$WORK/full.py" "$A" server &
	server=$!
	wait_port a 7000
	ip netns exec b smc_run python3 "$WORK/full.py" "$A" client >"$WORK/out" 2>&1 &
	client=$!
	pids+=("$client" "$server")
	check "a ring is full, and its writer waits" wait_for 60 ready
	sleep 1
	if [ $victim = client ]; then
		check "the writer can be killed" killed "$(by_kernel 1 8)" $client
	else
		check "the reader can be killed" killed "$(by_kernel 1 8)" $server
		check "then the writer gets an error" wait_for 20 grep -q ConnectionResetError "$WORK/out"
	fi
	stop_all
	check "the connection is gone: $victim" gone 20 a b
done
check "nor is a socket left" wait_for 20 no_sockets a b
done_testing

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every counter of SMC_NETLINK_GET_STATS and its fallback table, for a known pattern:
# buffers, calls by size at both ends, special calls, full buffers, handshakes. That of
# buffers that had to be smaller is in buftype.sh: it needs a machine without memory.
#
# vm: --topology pair --timeout 600
# slow: ends link groups and loads the module anew

. "$(dirname "$0")/../lib.sh"
need_module

# snapshot NAMESPACE: "NAME VALUE" lines of all counters.
snapshot() {
	ip netns exec "$1" smcr -a stats json | tr -d '{}" ' | sed 's/^SMCR://' | tr ',:' '\n ' >"$WORK/json"
	ip netns exec "$1" smcr -a -d stats | awk '
		/Handshake errors/ { print "CLIENT_ERRORS", $5 + 0; print "SERVER_ERRORS", $7 + 0 }
		/TCP fallback/ { print "CLIENT_FALLBACKS", $5 + 0; print "SERVER_FALLBACKS", $7 + 0 }' >"$WORK/text"
	sed 's/^SMC_//' "$WORK/json" "$WORK/text"
}
begin() {
	for ns in a b; do
		snapshot $ns | sort >"$WORK/before.$ns"
	done
}
# rises NAMESPACE "NAME BY"...: these counters rose, by so much, and no other one.
rises() {
	local ns=$1
	shift
	snapshot "$ns" | sort | join "$WORK/before.$ns" - | awk '$3 != $2 { print $1, $3 - $2 }' |
		grep -v '^[RT]X_RMB_USAGE ' >"$WORK/rose"
	printf '%s\n' "$@" | sort >"$WORK/expected"
	diff "$WORK/expected" "$WORK/rose"
}
usage() {
	is "$2" ip netns exec "$1" sh -c 'smcr -a stats json | grep -o "TX_RMB_USAGE.:[0-9]*" | cut -d: -f2'
}

# 1. Buffers and handshakes: each of two connections at a time needs its own, the next one takes
# what is there.
silent() {
	ip netns exec "$1" smc_run python3 -c '
import socket, sys
listener = socket.create_server((sys.argv[1], 7000))
peers = [listener.accept()[0] for _ in range(int(sys.argv[2]))]
for peer in peers:
    peer.recv(1)' "$A" "$2" &
	pids+=("$!")
	wait_for 60 listening a 7000
}
cat >"$WORK/hold.py" <<'END_OF_PROGRAM'
import socket, sys, time
peers = [socket.create_connection((sys.argv[1], 7000)) for _ in range(int(sys.argv[2]))]
print("connected", flush=True)
time.sleep(float(sys.argv[3]))
END_OF_PROGRAM
begin
silent a 2
start ip netns exec b smc_run python3 "$WORK/hold.py" "$A" 2 600
check "two connections hold two send buffers" wait_for 30 usage b 131072
check "client: two handshakes, two buffers each way" wait_for 10 rises b "CLNT_V2_SUCC_CNT 2" \
	"INT_RX_BUF_64K 2" "INT_TX_BUF_64K 2" "INT_RX_BUF_ALLOC_CNT 2" "INT_TX_BUF_ALLOC_CNT 2"
check "server: the same" wait_for 10 rises a "SRV_V2_SUCC_CNT 2" \
	"INT_RX_BUF_64K 2" "INT_TX_BUF_64K 2" "INT_RX_BUF_ALLOC_CNT 2" "INT_TX_BUF_ALLOC_CNT 2"
stop_all
check "the connections are gone" gone 20 a b
# A buffer is kept for ten seconds. The first connection finds none any more, the next one comes as
# soon as the first is gone at both ends.
cat >"$WORK/again.py" <<'END_OF_PROGRAM'
import socket, sys, time
def active():
    total = 0
    for pid in sys.argv[2:]:
        with open(f"/proc/{pid}/net/smc_rs") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("connections_active "))
    return total
for _ in range(2):
    socket.create_connection((sys.argv[1], 7001)).close()
    while active():
        time.sleep(0.01)
END_OF_PROGRAM
cat >"$WORK/closing.py" <<'END_OF_PROGRAM'
import socket, sys
listener = socket.create_server((sys.argv[1], 7001))
for _ in range(2):
    with listener.accept()[0] as peer:
        peer.recv(1)
END_OF_PROGRAM
start ip netns exec a smc_run python3 "$WORK/closing.py" "$A"
wait_port a 7001
sleep 20
begin
check "one connection after the other" timeout 60 ip netns exec b smc_run python3 "$WORK/again.py" "$A" \
	"${inside[a]}" "${inside[b]}"
check "client: the second takes buffers that were there" rises b "CLNT_V2_SUCC_CNT 2" \
	"INT_RX_BUF_64K 2" "INT_TX_BUF_64K 2" "INT_RX_BUF_ALLOC_CNT 1" "INT_TX_BUF_ALLOC_CNT 1" \
	"INT_RX_BUF_REUSE_CNT 1" "INT_TX_BUF_REUSE_CNT 1"
check "server: the same" rises a "SRV_V2_SUCC_CNT 2" "RX_CNT 2" \
	"INT_RX_BUF_64K 2" "INT_TX_BUF_64K 2" "INT_RX_BUF_ALLOC_CNT 1" "INT_TX_BUF_ALLOC_CNT 1" \
	"INT_RX_BUF_REUSE_CNT 1" "INT_TX_BUF_REUSE_CNT 1"
stop_all
check "the connections are gone again" gone 20 a b
check "no send buffer is in use" usage b 0

# 2. Calls: of each size one, from both ends; what is more than a buffer holds is counted as such.
# A splice is a read, too.
cat >"$WORK/sizes.py" <<'END_OF_PROGRAM'
import fcntl, os, socket, struct, sys, termios, time
SIZES = (5000, 12288, 30000, 60000, 120000, 250000, 500000, 600000, 1100000)
def wait(peer, amount):
    while struct.unpack("i", fcntl.ioctl(peer, termios.FIONREAD, bytes(4)))[0] < amount:
        time.sleep(0.01)
host, side = sys.argv[1:]
if side == "server":
    peer, _ = socket.create_server((host, 7100)).accept()
    for size in SIZES:
        assert len(peer.recv(size, socket.MSG_WAITALL)) == size
        assert peer.send(b"+") == 1
    wait(peer, 3000)
    assert len(peer.recv(100)) == 100
    assert len(peer.recv(2900)) == 2900
    assert peer.send(b"+") == 1
    assert peer.recv(1) == b""
else:
    peer = socket.create_connection((host, 7100))
    for size in SIZES:
        assert peer.send(bytes(size)) == size
        assert peer.recv(1) == b"+"
    assert peer.send(bytes(3000)) == 3000
    wait(peer, 1)
    out, into = os.pipe()
    assert os.splice(peer.fileno(), into, 1) == 1
END_OF_PROGRAM
# pattern PROGRAM PORT: a server in a, a client in b; both must end well.
pattern() {
	local server status
	ip netns exec a smc_run python3 "$1" "$A" server &
	server=$!
	pids+=("$server")
	wait_port a "$2"
	in_b smc_run python3 "$1" "$A" client
	status=$?
	wait "$server" && return $status
}
full='BUF_FULL_(PEER_)?CNT'
# exactly NAMESPACE "NAME BY"...: whether buffers were there before is a matter of time here.
exactly() {
	local ns=$1
	shift
	rises "$ns" "$@" >"$WORK/differences"
	sed -i -E 's/_(REUSE|ALLOC)_CNT/_MADE_CNT/' "$WORK/rose"
	diff "$WORK/expected" "$WORK/rose" >"$WORK/differences"
	! grep -vE "^[0-9,acd]+$|^---$|$full" "$WORK/differences"
}
begin
check "calls of all sizes" pattern "$WORK/sizes.py" 7100
sizes=("8K 2" "16K 1" "32K 1" "64K 1" "128K 1" "256K 1" "512K 1" "1024K 1" "G_1024K 1")
bytes=$((5000 + 12288 + 30000 + 60000 + 120000 + 250000 + 500000 + 600000 + 1100000 + 3000))
check "client: each class once, five calls above the buffers" exactly b "CLNT_V2_SUCC_CNT 1" \
	"INT_RX_BUF_64K 1" "INT_TX_BUF_64K 1" "INT_RX_BUF_MADE_CNT 1" "INT_TX_BUF_MADE_CNT 1" \
	"TX_CNT 10" "TX_BYTES $bytes" "RX_CNT 10" "RX_BYTES 10" "SPLICE_CNT 1" "USR_RX_BUF_8K 10" \
	"INT_TX_BUF_SIZE_SM_CNT 5" "INT_TX_BUF_SIZE_SM_PEER_CNT 5" "${sizes[@]/#/USR_TX_BUF_}"
sizes[0]="8K 3"
check "server: the same, one read of less than was there, and the end" exactly a "SRV_V2_SUCC_CNT 1" \
	"INT_RX_BUF_64K 1" "INT_TX_BUF_64K 1" "INT_RX_BUF_MADE_CNT 1" "INT_TX_BUF_MADE_CNT 1" \
	"RX_CNT 12" "RX_BYTES $bytes" "TX_CNT 10" "TX_BYTES 10" "USR_TX_BUF_8K 10" \
	"INT_RX_BUF_SIZE_SM_CNT 1" "${sizes[@]/#/USR_RX_BUF_}"

# 3. Urgent data, at both ends, and buffers that are full.
cat >"$WORK/special.py" <<'END_OF_PROGRAM'
import fcntl, os, select, socket, struct, sys, termios, time
host, side = sys.argv[1:]
if side == "server":
    peer, _ = socket.create_server((host, 7200)).accept()
    select.select([], [], [peer])
    assert peer.recv(1, socket.MSG_OOB) == b"!"
    waiting, since = -1, time.monotonic()
    while time.monotonic() - since < 1:
        now = struct.unpack("i", fcntl.ioctl(peer, termios.FIONREAD, bytes(4)))[0]
        if now != waiting:
            waiting, since = now, time.monotonic()
        time.sleep(0.05)
    while peer.recv(1 << 20):
        pass
else:
    peer = socket.create_connection((host, 7200))
    peer.send(b"!", socket.MSG_OOB)
    peer.sendall(bytes(1 << 20))
END_OF_PROGRAM
begin
check "urgent data, and a reader that waits" pattern "$WORK/special.py" 7200
rose() {
	local was now
	was=$(awk -v name="$2" '$1 == name { print $2 }' "$WORK/before.$1")
	now=$(snapshot "$1" | awk -v name="$2" '$1 == name { print $2 }')
	echo "$2 of $1 was $was and is $now"
	[ "$now" -gt "$was" ] && [ $((now - was)) -le "$3" ]
}
check "the writer's urgent call" rose b URG_DATA_CNT 1
check "the reader's urgent call" rose a URG_DATA_CNT 1
check "the writer's ring was full" rose b INT_TX_BUF_FULL_CNT 1000
check "so was the reader's buffer, as the writer saw it" rose b INT_TX_BUF_FULL_PEER_CNT 1000
check "and as the reader saw it" rose a INT_RX_BUF_FULL_CNT 1000

# A write that finds the ring full, and a read that finds the buffer full, count once each.
cat >"$WORK/full.py" <<'END_OF_PROGRAM'
import os, socket, sys, time
host, side, folder = sys.argv[1:]
def step(name):
    open(f"{folder}/{name}", "w").close()
def wait(name):
    while not os.path.exists(f"{folder}/{name}"):
        time.sleep(0.05)
if side == "server":
    peer, _ = socket.create_server((host, 7250)).accept()
    wait("read")
    assert len(peer.recv(100)) == 100
    step("was-read")
else:
    peer = socket.create_connection((host, 7250))
    peer.setblocking(False)
    since = time.monotonic()
    while time.monotonic() - since < 2:
        try:
            peer.send(bytes(100000))
            since = time.monotonic()
        except BlockingIOError:
            time.sleep(0.2)
    step("full")
    wait("write")
    try:
        peer.send(b"x")
        sys.exit("there was room")
    except BlockingIOError:
        step("was-written")
wait("end")
END_OF_PROGRAM
start ip netns exec a smc_run python3 "$WORK/full.py" "$A" server "$WORK"
wait_port a 7250
start ip netns exec b smc_run python3 "$WORK/full.py" "$A" client "$WORK"
check "ring and buffer are full" wait_for 60 test -e "$WORK/full"
begin
: >"$WORK/write"
check "one more write is refused" wait_for 20 test -e "$WORK/was-written"
check "it counts once, and so does the peer's buffer" rises b "TX_CNT 1" "INT_TX_BUF_FULL_CNT 1" \
	"INT_TX_BUF_FULL_PEER_CNT 1"
begin
: >"$WORK/read"
check "one read takes less than was there" wait_for 20 test -e "$WORK/was-read"
check "it counts once" rises a "RX_CNT 1" "RX_BYTES 100" "USR_RX_BUF_8K 1" "INT_RX_BUF_FULL_CNT 1" \
	"INT_RX_BUF_SIZE_SM_CNT 1"
: >"$WORK/end"
stop_all
check "the connections are gone once more" gone 20 a b

# 4. Fallbacks: by side, and by reason.
begin
echo_server a tcp "$A" 7002
for _ in 1 2 3; do
	ping_from_b smc "$A" 7002 >/dev/null
done
check "three clients on TCP" rises b "CLIENT_FALLBACKS 3"
check "count for their reason" sh -c \
	'ip netns exec b smcr -a -d stats | grep -A1 "^    Client" | grep -q "PEER_NO_SMC  *3$"'
echo_server a smc "$A" 7003
begin
ping_from_b tcp "$A" 7003 >/dev/null
check "a server on TCP" wait_for 10 rises a "SERVER_FALLBACKS 1"

# 5. Handshakes that broke the connection, by side. A client that is gone before its Proposal was
# one of TCP.
begin
middlebox a add 7003
in_b clc_peer client --addr "$A" --own "$B" --port 7003 --case rst-at-once >/dev/null 2>&1
check "a client that is gone at once is one on TCP" wait_for 20 rises a "SERVER_FALLBACKS 1"
begin
in_b clc_peer client --addr "$A" --own "$B" --port 7003 --case accept-then-rst >/dev/null 2>&1
stop_middlebox a
check "a server's handshake that was reset" wait_for 20 rises a "SERVER_ERRORS 1" \
	"INT_RX_BUF_64K 1" "INT_TX_BUF_64K 1" "INT_RX_BUF_ALLOC_CNT 1" "INT_TX_BUF_ALLOC_CNT 1"
begin
middlebox b add 7004
in_a clc_peer server --addr "$A" --port 7004 --case rst-at-once -- \
	ip netns exec b smc_stream ping --family smc --addr "$A" --port 7004 --timeout 20 >/dev/null 2>&1
stop_middlebox b
check "a client's handshake that was reset" wait_for 20 rises b "CLIENT_ERRORS 1"
stop_all
check "the connections are gone at last" gone 30 a b

# 6. Version 1.
check "the module is loaded for version 1" sh -c \
	'modprobe -r smc_rs && modprobe smc_rs v1_over_rocev2=1 && smc_ueid flush'
begin
silent a 1
check "a connection of version 1" in_b smc_run python3 "$WORK/hold.py" "$A" 1 0
check "client: a handshake of version 1" rises b "CLNT_V1_SUCC_CNT 1" \
	"INT_RX_BUF_64K 1" "INT_TX_BUF_64K 1" "INT_RX_BUF_ALLOC_CNT 1" "INT_TX_BUF_ALLOC_CNT 1"
check "server: one" rises a "SRV_V1_SUCC_CNT 1" "RX_CNT 1" \
	"INT_RX_BUF_64K 1" "INT_TX_BUF_64K 1" "INT_RX_BUF_ALLOC_CNT 1" "INT_TX_BUF_ALLOC_CNT 1"
stop_all
done_testing

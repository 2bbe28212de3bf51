#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A peer that can no longer be reached: over RDMA, over TCP, or at all. Links are probed, so
# that programs get an error in bounded time; what happens to the TCP connection counts where
# a program has asked for keepalive.
#
# vm: --topology pair --timeout 600
# waits

. "$(dirname "$0")/../lib.sh"
need_module

# A silent link is probed after two seconds, and given up at most 24 s later.
LIMIT=40
for ns in a b; do
	ip netns exec $ns sh -c 'echo 2 >/proc/sys/net/smc/smcr_testlink_time'
done
echo_server a smc "$A" 7000

# cut_off WHAT: packets that nft describes so do not pass, in either direction; mend ends that.
cut_off() {
	in_a nft -f - <<-RULES
		table inet cut {
			chain in { type filter hook input priority -300; $1 drop; }
			chain out { type filter hook output priority -300; $1 drop; }
		}
	RULES
}
mend() {
	in_a nft delete table inet cut
}

# client NAME CALL [OPTION...]: connects, and says in a file of that name how the call ends.
cat >"$WORK/client.py" <<'END'
import errno, socket, sys, time
host, call, *options = sys.argv[1:]
peer = socket.create_connection((host, 7000))
if "keepalive" in options:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (socket.TCP_KEEPIDLE, 2), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 3):
        peer.setsockopt(socket.IPPROTO_TCP, option, value)
if "user" in options:
    # The number of probes is not what ends it then.
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 100)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 5000)
def turn():
    peer.sendall(b"hello")
    assert peer.recv(5, socket.MSG_WAITALL) == b"hello"
turn()
print("ready", flush=True)
began = time.monotonic()
try:
    if call == "recv":
        how = "data" if peer.recv(1) else "end"
    while call == "send":
        peer.sendall(bytes(10000))
    while call == "talk":
        turn()
        print("turn", flush=True)
        time.sleep(0.2)
except OSError as error:
    how = errno.errorcode[error.errno]
print(how, "after", int(time.monotonic() - began), "s", flush=True)
END
client() {
	local name=$1
	shift
	ip netns exec b smc_run python3 "$WORK/client.py" "$A" "$@" >"$WORK/$name" 2>&1 &
	pids+=($!)
	wait_for 30 grep -q ready "$WORK/$name" || bail "client $name does not connect: $(tail -3 "$WORK/$name")"
}
# told NAME ERROR...: the call ended with one of these.
told() {
	local name=$1 ended
	shift
	wait_for $LIMIT grep -q after "$WORK/$name"
	ended=$(tail -1 "$WORK/$name")
	note "$name: $ended"
	[[ " $* " == *" ${ended%% *} "* ]] || {
		echo "$name: $ended"
		return 1
	}
}
turns() {
	grep -c turn "$WORK/$1"
}
before=$(both fallback_total)

# 1. RDMA does not get through, TCP does.
client reader recv
client writer send
check "RDMA is cut off" cut_off "udp dport 4791"
check "a reader that waits gets an error" told reader ECONNRESET
check "so does a writer" told writer ECONNRESET EPIPE
check "RDMA is back" mend
check "the connections are gone at both ends" gone 30 a b
check "connections use SMC-R again" wait_for 30 smcr ping_from_b smc "$A" 7000 --timeout 30

# 2. TCP does not get through, RDMA does.
client talker talk
client watchful recv keepalive
client hurried recv keepalive user
check "TCP is cut off" cut_off "tcp sport 7000"
first=$(turns talker)
check "a reader with keepalive gets an error" told watchful ETIMEDOUT ECONNRESET
check "so does one with a time limit" told hurried ETIMEDOUT ECONNRESET
check "data of others go on" test "$(turns talker)" -gt $((first + 5))
check "TCP is back" mend
stop_all
check "the connections are gone at both ends once more" gone 60 a b
echo_server a smc "$A" 7000

# 3. Nothing gets through.
client reader recv
client writer send
client watchful recv keepalive
check "the peer is cut off" cut_off ""
for name in reader writer watchful; do
	check "a $name hears of it" told $name ECONNRESET ETIMEDOUT EPIPE
done
check "no connection is left here" gone 30 b
check "nor at the peer" gone 60 a
check "the peer is back" mend
check "connections use SMC-R at last" wait_for 30 smcr ping_from_b smc "$A" 7000 --timeout 30

# 4. The link is lost at one end whose programs do not look: one has its connections and sleeps, one
# has not accepted any. Nothing of the link tells the other end before it is probed, in minutes.
for ns in a b; do
	ip netns exec $ns sh -c 'echo 300 >/proc/sys/net/smc/smcr_testlink_time'
done
cat >"$WORK/sleeper.py" <<'END'
import socket, sys, time
listener = socket.create_server((sys.argv[1], 7100))
if sys.argv[2] == "accept":
    peer, _ = listener.accept()
    peer.sendall(peer.recv(5, socket.MSG_WAITALL))
print("ready", flush=True)
time.sleep(1000)
END
sleeper() {
	ip netns exec a smc_run python3 "$WORK/sleeper.py" "$A" "$1" >"$WORK/sleeper" 2>&1 &
	pids+=($!)
}
# unaware: connects, sends, and waits for an answer that does not come, or not a second time.
cat >"$WORK/unaware.py" <<'END'
import errno, socket, sys, time
peer = socket.create_connection((sys.argv[1], 7100))
peer.sendall(b"hello")
if sys.argv[2] == "accept":
    assert peer.recv(5, socket.MSG_WAITALL) == b"hello"
print("ready", flush=True)
began = time.monotonic()
try:
    how = "data" if peer.recv(1) else "end"
except OSError as error:
    how = errno.errorcode[error.errno]
print(how, "after", int(time.monotonic() - began), "s", flush=True)
END
listens() {
	in_a ss -Htln sport = :7100 | grep -q .
}
# lost accept|ignore: the other end hears of the loss within seconds.
lost() {
	local LIMIT=10 smcr
	sleeper "$1"
	wait_for 20 listens || return 1
	smcr=$(counter b connections_smcr)
	ip netns exec b smc_run python3 "$WORK/unaware.py" "$A" "$1" >"$WORK/unaware" 2>&1 &
	pids+=($!)
	wait_for 30 grep -q ready "$WORK/unaware" || { cat "$WORK/unaware"; return 1; }
	[ "$(counter b connections_smcr)" -gt "$smcr" ] || { echo "it does not use SMC-R"; return 1; }
	remove_rxe a rxe0
	told unaware ECONNRESET
}
for how in accept ignore; do
	check "the loss of a link reaches the peer of a program that does not look ($how)" lost $how
	stop_all
	check "the device comes back ($how)" add_rxe a rxe0
	echo_server a smc "$A" 7000
	check "it is used ($how)" wait_for 30 smcr ping_from_b smc "$A" 7000 --timeout 30
done
stop_all
check "all sockets are gone" wait_for 20 no_sockets a b
done_testing

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Sockets that fell back, of both kinds: for two causes at a time, from a listener that rules
# SMC out, and ended in every order. The kernel counts none of them afterwards.
#
# vm: --topology pair --timeout 300

. "$(dirname "$0")/../lib.sh"
need_module
sysctl -qw net.ipv4.tcp_fastopen=3

# Both ends are in the initial namespace, which has no RDMA device.
cat >"$WORK/common.py" <<'END'
import errno, itertools, socket, struct, sys
FASTOPEN, FASTOPEN_CONNECT = 23, 30
RESET = struct.pack("ii", 1, 0)
def server(*options):
    listener = socket.socket()
    for option, value in options:
        listener.setsockopt(socket.IPPROTO_TCP, option, value)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener, listener.getsockname()
def reset(peer):
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    peer.close()
def read(peer, size):
    data = peer.recv(size, socket.MSG_WAITALL)
    assert len(data) == size, f"{len(data)} bytes of {size}"
    return data
END

# 1. SMC is ruled out by an option, and then by a flag of sending, before the connection is made
# and after.
cat >"$WORK/twice.py" <<'END'
from common import *
listener, to = server()
for turn in range(int(sys.argv[1])):
    client = socket.socket()
    client.setsockopt(socket.IPPROTO_TCP, FASTOPEN_CONNECT, 1)
    if turn % 2:
        client.connect(to)
        sent = client.send(b"hello")
    else:
        sent = client.sendto(b"hello", socket.MSG_FASTOPEN, to)
    assert sent == 5, sent
    try:
        client.sendto(b"again", socket.MSG_FASTOPEN, to)
    except OSError as error:
        # The SYN with the data may not have been answered yet.
        assert error.errno in (errno.EISCONN, errno.EALREADY), error
    peer, _ = listener.accept()
    assert read(peer, 5) == b"hello"
    peer.sendall(b"bye")
    assert read(client, 3) == b"bye"
    (reset if turn % 3 else socket.socket.close)(client)
    try:
        assert (turn % 3, peer.recv(1)) == (0, b""), "the reset did not arrive"
    except ConnectionResetError:
        assert turn % 3, "the end was a reset"
    peer.close()
END

# 2. A listener with fast open: each child gets its data and its error.
cat >"$WORK/children.py" <<'END'
from common import *
listener, to = server((FASTOPEN, 16))
for _ in range(int(sys.argv[1])):
    client = socket.create_connection(to)
    peer, _ = listener.accept()
    client.sendall(bytes(100))
    read(peer, 100)
    reset(client)
    try:
        peer.recv(1)
        sys.exit("the reset did not reach a child")
    except ConnectionResetError:
        peer.close()
END

# 3. Every order of ends, by either side, with and without data that nobody has read.
cat >"$WORK/ends.py" <<'END'
from common import *
listener, to = server()
HOW = None, socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR
for how, first, aborts, unread in itertools.product(HOW, (0, 1), (False, True), (False, True)):
    for _ in range(int(sys.argv[1])):
        client = socket.create_connection(to)
        ends = client, listener.accept()[0]
        own, other = ends[first], ends[1 - first]
        if unread:
            own.sendall(bytes(2000))
            other.sendall(bytes(2000))
        if how is not None:
            own.shutdown(how)
        (reset if aborts else socket.socket.close)(own)
        try:
            other.shutdown(socket.SHUT_RDWR)
        except OSError as error:
            assert error.errno == errno.ENOTCONN, error
        other.close()
END
# rises_by LEAST COMMAND...: so many sockets fell back meanwhile.
rises_by() {
	local least=$1 before
	before=$(value_of fallback_total </proc/net/smc_rs)
	shift
	"$@" || return 1
	before=$(($(value_of fallback_total </proc/net/smc_rs) - before))
	[ "$before" -ge "$least" ] || {
		echo "$before sockets fell back, not $least"
		return 1
	}
}
for kind in smc inet; do
	check "ruled out twice: $kind" rises_by 24 smc_run -f $kind python3 "$WORK/twice.py" 12
	check "children of a listener with fast open: $kind" rises_by 200 \
		smc_run -f $kind python3 "$WORK/children.py" 100
	each=$(by_form 5 50)
	check "every order of ends, $each times: $kind" rises_by $((2 * 32 * each)) \
		smc_run -f $kind python3 "$WORK/ends.py" "$each"
	check "no socket is left: $kind" wait_for 20 no_sockets
	check "nor a connection in the list: $kind" wait_for 20 is "[]" smcss --json -a
done

# 4. One end is closed while the other one's data come, which nobody acknowledges for a while.
cat >"$WORK/unacked.py" <<'END'
import socket, subprocess, sys, time
host, side = sys.argv[1:]
if side == "server":
    peer, _ = socket.create_server((host, 7000)).accept()
    peer.sendall(bytes(50000))
    peer.close()
else:
    peer = socket.create_connection((host, 7000))
    peer.recv(1)
    # What was sent stays unacknowledged; what the peer sends goes on coming.
    subprocess.run(["nft", "-f", "-"], check=True, text=True, input="""table inet unacked {
        chain output {
            type filter hook output priority 0
            tcp dport 7000 drop
        }
    }""")
    peer.sendall(bytes(50000))
    peer.close()
    time.sleep(1)
    subprocess.run(["nft", "delete", "table", "inet", "unacked"], check=True)
END
unacked() {
	ip netns exec a smc_run python3 "$WORK/unacked.py" "$A" server &
	pids+=($!)
	wait_port a 7000
	falls_back "b 0x03030000 client" ip netns exec b smc_run python3 "$WORK/unacked.py" "$A" client
}
remove_rxe b rxe1
check "closed with data on their way, in both directions" unacked
check "its sockets are gone, too" wait_for 30 no_sockets a b
stop_all
done_testing

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# BPF puts the connections of a listener into a map of sockets before anybody accepts them, and
# with that takes what belongs to the owner of a TCP socket. They are served all the same, with
# urgent data and errors, from a listener that offers SMC and from one that does not.
#
# vm: --topology pair --timeout 200
# waits

. "$(dirname "$0")/../lib.sh"
need_module

# The server accepts late: data, an urgent byte, and sometimes the end are there before.
cat >"$WORK/late.py" <<'END'
import socket, sys, time
host, side = sys.argv[1:]
if side == "server":
    listener = socket.create_server((host, 7100), backlog=64)
    while True:
        time.sleep(0.3)
        peer, _ = listener.accept()
        while data := peer.recv(100):
            peer.sendall(data)
        peer.close()
else:
    for turn in range(6):
        with socket.create_connection((host, 7100)) as peer:
            peer.sendall(b"before")
            peer.send(b"!", socket.MSG_OOB)
            peer.sendall(b"after")
            if turn % 2:
                peer.shutdown(socket.SHUT_WR)
            assert peer.recv(11, socket.MSG_WAITALL) == b"beforeafter"
END
in_map() {
	start tcp_crowd --into-map -- ip netns exec a "$@"
}
in_a sysctl -qw net.ipv4.tcp_fastopen=3
for family in smc smc-inet; do
	in_map smc_stream echo --family $family --addr "$A" --port 7000
	in_map smc_stream echo --family $family --addr "$A" --port 7001 --before fastopen
	in_map smc_run -f "${family/smc-/}" python3 "$WORK/late.py" "$A" server
	for port in 7000 7001 7100; do
		wait_port a $port
	done
	for wait in block epoll-edge; do
		check "a client that offers SMC is served, $family, $wait" \
			falls_back "a 0x03060000 server" ping_from_b smc "$A" 7000 --wait $wait --timeout 20
		check "a client on TCP is served, $family, $wait" ping_from_b tcp "$A" 7000 --wait $wait --timeout 20
		check "so are clients of a listener with fast open, $family, $wait" \
			ping_from_b smc "$A" 7001 --wait $wait --timeout 20
	done
	for client in "smc_run" "env"; do
		check "urgent data before the connection is accepted, $family, $client" \
			timeout 60 ip netns exec b $client python3 "$WORK/late.py" "$A" client
	done
	stop_all
	check "the connections are gone, $family" gone 20 a b
	check "and all sockets, $family" wait_for 20 no_sockets a b
done
done_testing

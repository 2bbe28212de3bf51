#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Each cause of a fallback is made to happen; each must end in working TCP with
# every byte in order, and in the right reason on the side that knows it.
#
# vm: --topology pair --timeout 900
# waits

. "$(dirname "$0")/../lib.sh"
need_module

NOSMC=0x03010000
NOSMCDEV=0x03030000
OPTUNSUPP=0x03060000
PEERDECL=0x05000000
TIMEOUT_CL=0x02010000
WAITS="block poll epoll-level epoll-edge"

# Servers: SMC on 7000 (IPv4) and 7001 (IPv6), TCP on 7002.
echo_server a smc "$A" 7000
smc_server=$started
echo_server a smc6 "$A6" 7001
echo_server a tcp "$A" 7002

smc() {
	ping_from_b smc "$A" 7000 --timeout 20 "$@"
}

check "before anything is broken, connections use SMC-R" smcr smc

# 1. The peer does not speak SMC. Poll and epoll are registered before that shows.
for wait in $WAITS; do
	check "server on TCP, client waits by $wait" falls_back "b $NOSMC client" \
		ping_from_b smc "$A" 7002 --wait "$wait"
done
for wait in $WAITS; do
	check "client on TCP, waits by $wait" falls_back "a $NOSMC server" \
		ping_from_b tcp "$A" 7000 --wait "$wait"
done

# 2. No RDMA device on one side, on the other, on both.
remove_rxe b rxe1
for wait in $WAITS; do
	check "no RDMA device at the client, $wait" falls_back "b $NOSMCDEV client" smc --wait "$wait"
done
check "the server is told that the client declined" falls_back "a $PEERDECL server" smc
remove_rxe a rxe0
check "no RDMA device on either side" falls_back "b $NOSMCDEV client" smc
check "a new device can be made in b" add_rxe b rxe1
for wait in $WAITS; do
	check "no RDMA device at the server, $wait" falls_back "b $PEERDECL client" smc --wait "$wait"
done
check "the server knows why" falls_back "a $NOSMCDEV server" smc
check "a new device can be made in a" add_rxe a rxe0
check "with both devices back, connections use SMC-R" wait_for 15 smcr smc

# 3. Options that rule SMC out.
for how in fastopen-connect fastopen-send; do
	for wait in block epoll-edge; do
		check "client asks for fast open by $how, $wait" falls_back "b $OPTUNSUPP client" \
			smc --before "$how" --wait "$wait"
	done
done
echo_server a smc "$A" 7003 --before fastopen
check "server allows fast open" falls_back "a $OPTUNSUPP server" \
	ping_from_b smc "$A" 7003
if in_a timeout 2 smc_stream echo --family tcp --addr "$A" --port 7006 --md5-peer "$B" 2>&1 |
	grep -q 'not available'; then
	skip "connection with MD5 signatures" "this kernel has no MD5 signatures"
else
	echo_server a smc "$A" 7004 --md5-peer "$B"
	check "connection with MD5 signatures" falls_back "b" ping_from_b smc "$A" 7004 --before md5
fi

# 4. IPv6 on devices that do version 2, which is for IPv4.
for wait in $WAITS; do
	check "IPv6, $wait" falls_back "b" ping_from_b smc6 "$A6" 7001 --wait "$wait"
done

# 5. The option does not get through.
middlebox a strip-syn 7000
for wait in block epoll-edge; do
	check "option removed from the SYN, client's reason, $wait" falls_back "b $NOSMC client" \
		smc --wait "$wait"
	check "option removed from the SYN, server's reason, $wait" falls_back "a $NOSMC server" \
		smc --wait "$wait"
done
stop_middlebox a
middlebox b strip-synack 7000
for wait in block epoll-edge; do
	check "option removed from the SYN-ACK, $wait" falls_back "b $NOSMC client" smc --wait "$wait"
	check "the server falls back, too, $wait" falls_back "a" smc --wait "$wait"
done
stop_middlebox b
for wait in block epoll-edge; do
	check "no room in the SYN, $wait" falls_back "b $NOSMC client" \
		tcp_crowd -- ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000 --wait "$wait"
done
start tcp_crowd -- ip netns exec a smc_stream echo --family smc --addr "$A" --port 7007
wait_port a 7007
for wait in block epoll-edge; do
	check "no room in the SYN-ACK, $wait" falls_back "b $NOSMC client" \
		ping_from_b smc "$A" 7007 --wait "$wait"
	check "the server knows, $wait" falls_back "a" ping_from_b smc "$A" 7007 --wait "$wait"
done
check "a shorter option leaves room" smcr tcp_crowd --bytes 12 -- \
	ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000
middlebox b fill 7000
check "the SYN is filled up after the option was added: it is found" smcr smc
stop_middlebox b
middlebox a fill 7000
check "the SYN-ACK is filled up after the option was added: it is found" smcr smc
stop_middlebox a
middlebox a drop 7000
check "SYNs with the option are lost: TCP works in bounded time" falls_back "b $NOSMC client" smc
stop_middlebox a

# 6. A middlebox copies the option of the client into the answer of a TCP server.
# reflected PORT: of the server.
reflected() {
	local start=$SECONDS
	ping_from_b smc "$A" "$1" --timeout 20
	# The server echoes the Proposal, so the connection may fail, but soon and cleanly.
	if grep -q 'was sent"' "$last"; then
		echo "the application saw bytes that are not its own"
		return 1
	fi
	[ $((SECONDS - start)) -le 18 ] || { echo "it took $((SECONDS - start)) s"; return 1; }
}
middlebox a reflect 7002
check "option reflected by a middlebox" reflected 7002
stop_middlebox a
check "afterwards TCP servers can be reached again" falls_back "b $NOSMC client" \
	ping_from_b smc "$A" 7002

# A SYN proxy in front of an SMC server mirrors the option to the client, and the server sees none:
# to it the client is one on TCP, whatever it says.
middlebox a syn-proxy 7000
check "a SYN proxy mirrors the option: the server serves on TCP" falls_back "a $NOSMC server" reflected 7000
stop_middlebox a
check "without it connections use SMC-R" wait_for 15 smcr smc

# 7. SYN cookies have no room to remember the option.
in_a sysctl -qw net.ipv4.tcp_syncookies=2
for wait in block epoll-edge; do
	check "SYN cookies, client's reason, $wait" falls_back "b $NOSMC client" smc --wait "$wait"
	check "SYN cookies, server's reason, $wait" falls_back "a $NOSMC server" smc --wait "$wait"
done
in_a sysctl -qw net.ipv4.tcp_syncookies=1
check "without them connections use SMC-R again" smcr smc

# Without fast open for clients MSG_FASTOPEN is refused in each state, and changes nothing.
without_fastopen() {
	in_b smc_run python3 -SE - "$A" 7000 <<-'PYTHON'
		import errno, socket, sys
		def refused(s, *to):
		    try:
		        s.sendmsg([b"x"], [], socket.MSG_FASTOPEN, *to)
		    except OSError as error:
		        assert error.errno == errno.EOPNOTSUPP, error
		    else:
		        sys.exit("it was sent")
		s, to = socket.socket(), (sys.argv[1], int(sys.argv[2]))
		refused(s, to)
		s.connect(to)
		refused(s)
		refused(s, to)
	PYTHON
}
in_b sysctl -qw net.ipv4.tcp_fastopen=0
check "MSG_FASTOPEN where clients may not use it" smcr without_fastopen
in_b sysctl -qw net.ipv4.tcp_fastopen=1

# 8. Time-outs: a peer that accepts and then is silent on the RDMA side.
middlebox a add 7000
# Its queue pair does not exist, so the link may also be found broken before the time-out.
check "the client never confirms the link" falls_back "a" \
	in_b clc_peer client --addr "$A" --own "$B" --port 7000 --case link-never-confirmed
stop_middlebox a
middlebox b add 7005
check "the server never confirms the link" falls_back "b $TIMEOUT_CL client" \
	in_a clc_peer server --addr "$A" --port 7005 --case link-never-confirmed -- \
	ip netns exec b smc_stream ping --family smc --addr "$A" --port 7005 --timeout 40
check "the server declines" falls_back "b $PEERDECL client" \
	in_a clc_peer server --addr "$A" --port 7005 --case declined -- \
	ip netns exec b smc_stream ping --family smc --addr "$A" --port 7005 --wait epoll-edge
stop_middlebox b

# 9. Fallen back connections carry load like others.
load() {
	smc_stream both --server-ns a --client-ns b --family smc --addr "$A" --seed "$SEED" "$@"
}
middlebox a strip-syn 7100
check "streams over connections that fell back" falls_back "b $NOSMC client" \
	load --port 7100 --conns 20 --bytes 200K --bidir --recv flags
check "edge-triggered streams over connections that fell back" falls_back "b $NOSMC client" \
	load --port 7100 --io epoll --server-io epoll --conns 20 --bytes 200K --bidir
check "urgent data over connections that fell back" falls_back "b $NOSMC client" \
	load --port 7100 --mode oob --conns 2 --bytes 5K
check "short answers over connections that fell back" falls_back "b $NOSMC client" \
	load --port 7100 --mode short-reply --conns 200 --parallel 6 --bytes 50K
check "killed clients of connections that fell back" falls_back "a $NOSMC server" \
	load --port 7100 --mode kill --conns 6 --bytes 1G --bidir
stop_middlebox a

stop "$smc_server"
check "all connections are gone within 20 s" gone 20 a b
check "the processors are idle afterwards" cpu_idle
done_testing

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# sock_diag: the sockets of a namespace with all attributes, complete lists of
# many sockets, and lists while sockets come and go.
#
# vm: --topology pair --timeout 600

. "$(dirname "$0")/../lib.sh"
need_module

# sockets NAMESPACE EXPRESSION OPTION...: over the list x of what smcss prints.
sockets() {
	local ns=$1 expression=$2
	shift 2
	ip netns exec "$ns" smcss --json "$@" | of_json "$expression"
}

check "there are no sockets" is "[]" sockets a x -a
echo_server a smc "$A" 7000
check "a listener is shown" is "LISTEN $A:7000" sockets a '" ".join(f"{s["state"]} {s["local"]}" for s in x)' -l
check "and is not connected" is "[]" sockets a x
# below FAMILY PORT: the TCP socket of a listener, in a list of TCP sockets of that family only.
below() {
	in_a ss -"$1" -Htln "sport = :$2" | grep -q .
}
check "the TCP socket below it is shown as one of IPv4" below 4 7000
refuse "and not as one of IPv6" below 6 7000
start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000 --hold 60000 --timeout 120
connected() {
	is "ACTIVE SMCR" sockets "$1" '" ".join(f"{s["state"]} {s["mode"]}" for s in x)'
}
check "a connection is shown at the client" wait_for 15 connected b
check "and at the server" wait_for 15 connected a
check "both ends name each other" is "$(sockets a 'x[0]["local"], x[0]["peer"]')" \
	sockets b 'x[0]["peer"], x[0]["local"]'
check "the link" is "rxe1 1 False" sockets b '(lambda l: f"{l["device"]} {l["port"]} {l["server"]}")(x[0]["link"])'
# What one end has sent the other has received.
cursors() {
	is "$(sockets a 'x[0]["connection"]["rx_prod"]')" sockets b 'x[0]["connection"]["tx_prod"]'
}
check "the cursors of both ends agree" wait_for 5 cursors
check "the buffers of both ends agree" is "$(sockets a 'x[0]["connection"]["rmbe_size"]')" \
	sockets b 'x[0]["connection"]["peer_rmbe_size"]'
inode=$(sockets b 'x[0]["inode"]')
check "the inode is that of an open file" sh -c "ls -l /proc/[0-9]*/fd | grep -q 'socket:\[$inode\]'"
check "the table has the columns that scripts know" sh -c "ip netns exec b smcss -R -d |
	grep -q '^ACTIVE  *00000 0*$inode $B:[0-9]*  *$A:7000  *0000 SMCR .* CLNT rxe1 '"
echo_server a tcp "$A" 7002
start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7002 --hold 60000 --timeout 120
fallen_back() {
	is "0x03010000" sockets b '" ".join(s["fallback"]["code"] for s in x if s["mode"] == "TCP")'
}
check "a socket on TCP has its reason" wait_for 15 fallen_back
check "another namespace sees nothing" is "[]" sh -c 'unshare --net smcss --json -a'
check "everybody may list sockets" ip netns exec a setpriv --reuid 65534 --regid 65534 \
	--clear-groups smcss -a -d -R
stop_all
check "closed sockets are gone" wait_for 20 is "[]" sockets b x -a

# Sockets of the other kinds: those of IPPROTO_SMC, and of IPv6, whose connections stay on TCP.
export PYTHONPATH=${0%/*} PYTHONDONTWRITEBYTECODE=1
cat >"$WORK/families.py" <<'END'
import struct
from netlink import *
error, answers = Asker(NETLINK_SOCK_DIAG).ends(20, DUMP, struct.pack("BBBB48x", 43, 0, 0, 0))
assert error == 0, error
print(*{body[0] for body in answers})
END
# mode NAMESPACE MODE: its only connection is of that mode.
mode() {
	is "ACTIVE $2" sockets "$1" '" ".join(f"{s["state"]} {s["mode"]}" for s in x if s["state"] != "LISTEN")' -a
}
port=7010
while read -r family number address mode; do
	port=$((port + 1))
	bare=$(tr -d '[]' <<<"$address")
	echo_server a "$family" "$bare" $port
	check "$family: a listener is shown" is "LISTEN $address:$port" \
		sockets a '" ".join(f"{s["state"]} {s["local"]}" for s in x)' -l
	start ip netns exec b smc_stream ping --family "$family" --addr "$bare" --port $port --hold 60000 --timeout 120
	check "$family: so is a connection, at the client" wait_for 15 mode b "$mode"
	check "$family: and at the server" wait_for 15 mode a "$mode"
	check "$family: it leads to the listener's address" is "$address:$port" sockets b 'x[0]["peer"]'
	check "$family: both ends name each other" is "$(sockets b 'x[0]["local"], x[0]["peer"]')" \
		sockets a 'x[0]["peer"], x[0]["local"]'
	check "$family: a message says which family it is" is "$number" in_b python3 "$WORK/families.py"
	inode=$(sockets b 'x[0]["inode"]')
	check "$family: the inode is that of an open file" sh -c "ls -l /proc/[0-9]*/fd | grep -q 'socket:\[$inode\]'"
	if [ "$mode" = SMCR ]; then
		check "$family: the table has its address" sh -c "ip netns exec b smcss -W | grep -qF ' $address:$port '"
		check "$family: it has a link" is rxe1 sockets b 'x[0]["link"]["device"]'
		check "$family: and cursors" is "$(sockets a 'x[0]["connection"]["rx_prod"]')" \
			sockets b 'x[0]["connection"]["tx_prod"]'
	else
		refuse "$family: it has a reason to stay on TCP" is 0x00000000 sockets b 'x[0]["fallback"]["code"]'
	fi
	stop_all
	check "$family: closed sockets are gone" wait_for 20 is "[] []" sh -c \
		'echo $(ip netns exec a smcss --json -a) $(ip netns exec b smcss --json -a)'
done <<END
smc-inet 2 $A SMCR
smc6 43 [$A6] TCP
smc-inet6 10 [$A6] TCP
END

# There are programs that set one of the two bits that make a request one for a list.
cat >"$WORK/flags.py" <<'END'
import socket, struct, sys
REQUEST, DONE, BY_FAMILY, SOCK_DIAG, AF_SMC = 1, 3, 20, 4, 43
asker = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG)
asker.settimeout(10)
body = struct.pack("BBBBI48x", AF_SMC, 0, 0, 0, 0)
asker.send(struct.pack("=IHHII", 16 + len(body), BY_FAMILY, REQUEST | int(sys.argv[1], 0), 7, 0) + body)
while True:
    answer = asker.recv(65536)
    while answer:
        length, kind = struct.unpack_from("=IH", answer)
        if kind == DONE:
            sys.exit(0)
        assert kind == BY_FAMILY, kind
        answer = answer[(length + 3) & ~3:]
END
for bit in 0x100 0x200; do
	check "a list asked for with the flag $bit alone" ip netns exec a python3 "$WORK/flags.py" $bit
done

# Complete lists of many sockets, with no socket twice.
cat >"$WORK/many.py" <<'END'
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
sockets = [socket.socket(43, socket.SOCK_STREAM, 0) for _ in range(int(sys.argv[1]))]
print("ready", flush=True)
time.sleep(120)
END
MANY=4000
ip netns exec a python3 "$WORK/many.py" $MANY >"$WORK/many" &
pids+=($!)
check "$MANY sockets are open" wait_for 60 grep -q ready "$WORK/many"
check "all are listed, each once" is "$MANY $MANY" sockets a 'len(x), len({s["cookie"] for s in x})' -a
refuse "the list is not empty" is "[]" sockets a x -a
TIMEFORMAT=%U+%S
note "seconds of processor time for the list: $( (time in_a smcss -a >/dev/null) 2>&1)"
stop_all

# Directions that are shut, as bits: 1 for receiving, 2 for sending.
ENDS=$(dirname "$0")/ends.py
# shut NAMESPACE STATE/BITS: those of its only connection.
shut() {
	is "$2" sockets "$1" '" ".join(f"{s["state"]}/{s["shutdown"]}" for s in x)'
}
while read -r role theirs ours; do
	start ip netns exec a smc_run python3 "$ENDS" server "$A" 7008
	wait_port a 7008
	start ip netns exec b smc_run python3 "$ENDS" "$role" "$A" 7008
	check "$role: the client's end" wait_for 15 shut b $theirs
	check "$role: the server's end" wait_for 15 shut a $ours
	stop_all
	check "$role: closed sockets are gone" wait_for 20 is "[] []" sh -c \
		'echo $(ip netns exec a smcss --json -a) $(ip netns exec b smcss --json -a)'
done <<END
stay ACTIVE/0 ACTIVE/0
shut PEERCLOSEWAIT1/2 APPCLOSEWAIT1/1
close PEERCLOSEWAIT1/3 APPCLOSEWAIT1/1
END

# Lists from four processes while sockets come and go.
echo_server a smc "$A" 7000
lists() {
	local end=$((SECONDS + $(by_form 6 15))) n=0
	while [ $SECONDS -lt $end ]; do
		ip netns exec "$1" smcss -a -d -R >/dev/null && ip netns exec "$1" smcss -a -D >/dev/null || return 1
		n=$((n + 1))
	done
	echo "$n rounds"
}
readers=
for ns in a b a b; do
	lists $ns >>"$WORK/lists" 2>&1 &
	readers="$readers $!"
done
check "connections come and go" smc_stream both --server-ns a --client-ns b --family smc --addr "$A" \
	--port 7100 --seed "$SEED" --mode short-reply --conns "$(by_form 80 200)" --parallel 8 --bytes 50K --timeout 120
for reader in $readers; do
	check "lists go on meanwhile" wait "$reader"
done
note "$(tr '\n' ' ' <"$WORK/lists")"
stop_all
check "the connections are gone within 20 s" gone 20 a b
check "no socket is left in the list" wait_for 20 is "[] []" sh -c \
	'echo $(ip netns exec a smcss --json -a) $(ip netns exec b smcss --json -a)'
done_testing

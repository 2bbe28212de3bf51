#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Generic netlink: what each command shows, sets and refuses, exact counts for a
# known traffic pattern, and lists that are asked for while tables change; those of
# sock_diag, too, where link groups end between two parts.
#
# vm: --topology pair --timeout 600

. "$(dirname "$0")/../lib.sh"
need_module

# json TOOL NAMESPACE EXPRESSION WORD...: a Python expression over what the tool
# prints, which is called x.
json() {
	local tool=$1 ns=$2 expression=$3
	shift 3
	ip netns exec "$ns" "$tool" --json "$@" | of_json "$expression"
}

# 1. The system.
check "the version is 2.1" is "2.1" json smcr a 'f"{x["version"]}.{x["release"]}"' info
check "the host has its name" is "$(uname -n)" json smcr a 'x["host"]' info
check "there is no SMC-D" is "[] []" json smcd a 'x, []' linkgroup
check "there is no system identifier" is "None" json smcd a 'x' seid
refuse "nor can one be switched on" in_a smcd seid enable

# 2. Identifiers.
check "the identifiers are those of the module parameter" is "1" json smcr a 'len(x)' ueid
for eid in TEST-2 TEST-3 TEST-4; do
	check "identifier $eid is added" in_a smcr ueid add $eid
done
refuse "a fifth one is not" in_a smcr ueid add TEST-5
refuse "nor one that is there" in_a smcr ueid add TEST-2
check "all are shown" is "4" json smcr b 'len(x)' ueid
for eid in TEST-2 TEST-3 TEST-4; do
	check "identifier $eid is removed" in_a smcr ueid del $eid
done
refuse "one that is not there is not" in_a smcr ueid del TEST-2

# 3. Devices and link groups of a namespace.
check "a sees its device" is "rxe0 1 1" \
	json smcr a '" ".join(f"{d["name"]} {p["number"]} {int(p["active"])}" for d in x for p in d["ports"])' device
check "b sees its own" is "rxe1" json smcr b '" ".join(d["name"] for d in x)' device
check "there are no link groups" is "[]" json smcr a x linkgroup
echo_server a smc "$A" 7000
hold() {
	start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000 --hold 240000 --timeout 300
}
for _ in 1 2 3; do
	hold
done
three() {
	is "3" json smcr b 'sum(g["connections"] for g in x)' linkgroup
}
check "three connections are in a link group" wait_for 20 three
check "the client's side of it" is "CLNT 2.1 LINUX True" json smcr b \
	'" ".join(f"{"SERV" if g["server"] else "CLNT"} {g["v2"]["version"]}.{g["v2"]["peer_release"]} {[None, "ZOS", "LINUX"][g["v2"]["peer_os"]]} {g["v2"]["direct"]}" for g in x)' linkgroup
check "the peer's host name is known at both ends" is "$(uname -n) $(uname -n)" echo \
	"$(json smcr a 'x[0]["v2"]["peer_host"]' linkgroup)" "$(json smcr b 'x[0]["v2"]["peer_host"]' linkgroup)"
check "a link has its ends" is "rxe1 True True" json smcr b \
	'(lambda l: f"{l["device"]} {l["gid"].endswith("0a09:0002")} {l["peer_gid"].endswith("0a09:0001")}")(x[0]["links"][0])' linkgroup
ends() {
	local here there
	here=$(json smcr a 'x[0]["links"][0]["uid"]' linkgroup)
	there=$(json smcr b 'x[0]["links"][0]["peer_uid"]' linkgroup)
	[ "$here" = "$there" ] || {
		echo "a shows the link as $here, b knows it as $there"
		return 1
	}
}
check "both ends know the same number of the link" ends
all_groups() {
	command smcr --json linkgroup | of_json 'len(x)'
}
check "the initial namespace sees both groups" is "2" all_groups
ip netns add c
check "another namespace sees none" is "[]" json smcr c x linkgroup
check "nor a device" is "[]" json smcr c x device
check "its counters are its own" is "0" json smcr c 'x["SMCR"]["SMC_CLNT_V2_SUCC_CNT"]' stats
ip netns delete c
check "tables have their headings" sh -c 'ip netns exec b smcr -dd linkgroup link-show | grep -q "^LG-ID .*Peer-GID" &&
	ip netns exec b smcr -d device | grep -q "^veth0 .*rxe1 .*ACTIVE" && ip netns exec b smcr -d linkgroup | grep -q "^EID "'
stop_all
echo_server a smc "$A" 7000

# 4. Exact counts for a known pattern: 50 calls of 4 KiB, 20 of 12 KiB, one of
# 40 KiB, TCP_NODELAY once, TCP_CORK off once, one urgent byte.
cat >"$WORK/pattern.py" <<'END'
import socket, sys
host, port = sys.argv[1], int(sys.argv[2])
if sys.argv[3] == "server":
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen()
    peer, _ = listener.accept()
    total = 0
    while chunk := peer.recv(1 << 20):
        total += len(chunk)
    print(total)
else:
    peer = socket.create_connection((host, port))
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for size, times in ((4096, 50), (12288, 20), (40960, 1)):
        for _ in range(times):
            assert peer.send(bytes(size)) == size
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
    peer.send(b"!", socket.MSG_OOB)
    peer.close()
END
stats() {
	json smcr "$1" "x[\"SMCR\"][\"SMC_$2\"]" -a stats
}
# all_stats NAMESPACE: a line for each counter, with its name and value.
all_stats() {
	json smcr "$1" '"\n".join(f"{key} {value}" for key, value in x["SMCR"].items())' -a stats
}
all_stats b >"$WORK/before"
received=$(stats a RX_BYTES)
served=$(stats a SRV_V2_SUCC_CNT)
ip netns exec a smc_run python3 "$WORK/pattern.py" "$A" 7100 server >"$WORK/total" &
server=$!
pids+=("$server")
wait_port a 7100
check "the pattern is sent" in_b smc_run python3 "$WORK/pattern.py" "$A" 7100 client
wait "$server"
all_stats b >"$WORK/after"
rise() {
	is "$2" echo $(($(value_of "SMC_$1" <"$WORK/after") - $(value_of "SMC_$1" <"$WORK/before")))
}
bytes=$((50 * 4096 + 20 * 12288 + 40960 + 1))
check "calls" rise TX_CNT 72
check "bytes" rise TX_BYTES $bytes
check "calls of up to 8 KiB" rise USR_TX_BUF_8K 51
check "calls of up to 16 KiB" rise USR_TX_BUF_16K 20
check "calls of up to 64 KiB" rise USR_TX_BUF_64K 1
check "TCP_NODELAY" rise NDLY_CNT 1
check "TCP_CORK" rise CORK_CNT 1
check "urgent data" rise URG_DATA_CNT 1
check "handshakes won by the client" rise CLNT_V2_SUCC_CNT 1
check "nothing was received" rise RX_BYTES 0
check "bytes received, as the program counts them" is "$(cat "$WORK/total")" \
	echo $(($(stats a RX_BYTES) - received))
check "handshakes won by the server" is 1 echo $(($(stats a SRV_V2_SUCC_CNT) - served))
stop_all
check "the connections are gone" gone 20 a b
check "no send buffer is in use" wait_for 10 is 0 stats b TX_RMB_USAGE
check "no receive buffer is in use" wait_for 10 is 0 stats b RX_RMB_USAGE

# 5. Counters set back for the reader only.
export HOME=$WORK
in_public() {
	find /tmp /var/tmp /dev/shm -newer "$WORK/after" ! -path "$WORK*"
}
refuse "without a folder of the user's counters are not set back" in_b env -u HOME smcr stats reset
check "counters are set back" in_b smcr stats reset
check "nothing is put where everybody can write" is "" in_public
check "to zero" is 0 json smcr b 'x["SMCR"]["SMC_TX_BYTES"]' stats
check "but not for others" test "$(stats b TX_BYTES)" -ge $bytes

# 6. Fallbacks and their reasons.
echo_server a tcp "$A" 7002
check "a connection falls back" falls_back "b 0x03010000 client" ping_from_b smc "$A" 7002
check "the reason is shown" sh -c 'ip netns exec b smcr -d -a stats | grep -q "PEER_NO_SMC  *[1-9]"'
stop_all

# 7. Handshake limitation.
# limit NAMESPACE VALUE: whether sysctl says so.
limit() {
	is "$2" ip netns exec "$1" cat /proc/sys/net/smc/limit_smc_hs
}
# told NAMESPACE VALUE: whether the kernel says so in its own words, and the tool in its.
told() {
	limit "$1" "$2" && is "$([ "$2" = 1 ] && echo True || echo False)" json smc "$1" 'x["limited"]' limit-handshakes
}
check "handshakes are not limited" told a 0
for turn in first second; do
	check "they can be, for the $turn time" in_a smc limit-handshakes on
	check "the namespace has it then" told a 1
done
check "others have not" told b 0
for turn in first second; do
	check "they can be free again, for the $turn time" in_a smc limit-handshakes off
	check "the namespace has it then" told a 0
done
check "what sysctl sets is shown as well" sh -c 'ip netns exec a sh -c "echo 1 >/proc/sys/net/smc/limit_smc_hs" &&
	ip netns exec a smc limit-handshakes | grep -q "^Handshakes are limited" && ip netns exec a smc limit-handshakes off'
# A listener that limits them by itself or as its namespace does (-1), with more clients
# that say nothing than it likes: others are not offered SMC.
cat >"$WORK/limit.py" <<'END'
import socket, sys, threading
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if int(sys.argv[3]) >= 0:
    listener.setsockopt(286, 1, int(sys.argv[3]))
listener.bind((sys.argv[1], int(sys.argv[2])))
listener.listen(512)
def echo(peer):
    with peer:
        while chunk := peer.recv(65536):
            peer.sendall(chunk)
while True:
    threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()
END
flood() {
	in_b clc_peer flood --addr "$A" --port "$1" --count 100 -- \
		smc_stream ping --family smc --addr "$A" --port "$1" --timeout 20
}
for port in 7003 7004 7005; do
	start ip netns exec a smc_run python3 "$WORK/limit.py" "$A" $port $((port < 7005 ? port - 7003 : -1))
	wait_port a $port
done
middlebox a add 7003
uses_smc() {
	local before
	before=$(counter b connections_smcr)
	"$@" && [ "$(counter b connections_smcr)" -gt "$before" ]
}
check "without a limit a client beside a hundred silent ones uses SMC-R" uses_smc flood 7003
stop_middlebox a
middlebox a add 7004
check "with SMC_LIMIT_HS it stays on TCP" wait_for 60 falls_back "b 0x03010000 client" flood 7004
stop_middlebox a
middlebox a add 7005
check "so it does where the namespace limits handshakes" sh -c 'ip netns exec a smc limit-handshakes on'
check "and the listener has no limit of its own" wait_for 60 falls_back "b 0x03010000 client" flood 7005
check "the namespace limits them no more" in_a smc limit-handshakes off
check "then it uses SMC-R again" wait_for 60 uses_smc flood 7005
stop_middlebox a
stop_all

# 8. Who may do what.
as_nobody() {
	ip netns exec a setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}
for words in info device linkgroup stats ueid; do
	check "everybody may see: $words" as_nobody smcr $words
done
refuse "only root may add an identifier" as_nobody smcr ueid add NOBODY
refuse "or flush them" as_nobody smcr ueid flush
refuse "or change the networks" as_nobody smc_pnet -a -I veth0 NETA
check "everybody may see whether handshakes are limited" as_nobody smc limit-handshakes
refuse "but not limit them" as_nobody smc limit-handshakes on
check "and nobody has" limit a 0
refuse "not even root of a container" unshare --user --map-root-user --net smcr ueid add CONTAINER

# 9. Lists while tables change.
echo_server a smc "$A" 7000
lists() {
	local end=$((SECONDS + $(by_form 6 12))) n=0
	while [ $SECONDS -lt $end ]; do
		ip netns exec "$1" smcr -d linkgroup link-show >/dev/null &&
			ip netns exec "$1" smcr -d device >/dev/null &&
			ip netns exec "$1" smcr -d stats >/dev/null &&
			ip netns exec "$1" smcr ueid >/dev/null || return 1
		n=$((n + 1))
	done
	echo "$n rounds"
}
for ns in a b a b; do
	lists $ns >>"$WORK/lists" 2>&1 &
	readers="${readers:-} $!"
done
churn() {
	local end=$((SECONDS + $(by_form 5 10))) n=0
	while [ $SECONDS -lt $end ]; do
		ping_from_b smc "$A" 7000 --timeout 30 || return 1
		ip netns add "churn$n" && ip netns delete "churn$n" || return 1
		n=$((n + 1))
	done
	echo "$n connections"
}
check "connections and namespaces come and go" churn
note "$(tail -1 "$last")"
for reader in $readers; do
	check "lists go on meanwhile" wait "$reader"
done
note "$(tr '\n' ' ' <"$WORK/lists")"
stop_all
check "the connections are gone within 20 s" gone 20 a b

# 10. Lists in several parts, while a link group ends between two of them. Each group is over
# devices of its own, so that it ends at once with them, and has connections that no program
# of the server has accepted.
LANES=13
lane() {
	local ns own=1 device=rxl
	ip link add "lane$1" netns a type veth peer name "lane$1" netns b || return 1
	for ns in a b; do
		ip -n $ns addr add "10.9.$((100 + $1)).$own/24" dev "lane$1" && ip -n $ns link set "lane$1" up &&
			ip netns exec $ns rdma link add "$device$1" type rxe netdev "lane$1" &&
			rdma dev set "$device$1" netns $ns || return 1
		own=2 device=rxm
	done
}
lanes() {
	local n
	for ((n = 1; n <= LANES; n++)); do
		lane $n || return 1
	done
}
cat >"$WORK/lanes.py" <<'END'
import socket, sys, threading, time
lanes = range(1, int(sys.argv[1]) + 1)
if sys.argv[2:] == ["server"]:
    listener = socket.create_server(("0.0.0.0", 7010), backlog=256)
else:
    def connect(lane):
        peers.extend(socket.create_connection((f"10.9.{100 + lane}.1", 7010)) for _ in range(2))
    # All at once, so that groups of the server come next to each other, with no client's between.
    peers = []
    for lane in lanes:
        threading.Thread(target=connect, args=(lane,)).start()
time.sleep(300)
END
check "$LANES pairs of devices are made" lanes
# Links whose other end is gone are found out by a test.
in_b sh -c 'echo 2 >/proc/sys/net/smc/smcr_testlink_time'
start ip netns exec a smc_run python3 "$WORK/lanes.py" $LANES server
wait_port a 7010
start ip netns exec b smc_run python3 "$WORK/lanes.py" $LANES
each_two() {
	is $LANES json smcr a 'sum(g["connections"] == 2 for g in x)' linkgroup
}
check "there are two connections over each" wait_for 120 each_two
export PYTHONDONTWRITEBYTECODE=1
check "no part of a list goes on in another group than it began" in_a python3 "${0%/*}/netlink_parts.py"
note "$(tr '\n' ';' <"$last")"
stop_all
check "the connections are gone" gone 60 a b
done_testing

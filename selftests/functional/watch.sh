#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What can be watched while it happens: events, a program's view of its own socket,
# trace points.
#
# vm: --topology pair --timeout 400
# waits

. "$(dirname "$0")/../lib.sh"
need_module

# 1. Events. Listeners hear of their own network namespace.
echo_server a smc "$A" 7000
echo_server a tcp "$A" 7002
ip netns add c
declare -A inside_of=([b]="ip netns exec b" [c]="ip netns exec c" [host]="")
for ns in c host; do
	${inside_of[$ns]} ip link set lo up
	start ${inside_of[$ns]} smc_stream echo --family tcp --addr 127.0.0.1 --port 7005
done
for ns in b c host; do
	start ${inside_of[$ns]} sh -c "exec smc --json monitor >'$WORK/events.$ns' 2>'$WORK/monitor.$ns'"
	check "somebody listens to events in $ns" wait_for 10 grep -q waiting "$WORK/monitor.$ns"
done
ping_from_b smc "$A" 7000 >/dev/null
ping_from_b smc "$A" 7002 >/dev/null
for kind in connection_up connection_down fallback; do
	check "event $kind" wait_for 10 grep -q "\"kind\":\"$kind\"" "$WORK/events.b"
done
check "the fallback has its addresses and reason" grep -q \
	"\"fallback\".*\"peer\":\"$A:7002\".*PEERNOSMC" "$WORK/events.b"
remove_rxe b rxe1
for kind in link group; do
	check "event ${kind}_down, with the reason" wait_for 10 grep -q \
		"\"${kind}_down\".*\"text\":\"its device was removed\"" "$WORK/events.b"
done
add_rxe b rxe1
check "with the device back, connections use SMC-R" wait_for 15 smcr ping_from_b smc "$A" 7000
check "event group_up" wait_for 10 grep -q '"group_up".*rxe1' "$WORK/events.b"
check "event link_up, with its number and port" wait_for 10 grep -q \
	'"link_up".*"link":1,"device":"rxe1","port":1' "$WORK/events.b"
# courses FILE: what was told of each group and its link, each course of events once.
courses() {
	python3 -SE - "$1" <<'END'
import collections, json, sys
groups = collections.defaultdict(list)
for line in open(sys.argv[1]):
    event = json.loads(line)
    if event["kind"].startswith(("group", "link")):
        groups[event["group"]].append(event["kind"])
print(*sorted({" ".join(kinds) for kinds in groups.values()}), sep="\n")
END
}
check "a link is up while its group is: one that is, one that was" is $'group_up link_up\ngroup_up link_up link_down group_down' courses "$WORK/events.b"
for ns in c host; do
	${inside_of[$ns]} smc_stream ping --family smc --addr 127.0.0.1 --port 7005 >/dev/null
	check "events in $ns are told there" wait_for 10 grep -q '"fallback".*"peer":"127.0.0.1:7005"' "$WORK/events.$ns"
	check "and only those" is 0 grep -vc 127.0.0.1:7005 "$WORK/events.$ns"
done
check "and not elsewhere" is 0 grep -c 127.0.0.1 "$WORK/events.b"
stop_all
ip netns delete c

# 2. A program's view of its own socket. The program has both ends, so that it knows what is on the
# way: nothing, part of a buffer, all buffers full, nothing any more.
cat >"$WORK/info.py" <<'END'
import os, socket, struct, sys, time
host = sys.argv[1]
FORM = struct.Struct("=4B10I4x2Q64s2B6x")
NAMES = """mode state role zero fallback diagnosis group token sndbuf rmbe peer readable unsent room
    sent received device port link""".split()
def within(name, make, *args):
    with open(f"/run/netns/{name}") as ns:
        os.setns(ns.fileno(), os.CLONE_NEWNET)
    return make(*args)
def info(end):
    info = dict(zip(NAMES, FORM.unpack(end.getsockopt(286, 64, 256))))
    info["device"] = info["device"].rstrip(b"\0").decode()
    return info
def settles(what, end, **want):
    until = time.monotonic() + 10
    while True:
        have = info(end)
        wrong = [f"{name} {have[name]}, not {want[name]}" for name in want if have[name] != want[name]]
        if not wrong:
            print(what)
            return have
        if time.monotonic() > until:
            sys.exit(f"{what}: {', '.join(wrong)} in {have}")
        time.sleep(0.01)
def take(end, count):
    while count:
        count -= len(end.recv(count))

listener = within("a", socket.create_server, (host, 7300))
settles("a listener", listener, mode=0, state=10, port=0, link=0)
client = within("b", socket.create_connection, (host, 7300))
server, _ = listener.accept()
idle = dict(mode=1, state=1, fallback=0, diagnosis=0, readable=0, unsent=0, sent=0, received=0, port=1, link=1)
have = settles("a client", client, role=0, device="rxe1", **idle)
there = settles("its server", server, role=1, device="rxe0", **idle)
settles("the server's buffer has room", client, peer=there["rmbe"], room=there["rmbe"])
settles("so has the client's", server, peer=have["rmbe"], room=have["rmbe"])
for line in open("/proc/net/smc_rs"):
    if line.startswith("conn local") and f" token={have['token']:08x} " in line:
        for words in "lgr={group:08x} link=1 dev=rxe1 sndbuf={sndbuf} rmb={rmbe}", "mode=SMCR state=ACTIVE":
            assert words.format(**have) in line, (line, have)
        break
else:
    sys.exit(f"no connection has the token of {have}")
client.sendall(bytes(5000))
settles("part of a buffer was sent", client, sent=5000, unsent=0, room=there["rmbe"] - 5000)
settles("and can be read", server, readable=5000, received=5000, sent=0)
take(server, 2000)
settles("less of it", server, readable=3000, received=5000)
client.setblocking(False)
total, until = 5000, time.monotonic() + 10
while time.monotonic() < until and (info(client)["room"] or info(client)["unsent"] < have["sndbuf"]):
    try:
        total += client.send(bytes(1 << 20))
    except BlockingIOError:
        time.sleep(0.01)
sent = total - have["sndbuf"]
settles("all buffers are full", client, room=0, unsent=have["sndbuf"], sent=sent)
settles("at both ends", server, readable=there["rmbe"], received=sent)
take(server, total - 2000)
settles("all was sent", client, unsent=0, sent=total)
settles("and read", server, readable=0, received=total)
client.shutdown(socket.SHUT_WR)
settles("one direction is shut down", client, mode=1, state=20)
settles("and has ended", server, mode=1, state=22)
whole = server.getsockopt(286, 64, 136)
for room in (8, 64, 128, 130):
    assert server.getsockopt(286, 64, room) == whole[:room], room
print("old lengths")
END
check "SMC_INFO in states that are known" in_a smc_run python3 "$WORK/info.py" "$A"
cat >"$WORK/tcp.py" <<'END'
import socket, sys
with socket.create_connection((sys.argv[1], 7002)) as peer:
    info = peer.getsockopt(286, 64, 256)
    print(len(info), *info[:2], info[4:8][::-1].hex(), any(info[8:]))
END
echo_server a smc "$A" 7000
echo_server a tcp "$A" 7002
check "SMC_INFO on TCP" is "136 2 1 03010000 False" in_b smc_run python3 "$WORK/tcp.py" "$A"

# 3. Trace points.
tracing=/sys/kernel/tracing
mountpoint -q $tracing || mount -t tracefs tracefs $tracing
cat >"$WORK/calls.py" <<'END'
import socket, sys
with socket.create_connection((sys.argv[1], 7000)) as peer:
    peer.setblocking(False)
    try:
        peer.recv(777)
        sys.exit("nothing was sent, and something arrived")
    except BlockingIOError:
        peer.setblocking(True)
    peer.sendall(bytes(5001))
    left = 5001
    while left:
        left -= len(peer.recv(65536))
END
# moved EVENT: the bytes of all calls of this program, and in how many calls it asked for 777.
moved() {
	awk -v event="$1:" '$1 ~ /^python3-/ && index($0, event) && match($0, / len=[0-9]+ dev=rxe1/) {
			split(substr($0, RSTART + 5), words, " "); sum += words[1]; bad += words[1] == 777 }
		END { print sum + 0, bad + 0 }' "$WORK/trace"
}
# handshakes: a line for each, with its steps, and how it ended.
handshakes() {
	python3 -SE - "$WORK/trace" <<'END'
import collections, re, sys
steps = collections.defaultdict(list)
for line in open(sys.argv[1]):
    event = re.search(r" smc_handshake_(step|end): (.*)", line)
    if not event:
        continue
    words = dict(word.split("=") for word in event[2].split())
    key = words["side"], words["sport"], words["dport"]
    us = int(words["us"])
    if event[1] == "step":
        steps[key].append((words["step"], us))
        continue
    took = steps.pop(key, [])
    if not sum(step[1] for step in took) <= us < 60_000_000:
        print(f"the steps {took} are longer than the {us} us of the handshake")
    print(words["side"], words["result"], words["reason"], words["peer_reason"], words["error"],
        *(step[0] for step in took))
END
}
saw() {
	grep -qx "$1" "$WORK/handshakes" || {
		sort "$WORK/handshakes" | uniq -c
		return 1
	}
}
if [ -d $tracing/events/smc ]; then
	echo 1 >$tracing/events/smc/enable
	remove_rxe b rxe1
	add_rxe b rxe1
	wait_for 15 smcr ping_from_b smc "$A" 7000
	ping_from_b smc "$A" 7002 >/dev/null
	check "calls that move nothing, and some that do" in_b smc_run python3 "$WORK/calls.py" "$A"
	in_a smc_pnet -a -I veth0 NETA
	ping_from_b smc "$A" 7000 >/dev/null
	in_a smc_pnet -f
	middlebox b add 7004
	in_a clc_peer server --addr "$A" --port 7004 --case rst-at-once -- \
		ip netns exec b smc_stream ping --family smc --addr "$A" --port 7004 --timeout 20 >/dev/null 2>&1
	stop_middlebox b
	echo 0 >$tracing/events/smc/enable
	cp $tracing/trace "$WORK/trace"
	for event in "smc_switch_to_fallback: .* fallback_rsn=50397184" \
		"smcr_link_down: .* state=3 dev=rxe1 why=its device was removed"; do
		check "trace point ${event%%:*}" grep -q "$event" "$WORK/trace"
	done
	for event in smc_tx_sendmsg smc_rx_recvmsg; do
		check "trace point $event has the bytes that were moved" is "5001 0" moved $event
	done
	handshakes >"$WORK/handshakes"
	while read -r name line; do
		check "trace of a handshake: $name" saw "$line"
	done <<-'END'
		client,first client smcr 0x00000000 0x00000000 0 proposal accept first_contact confirm confirm_link
		server,first server smcr 0x00000000 0x00000000 0 proposal first_contact accept confirm confirm_link
		client,later client smcr 0x00000000 0x00000000 0 proposal accept join confirm
		server,later server smcr 0x00000000 0x00000000 0 proposal join accept confirm
		client,no-SMC client tcp 0x03010000 0x00000000 0
		client,declined client tcp 0x05000000 0x03030000 0 proposal
		server,declining server tcp 0x03030000 0x00000000 0 proposal
		client,reset client reset 0x00000000 0x00000000 -[0-9]*\( proposal\)*
	END
	check "steps are not longer than their handshake" is 0 grep -c longer "$WORK/handshakes"
else
	skip "trace points" "this kernel does not show those of modules"
fi

# 4. The page about all of this names each counter and trace point.
page=$(dirname "$0")/../../Documentation/statistics.rst
start ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000 --hold 60000 --timeout 60
has_all() {
	ip netns exec b cat /proc/net/smc_rs >"$WORK/status"
	grep -q '^conn ' "$WORK/status" && grep -q '^fallback ' "$WORK/status"
}
check "there are lines of all kinds" wait_for 20 has_all
explained() {
	local word missing=
	for word in $(awk '/^(lgr|conn) / { for (i = 2; i <= NF; i++) if (split($i, word, "=") > 1) print word[1]; next }
			{ print $1 }' "$WORK/status" | sort -u) $(ls -d $tracing/events/smc/smc* | sed 's/.*\///'); do
		grep -q "\`\`$word\`\`" "$page" || missing="$missing $word"
	done
	is "" echo $missing
}
check "each is explained" explained
stop_all
done_testing

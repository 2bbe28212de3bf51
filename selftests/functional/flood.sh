#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Many more clients than a listener's backlog, with and without SMC, while the program accepts none
# of them: what they cost is bounded, other listeners do not suffer, and whoever is there when the
# program begins to accept is served.
#
# vm: --topology pair --timeout 600
# slow: two thousand clients

. "$(dirname "$0")/../lib.sh"
need_module

BACKLOG=8
# By Documentation/socket-api.rst: the backlog twice, and handshakes that were under way.
BOUND=$((2 * (BACKLOG + 1) + 256))
CLIENTS=$(by_kernel 1000 400)

cat >"$WORK/late.py" <<'END'
import os, selectors, socket, sys, time
address, backlog, mark = sys.argv[1], int(sys.argv[2]), sys.argv[3]
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((address, 7010))
listener.listen(backlog)
while not os.path.exists(mark + ".accept"):
    time.sleep(0.1)
served, peers = 0, selectors.DefaultSelector()
peers.register(listener, selectors.EVENT_READ)
while not os.path.exists(mark + ".end"):
    for key, _ in peers.select(0.2):
        if key.fileobj is listener:
            peers.register(listener.accept()[0], selectors.EVENT_READ)
            continue
        try:
            data = key.fileobj.recv(10)
            if data:
                key.fileobj.send(data)
                served += 1
                continue
        except OSError:
            pass
        peers.unregister(key.fileobj)
        key.fileobj.close()
print("served", served)
END

# Connects many, and says how many are connected each time the file is there; then each sends a byte
# and waits for it.
cat >"$WORK/crowd.py" <<'END'
import os, resource, select, socket, sys, time
address, count, mark, name = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
resource.setrlimit(resource.RLIMIT_NOFILE, (65536, 65536))
peers, poll = {}, select.poll()
for _ in range(count):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex((address, 7010))
    peers[s.fileno()] = s
    poll.register(s, select.POLLOUT)
def say(what, number):
    with open(f"{mark}.{name}.new", "w") as file:
        print(number, file=file)
    os.rename(f"{mark}.{name}.new", f"{mark}.{name}.{what}")
connected, failed, answered = set(), set(), 0
def look():
    for fd, events in poll.poll(200):
        if events & select.POLLIN:
            global answered
            try:
                answered += len(peers[fd].recv(1))
            except OSError:
                failed.add(fd)
            poll.unregister(fd)
        elif events & (select.POLLERR | select.POLLHUP):
            failed.add(fd)
            poll.unregister(fd)
        elif events & select.POLLOUT:
            connected.add(fd)
            peers[fd].send(b"x")
            poll.modify(fd, select.POLLIN)
last, still = -1, time.time()
while time.time() - still < 5:
    look()
    if len(connected) != last:
        last, still = len(connected), time.time()
say("connected", last)
while not os.path.exists(mark + ".end"):
    look()
    if answered >= last:
        break
say("answered", answered)
END

echo_server a smc "$A" 7000
start ip netns exec a smc_run python3 "$WORK/late.py" "$A" $BACKLOG "$WORK/flood"
wait_port a 7010
before=$(counter a memory_bytes)
good_clients 0.5 ip netns exec b smc_stream ping --family smc --addr "$A" --port 7000 --timeout 30
# Those with SMC come first: where the others have taken all the room, none of them gets that far.
start ip netns exec b smc_run python3 "$WORK/crowd.py" "$A" "$CLIENTS" "$WORK/flood" smc
check "$CLIENTS clients with SMC connect" wait_for 200 test -e "$WORK/flood.smc.connected"
start ip netns exec b python3 "$WORK/crowd.py" "$A" "$CLIENTS" "$WORK/flood" tcp
check "$CLIENTS clients without SMC connect" wait_for 200 test -e "$WORK/flood.tcp.connected"
there() {
	in_a ss -Htan "sport = :7010" | grep -cv '^\(LISTEN\|SYN-RECV\|TIME-WAIT\)'
}
ends=$(there)
bytes=$(($(counter a memory_bytes) - before))
note "$(cat "$WORK/flood.smc.connected") with SMC and $(cat "$WORK/flood.tcp.connected") without are connected," \
	"the listener has $ends, buffers have $bytes bytes"
check "the listener has at most $BOUND of them" test "$ends" -le $BOUND
check "buffers are bounded, too" test "$bytes" -le $((BOUND * 2 * 65536 * 2))
check "clients with SMC are there" test "$(cat "$WORK/flood.smc.connected")" -gt $BACKLOG
: >"$WORK/flood.accept"
for kind in smc tcp; do
	check "those who are connected are answered, $kind" wait_for 100 test -e "$WORK/flood.$kind.answered"
	note "$(cat "$WORK/flood.$kind.answered") of them"
done
stop_good_clients
: >"$WORK/flood.end"
stop_all
check "all connections are gone within 60 s" gone 60 a b
check "the processors are idle afterwards" cpu_idle
done_testing

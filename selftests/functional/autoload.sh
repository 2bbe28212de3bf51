#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Opening a socket of either kind loads the module by its aliases; where it is not to be
# had, programs under smc_run are on TCP. Sockets may be opened at any moment while the
# module is being loaded.
#
# vm: --topology pair --timeout 120
# waits

. "$(dirname "$0")/../lib.sh"
need_module

loaded() {
	[ -e /sys/module/smc_rs ]
}

# Any use of the family opens a socket; nothing needs to be connected.
open_socket() {
	smc_api --family "${1:-smc}" --only "flags for non-blocking"
}

for family in smc smc6 smc-inet smc-inet6; do
	check "the module can be unloaded" wait_for 10 rmmod smc_rs
	refuse "it is gone" loaded
	check "opening a socket works: $family" open_socket $family
	check "and has loaded the module" loaded
done
check "it can be unloaded again" wait_for 10 rmmod smc_rs

# A program that knows of TCP only, under smc_run.
cat >"$WORK/program.py" <<-'PYTHON'
	import socket
	listener = socket.socket()
	listener.bind(("127.0.0.1", 0))
	listener.listen()
	client = socket.create_connection(listener.getsockname())
	server, _ = listener.accept()
	server.sendall(b"hello")
	assert client.recv(5, socket.MSG_WAITALL) == b"hello"
	print("family", client.getsockopt(socket.SOL_SOCKET, 39), client.getsockopt(socket.SOL_SOCKET, 38))
	print("buffers", client.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
	    client.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF))
PYTHON
# under_smc_run LINE OPTION...: the program prints this line about its socket: family and protocol,
# or its buffers, which the kernel doubles.
under_smc_run() {
	local line=$1
	shift
	smc_run "$@" python3 "$WORK/program.py" | tee "$WORK/program.out"
	grep -qx "$line" "$WORK/program.out"
}
tuning() {
	grep -r . /proc/sys/net/core /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_wmem 2>/dev/null
}
tuning >"$WORK/tuning"
check "a program under smc_run loads it, too" under_smc_run "family 43 0"
check "the module is there" loaded
check "it can be unloaded after that" wait_for 10 rmmod smc_rs
check "so does one whose sockets keep their family" under_smc_run "family 2 256" -f inet
check "the module is there again" loaded
# More than the limits of net.core allow, which a wrapper may be tempted to raise.
for kind in smc inet; do
	check "sockets get the buffers that smc_run is asked for: $kind" under_smc_run "buffers 16777216 16777216" \
		-f $kind -r 8m -t 8m
done
check "smc_run tunes nothing for the whole system" diff "$WORK/tuning" <(tuning)
check "it can be unloaded once more" wait_for 10 rmmod smc_rs
mkdir -p /etc/modprobe.d
echo "install smc_rs /bin/false" >/etc/modprobe.d/zz-no-smc.conf
refuse "where the module is not to be had, opening a socket fails" open_socket
refuse "as IPPROTO_SMC, too" open_socket smc-inet
check "and a program under smc_run is on TCP" under_smc_run "family 2 6"
check "with either kind of sockets" under_smc_run "family 2 6" -f inet
rm /etc/modprobe.d/zz-no-smc.conf
check "with the module back, sockets can be opened" open_socket

# Sockets are opened at any moment of loading and unloading. Nobody but this test loads the module
# meanwhile, or those who open sockets would wait for it.
cat >"$WORK/early.py" <<'END'
import errno, os, socket, sys, time
end, pause = sys.argv[1:]
seen = {}
while not os.path.exists(end):
    while os.path.exists(pause):
        time.sleep(0.01)
    for family, protocol in (43, 0), (43, 1), (2, 256), (10, 256):
        name = "there"
        try:
            with socket.socket(family, socket.SOCK_STREAM, protocol) as s:
                # Which binds, too.
                s.listen()
        except OSError as error:
            name = errno.errorcode[error.errno]
        seen[name] = seen.get(name, 0) + 1
print(*(f"{count} {name}" for name, count in sorted(seen.items())), sep=", ")
# Not there, half there, and there: nothing else is fair.
sys.exit("there" not in seen or not seen.keys() <= {"there", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ENETDOWN"})
END
ROUNDS=$(by_form "$(by_kernel 20 8)" 100)
loads() {
	local n
	for ((n = 0; n < ROUNDS; n++)); do
		: >"$WORK/pause"
		wait_for 20 rmmod smc_rs || return 1
		rm "$WORK/pause"
		modprobe smc_rs || return 1
	done
}
loader=$(</proc/sys/kernel/modprobe)
echo >/proc/sys/kernel/modprobe
early=()
for n in 1 2; do
	python3 "$WORK/early.py" "$WORK/end" "$WORK/pause" >"$WORK/early.$n" 2>&1 &
	early+=($!)
	pids+=($!)
done
check "the module is loaded $ROUNDS times while sockets are opened" loads
: >"$WORK/end"
for n in 1 2; do
	wait "${early[n - 1]}"
	result $? "they are opened, or there is no SMC: $n" "$WORK/early.$n"
	note "$(tail -1 "$WORK/early.$n")"
done
echo "$loader" >/proc/sys/kernel/modprobe
check "none of them is left" wait_for 10 no_sockets
check "and the module can be unloaded" wait_for 10 rmmod smc_rs
done_testing

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# socket(AF_SMC, ...) loads the module by its alias; where it is not to be had,
# programs under smc_run are on TCP.
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
	smc_api --family smc --only "flags for non-blocking"
}

check "the module can be unloaded" rmmod smc_rs
refuse "it is gone" loaded
check "opening a socket works" open_socket
check "and has loaded the module" loaded
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
	print("family", client.getsockopt(socket.SOL_SOCKET, 39))
PYTHON
under_smc_run() {
	smc_run python3 "$WORK/program.py" | tee "$WORK/program.out"
	grep -q "^family $1\$" "$WORK/program.out"
}
tuning() {
	grep -r . /proc/sys/net/core /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_wmem 2>/dev/null
}
tuning >"$WORK/tuning"
check "a program under smc_run loads it, too" under_smc_run 43
check "smc_run tunes nothing for the whole system" diff "$WORK/tuning" <(tuning)
check "the module is there" loaded
check "it can be unloaded once more" wait_for 10 rmmod smc_rs
mkdir -p /etc/modprobe.d
echo "install smc_rs /bin/false" >/etc/modprobe.d/zz-no-smc.conf
refuse "where the module is not to be had, opening a socket fails" open_socket
check "and a program under smc_run is on TCP" under_smc_run 2
rm /etc/modprobe.d/zz-no-smc.conf
check "with the module back, sockets can be opened" open_socket
done_testing

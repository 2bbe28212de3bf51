#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The kernel's internet code takes a socket of IPPROTO_SMC for one of its own. Everything that
# looks at such sockets looks at ours, in each state: security labels, options of the IP header,
# lists of sockets, maps of sockets. What comes out matters less than that nothing breaks,
# which the kernels with checkers see best.
#
# vm: --topology pair --timeout 200

. "$(dirname "$0")/../lib.sh"
need_module

cat >"$WORK/look.py" <<'END'
import ctypes, errno, os, socket, struct, subprocess, sys
family, side, host = int(sys.argv[1]), *sys.argv[2:]
SMC, BPF, SOCKMAP = 256, 321, 15
libc = ctypes.CDLL(None, use_errno=True)
def bpf(command, attributes):
    result = libc.syscall(BPF, command, attributes, len(attributes))
    return result if result >= 0 else -ctypes.get_errno()
sockmap = bpf(0, struct.pack("5I", SOCKMAP, 4, 4, 4, 0))
assert sockmap >= 0, errno.errorcode[-sockmap]
def attempt(call, *arguments):
    try:
        return call(*arguments)
    except OSError as error:
        return error.errno
def look(what, s):
    # Labels: whichever security module there is gets them.
    for label in "SMACK64IPIN", "SMACK64IPOUT", "selinux", "other":
        attempt(os.setxattr, s.fileno(), "security." + label, b"label")
        attempt(os.getxattr, s.fileno(), "security." + label)
    attempt(os.listxattr, s.fileno())
    # Options of the header: a router alert, three no-operations; and none again.
    for value in b"\x94\x04\0\0", b"\1\1\1\0", b"":
        attempt(s.setsockopt, socket.IPPROTO_IP, 4, value)
        attempt(s.getsockopt, socket.IPPROTO_IP, 4, 40)
    attempt(s.getsockopt, socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    attempt(s.getsockopt, socket.SOL_SOCKET, 57, 8)
    # A map would take over the callbacks of a TCP socket. This is none.
    key, value = ctypes.create_string_buffer(4), ctypes.create_string_buffer(struct.pack("I", s.fileno()), 4)
    done = bpf(2, struct.pack("IIQQQ", sockmap, 0, ctypes.addressof(key), ctypes.addressof(value), 0))
    assert done in (-errno.EOPNOTSUPP, -errno.EINVAL), f"{what} socket and a map: {done}"
    # Everything that lists sockets.
    for options in "-tanmioe", "-taneK dst 192.0.2.1", "-Mai", "-0a", "-uan", "-wan":
        subprocess.run(["ss", *options.split()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for file in "protocols", "sockstat", "sockstat6", "tcp", "tcp6", "raw", "raw6", "netlink":
        with open("/proc/net/" + file) as text:
            text.read()
    print(what, "looked at", flush=True)
s = socket.socket(family, socket.SOCK_STREAM, SMC)
look("new", s)
if side == "server":
    s.bind((host, 7000))
    s.listen()
    look("listening", s)
    peer, _ = s.accept()
else:
    s.connect((host, 7000))
    peer = s
look("connected", peer)
peer.sendall(b"hello")
assert peer.recv(5, socket.MSG_WAITALL) == b"hello"
if side == "client":
    peer.shutdown(socket.SHUT_WR)
else:
    assert peer.recv(1) == b""
look("half closed", peer)
peer.close()
END
# looked_at FAMILY ADDRESS: at both ends of a connection.
looked_at() {
	local server status
	rm -f "$WORK/server"
	timeout 60 ip netns exec a python3 "$WORK/look.py" "$1" server "$2" >"$WORK/server" 2>&1 &
	server=$!
	pids+=("$server")
	wait_for 60 grep -q listening "$WORK/server"
	timeout 60 ip netns exec b python3 "$WORK/look.py" "$1" client "$2"
	status=$?
	wait "$server" || status=1
	cat "$WORK/server"
	return $status
}
check "everything that looks at internet sockets: IPv4, over SMC-R" smcr looked_at 2 "$A"
check "everything that looks at internet sockets: IPv6, on TCP" falls_back "b" looked_at 10 "$A6"
listed() {
	is "ACTIVE $1" in_b sh -c 'smcss --json | python3 -SE -c "import json, sys
print(*(s[\"state\"] + \" \" + s[\"mode\"] for s in json.load(sys.stdin)))"'
}
echo_server a smc-inet "$A" 7001
start ip netns exec b smc_stream ping --family smc-inet --addr "$A" --port 7001 --hold 60000 --timeout 60
check "smcss shows a connection of such sockets" wait_for 20 listed SMCR
stop_all
check "all of them are gone" wait_for 20 no_sockets a b
done_testing

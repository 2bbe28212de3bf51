#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Requests with one thing wrong, each with the error that says so; answers, which must not
# carry bytes of the kernel's memory (slabs are poisoned for that); long lists read with a
# short buffer while sockets come and go; many rows while their devices come and go.
#
# vm: --topology pair --append slab_debug=P --timeout 600
# slow: slabs are poisoned, and a thousand rows come and go

. "$(dirname "$0")/../lib.sh"
need_module

export PYTHONPATH=${0%/*} PYTHONDONTWRITEBYTECODE=1

# 1. What is wrong with a request.
cat >"$WORK/wrong.py" <<'END'
import errno, os, sys
from netlink import *
asker = Asker()
pnet, smc = asker.family("SMC_PNETID"), asker.family("SMC_GEN_NETLINK")
GET, ADD_ROW, DELETE, FLUSH_ROWS = 1, 2, 3, 4
ADD, REMOVE, FLUSH = 10, 11, 12
veth, rxe, eid = text(2, "veth0"), text(3, "rxe0"), "WRONG-1".ljust(32) + "\0"
LONG, NOTHING = "A" * 17, b""
OK, INVAL, RANGE, EXIST, NOENT, NOTSUP, PERM = (0, errno.EINVAL, errno.ERANGE, errno.EEXIST, errno.ENOENT,
    errno.EOPNOTSUPP, errno.EPERM)
CASES = [
    ("a row without network", pnet, ADD_ROW, veth, INVAL),
    ("a row without device", pnet, ADD_ROW, text(1, "NET1"), EXIST),
    ("a network of no bytes", pnet, ADD_ROW, attr(1, NOTHING) + veth, INVAL),
    ("an empty network", pnet, ADD_ROW, text(1, "") + veth, INVAL),
    ("a network of 17 characters", pnet, ADD_ROW, text(1, LONG) + veth, INVAL),
    ("16 characters without a zero behind them", pnet, ADD_ROW, attr(1, LONG[1:].encode()) + veth, INVAL),
    ("a network with a blank inside", pnet, ADD_ROW, text(1, "A B") + veth, INVAL),
    ("a network of other than ASCII", pnet, ADD_ROW, attr(1, b"\xc4\0") + veth, INVAL),
    ("a device name of 16 characters", pnet, ADD_ROW, text(1, "NET1") + text(2, LONG[1:]), INVAL),
    ("an empty device name", pnet, ADD_ROW, text(1, "NET1") + text(2, ""), INVAL),
    ("an RDMA device name of 64 characters", pnet, ADD_ROW, text(1, "NET1") + text(3, "A" * 64), INVAL),
    ("port 0", pnet, ADD_ROW, text(1, "NET1") + rxe + attr(4, b"\0"), INVAL),
    ("port 3", pnet, ADD_ROW, text(1, "NET1") + rxe + attr(4, b"\3"), INVAL),
    ("a port of no bytes", pnet, ADD_ROW, text(1, "NET1") + rxe + attr(4, NOTHING), RANGE),
    ("deleting without network", pnet, DELETE, NOTHING, INVAL),
    ("deleting what is not there", pnet, DELETE, text(1, "NET9"), NOENT),
    ("asking for a row without network", pnet, GET, NOTHING, INVAL),
    ("a command that is none", pnet, 5, NOTHING, NOTSUP),
    ("command 0", pnet, 0, NOTHING, NOTSUP),
    ("an identifier that is not there", smc, ADD, NOTHING, INVAL),
    ("an identifier of no bytes", smc, ADD, attr(1, NOTHING), RANGE),
    ("an identifier of 32 bytes", smc, ADD, attr(1, b"A" * 32), INVAL),
    ("an identifier of 34 bytes", smc, ADD, attr(1, b"A" * 34), RANGE),
    ("an identifier in lower case", smc, ADD, attr(1, b"wrong".ljust(32) + b"\0"), INVAL),
    ("an identifier of blanks", smc, ADD, attr(1, b" " * 32 + b"\0"), INVAL),
    ("an attribute longer than the message", smc, ADD, attr(1, eid.encode(), 200), INVAL),
    ("an attribute shorter than its head", smc, ADD, attr(1, eid.encode(), 2), INVAL),
    ("removing without identifier", smc, REMOVE, NOTHING, INVAL),
    ("removing what is not there", smc, REMOVE, attr(1, eid.encode()), NOENT),
    ("flushing with an attribute", smc, FLUSH, text(1, "A"), INVAL),
    ("a list as a single answer", smc, 1, NOTHING, NOTSUP),
    ("a command that is none", smc, 19, NOTHING, NOTSUP),
    ("command 0", smc, 0, NOTHING, NOTSUP),
]
ADMIN = [(pnet, ADD_ROW, text(1, "NET1") + veth), (pnet, DELETE, text(1, "NET1")), (pnet, FLUSH_ROWS, NOTHING),
    (smc, ADD, attr(1, eid.encode())), (smc, REMOVE, attr(1, eid.encode())), (smc, FLUSH, NOTHING),
    (smc, 14, NOTHING), (smc, 15, NOTHING), (smc, 17, NOTHING), (smc, 18, NOTHING)]
count = bad = 0
def case(name, family, command, body, wanted, flags=ACK):
    global count, bad
    count += 1
    got = asker.do(family, command, body, flags)[0]
    good = got == wanted
    bad += not good
    print("ok" if good else "not ok", count, "-", name)
    if not good:
        print(f"# command {command}: expected {errno.errorcode.get(wanted, wanted)}, got {errno.errorcode.get(got, got)}")
if sys.argv[1:] in (["nobody"], ["container"]):
    if sys.argv[1] == "nobody":
        os.setgroups([]), os.setgid(65534), os.setuid(65534)
    for family, command, body in ADMIN:
        case(f"family {'PNETID' if family == pnet else 'SMC'}, command {command} without rights", family, command, body, PERM)
else:
    for one in CASES:
        case(*one)
    for command in (ADD, REMOVE, FLUSH):
        case(f"a list of what is none, command {command}", smc, command, NOTHING, NOTSUP, DUMP)
    case("lower case is upper case", pnet, ADD_ROW, text(1, "net1") + veth, OK)
    rows = [dict(attributes(body[4:])) for body in asker.do(pnet, GET, flags=DUMP)[1]]
    case("a row again, for the same device", pnet, ADD_ROW, text(1, "NET2") + veth, EXIST)
    case("the longest name", pnet, ADD_ROW, text(1, "B" * 16) + text(2, "lo"), OK)
    case("all are flushed", pnet, FLUSH_ROWS, NOTHING, OK)
    case("flushing nothing", pnet, FLUSH_ROWS, NOTHING, OK)
    assert rows == [{1: b"NET1\0", 2: b"veth0\0", 3: b"n/a\0", 4: b"\xff"}], rows
print(f"1..{count}")
sys.exit(bad != 0)
END
subtest "one thing wrong" python3 "$WORK/wrong.py"
subtest "without rights" in_a python3 "$WORK/wrong.py" nobody
subtest "as root of a container" unshare --user --map-root-user --net python3 "$WORK/wrong.py" container
check "nothing was changed by them" is "SMC-RS-TEST" sh -c 'smcr ueid | tr -d " "'

# 2. Bytes of the kernel's memory, which is poisoned.
check "slabs are poisoned" sh -c 'grep -qx 1 /sys/kernel/slab/kmalloc-4k/poison'
cat >"$WORK/clean.py" <<'END'
import ctypes, socket, struct, sys
from netlink import *
def zero(what, data):
    assert not any(data), f"{what}: {data.hex()}"
def padded(what, data):
    end = data.find(b"\0")
    assert end >= 0, f"{what} has no end: {data.hex()}"
    zero(what, data[end:])
# Sockets: message, connection, link, directions shut down, reason of a fallback.
# Short parts: longer ones are not of the slabs that are poisoned.
diag = Asker(4, 4096)
error, sockets = diag.ends(20, DUMP, struct.pack("BBBB48x", 43, 0, 0, 0xff))
assert error == 0
seen = set()
for body in sockets:
    zero("directions that are shut down", body[3:4])
    zero("rest of an IPv4 address", body[12:24] + body[28:40])
    for kind, value in attributes(body[64:]):
        seen.add(kind)
        if kind == 1:
            assert len(value) == 76, value.hex()
            for cursor in list(range(16, 48, 8)) + list(range(52, 76, 8)):
                zero("reserved bytes of a cursor", value[cursor:cursor + 2])
        elif kind == 2:
            assert len(value) == 147, value.hex()
            for what, at, end in ("device", 1, 65), ("address", 66, 106), ("peer's address", 106, 146):
                padded(what, value[at:end])
assert seen >= {1, 2, 3, 5}, f"attributes {seen} only"
# Generic netlink: reserved bytes, what is behind the zero of a text.
STRINGS = {1: {4: None, 5: None}, 2: {4: None, 7: {3: None, 4: None}}, 3: {2: None, 4: None, 5: None},
    6: {7: None, 8: {2: None}, 9: {2: None}, 10: None}, 9: None}
def walk(what, data, strings):
    for kind, value in attributes(data):
        inner = strings.get(kind, ())
        if inner is None:
            padded(f"{what}.{kind}", value)
        elif inner:
            walk(f"{what}.{kind}", value, inner)
asker = Asker(room=4096)
smc, items = asker.family("SMC_GEN_NETLINK"), 0
for command in (1, 2, 3, 5, 6, 7, 8, 9, 13, 16):
    error, answers = asker.do(smc, command, flags=DUMP)
    assert error == 0, command
    for body in answers:
        items += 1
        zero("reserved bytes of a head", body[2:4])
        walk(f"command {command}", body[4:], {1: None} if command == 9 else {command: STRINGS.get(command, {})})
# The program's own socket.
peer = socket.socket(43, socket.SOCK_STREAM, 0)
libc = ctypes.CDLL(None)
address = struct.pack("=H", 2) + struct.pack(">H", 7000) + socket.inet_aton(sys.argv[1]) + bytes(8)
assert libc.connect(peer.fileno(), address, 16) == 0
info = peer.getsockopt(286, 64, 256)
zero("reserved byte", info[3:4])
padded("device", info[64:128])
for call in libc.getsockname, libc.getpeername:
    name, length = ctypes.create_string_buffer(b"\xff" * 128, 128), ctypes.c_int(128)
    assert call(peer.fileno(), name, ctypes.byref(length)) == 0
    assert length.value == 16 and name.raw[:2] == b"\2\0", name.raw[:16].hex()
    zero("rest of an address", name.raw[8:16])
print(len(sockets), "sockets,", items, "items of lists")
END
echo_server a smc "$A" 7000
echo_server a tcp "$A" 7002
for port in 7000 7000 7002; do
	start ip netns exec b smc_stream ping --family smc --addr "$A" --port $port --hold 100000 --timeout 120
done
three() {
	is "2 1" in_b sh -c 'smcss --json | python3 -SE -c "import json, sys
x = [s[\"mode\"] for s in json.load(sys.stdin)]
print(x.count(\"SMCR\"), x.count(\"TCP\"))"'
}
check "two connections over SMC-R and one on TCP" wait_for 30 three
for ns in a b; do
	check "answers in $ns carry nothing else" ip netns exec $ns python3 "$WORK/clean.py" "$A"
	[ "$ns" = a ] || note "$(tail -1 "$last")"
done
stop_all

# 3. Long lists read with a short buffer.
cat >"$WORK/many.py" <<'END'
import os, resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
def some(count):
    return [socket.socket(43, socket.SOCK_STREAM, 0) for _ in range(count)]
stay = some(int(sys.argv[1]))
print(*(os.fstat(s.fileno()).st_ino for s in stay), flush=True)
while True:
    others = some(100)
    while others:
        others.pop().close()
END
cat >"$WORK/short.py" <<'END'
import struct, sys
from netlink import *
asker, most = Asker(4, 4096), 0
with open(sys.argv[1]) as file:
    stay = {int(word) for word in file.read().split()}
for _ in range(int(sys.argv[2])):
    error, answers = asker.ends(20, DUMP, struct.pack("BBBB48x", 43, 0, 0, 0xff))
    assert error == 0, error
    inodes = [struct.unpack_from("=Q", body, 56)[0] for body in answers]
    cookies = [body[44:52] for body in answers]
    assert len(set(cookies)) == len(cookies), "a socket twice"
    missing = stay - set(inodes)
    assert not missing, f"{len(missing)} of {len(stay)} are missing"
    most = max(most, len(answers))
print(f"{len(stay)} stayed, up to {most} in a list")
END
MANY=5000
ip netns exec a python3 "$WORK/many.py" $MANY >"$WORK/inodes" &
pids+=($!)
check "$MANY sockets stay, others come and go" wait_for 120 test -s "$WORK/inodes"
check "lists in parts of 4 KiB have each of them, and none twice" in_a python3 "$WORK/short.py" "$WORK/inodes" 3
note "$(tail -1 "$last")"
stop_all

# 4. A thousand rows, for devices that come and go.
cat >"$WORK/rows.py" <<'END'
from netlink import *
asker = Asker()
pnet = asker.family("SMC_PNETID")
def rows():
    return len(asker.do(pnet, 1, flags=DUMP)[1])
for turn in range(10):
    for n in range(1000):
        device = text(3, f"rx{n}") if n % 2 else text(2, f"mv{n}")
        assert asker.do(pnet, 2, text(1, f"NET{n % 100}") + device)[0] == 0, n
    assert rows() == 1000, rows()
    for n in range(100):
        assert asker.do(pnet, 3, text(1, f"NET{n}"))[0] == 0, n
    assert rows() == 0, rows()
print("10000 rows")
END
come_and_go() {
	local n=0
	while [ ! -e "$WORK/end" ]; do
		ip link add mv8 type veth peer name mv10 && ip link set mv8 up && ip link set mv10 up &&
			rdma link add rx9 type rxe netdev mv8 && sleep 0.2 && ip link del mv8 || return 1
		n=$((n + 1))
		echo $n >"$WORK/rounds"
	done
}
come_and_go >"$WORK/come" 2>&1 &
comes=$!
check "a thousand rows come and go" python3 "$WORK/rows.py"
: >"$WORK/end"
wait $comes
result $? "their devices come and go meanwhile" "$WORK/come"
note "$(cat "$WORK/rounds") times"
refuse "no device waits for its references" sh -c 'dmesg | grep "waiting for .* to become free"'
check "the table is empty" is "" smc_pnet
done_testing

# SPDX-License-Identifier: GPL-2.0
"""Keeps a client of SMC from its processor when its Confirm has left the host.

usage: detain.py PORT COMMAND...

The command runs on one processor, after everything else there. A packet with a Confirm to this port
wakes this program in the midst of the client's call, and it works for a while: afterwards the
server's CONFIRM LINK is here, and is looked at before the client goes on.
"""
import os
import signal
import socket
import subprocess
import sys
import time

ETH_P_ALL = 3
SMCR = bytes.fromhex("e2d4c3d9")
CONFIRM = 3
# Longer than the server takes, shorter than anybody waits.
DETENTION = 0.3

port = int(sys.argv[1])
processor = max(os.sched_getaffinity(0))
packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
os.sched_setaffinity(0, {processor})
signal.signal(signal.SIGCHLD, lambda *_: os._exit(os.waitstatus_to_exitcode(os.wait()[1])))
subprocess.Popen(sys.argv[2:], preexec_fn=lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)))
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
while True:
    packet, where = packets.recvfrom(4096)
    if where[2] != socket.PACKET_OUTGOING or packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
        continue
    tcp = packet[(packet[0] & 15) * 4:]
    data = tcp[(tcp[12] >> 4) * 4:]
    if int.from_bytes(tcp[2:4], "big") == port and data[:5] == SMCR + bytes([CONFIRM]):
        end = time.monotonic() + DETENTION
        while time.monotonic() < end:
            pass
        print("the client was kept from its processor", flush=True)

# SPDX-License-Identifier: GPL-2.0
"""Carries output, status and meetings between the machines and this program."""

import os
import selectors
import sys
import time

GRACE_SECONDS = 30  # for the other host, once one has failed


class Relay:
    """Serves the ports of `machines` until all commands have ended."""

    def __init__(self, machines, deadline, tty=False):
        self.machines = machines
        self.deadline = deadline
        self.tty = tty
        self.selector = selectors.DefaultSelector()
        self.partial = {}
        self.waiting = {}
        self.ending = False
        for machine in machines:
            for name, port in machine.ports.items():
                self.selector.register(port, selectors.EVENT_READ, (machine, name))
        if tty:
            self.selector.register(sys.stdin.fileno(), selectors.EVENT_READ, (None, "stdin"))

    def run(self):
        """Returns True when every machine has said its exit status and its log."""
        while not all(machine.said_bye for machine in self.machines):
            left = self.deadline - time.monotonic()
            if left <= 0 or any(m.process.poll() is not None for m in self.machines):
                self.drain()
                return all(machine.said_bye for machine in self.machines)
            self.serve(min(left, 0.5))
        return True

    def serve(self, seconds):
        for key, _ in self.selector.select(seconds):
            self.handle(key.fileobj, *key.data)

    def drain(self):
        """Takes what is still on its way from a machine that has stopped."""
        while True:
            ready = self.selector.select(0)
            if not ready:
                return
            for key, _ in ready:
                self.handle(key.fileobj, *key.data)

    def handle(self, port, machine, name):
        try:
            data = os.read(port if isinstance(port, int) else port.fileno(), 65536)
        except ConnectionError:
            data = b""
        if not data:
            self.selector.unregister(port)
            return
        if name in ("out", "err"):
            self.show(machine, sys.stdout if name == "out" else sys.stderr, name, data)
        elif name == "log":
            machine.log += data
        elif name == "tty":
            write_all(sys.stdout.fileno(), data)
        elif name == "stdin":
            self.machines[0].ports["tty"].sendall(data)
        else:
            for line in self.lines(machine, name, data):
                self.order(machine, name, line.decode(errors="replace").split())

    def lines(self, machine, name, data):
        """Returns the complete lines that `data` finishes."""
        whole = self.partial.get((machine.number, name), b"") + data
        *lines, rest = whole.split(b"\n")
        self.partial[machine.number, name] = rest
        return lines

    def show(self, machine, stream, name, data):
        """Writes output of a command; the second host's lines are marked."""
        if machine.number == 1:
            write_all(stream.fileno(), data)
            return
        for line in self.lines(machine, name, data):
            write_all(stream.fileno(), b"[%d] " % machine.number + line + b"\n")

    def order(self, machine, name, words):
        """Acts on one line from the guest's init or from vm-sync."""
        if name == "ctl" and words[:1] == ["exit"]:
            machine.status = int(words[1])
            self.maybe_end()
        elif name == "ctl" and words[:1] == ["hello"]:
            machine.said_hello = True
        elif name == "ctl" and words[:1] == ["bye"]:
            machine.said_bye = True
        elif name == "sync" and words[:1] == ["meet"]:
            self.waiting.setdefault(words[1], set()).add(machine.number)
            if len(self.waiting[words[1]]) == len(self.machines):
                del self.waiting[words[1]]
                for one in self.machines:
                    one.ports["sync"].sendall(f"met {words[1]}\n".encode())

    def maybe_end(self):
        """Lets the machines end once all commands have, or soon after a failure."""
        states = [machine.status for machine in self.machines]
        if None not in states:
            if not self.ending:
                self.ending = True
                for machine in self.machines:
                    machine.ports["ctl"].sendall(b"end\n")
        elif any(states):
            self.deadline = min(self.deadline, time.monotonic() + GRACE_SECONDS)


def write_all(descriptor, data):
    """Writes all of `data`; a reader that went away ends the program as usual."""
    while data:
        data = data[os.write(descriptor, data):]

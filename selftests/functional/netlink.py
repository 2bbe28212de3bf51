# SPDX-License-Identifier: GPL-2.0
"""Netlink by hand, for tests that ask what no tool asks: requests, and answers part by part."""

import socket
import struct

REQUEST, ACK, DUMP = 1, 4, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
NETLINK_SOCK_DIAG, NETLINK_GENERIC = 4, 16


def attr(kind, value, length=None):
    length = length if length is not None else len(value) + 4
    return struct.pack("=HH", length, kind) + value + bytes(-len(value) % 4)


def text(kind, value):
    return attr(kind, value.encode() + b"\0")


def messages(data):
    at = 0
    while at < len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        yield kind, data[at + 16:at + length]
        at += (length + 3) & ~3


def attributes(data):
    at = 0
    while at < len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        assert 4 <= length <= len(data) - at, "an attribute of wrong length"
        end = at + ((length + 3) & ~3)
        assert not any(data[at + length:end]), f"bytes behind attribute {kind}: {data[at:end]}"
        yield kind & 0x3fff, data[at + 4:at + length]
        at = end


class Asker:
    """A socket with room for so many bytes of an answer at a time."""

    def __init__(self, protocol=NETLINK_GENERIC, room=65536):
        self.socket, self.room = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol), room
        self.socket.settimeout(20)

    def ask(self, kind, flags, body):
        header = struct.pack("=IHHII", 16 + len(body), kind, flags | REQUEST, 1, 0)
        self.socket.send(header + body)

    def part(self):
        """The next part of an answer, and the error number with which it ended, if it did."""
        data, _, flags, _ = self.socket.recvmsg(self.room)
        assert not flags & socket.MSG_TRUNC, "a part is longer than the buffer"
        bodies = []
        for kind, body in messages(data):
            if kind in (NLMSG_ERROR, NLMSG_DONE):
                return bodies, -struct.unpack_from("=i", body)[0]
            bodies.append(body)
        return bodies, None

    def parts(self):
        """The parts that are left of a list, which must be complete."""
        error = None
        while error is None:
            bodies, error = self.part()
            yield bodies
        assert error == 0, error

    def ends(self, kind, flags, body):
        """The error number with which the answer ended, and the messages until then."""
        self.ask(kind, flags, body)
        answers, error = [], None
        while error is None:
            bodies, error = self.part()
            answers += bodies
        return error, answers

    def family(self, name):
        error, answers = self.ends(16, ACK, b"\3\1\0\0" + text(2, name))
        assert error == 0, name
        return struct.unpack("=H", dict(attributes(answers[0][4:]))[1])[0]

    def do(self, family, command, body=b"", flags=ACK):
        return self.ends(family, flags, bytes([command, 1, 0, 0]) + body)

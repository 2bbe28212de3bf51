# SPDX-License-Identifier: GPL-2.0
"""Lists of link groups and of connections without a socket, of which one group ends between two
parts: the one that the part before has begun and the next part would go on with.

There is a link group over each of the RDMA devices rxlN, for the address 10.9.100+N.1, of which
two are taken away for each kind of list. Others may have a group, too.
"""

import socket
import struct
import subprocess
import time

from netlink import DUMP, NETLINK_GENERIC, NETLINK_SOCK_DIAG, Asker, attributes

AF_SMC, SOCK_DIAG_BY_FAMILY = 43, 20
GET_LINK_SMCR, LGR_SMCR, LINK_SMCR = 3, 2, 3
LGR_ID, LINK_DEVICE = 1, 2
# With less room a part might be longer than it.
LEAST = 4096
TURNS = 2


class Groups:
    """Link groups and their links, as (number, device); of a group itself the device is None."""

    protocol = NETLINK_GENERIC

    def __init__(self):
        self.family = Asker().family("SMC_GEN_NETLINK")

    def ask(self, asker):
        asker.ask(self.family, DUMP, bytes([GET_LINK_SMCR, 1, 0, 0]))

    def items(self, parts):
        """The items of each part. A link is one of the group before it, as readers take it."""
        group = None
        for bodies in parts:
            items = []
            for body in bodies:
                outer = dict(attributes(body[4:]))
                if LGR_SMCR in outer:
                    group = struct.unpack("=I", dict(attributes(outer[LGR_SMCR]))[LGR_ID])[0]
                    items.append((group, None))
                else:
                    name = dict(attributes(outer[LINK_SMCR]))[LINK_DEVICE]
                    items.append((group, name.rstrip(b"\0").decode()))
            yield items

    def device(self, cut, all_items):
        return next(device for group, device in all_items if group == cut[0] and device)


class Connections:
    """Connections without a socket, as (local address, peer's port)."""

    protocol = NETLINK_SOCK_DIAG

    def ask(self, asker):
        asker.ask(SOCK_DIAG_BY_FAMILY, DUMP, struct.pack("BBBB48x", AF_SMC, 0, 0, 0xff))

    def items(self, parts):
        for bodies in parts:
            yield [(socket.inet_ntoa(body[8:12]), struct.unpack(">H", body[6:8])[0])
                   for body in bodies if struct.unpack_from("=Q", body, 56)[0] == 0]

    def device(self, cut, _all_items):
        return f"rxl{int(cut[0].split('.')[2]) - 100}"


def read(kind, asker):
    kind.ask(asker)
    return list(kind.items(asker.parts()))


def flat(parts):
    return [item for part in parts for item in part]


def find_cut(kind):
    """A reader for whom a part ends in the middle of a group, and how many parts that takes."""
    for room in range(LEAST, 2 * LEAST, 32):
        asker = Asker(kind.protocol, room)
        # What a reader had room for before decides about the first part of the next list.
        read(kind, asker)
        parts = read(kind, asker)
        for count in range(1, len(parts)):
            if not parts[count - 1] or not parts[count]:
                continue
            last, first = parts[count - 1][-1], parts[count][0]
            if last[0] == first[0] and kind.device(last, flat(parts)).startswith("rxl"):
                return asker, count, parts
    raise SystemExit("no part ends in the middle of a group")


def remove(device):
    subprocess.run(["rdma", "link", "delete", device], check=True)
    groups, end = Groups(), time.monotonic() + 20
    while any(item[1] == device for item in flat(read(groups, Asker()))):
        assert time.monotonic() < end, f"the group over {device} does not end"
        time.sleep(0.1)


def turn(kind):
    asker, count, before = find_cut(kind)
    cut = before[count - 1][-1]
    device = kind.device(cut, flat(before))
    kind.ask(asker)
    # Whoever reads a part makes the kernel put the next one together.
    bodies = [asker.part()[0] for _ in range(count - 1)]
    remove(device)
    bodies += asker.parts()
    seen = flat(kind.items(bodies))
    assert len(set(seen)) == len(seen), "an item twice"
    stayed = {item for item in flat(before) if item[0] != cut[0]}
    assert stayed <= set(seen), f"without {device} these are missing: {stayed - set(seen)}"
    strange = set(seen) - set(flat(before))
    assert not strange, f"these were not there before: {strange}"
    print(f"of {len(flat(before))} items in {len(before)} parts,", len(stayed), "stayed")


for kind in Groups(), Connections():
    for _ in range(TURNS):
        turn(kind)

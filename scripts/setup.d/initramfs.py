#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Makes the initramfs that takes a packaged kernel to its root over 9p.

It holds a static busybox, an init script, and the modules that reach the root,
in the order in which they have to be loaded.

usage: initramfs.py MODULES_DIR INIT OUTPUT
"""

import lzma
import os
import stat
import sys

MODULES = ["virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay", "virtio_rng"]
BUSYBOX = "/bin/busybox"


class Cpio:
    """Writes the "newc" archive format that the kernel unpacks."""

    def __init__(self, out):
        self.out = out
        self.inode = 0

    def entry(self, name, mode, data=b""):
        """Adds one file, folder or link called `name`."""
        self.inode += 1
        path = name.encode() + b"\0"
        numbers = (self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
        head = b"070701" + b"".join(b"%08x" % number for number in numbers)
        self.padded(head + path)
        self.padded(data)

    def padded(self, data):
        self.out.write(data + b"\0" * (-len(data) % 4))

    def folder(self, name):
        self.entry(name, stat.S_IFDIR | 0o755)

    def file(self, name, data):
        self.entry(name, stat.S_IFREG | 0o755, data)

    def link(self, name, target):
        self.entry(name, stat.S_IFLNK | 0o777, target.encode())


def load_order(folder, names):
    """Returns the files of modules `names` and of all they need, needed first."""
    needs = {}
    with open(os.path.join(folder, "modules.dep"), encoding="utf-8") as table:
        for line in table:
            path, _, after = line.partition(":")
            needs[path] = after.split()
    by_name = {os.path.basename(path).split(".")[0].replace("-", "_"): path for path in needs}
    order = []
    for name in names:
        path = by_name.get(name)
        if path is None:
            continue  # built into the kernel
        for one in reversed([path] + needs[path]):
            if one not in order:
                order.append(one)
    return order


def read_module(path):
    """Returns the bytes of a module, unpacked."""
    with (lzma.open if path.endswith(".xz") else open)(path, "rb") as file:
        return file.read()


def main():
    folder, init, output = sys.argv[1:]
    with open(output, "wb") as out:
        cpio = Cpio(out)
        for name in ("bin", "dev", "proc", "sys", "modules", "lower", "newroot"):
            cpio.folder(name)
        cpio.entry("dev/console", stat.S_IFCHR | 0o600)
        with open(BUSYBOX, "rb") as file:
            cpio.file("bin/busybox", file.read())
        cpio.link("bin/sh", "busybox")
        with open(init, "rb") as file:
            cpio.file("init", file.read())
        names = []
        for number, path in enumerate(load_order(folder, MODULES)):
            name = f"{number:02d}-{os.path.basename(path).split('.')[0]}.ko"
            cpio.file(f"modules/{name}", read_module(os.path.join(folder, path)))
            names.append(name)
        cpio.entry("TRAILER!!!", 0)
    print(" ".join(names))


if __name__ == "__main__":
    main()

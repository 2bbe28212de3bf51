# SPDX-License-Identifier: GPL-2.0
"""Tests of the search for complaints in kernel logs."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..",
                                "selftests"))

from vmlib import logscan  # noqa: E402


class Logscan(unittest.TestCase):
    """Complaints are found, usual messages are not."""

    def test_complaints(self):
        for line in ("BUG: kernel NULL pointer dereference, address: 0000000000000008",
                     "WARNING: CPU: 0 PID: 1 at net/core/sock.c:1 sock_x+0x1/0x2",
                     "Oops: general protection fault, probably for non-canonical address",
                     "INFO: task smc:12 blocked for more than 120 seconds.",
                     "watchdog: BUG: soft lockup - CPU#1 stuck for 60s!",
                     "rcu: INFO: rcu_preempt self-detected stall on CPU",
                     "refcount_t: underflow; use-after-free.",
                     "WARNING: possible circular locking dependency detected",
                     "unreferenced object 0xffff888003a1c000 (size 512):",
                     "ODEBUG: free active (active state 0) object: 00000000f5a9b5a1",
                     "BUG: KASAN: slab-use-after-free in smc_rs_x+0x10/0x20",
                     "UBSAN: array-index-out-of-bounds in net/x.c:1:2",
                     "unregister_netdevice: waiting for lo to become free. Usage count = 2",
                     "rust_kernel: panicked at smc.rs:1:1:",
                     "Kernel panic - not syncing: Fatal exception"):
            self.assertIsNotNone(logscan.first_complaint("[ 0.1] fine\n[ 1.0] " + line), line)

    def test_usual_messages(self):
        for line in ("Spectre V2 : Vulnerable", "smc_rs: loading out-of-tree module taints kernel.",
                     "Command line: console=ttyS0 panic=-1 oops=panic",
                     "kfence: initialized - using 2097152 bytes for 255 objects",
                     "infiniband rxe0: set active"):
            self.assertIsNone(logscan.first_complaint("[ 1.0] " + line), line)

    def test_tells_the_first(self):
        log = "[ 1.0] a\n[ 2.0] BUG: one\n[ 3.0] BUG: two\n"
        self.assertEqual(logscan.first_complaint(log), "[ 2.0] BUG: one")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: GPL-2.0
"""Finds in a kernel log what must never be there."""

import re

BAD = re.compile(
    r"BUG:|kernel BUG at|WARNING: |Oops|general protection fault|Kernel panic"
    r"|possible recursive locking|possible circular locking|inconsistent lock state"
    r"|suspicious RCU usage|invalid wait context|sleeping function called"
    r"|INFO: task .* blocked|blocked for more than|soft lockup|hard LOCKUP"
    r"|detected stalls|self-detected stall|Unable to handle|unable to handle"
    r"|refcount_t: |list_(?:add|del) corruption|Slab .* (?:error|corrupt)|Object padding"
    r"|kmemleak: .* new suspected|unreferenced object |ODEBUG: |KASAN|KCSAN|UBSAN|KFENCE|rust_kernel: panicked"
    r"|unregister_netdevice: waiting for"
)

# Messages that contain such words without being complaints.
GOOD = re.compile(
    r"Spectre|Speculative|MDS|TAA|SRSO|L1TF|Command line|hung_task|kfence: initialized"
    r"|Unpatched return thunk"
)


def first_complaint(log):
    """Returns the first line of `log` in which the kernel complains, or None."""
    for line in log.splitlines():
        if BAD.search(line) and not GOOD.search(line):
            return line.strip()
    return None

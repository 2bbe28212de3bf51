# SPDX-License-Identifier: GPL-2.0
"""The speed of the processor's time stamp counter.

An emulated machine reads the host's counter. Its kernel measures the counter's speed when it starts,
against emulated timers, which goes badly wrong on a host that has no time for the machine: clocks
that ran ten times too fast were seen. So it is measured here and told to the kernel.
"""

import ctypes
import mmap
import platform
import time

# rdtsc; shl $32, %rdx; or %rdx, %rax; ret
READ_COUNTER = bytes.fromhex("0f31 48c1e220 4809d0 c3")
# Two readings this far apart, each between two looks at the clock that differ by no more than that.
APART_S = 0.1
NEAR_NS = 5_000


def _reading(counter):
    """Returns a time in ns and the counter's value then."""
    best = None
    for _ in range(1_000):
        before = time.monotonic_ns()
        value = counter()
        after = time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = after - before, (before + after) // 2, value
        if best[0] <= NEAR_NS:
            break
    return best[1:]


def counter_khz():
    """Returns the counter's speed in kHz, None if it cannot be measured."""
    if platform.machine() != "x86_64":
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE,
                         prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return None
    page.write(READ_COUNTER)
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(start)
    begin_ns, begin = _reading(counter)
    time.sleep(APART_S)
    end_ns, end = _reading(counter)
    return round((end - begin) * 1_000_000 / (end_ns - begin_ns))

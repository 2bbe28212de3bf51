#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Writes Documentation/interop.rst from the outputs of the interoperability tests.

usage: table.py FOLDER [OUTPUT]

FOLDER has the files NAME.out that `RUN_LOGS=FOLDER selftests/run --in interop` left. The last result
of each row counts: to repeat one cell, or with SMC_ROWS some of its rows, let RUN_LOGS name a folder
below FOLDER.
"""

import glob
import os
import re
import sys

RESULT = re.compile(r"^(?:\[2\] )?(not )?ok \d+ - (.*), (.*) <- (.*) \((server|client)\)")
TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))

HEAD = """.. SPDX-License-Identifier: GPL-2.0

================
Interoperability
================

Two virtual machines on ``rxe`` devices, each with an SMC implementation: ``smc_rs``, or ``smc``, the
one that comes with the kernel. ``stock`` is Debian's kernel as packaged, where ``smc_rs`` puts the TCP
option into packets by netfilter; the others run the kernel ``reference``, whose TCP knows the option.
The left name of a column is the serving side. The column in which ``smc`` meets itself is the
control: it shows what cannot be had from that side.

``yes`` is a row that passed, ``no`` one that failed, and ``-`` one that was not run or that the pair
does not have. In a row about SMC-R both sides must have counted connections over SMC-R and no fallback;
in a row about a fallback each side must have counted the reason, and where one side declines, the
sockets of both name it. All rows check every byte.

This page is written by ``make interop-table``, which runs all of it; ``make interop-table CELLS=rs-c``
runs one cell again and keeps the results of the others.

What the kernel's own SMC does, which the rows have to allow for:

* When a program closes or shuts down, it waits two seconds for the peer's room, then says that this
  was all, whatever is left. Test programs on that side look at ``SIOCOUTQNSD`` first.
* It serves one handshake at a time, and its clients get ``ETIMEDOUT`` when an answer takes longer than
  six seconds. No row has more than eight handshakes under way.
* A process that is killed while all send slots of its link are in use ends its connections without
  a word. ``smc_rs`` learns it from the TCP connection, ten seconds later.
* A linger time of 0 does not make it reset a connection that is closed: bytes that nobody has read do.
  A program whose connection the peer resets is told of the end of the stream, or ``EPIPE``; only
  ``SO_ERROR`` says that it was a reset.
* A client without RDMA device still offers the device for shared memory that it makes for itself, so that
  it is the server that declines.
* As a client it drops a CONFIRM LINK that arrives before the thread that sent the Confirm has begun to
  wait for one. ``smc_rs`` sends it once more after two seconds; with itself it stays on TCP.
* It waits two seconds for the answer to CONFIRM RKEY, and declines when there is none. A host that is
  too busy makes rows fail in this way.

"""


# The scripts, and what meets in them.
CELLS = {
    "rs-c": {"smc_rs", "smc"},
    "c-c": {"smc"},
    "rs-rs": {"smc_rs"},
    "stock-c": {"stock smc_rs", "smc"},
    "stock-rs": {"stock smc_rs", "smc_rs"},
    "v1": {"smc_rs v1"},
}

# Why rows are not green, as far as that was found out.
REASONS = {
    "300 connections at once":
        "With ``smc`` serving, ``rxe`` gives up retransmitting on its side (``completer_retry_err``), which\n"
        "    ends a link group and its connections. Two ``smc`` pass in one direction and fail in the other, with\n"
        "    the same counter. What keeps the acknowledgements back was not found out.",
}


def read_file(path):
    """Returns {(row, server, client): passed} in the order of one output.

    A row passed when both hosts said so.
    """
    roles = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            match = RESULT.match(line)
            if match:
                row = roles.setdefault((match[2], match[3], match[4]), {})
                row[match[5]] = row.get(match[5], True) and not match[1]
    return {key: len(row) == 2 and all(row.values()) for key, row in roles.items()}


def read(folder):
    """Returns the results of all outputs in a folder and below: the last one of each row counts."""
    paths = glob.glob(os.path.join(folder, "**", "*.out"), recursive=True)
    files = [read_file(path) for path in sorted(paths, key=os.path.getmtime)]
    merged = {}
    # The longest one has the order of the rows.
    for results in sorted(files, key=len, reverse=True):
        merged.update(dict.fromkeys(results))
    for results in files:
        merged.update(results)
    return merged


def ordered(results):
    """Returns the rows in the order of the longest list, and the columns."""
    columns = sorted({key[1:] for key in results},
                     key=lambda pair: (len(" ".join(pair).split()) - pair.count("smc_rs"), pair))
    rows = list(dict.fromkeys(row for row, *_ in results))
    return rows, columns


def all_rows():
    """Returns the rows that every cell can have, but for those made in loops."""
    with open(os.path.join(os.path.dirname(__file__), "matrix.sh"), encoding="utf-8") as file:
        return re.findall(r'do_row "([^"$]+)"', file.read())


def table(results):
    """Returns the table as reStructuredText."""
    rows, columns = ordered(results)
    rows += [row for row in all_rows() if row not in rows]
    lines = [["", *(f"{server} <- {client}" for server, client in columns)]]
    for row in rows:
        marks = (results.get((row, *pair)) for pair in columns)
        lines.append([row, *({True: "yes", False: "no", None: "\\-"}[mark] for mark in marks)])
    widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
    rule = "  ".join("=" * max(width, 1) for width in widths)
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
            for line in lines]
    # An empty first cell would join the line to the one above it.
    text[0] = "row".ljust(widths[0]) + text[0].ljust(widths[0])[widths[0]:]
    return "\n".join([rule, text[0], rule, *text[1:], rule, ""])


def sums(results):
    """Returns a sentence for each column: how many rows passed."""
    _, columns = ordered(results)
    lines = []
    for server, client in columns:
        marks = [mark for (_, *pair), mark in results.items() if pair == [server, client]]
        lines.append(f"* {server} <- {client}: {sum(marks)} of {len(marks)} passed.\n")
    missing = [name for name, pair in CELLS.items() if pair not in map(set, columns)]
    if missing:
        lines.append(f"* Not run: {', '.join(missing)}.\n")
    return "".join(lines)


def failures(results):
    """Returns what is known about the rows that failed."""
    failed = {}
    for (row, *pair), passed in results.items():
        if not passed:
            failed.setdefault(row, []).append(" <- ".join(pair))
    if not failed:
        return ""
    text = "\nThe rows that failed:\n\n"
    for row, pairs in failed.items():
        reason = REASONS.get(row, "The cause was not looked for.")
        text += f"{row}: {', '.join(pairs)}\n    {reason}\n"
    return text


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    results = read(sys.argv[1])
    if not results:
        sys.exit("table: there are no results in the folder.")
    output = sys.argv[2] if len(sys.argv) > 2 else os.path.join(TOP, "Documentation", "interop.rst")
    with open(output, "w", encoding="utf-8") as file:
        file.write(HEAD + table(results) + "\n" + sums(results) + failures(results))


if __name__ == "__main__":
    main()

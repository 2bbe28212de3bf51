#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Compares what CPython's own tests say on TCP and over SMC, from their JUnit reports.

Prints TAP: the number of tests, and a result for each test that came out differently.
LIST has lines "TEST: reason" for differences that are known; one of them that does not
show is an error as well, if the test ran at all.

usage: outcomes.py TCP.xml SMC.xml LIST
"""

import sys
import xml.etree.ElementTree as ElementTree


def outcomes(path):
    """Returns {test: outcome} of a report, and {test: what it said} of failures."""
    found, said = {}, {}
    for case in ElementTree.parse(path).iter("testcase"):
        name = case.get("name")
        result = "passed"
        for kind in ("error", "failure", "skipped"):
            part = case.find(kind)
            if part is not None:
                result = kind
                said[name] = (part.text or part.get("message") or "").strip()
        found[name] = result
    return found, said


def known(path):
    """Returns {test: reason} of the list."""
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    pairs = (line.partition(": ") for line in lines if line and not line.startswith("#"))
    return {name: reason for name, _, reason in pairs}


def main():
    tcp, _ = outcomes(sys.argv[1])
    smc, said = outcomes(sys.argv[2])
    listed = known(sys.argv[3])
    results = []
    passed = [name for name, outcome in tcp.items() if outcome == "passed"]
    same = [name for name in passed if smc.get(name) == "passed"]
    results.append((len(passed) > 0, f"{len(passed)} of {len(tcp)} tests pass on TCP, {len(same)} of them over SMC", ""))
    for name in sorted(tcp.keys() | smc.keys()):
        before, after = tcp.get(name, "not there"), smc.get(name, "not there")
        if before == after:
            if name in listed:
                results.append((False, f"{name}: listed, but the same on TCP and over SMC", ""))
            continue
        reason = listed.get(name)
        results.append((reason is not None, f"{name}: {after}, on TCP {before}" +
                        (f" (listed: {reason})" if reason else ""), said.get(name, "")))
    for number, (good, text, more) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {text}")
        if not good:
            for line in more.splitlines()[-25:]:
                print(f"# {line}")
    print(f"1..{len(results)}")
    sys.exit(any(not good for good, _, _ in results))


if __name__ == "__main__":
    main()

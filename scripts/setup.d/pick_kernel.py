#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Picks the kernel to build for from what the package lists offer.

Reads Debian package stanzas on standard input and prints, as shell assignments,
the newest backported kernel of the wanted series for which every package is
there in one and the same version: image and what it is split over, headers,
kbuild and source. Falls back to the newest series that is complete.

usage: apt-cache dumpavail | pick_kernel.py SERIES
"""

import re
import sys

IMAGE = re.compile(r"linux-image-((\d+)\.(\d+)\.(\d+)\+deb\d+)-amd64$")


def stanzas(text):
    """Yields (name, version, depends) of each package in `text`."""
    for block in text.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Depends): (.*)$", block, re.M))
        if "Package" in fields and "Version" in fields:
            yield fields["Package"], fields["Version"], fields.get("Depends", "")


def candidates(text):
    """Returns the complete kernels in `text` as (number, version, release, packages)."""
    depends, versions = {}, {}
    for name, version, needs in stanzas(text):
        versions.setdefault(name, set()).add(version)
        depends[name, version] = needs
    found = []
    for image in versions:
        match = IMAGE.match(image)
        if not match:
            continue
        base, number = match[1], tuple(int(part) for part in match.groups()[1:])
        for version in versions[image]:
            if "~bpo" not in version:
                continue
            wanted = [image, f"linux-headers-{base}-amd64", f"linux-headers-{base}-common",
                      f"linux-kbuild-{base}", f"linux-source-{number[0]}.{number[1]}"]
            wanted += split_parts(image, version, depends, base)
            if all(version in versions.get(name, ()) for name in wanted):
                found.append((number, version, f"{base}-amd64", wanted))
    return found


def split_parts(image, version, depends, base):
    """Names the packages that the image is split over, as its dependencies tell."""
    names = re.findall(r"[a-z0-9][a-z0-9.+-]+", depends[image, version])
    return sorted({name for name in names if name.endswith(f"-{base}-amd64")})


def pick(found, series):
    """Returns the newest of the series, else the newest of all, else None."""
    in_series = [one for one in found if "%d.%d" % one[0][:2] == series]
    return max(in_series or found, key=lambda one: one[0], default=None)


def main():
    best = pick(candidates(sys.stdin.read()), sys.argv[1])
    if best is None:
        sys.exit("no complete kernel found")
    number, version, release, packages = best
    print(f"version='{version}'")
    print(f"release='{release}'")
    print(f"source_package='linux-source-{number[0]}.{number[1]}'")
    print(f"packages='{' '.join(packages)}'")


if __name__ == "__main__":
    main()

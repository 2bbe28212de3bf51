# SPDX-License-Identifier: GPL-2.0
"""Tests of the choice of the kernel."""

import importlib.util
import os
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
SPEC = importlib.util.spec_from_file_location(
    "pick_kernel", os.path.join(HERE, "..", "setup.d", "pick_kernel.py"))
pick_kernel = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(pick_kernel)


def kernel(base, version, leave_out=()):
    """Returns the stanzas of one complete kernel, less some packages."""
    series = ".".join(base.split(".")[:2])
    image = f"linux-image-{base}-amd64"
    needs = f"linux-base-{base}-amd64, linux-modules-{base}-amd64 (= {version}), kmod"
    names = [image, f"linux-base-{base}-amd64", f"linux-modules-{base}-amd64",
             f"linux-headers-{base}-amd64", f"linux-headers-{base}-common",
             f"linux-kbuild-{base}", f"linux-source-{series}"]
    return "".join(
        f"Package: {name}\nVersion: {version}\n"
        + (f"Depends: {needs}\n" if name == image else "") + "Section: kernel\n\n"
        for name in names if name not in leave_out)


class PickKernel(unittest.TestCase):
    """What is picked from lists of several kernels."""

    def picked(self, text, series="7.3"):
        best = pick_kernel.pick(pick_kernel.candidates(text), series)
        return best and best[2]

    def test_newest_of_the_series(self):
        text = kernel("7.3.9+deb13", "7.3.9-1~bpo13+1") + kernel("7.3.10+deb13", "7.3.10-1~bpo13+1") \
            + kernel("7.4.1+deb13", "7.4.1-1~bpo13+1")
        self.assertEqual(self.picked(text), "7.3.10+deb13-amd64")

    def test_falls_back_to_the_newest_series(self):
        text = kernel("7.2.9+deb13", "7.2.9-1~bpo13+1") + kernel("7.4.1+deb13", "7.4.1-1~bpo13+1")
        self.assertEqual(self.picked(text), "7.4.1+deb13-amd64")

    def test_incomplete_kernels_do_not_count(self):
        old = kernel("7.3.4+deb13", "7.3.4-1~bpo13+1")
        for missing in ("linux-source-7.3", "linux-kbuild-7.3.5+deb13",
                        "linux-modules-7.3.5+deb13-amd64", "linux-headers-7.3.5+deb13-common"):
            new = kernel("7.3.5+deb13", "7.3.5-1~bpo13+1", (missing,))
            self.assertEqual(self.picked(old + new), "7.3.4+deb13-amd64", missing)

    def test_parts_of_another_version_do_not_count(self):
        text = kernel("7.3.4+deb13", "7.3.4-1~bpo13+1", ("linux-source-7.3",)) \
            + "Package: linux-source-7.3\nVersion: 7.3.3-1~bpo13+1\n\n"
        self.assertIsNone(self.picked(text))

    def test_only_backports(self):
        self.assertIsNone(self.picked(kernel("7.3.4+deb13", "7.3.4-1")))

    def test_parts_come_from_the_dependencies(self):
        found = pick_kernel.candidates(kernel("7.3.4+deb13", "7.3.4-1~bpo13+1"))
        self.assertIn("linux-modules-7.3.4+deb13-amd64", found[0][3])
        self.assertNotIn("kmod", found[0][3])


if __name__ == "__main__":
    unittest.main()

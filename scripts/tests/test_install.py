# SPDX-License-Identifier: GPL-2.0
"""What scripts/install puts below DESTDIR, and that it takes all of it away again."""

import os
import pathlib
import subprocess
import tempfile
import unittest

INSTALL = pathlib.Path(__file__).resolve().parents[1] / "install"
TOOLS = ("smc", "smc_pnet", "smc_run", "smc_ueid", "smcd", "smcr", "smcss")
RELEASE = "7.3.4+deb13-amd64"


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.build, self.root = self.home / "build", self.home / "root"
        files = ["module/smc_rs.ko", "bin/libsmc_preload.so", "bin/smc_bench"]
        for tool in TOOLS:
            files += [f"bin/{tool}", f"man/{tool}.1"]
            files += [f"completions/{name}" for name in (f"{tool}.bash", f"{tool}.fish", f"_{tool}")]
        for file in files:
            self.write(self.build / file, file)
        # No real module is needed for a look at where things go.
        modinfo = self.home / "path" / "modinfo"
        self.write(modinfo, f"#!/bin/sh\necho '{RELEASE} SMP preempt mod_unload'\n")
        modinfo.chmod(0o755)

    @staticmethod
    def write(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def install(self, *words, **more):
        env = dict(os.environ, SMC_RS_BUILD=str(self.build), DESTDIR=str(self.root),
                   PATH=f"{self.home}/path:{os.environ['PATH']}", **more)
        return subprocess.run([INSTALL, *words], env=env, capture_output=True, text=True)

    def installed(self):
        return {str(path.relative_to(self.root)): path for path in self.root.rglob("*") if path.is_file()}

    def test_everything_is_where_it_is_looked_for(self):
        done = self.install(PREFIX="/usr")
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = {f"usr/lib/modules/{RELEASE}/extra/smc_rs.ko", "usr/lib/libsmc_preload.so"}
        for tool in TOOLS:
            expected |= {
                f"usr/bin/{tool}",
                f"usr/share/man/man1/{tool}.1",
                f"usr/share/bash-completion/completions/{tool}",
                f"usr/share/fish/vendor_completions.d/{tool}.fish",
                f"usr/share/zsh/site-functions/_{tool}",
            }
        found = self.installed()
        self.assertEqual(set(found), expected)
        self.assertEqual(found["usr/bin/smcr"].stat().st_mode & 0o777, 0o755)
        self.assertEqual(found["usr/share/man/man1/smcr.1"].stat().st_mode & 0o777, 0o644)

    def test_tools_go_to_usr_local_by_itself(self):
        self.install()
        self.assertIn("usr/local/bin/smc", self.installed())

    def test_removing_leaves_what_is_not_its_own(self):
        self.install()
        self.write(self.root / "usr/local/bin/other", "other")
        done = self.install("--remove")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(self.installed()), {"usr/local/bin/other"})

    def test_nothing_is_installed_from_half_a_build(self):
        (self.build / "module/smc_rs.ko").unlink()
        done = self.install()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("run 'make' first", done.stderr)
        self.assertFalse(self.root.exists())


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: GPL-2.0
"""The host's side: where things are, what has to be built, which accelerator."""

import os
import shlex
import subprocess
import sys

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("SMC_RS_BUILD", os.path.join(TOP, "build"))
IN_ROOT = os.path.join(TOP, "scripts", "in-root")
PROBE_SECONDS = 30
KERNELS = ("stock", "reference", "debug", "kasan")
CHECKING = ("debug", "kasan")
MODULES = ("smc_rs", "smc", "none")


class Failure(Exception):
    """Something that ends the run, told in one sentence."""


def environment(kind):
    """Returns the environment in which the scripts work for the kernel `kind`."""
    return {**os.environ, "SMC_RS_KERNEL": kind}


def paths(kind):
    """Returns what scripts/setup says about where the things of a kernel are."""
    done = subprocess.run([os.path.join(TOP, "scripts", "setup"), "--paths"],
                          stdout=subprocess.PIPE, text=True, check=False, env=environment(kind))
    if done.returncode:
        sys.exit(done.returncode)
    found = {"kind": kind}
    for line in done.stdout.splitlines():
        name, _, value = line.partition("=")
        found[name] = "".join(shlex.split(value))
    if not os.path.isdir(os.path.join(found["kernel_home"], "pkg")):
        raise Failure(f"The {kind} kernel is not there: run 'scripts/setup --kernel {kind}'.")
    return found


def build(uses):
    """Brings up to date what virtual machines with these kernels and modules need."""
    if os.environ.get("SMC_RS_NO_BUILD"):
        return
    for kind, module in sorted(set(uses)):
        targets = ["setup", "tools"] + (["module"] if module == "smc_rs" else [])
        done = subprocess.run(["make", "--no-print-directory", "-s", "-C", TOP, *targets],
                              stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False,
                              env=environment(kind))
        if done.returncode:
            raise Failure("The build failed, see above; nothing was run.")


def check_use(kind, module):
    """Refuses what cannot be run."""
    if kind not in KERNELS:
        raise Failure(f"There is no kernel '{kind}': it can be {', '.join(KERNELS)}.")
    if module not in MODULES:
        raise Failure(f"There is no module '{module}': it can be {', '.join(MODULES)}.")
    if kind == "stock" and module == "smc":
        raise Failure("The stock kernel has no smc module: only --module smc_rs or none can be used.")


def kernel(where):
    """Returns (image, initramfs) of a kernel, as seen in the root."""
    initramfs = "/kernel/home/" + os.path.basename(where["initramfs"])
    return f"/kernel/pkg/lib/modules/{where['release']}/vmlinuz", initramfs


def module_tables(where):
    """Returns the folder with the module of this project and the tables for modprobe."""
    home = BUILD if where["kind"] == "stock" else os.path.join(BUILD, where["kind"])
    return os.path.join(home, "modroot")


def accelerator(where, image):
    """Returns "kvm" where a guest boots with it, else "tcg"; SMC_RS_ACCEL overrides."""
    wanted = os.environ.get("SMC_RS_ACCEL", "auto")
    if wanted in ("kvm", "tcg"):
        return wanted
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        answer_file = os.path.join(where["cache"], "kvm-" + file.read().strip())
    if not os.path.exists(answer_file):
        answer = "kvm" if kvm_works(where, image) else "tcg"
        with open(answer_file + f".{os.getpid()}", "w", encoding="ascii") as file:
            file.write(answer)
        os.replace(answer_file + f".{os.getpid()}", answer_file)
    with open(answer_file, encoding="ascii") as file:
        return file.read().strip()


def kvm_works(where, image):
    """Boots the kernel without a root under KVM: it must come as far as its panic."""
    command = [IN_ROOT, "timeout", str(PROBE_SECONDS), "qemu-system-x86_64", "-nodefaults",
               "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35",
               "-accel", "kvm", "-cpu", "host", "-m", "512", "-smp", "2", "-kernel", image,
               "-serial", "stdio", "-append", "console=ttyS0 panic=-1"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False,
                          env=environment(where["kind"]))
    return done.returncode == 0 and b"Kernel panic" in done.stdout

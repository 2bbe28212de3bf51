# SPDX-License-Identifier: GPL-2.0
"""The command line of selftests/vm and what happens from start to end."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import termios
import time
import tty

from . import host, logscan
from .machine import Machine
from .relay import Relay

TIMED_OUT, VM_FAILED, KERNEL_COMPLAINED = 124, 125, 70
BOOT_ATTEMPTS = 3


def parse(doc):
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="selftests/vm [options] -- COMMAND [ARGS...]")
    parser.add_argument("--kernel", default="stock", metavar="KERNEL[,KERNEL]",
                        help="stock, reference, debug or kasan (default stock); two names are"
                        " for the two hosts")
    parser.add_argument("--module", default="smc_rs", metavar="MODULE[,MODULE]",
                        help="what to load: smc_rs, smc (the kernel's own) or none"
                        " (default smc_rs); two names are for the two hosts")
    parser.add_argument("--topology", choices=("pair", "hosts"), default="pair")
    parser.add_argument("--cpus", type=int, metavar="N", default=None,
                        help="processors of each machine (default 2, hosts 1)")
    parser.add_argument("--memory", metavar="M", default=None,
                        help="memory of each machine, in MiB or with a unit (default 2G, hosts 1G)")
    parser.add_argument("--timeout", type=float, metavar="S", default=900,
                        help="seconds after which all is stopped (default 900)")
    parser.add_argument("--programs", action="store_true",
                        help="have the programs that 'scripts/setup --programs' gets")
    parser.add_argument("--append", default="", metavar="KERNEL_ARGS")
    parser.add_argument("--qemu", default="", metavar="QEMU_ARGS")
    parser.add_argument("--ueid", default="SMC-RS-TEST", metavar="EID",
                        help="user EID that is set (default SMC-RS-TEST)")
    parser.add_argument("--log", metavar="FILE", help="write the kernel's log there")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.command[:1] == ["--"]:
        options.command = options.command[1:]
    if not options.command:
        parser.error("a command is needed, after --")
    one = options.topology == "pair"
    options.kernel = each(parser, options, "kernel")
    options.module = each(parser, options, "module")
    options.cpus = options.cpus or (2 if one else 1)
    options.memory = options.memory or ("2G" if one else "1G")
    return options


def each(parser, options, name):
    """Returns what option `name` says for each machine."""
    count = 1 if options.topology == "pair" else 2
    names = getattr(options, name).split(",")
    if len(names) not in (1, count):
        parser.error(f"--{name} has more names than there are machines")
    return names if len(names) == count else names * count


def run(doc):
    """Runs selftests/vm; returns its exit status."""
    options = parse(doc)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = tempfile.mkdtemp(prefix="smc_rs-vm.")
    try:
        return run_in(folder, options)
    except host.Failure as failure:
        print(f"vm: {failure}", file=sys.stderr)
        return VM_FAILED
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_in(folder, options):
    """Starts the machines, serves them, and judges how it went."""
    for kind, module in zip(options.kernel, options.module):
        host.check_use(kind, module)
    host.build(zip(options.kernel, options.module))
    uses = [(host.paths(kind), module) for kind, module in zip(options.kernel, options.module)]
    if options.programs and not os.path.isdir(uses[0][0]["programs"]):
        raise host.Failure("The programs are not there: run 'scripts/setup --programs'.")
    accelerator = host.accelerator(uses[0][0], host.kernel(uses[0][0])[0])
    interactive = sys.stdin.isatty() and sys.stdout.isatty() and options.topology == "pair"
    deadline = time.monotonic() + options.timeout
    for attempt in range(BOOT_ATTEMPTS):
        machines, ended = boot(os.path.join(folder, str(attempt)), options, uses,
                               accelerator, (deadline, interactive))
        if ended or not died_in_boot(machines):
            break
    if options.log:
        with open(options.log, "w", encoding="utf-8") as file:
            file.writelines(machine.kernel_log() for machine in machines)
    return judge(machines, ended, options)


def boot(folder, options, uses, accelerator, how):
    """Starts the machines and serves them; returns them and whether all ended well."""
    deadline, interactive = how
    machines = [Machine(number, folder, options, use) for number, use in enumerate(uses, 1)]
    try:
        for machine in machines:
            machine.write_job(options.command, interactive, shutil.get_terminal_size())
            machine.start(accelerator, interactive)
        return machines, serve(machines, deadline, interactive)
    finally:
        for machine in machines:
            machine.stop()


def died_in_boot(machines):
    """Says whether QEMU itself gave up before the guest's init ran.

    Now and then QEMU 10 aborts on an assertion of its own while a guest under
    emulation looks through its devices. No command has run then: try again.
    """
    return any(machine.process.returncode == -signal.SIGABRT and not machine.said_hello
               for machine in machines)


def serve(machines, deadline, interactive):
    """Carries everything to and fro, with the terminal in raw mode for a shell."""
    relay = Relay(machines, deadline, interactive)
    if not interactive:
        return relay.run()
    saved = termios.tcgetattr(sys.stdin)
    try:
        tty.setraw(sys.stdin)
        return relay.run()
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)


def judge(machines, ended, options):
    """Turns what happened into an exit status, and shows the log where it matters."""
    sys.stdout.flush()
    status = next((machine.status for machine in machines if machine.status), 0)
    shown = set()
    for machine in machines:
        log = machine.kernel_log()
        complaint = (logscan.first_complaint(log)
                     or logscan.first_complaint(machine.serial_log()))
        if complaint:
            show_log(machine, log)
            shown.add(machine)
            print(f"vm: the kernel complained: {complaint}", file=sys.stderr)
            status = status or KERNEL_COMPLAINED
    if ended:
        return status
    for machine in machines:
        if machine.status is None and machine not in shown:
            show_log(machine, machine.serial_log())
            print(machine.qemu_log(), end="", file=sys.stderr)
    if any(machine.process.returncode != -signal.SIGKILL for machine in machines):
        print("vm: the virtual machine stopped before the command ended.", file=sys.stderr)
        return status or VM_FAILED
    if status:
        print("vm: one host failed and the other did not end after it.", file=sys.stderr)
        return status
    print(f"vm: not finished after {options.timeout:g} seconds.", file=sys.stderr)
    return TIMED_OUT


def show_log(machine, log):
    """Prints the end of a kernel log."""
    lines = log.splitlines()
    print(f"--- kernel log of machine {machine.number}, last {min(len(lines), 150)} lines",
          file=sys.stderr)
    for line in lines[-150:]:
        print(line, file=sys.stderr)
    print("---", file=sys.stderr)

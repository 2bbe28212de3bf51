# SPDX-License-Identifier: GPL-2.0
"""One virtual machine: its folder, its QEMU process, its ports."""

import ctypes
import os
import shlex
import signal
import socket
import subprocess

from . import clock, host

PORTS = ("out", "err", "ctl", "log", "sync")
PR_SET_PDEATHSIG = 1


def die_with_parent():
    """Runs in the child: QEMU must not outlive this program."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Machine:
    """A virtual machine with number `number`, whose files are in `folder`.

    `use` says which kernel it runs, as host.paths() tells, and which module it loads.
    """

    def __init__(self, number, folder, options, use):
        self.number = number
        self.options = options
        self.where, self.module = use
        self.folder = os.path.join(folder, str(number))
        self.inside = f"/job/{number}"
        os.makedirs(os.path.join(self.folder, "guest"))
        self.ports = {}
        self.listeners = {}
        self.process = None
        self.status = None
        self.said_hello = False
        self.said_bye = False
        self.log = b""

    def write_job(self, command, interactive, size):
        """Says to the guest what to do."""
        values = {
            "VM_TOPOLOGY": self.options.topology,
            "VM_MODULE": self.module,
            "VM_UEID": self.options.ueid,
            "VM_HOSTNAME": "vm" if self.options.topology == "pair" else f"host{self.number}",
            "VM_INTERACTIVE": "1" if interactive else "",
            "VM_TERM": os.environ.get("TERM", "linux"),
            "VM_ROWS": size.lines,
            "VM_COLUMNS": size.columns,
        }
        if self.options.topology == "hosts":
            values["SMC_HOST"] = self.number
        passed = {name: value for name, value in os.environ.items()
                  if name.startswith(("SMC_", "FORCE_COLOR", "NO_COLOR"))
                  and not name.startswith("SMC_RS_") and name not in values}
        guest = os.path.join(self.folder, "guest")
        with open(os.path.join(guest, "env"), "w", encoding="utf-8") as file:
            for name, value in {**passed, **values}.items():
                file.write(f"export {name}={shlex.quote(str(value))}\n")
        with open(os.path.join(guest, "command"), "wb") as file:
            for word in command:
                file.write(os.fsencode(word) + b"\0")

    def listen(self, name):
        """Opens the socket to which QEMU connects port `name`."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.join(self.folder, name + ".sock"))
        listener.listen(1)
        self.listeners[name] = listener

    def start(self, accelerator, interactive):
        """Starts QEMU and takes its connections."""
        names = PORTS + (("tty",) if interactive else ())
        for name in names:
            self.listen(name)
        modules = host.module_tables(self.where)
        for folder in (modules, os.path.join(host.BUILD, "bin")):
            os.makedirs(folder, exist_ok=True)
        root = self.where["root"]
        binds = [f"BIND={os.path.dirname(self.folder)}:/job", f"BIND={root}:/vm",
                 f"BIND={self.where['kernel_home']}:/kernel/home", f"BIND={modules}:/kernel/mod"]
        if self.options.programs:
            binds.append(f"BIND={self.where['programs']}:/kernel/programs")
        command = [host.IN_ROOT, *binds, "qemu-system-x86_64",
                   *self.base_args(accelerator), *self.share_args(),
                   *self.port_args(interactive), *self.net_args(),
                   *shlex.split(self.options.qemu)]
        with open(os.path.join(self.folder, "qemu.log"), "wb") as log:
            # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, preexec_fn=die_with_parent,
                                            start_new_session=True,
                                            env=host.environment(self.where["kind"]))
        for name in names:
            self.ports[name] = self.accept(name)

    def accept(self, name):
        """Waits for QEMU's connection of port `name`."""
        listener = self.listeners.pop(name)
        listener.settimeout(1)
        for _ in range(60):
            try:
                return listener.accept()[0]
            except TimeoutError:
                if self.process.poll() is not None:
                    break
        raise host.Failure(f"QEMU did not start: {self.qemu_log().strip()[-500:]}")

    def base_args(self, accelerator):
        """The machine itself and what it boots."""
        image, initramfs = host.kernel(self.where)
        cpu = "host" if accelerator == "kvm" else "max,la57=off,erms=off,fsrm=off,fsrs=off,fzrm=off"
        accel = "kvm" if accelerator == "kvm" else "tcg,thread=multi"
        append = ("console=ttyS0 loglevel=5 panic=-1 net.ifnames=0 mitigations=off"
                  " tsc=reliable no_timer_check watchdog_thresh=30"
                  " rcupdate.rcu_cpu_stall_timeout=60 " + self.options.append)
        if accelerator == "tcg" and (speed := clock.counter_khz()):
            append += f" tsc_early_khz={speed}"
        if self.where["kind"] in host.CHECKING:
            # KUnit is built in there, and does nothing unless it is asked to.
            append += " kunit.enable=1 kunit.autorun=1"
        if self.options.programs:
            # What the kernel does not know becomes a variable of init's environment.
            append += " VM_PROGRAMS=1"
        return ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-machine", "q35,usb=off,vmport=off", "-accel", accel, "-cpu", cpu,
                "-smp", str(self.options.cpus), "-m", self.options.memory,
                "-kernel", image, "-initrd", initramfs, "-append", append,
                "-chardev", f"file,id=serial,path={self.inside}/serial.log",
                "-serial", "chardev:serial", "-device", "virtio-rng-pci"]

    def share_args(self):
        """The folders of the host that the guest mounts."""
        args = []
        shares = [("root", "/vm", "on"), ("pkg", "/kernel/pkg", "on"),
                  ("mod", "/kernel/mod", "on"), ("src", "/src", "on"),
                  ("out", "/out", "off"), ("bin", "/out/bin", "on"),
                  ("job", self.inside + "/guest", "off")]
        if self.options.programs:
            shares.append(("programs", "/kernel/programs", "on"))
        for tag, path, mode in shares:
            args += ["-virtfs", f"local,path={path},mount_tag={tag},security_model=passthrough,"
                                f"readonly={mode},multidevs=remap"]
        return args

    def port_args(self, interactive):
        """Ports between the guest's init and this program."""
        args = ["-device", "virtio-serial-pci,max_ports=16"]
        if interactive:
            args += ["-chardev", f"socket,id=tty,path={self.inside}/tty.sock",
                     "-device", "virtconsole,chardev=tty"]
        for name in PORTS:
            args += ["-chardev", f"socket,id={name},path={self.inside}/{name}.sock",
                     "-device", f"virtserialport,chardev={name},name=smc.{name}"]
        return args

    def net_args(self):
        """The network between two hosts: a stream without TCP's own delays."""
        if self.options.topology != "hosts":
            return ["-nic", "none"]
        server = "on" if self.number == 1 else "off"
        retry = "" if self.number == 1 else ",reconnect-ms=200"
        return ["-netdev", f"stream,id=net,server={server}{retry},addr.type=unix,"
                           "addr.path=/job/net.sock",
                "-device", f"virtio-net-pci,netdev=net,mac=52:54:00:09:00:0{self.number}"]

    def qemu_log(self):
        """What QEMU itself said."""
        with open(os.path.join(self.folder, "qemu.log"), encoding="utf-8",
                  errors="replace") as file:
            return file.read()

    def kernel_log(self):
        """The kernel's log: as it said at the end, else what the serial line has."""
        text = ""
        path = os.path.join(self.folder, "serial.log")
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read().replace("\r", "")
        return self.log.decode(errors="replace") if self.said_bye and self.log else text

    def serial_log(self):
        """What the serial line has: complete up to a crash."""
        said, self.said_bye = self.said_bye, False
        text = self.kernel_log()
        self.said_bye = said
        return text

    def stop(self):
        """Ends QEMU."""
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for port in self.ports.values():
            port.close()

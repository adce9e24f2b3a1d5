"""A machine of a network on this host: namespaces of its own, with one network device.

    this host                                  the machine
    switch  <------- TAP device -------------  eth0, 10.77.0.N
    relay   <------- listening socket -------  127.0.0.1:PORT, for servers that no fault concerns

`python -m tests.chaos.network.machine host SOCKET ADDRESS` makes the namespaces, passes the descriptors of
the device and of the listening socket through SOCKET, and keeps the namespaces alive until that is closed. It
makes a user namespace too if the kernel allows it, so that no privileges are needed; otherwise it needs
root's.

`python -m tests.chaos.network.machine join PID COMMAND...` runs a command there. A worker is forked, not
started by a command, and calls `join` itself. Files, Unix sockets and process ids are those of this host.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from tests.children import Child
from tests.waiting import CHILD_DEADLINE_S

PROJECT = Path(__file__).parents[3]
DEVICE = b"eth0"
TUN = "/dev/net/tun"
NETMASK = "255.255.255.0"
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
SIOCSIFFLAGS, SIOCSIFADDR, SIOCSIFNETMASK = 0x8914, 0x8916, 0x891C
IFF_UP, IFF_RUNNING = 0x1, 0x40
MADE = b"made"
MAX_REPLY_BYTES = 4096


class NoNetwork(Exception):
    """This host cannot make a machine."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"no network can be made here: {self.problem}; allow user namespaces and access to {TUN}, "
            "or run the tests as root"
        )


class Machine:
    """A running machine. `tap` receives the frames that it sends, `listener` the connections to
    127.0.0.1:`port` there, `pid` is for `join`."""

    def __init__(self, name: str, address: str) -> None:
        """Raises `NoNetwork`."""
        self.name = name
        self.address = address
        self._socket, theirs = socket.socketpair()
        with theirs:
            number = str(theirs.fileno())
            self._process = Child(
                [sys.executable, "-m", "tests.chaos.network.machine", "host", number, address],
                cwd=PROJECT,
                pass_fds=[theirs.fileno()],
                deadline_s=None,
            )
        reply, descriptors, _, _ = socket.recv_fds(self._socket, MAX_REPLY_BYTES, 2)
        if reply != MADE:
            self._socket.close()
            self._process.wait()
            raise NoNetwork(reply.decode() or "the process of the machine ended")
        self.pid = self._process.pid
        self.tap = descriptors[0]
        self.listener = socket.socket(fileno=descriptors[1])
        self.port: int = self.listener.getsockname()[1]

    def _command(self, *command: str) -> list[str]:
        """Return the command that runs `command` on this machine."""
        return [sys.executable, "-m", "tests.chaos.network.machine", "join", str(self.pid), *command]

    def start_module(
        self,
        module: str,
        *arguments: str,
        environ: Mapping[str, str],
        deadline_s: float = CHILD_DEADLINE_S,
    ) -> Child[str]:
        """Start `python -m module` on this machine, wait until it prints "ready", and return it with pipes
        to its standard input and from its output."""
        child = Child(
            self._command(sys.executable, "-m", module, *arguments),
            cwd=PROJECT,
            env={**os.environ, **environ},
            deadline_s=deadline_s,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child

    def script(self, path: Path, *command: str) -> Path:
        """Write a program that runs the command with its own arguments on this machine."""
        quoted = " ".join(f"'{word}'" for word in self._command(*command))
        path.write_text(f"#!/bin/sh\nPYTHONPATH='{PROJECT}' exec {quoted} \"$@\"\n")
        path.chmod(0o755)
        return path

    def close(self) -> None:
        """End the machine. Processes that still run there lose the network."""
        self._socket.close()
        os.close(self.tap)
        self.listener.close()
        self._process.wait()


def join(pid: int) -> None:
    """Move this process, which must have one thread, to the machine of the process `pid`."""
    kinds = [kind for kind in ("user", "net") if _namespace(pid, kind) != _namespace("self", kind)]
    descriptors = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in kinds]
    for descriptor in descriptors:
        _check(_libc().setns(descriptor, 0), "setns")
        os.close(descriptor)


def _namespace(pid: int | str, kind: str) -> str:
    return os.readlink(f"/proc/{pid}/ns/{kind}")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


# --- the process of a machine


def make_namespaces() -> None:
    """Leave the network of this host. Raises `OSError`."""
    user, group = os.getuid(), os.getgid()
    if _libc().unshare(CLONE_NEWUSER | CLONE_NEWNET):
        _check(_libc().unshare(CLONE_NEWNET), "unshare")
        return
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def make_device(address: str) -> int:
    """Return the descriptor of the machine's device, which is up. Raises `OSError`."""
    tap = os.open(TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", DEVICE, IFF_TAP | IFF_NO_PI))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for request, value in ((SIOCSIFADDR, address), (SIOCSIFNETMASK, NETMASK)):
            packed = socket.inet_aton(value)
            fcntl.ioctl(control, request, struct.pack("16sHH4s16x", DEVICE, socket.AF_INET, 0, packed))
        for device in (DEVICE, b"lo"):
            fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", device, IFF_UP | IFF_RUNNING))
    return tap


def host(number: int, address: str) -> None:
    with socket.socket(fileno=number) as harness:
        try:
            make_namespaces()
            tap = make_device(address)
            listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        except OSError as error:
            harness.send(str(error).encode())
            return
        with listener:
            socket.send_fds(harness, [MADE], [tap, listener.fileno()])
        os.close(tap)
        harness.recv(1)  # until the harness closes its end


def run_joined(pid: int, command: list[str]) -> NoReturn:
    join(pid)
    os.execvp(command[0], command)


if __name__ == "__main__":
    if sys.argv[1] == "host":
        host(int(sys.argv[2]), sys.argv[3])
    else:
        run_joined(int(sys.argv[2]), sys.argv[3:])

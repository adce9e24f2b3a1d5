"""The sandbox around an interpreter process: the first of these that works here.

    bubblewrap   namespaces: no network, no /proc, no other process; of files only libraries, read-only
    landlock     the same files, no TCP; a filter of system calls refuses sockets and other processes
    limits       no core dumps, no files written; nothing else

The interpreter itself gives programs none of this; the sandbox is for the day on which one breaks out of it.
Each adds a clean environment, no inherited descriptors, a bound on memory and the end with its parent. A
filter of system calls goes with the first two, on x86_64 and aarch64.

A small launcher sets this up and becomes the interpreter. The pool starts a program by its path alone, so the
launcher is a file in memory that the pool opens as /proc/PID/fd/N.
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import subprocess
import sys
from typing import Literal

from fdstore.setup.system_calls import system_call_filter

Engine = Literal["bubblewrap", "landlock", "limits", "none"]

DESCRIPTIONS: dict[Engine, str] = {
    "bubblewrap": "programs run in bubblewrap: no network, no files but libraries, no environment",
    "landlock": "programs run under Landlock: no sockets, no files but libraries, no environment",
    "limits": (
        "programs run in processes with a clean environment and without a sandbox around the interpreter: "
        "neither bubblewrap nor Landlock works here"
    ),
    "none": "programs run in processes without a sandbox around the interpreter: this system has none for it",
}

_TRIAL_S = 10
"""More than a start ever takes; a trial that hangs counts as failed."""


def describe() -> str:
    """Return in one line which sandbox holds on this machine; the first call tries them, some 100 ms."""
    return DESCRIPTIONS[find_engine()]


@functools.cache
def find_engine() -> Engine:
    """Return the first engine under which the interpreter starts."""
    engines: tuple[Engine, ...] = ("bubblewrap", "landlock", "limits")
    if sys.platform != "linux" or not sys.executable:
        return "none"
    for engine in engines:
        if works(engine):
            return engine
    return "none"


def binary_path(engine: Engine, memory_bytes: int, program: str | None = None) -> str | None:
    """Return what the pool starts, for interpreters whose variables take up to `memory_bytes`; None for the
    interpreter itself.

    The path holds for this process, not for its forks. `program` runs instead of the interpreter.
    """
    if engine == "none":
        return None
    descriptor = os.memfd_create("fdstore-interpreter")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(_script(engine, memory_bytes, program).encode())
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def works(engine: Engine) -> bool:
    """Return whether the interpreter starts under this engine."""
    if engine == "bubblewrap" and not shutil.which("bwrap"):
        return False
    path = binary_path(engine, 1 << 28)
    assert path is not None
    try:
        trial = subprocess.run([path, "--version"], capture_output=True, timeout=_TRIAL_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        os.close(int(path.rpartition("/")[2]))
    return trial.returncode == 0


def _script(engine: Engine, memory_bytes: int, program: str | None) -> str:
    from pydantic_monty._binary import find_monty_binary

    settings = {
        "engine": engine,
        "monty": os.path.realpath(program or find_monty_binary()),
        "bwrap": shutil.which("bwrap") or "",
        # a dump copies the variables, and the interpreter does not count all that it allocates
        "data_bytes": 4 * memory_bytes + (1 << 30),
        "filter": system_call_filter(),
    }
    code = _LAUNCHER.replace("SETTINGS", repr(settings))
    # not as the interpreter of the script: its line is short, and takes no spaces
    return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -IS -c {shlex.quote(code)} "$@"\n'


_LAUNCHER = r"""
import os, resource, sys

settings = SETTINGS
engine, monty = settings["engine"], settings["monty"]
for name in os.listdir("/proc/self/fd"):
    if int(name) > 2:
        try:
            os.close(int(name))
        except OSError:
            pass  # that of the listing
if sys.argv[1:] == ["subprocess"]:
    # a defect of the interpreter would print its backtrace among the host's own errors
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)

LIBRARIES = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/lib", "/lib32", "/lib64", "/libx32")
OTHER_FILES = ("/usr/share/zoneinfo", "/etc/ld.so.cache")


def bubblewrap():
    command = [settings["bwrap"], "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    command += ["--uid", "65534", "--gid", "65534", "--hostname", "sandbox", "--clearenv", "--as-pid-1"]
    for path in (*LIBRARIES, *OTHER_FILES):
        if os.path.islink(path):
            command += ["--symlink", os.readlink(path), path]
        else:
            command += ["--ro-bind-try", path, path]
    command += ["--ro-bind", monty, "/monty", "--remount-ro", "/"]
    if settings["filter"]:
        # before the limit on the size of files, which holds for this one too
        filter = os.memfd_create("filter", 0)
        os.write(filter, settings["filter"])
        os.lseek(filter, 0, os.SEEK_SET)
        command += ["--seccomp", str(filter)]
    return [*command, "--", "/monty", *sys.argv[1:]]


def enter_landlock():
    import ctypes, struct

    libc = ctypes.CDLL(None, use_errno=True)

    def call(name, function, *arguments):
        result = function(*arguments)
        if result < 0:
            raise OSError(ctypes.get_errno(), name)
        return result

    size, word, null = ctypes.c_size_t, ctypes.c_ulong, None
    version = call("landlock", libc.syscall, 444, null, size(0), 1)
    files = (1 << 13) - 1
    for since, right in ((2, 1 << 13), (3, 1 << 14), (5, 1 << 15)):
        files |= right if version >= since else 0
    # TCP since version 4; since 6 signals and abstract sockets, in its scope alone
    attributes = struct.pack("=QQQ", files, 3, 3)[: 8 if version < 4 else 16 if version < 6 else 24]
    rules = call("landlock", libc.syscall, 444, attributes, size(len(attributes)), 0)
    for path in (monty, *LIBRARIES, *OTHER_FILES):
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        rights = 0b1101 if os.path.isdir(path) else 0b101
        call("landlock", libc.syscall, 445, rules, 1, struct.pack("=Qi", rights, opened), 0)
    PDEATHSIG, NO_NEW_PRIVS, SECCOMP, FILTER = 1, 38, 22, 2
    call("prctl", libc.prctl, PDEATHSIG, word(9), word(0), word(0), word(0))
    call("prctl", libc.prctl, NO_NEW_PRIVS, word(1), word(0), word(0), word(0))
    call("landlock", libc.syscall, 446, rules, 0)
    if settings["filter"]:
        code = ctypes.create_string_buffer(settings["filter"], len(settings["filter"]))
        program = struct.pack("@HP", len(code) // 8, ctypes.addressof(code))
        call("seccomp", libc.prctl, SECCOMP, word(FILTER), program, word(0), word(0))


command = bubblewrap() if engine == "bubblewrap" else [monty, *sys.argv[1:]]
for what, most in (("CORE", 0), ("FSIZE", 0), ("NOFILE", 64), ("DATA", settings["data_bytes"])):
    number = getattr(resource, "RLIMIT_" + what)
    hard = resource.getrlimit(number)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(number, (most, most))
if engine == "landlock":
    enter_landlock()
os.execve(command[0], command, {})
"""

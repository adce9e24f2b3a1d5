"""The bubblewrap sandbox.

    worker -> launch.py, which becomes bwrap -> prlimit -> the program

A program sees /usr and the directories that link into it, read-only; the files of /etc that the dynamic
loader needs; empty /work and /tmp, bounded in bytes and in inodes; its own processes. It sees no network, no
user of the host and no variable of the worker's environment. Every mount except scratch is read-only, /dev,
/proc and the root included: an unbounded tmpfs could fill the host's memory.

This covers mounts that exist below /usr when a command starts. Later mounts of the host would propagate,
writable, into the mount namespace that bubblewrap creates. So where the system allows it, the launcher first
enters a private mount namespace, and mounts the scratch directories there: bubblewrap cannot limit inodes.

`prlimit` sets the limits inside the sandbox, just before the program: a preexec function is not safe in a
process with threads, and the number of processes is counted per user namespace (Linux 5.14), so inside it
covers this sandbox only. The kernel does not apply that count to the host's root, whatever its uid inside, so
a worker that runs as root switches to user nobody first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from fdstore.files.permissions import CommandsOff
from fdstore_workers.pipeline import launch, syscall_filter
from fdstore_workers.pipeline.command_limits import (
    PATH,
    CommandLimits,
    MiB,
    hidden_below_usr,
    require_program,
    run_probe,
)
from fdstore_workers.pipeline.sandbox_root import FROM_ETC, NOBODY, SYSTEM

HOME = "/work"

NEEDED = ("--clearenv", "--size", "--disable-userns", "--seccomp")
"""Options that old versions lack; the newest of them came with 0.8."""


class Bubblewrap:
    """The engine that runs each command under bubblewrap."""

    reports = True

    def __init__(
        self,
        arguments: list[str],
        inner: list[str],
        limits: CommandLimits,
        version: str,
        *,
        own_namespaces: bool,
    ) -> None:
        self._settings = {
            "engine": ["bubblewrap"],
            "own_namespaces": ["1" if own_namespaces else "0"],
            "scratch_bytes": [str(limits.scratch_bytes)],
            "scratch_inodes": [str(limits.scratch_inodes)],
            "argument": arguments,
        }
        self._inner = inner
        self._limits, self._version = limits, version
        self._own_namespaces = own_namespaces
        self.environment: Mapping[str, str] = {"PATH": PATH, "LANG": "C.UTF-8"}

    def wrap(self, argv: list[str]) -> list[str]:
        """Return the command to spawn for `argv`. It exits with the program's code, or 128+n for signal n."""
        return launch.launcher_command(self._settings, [*self._inner, *argv], packages=False)

    def describe(self) -> str:
        limits = self._limits
        text = (
            f"commands run in {self._version}: no network, read-only system, empty home, clean environment, "
            f"as nobody; {limits}, {limits.processes} processes for a stage; the memory of all processes "
            f"together is not limited; {limits.scratch_bytes // MiB} MiB in each of /work and /tmp"
        )
        if self._own_namespaces:
            text += f" and {limits.scratch_inodes} files"
        else:
            text += "; files there are not counted"
            text += "; a command can write to what is mounted below /usr while it runs"
        if not syscall_filter.known():
            text += "; system calls are not filtered on this architecture"
        return text


def find_bubblewrap(limits: CommandLimits, private: list[Path], search_path: str | None) -> Bubblewrap:
    """Return a sandbox that passed a test run. Raises `CommandsOff`."""
    bwrap = require_program("bwrap", "bubblewrap", search_path)
    version = run_probe([bwrap, "--version"]).stdout.strip() or "bubblewrap"
    usage = run_probe([bwrap, "--help"])
    if missing := [option for option in NEEDED if option not in usage.stdout + usage.stderr]:
        raise CommandsOff(f"{version} lacks {missing[0]}; 0.8 or later is needed")
    prlimit = require_program("prlimit", "util-linux", search_path)
    inner = limits.prlimit(prlimit, processes=limits.processes)
    arguments = [bwrap, *bwrap_args(private)]

    problem = ""
    # some systems allow namespaces to bubblewrap and to no other program
    for own_namespaces in (True, False):
        outer = arguments if own_namespaces else [*arguments, *_scratch(limits)]
        sandbox = Bubblewrap(outer, inner, limits, version, own_namespaces=own_namespaces)
        trial = run_probe(sandbox.wrap(["true"]), sandbox.environment)
        if trial.returncode == 0:
            return sandbox
        problem = (trial.stderr.strip().splitlines() or [f"exit code {trial.returncode}"])[-1]
    raise CommandsOff(f"{version} cannot create a sandbox here ({problem})")


def _scratch(limits: CommandLimits) -> list[str]:
    size = ["--size", str(limits.scratch_bytes), "--tmpfs"]
    return [*size, "/tmp", *size, HOME]


def bwrap_args(private: list[Path]) -> list[str]:
    """Return the arguments of bubblewrap. Their order matters: a later mount covers an earlier one."""
    # --die-with-parent: commands die with a killed worker
    args = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
    args += ["--cap-drop", "ALL", "--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", "sandbox"]
    args += ["--clearenv", "--setenv", "PATH", PATH, "--setenv", "LANG", "C.UTF-8", "--setenv", "HOME", HOME]
    args += ["--ro-bind", "/usr", "/usr"]
    for name in SYSTEM:
        path = Path("/", name)
        if path.is_symlink():
            args += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            args += ["--ro-bind", str(path), str(path)]
    for file in FROM_ETC:
        args += ["--ro-bind-try", file, file]
    for directory in hidden_below_usr(private):
        args += ["--tmpfs", str(directory), "--remount-ro", str(directory)]
    # in a writable /proc a program could lower its oom_score_adj, and not be the OOM killer's first victim
    return [*args, "--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]

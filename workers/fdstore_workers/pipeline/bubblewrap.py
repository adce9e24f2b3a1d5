"""Commands in a sandbox made by bubblewrap.

    worker -> launch.py, which becomes bwrap -> prlimit -> the program

A program sees /usr and what links into it, read-only; a few files of /etc that loading needs; empty /work
and /tmp, bounded in bytes and in inodes; its own processes; no network, no user of the host, nothing of the
worker's environment. Every mount that is not scratch is read-only, /dev and the root included, since a file
system in memory without a bound is a way to fill the host's. That holds for what is mounted below /usr when
a command starts. What the host mounts there later would be seen, and writable, in the mount namespace that
bubblewrap makes; so the launcher puts one around it that hears nothing of the host, where that may be, and
mounts the scratch there: bubblewrap itself bounds no inodes.

Limits are set by `prlimit`, inside, just before the program: a preexec function is not safe in a process
with threads, and the number of processes is counted per user namespace (Linux 5.14), so that inside it
means this sandbox alone. That count does not hold for root, whatever it is called inside. So a worker that
runs as root becomes nobody on the way.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from fdstore_workers.pipeline import launch, syscall_filter
from fdstore_workers.pipeline.command_limits import (
    PATH,
    CommandLimits,
    CommandsOff,
    MiB,
    ask,
    hidden_below_usr,
    require_program,
)
from fdstore_workers.pipeline.namespaces import FROM_ETC, NOBODY, SYSTEM

HOME = "/work"

NEEDED = ("--clearenv", "--size", "--disable-userns", "--seccomp")
"""Options that bubblewrap got over time, the last of them with 0.8."""


class Bubblewrap:
    """Commands run in a sandbox of their own."""

    reports = True

    def __init__(
        self,
        arguments: list[str],
        inner: list[str],
        limits: CommandLimits,
        version: str,
        *,
        apart: bool,
    ) -> None:
        self._settings = {
            "engine": ["bubblewrap"],
            "apart": ["1" if apart else "0"],
            "scratch_bytes": [str(limits.scratch_bytes)],
            "scratch_inodes": [str(limits.scratch_inodes)],
            "argument": arguments,
        }
        self._inner = inner
        self._limits, self._version = limits, version
        self._apart = apart
        self.environment: Mapping[str, str] = {"PATH": PATH, "LANG": "C.UTF-8"}

    def wrap(self, argv: list[str]) -> list[str]:
        """What to start for `argv`. It ends with the code of the program, or 128+n for signal n."""
        return launch.launcher_command(self._settings, [*self._inner, *argv], packages=False)

    def describe(self) -> str:
        limits = self._limits
        told = (
            f"commands run in {self._version}: no network, read-only system, empty home, clean environment, "
            f"as nobody; {limits}, {limits.processes} processes for a stage; the memory of all processes "
            f"together is not limited; {limits.scratch_bytes // MiB} MiB in each of /work and /tmp"
        )
        if self._apart:
            told += f" and {limits.scratch_inodes} files"
        else:
            told += "; files there are not counted"
            told += "; what is mounted below /usr while a command runs is open to it"
        if not syscall_filter.known():
            told += "; system calls are not filtered on this architecture"
        return told


def find_bubblewrap(limits: CommandLimits, private: list[Path], search_path: str | None) -> Bubblewrap:
    """Return a sandbox that was seen to work. Raises `CommandsOff`."""
    bwrap = require_program("bwrap", "bubblewrap", search_path)
    version = ask([bwrap, "--version"]).stdout.strip() or "bubblewrap"
    known = ask([bwrap, "--help"])
    if missing := [option for option in NEEDED if option not in known.stdout + known.stderr]:
        raise CommandsOff(f"{version} has no {missing[0]}; 0.8 or later is needed")
    prlimit = require_program("prlimit", "util-linux", search_path)
    inner = limits.prlimit(prlimit, processes=limits.processes)
    walls = [bwrap, *bwrap_args(private)]

    said = ""
    # some systems let bubblewrap make namespaces, and no other program
    for apart in (True, False):
        first = walls if apart else [*walls, *_scratch(limits)]
        made = Bubblewrap(first, inner, limits, version, apart=apart)
        tried = ask(made.wrap(["true"]), made.environment)
        if tried.returncode == 0:
            return made
        said = (tried.stderr.strip().splitlines() or [f"exit code {tried.returncode}"])[-1]
    raise CommandsOff(f"{version} cannot make a sandbox here ({said})")


def _scratch(limits: CommandLimits) -> list[str]:
    size = ["--size", str(limits.scratch_bytes), "--tmpfs"]
    return [*size, "/tmp", *size, HOME]


def bwrap_args(private: list[Path]) -> list[str]:
    """Arguments of bubblewrap; each mount lies upon those before it."""
    # --die-with-parent: a worker that is killed takes its commands along
    walls = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
    walls += ["--cap-drop", "ALL", "--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", "sandbox"]
    walls += ["--clearenv", "--setenv", "PATH", PATH, "--setenv", "LANG", "C.UTF-8", "--setenv", "HOME", HOME]
    walls += ["--ro-bind", "/usr", "/usr"]
    for name in SYSTEM:
        path = Path("/", name)
        if path.is_symlink():
            walls += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            walls += ["--ro-bind", str(path), str(path)]
    for file in FROM_ETC:
        walls += ["--ro-bind-try", file, file]
    for directory in hidden_below_usr(private):
        walls += ["--tmpfs", str(directory), "--remount-ro", str(directory)]
    return [*walls, "--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]

"""Commands in a sandbox made by sandlock (Landlock and seccomp with a supervisor), which is a wheel.

    in namespaces   worker -> launch.py -> its child, the first process of a namespace of pids, where
                    sandlock's supervisor is a thread -> prlimit -> the program
    alone           worker -> launch.py, where sandlock's supervisor is a thread -> prlimit -> the program

In namespaces it is what bubblewrap is, with Landlock upon that. Most containers allow no namespaces, and some
systems allow them to few programs. Landlock alone, which takes Linux 6.12, shows a program nothing that it
may not read, but it knows paths, not mounts: there is nowhere to put scratch of a bounded size, so there is
none, and `describe` says what else is less.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from fdstore.loading import how_to_install
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
from fdstore_workers.pipeline.namespaces import FROM_ETC, SYSTEM

THREADS = 8
"""Threads for each process that a stage may have, in namespaces."""


class Sandlock:
    """Commands run in a sandbox of their own."""

    reports = True

    def __init__(
        self, inner: list[str], limits: CommandLimits, version: str, private: list[Path], *, apart: bool
    ) -> None:
        self._settings = {
            "engine": ["sandlock"],
            "apart": ["1" if apart else "0"],
            "scratch_bytes": [str(limits.scratch_bytes)],
            "scratch_inodes": [str(limits.scratch_inodes)],
            "private": [str(path) for path in private],
            "processes": [str(limits.processes)],
            "readable": [] if apart else list(_readable(private)),
        }
        self._inner = inner
        self._limits, self._version = limits, version
        self.apart = apart
        self.environment: Mapping[str, str] = {"PATH": PATH, "LANG": "C.UTF-8"}

    def wrap(self, argv: list[str]) -> list[str]:
        """What to start for `argv`. It ends with the code of the program, or 128+n for signal n."""
        return launch.launcher_command(self._settings, [*self._inner, *argv], packages=True)

    def describe(self) -> str:
        limits = self._limits
        told = (
            f"commands run in {self._version}: no network, read-only system, empty home, clean environment, "
            f"{'as nobody' if self.apart or os.geteuid() == 0 else 'as the user of the worker'}; {limits}, "
            f"{limits.processes} processes for a stage; the memory of all processes together is not limited"
        )
        if self.apart:
            told += f"; {_threads(limits)} threads; {limits.scratch_bytes // MiB} MiB in each of "
            return f"{told}/work and /tmp and {limits.scratch_inodes} files"
        return (
            f"{told}; this system allows no namespaces: there is no scratch, nothing can be written; that a "
            "file exists and how large it is can be asked for by its path; threads are not counted"
        )


def find_sandlock(limits: CommandLimits, private: list[Path], *, namespaces: bool = True) -> Sandlock:
    """Return a sandbox that was seen to work. Raises `CommandsOff`."""
    try:
        version = f"sandlock {metadata.version('sandlock')}"
    except metadata.PackageNotFoundError:
        raise CommandsOff(f"sandlock ({how_to_install('agents')}) is not installed") from None
    if not syscall_filter.known():
        raise CommandsOff(f"{version} is not used on this architecture")
    prlimit = require_program("prlimit", "util-linux", PATH)
    said = ""
    for apart in (True, False) if namespaces else (False,):
        inner = limits.prlimit(prlimit, processes=_threads(limits) if apart else None)
        made = Sandlock(inner, limits, version, hidden_below_usr(private), apart=apart)
        tried = ask(made.wrap(["true"]), made.environment)
        if tried.returncode == 0:
            return made
        said = (tried.stderr.strip().splitlines() or [f"exit code {tried.returncode}"])[-1]
    raise CommandsOff(f"{version} cannot make a sandbox here ({said})")


def _threads(limits: CommandLimits) -> int:
    """How many a stage may have: what the kernel counts are threads, those of the supervisor too."""
    return limits.processes * THREADS + 2 * (os.cpu_count() or 1) + 8


def _readable(private: list[Path]) -> Iterator[str]:
    """What Landlock lets a program read: all that bubblewrap shows. It can only allow, so a directory with
    something private below it is allowed by what else is in it."""
    system = [Path("/", name) for name in SYSTEM]
    roots = [Path("/usr"), *(path for path in system if not path.is_symlink()), *map(Path, FROM_ETC)]
    yield from (str(path) for path in _without(roots, private))


def _without(paths: Iterable[Path], private: list[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists() or path in private:
            continue
        if any(hidden.is_relative_to(path) for hidden in private):
            yield from _without(sorted(path.iterdir()), private)
        else:
            yield path

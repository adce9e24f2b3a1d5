"""The sandlock sandbox (Landlock, and seccomp with a supervisor), a Python package.

    in namespaces   worker -> launch.py -> its child, pid 1 of a PID namespace, with sandlock's supervisor
                    as a thread -> prlimit -> the program
    alone           worker -> launch.py -> its child, with sandlock's supervisor as a thread -> prlimit
                    -> the program

In namespaces it equals bubblewrap, plus Landlock. But most containers allow no namespaces, and some systems
allow them to few programs only. Landlock alone (Linux 6.12) still lets a program read nothing else, but it
controls paths, not mounts: without a mount scratch cannot be bounded, so there is none. `describe` names the
other differences.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from fdstore.files.permissions import CommandsOff
from fdstore.setup.optional_packages import how_to_install
from fdstore_workers.pipeline import launch, syscall_filter
from fdstore_workers.pipeline.command_limits import (
    PATH,
    CommandLimits,
    MiB,
    hidden_below_usr,
    require_program,
    run_probe,
)
from fdstore_workers.pipeline.sandbox_root import FROM_ETC, SYSTEM

THREADS = 8
"""Threads allowed per process of a stage, in namespaces."""


class Sandlock:
    """The engine that runs each command under sandlock."""

    reports = True

    def __init__(
        self,
        inner: list[str],
        limits: CommandLimits,
        version: str,
        private: list[Path],
        *,
        own_namespaces: bool,
    ) -> None:
        self._settings = {
            "engine": ["sandlock"],
            "own_namespaces": ["1" if own_namespaces else "0"],
            "scratch_bytes": [str(limits.scratch_bytes)],
            "scratch_inodes": [str(limits.scratch_inodes)],
            "private": [str(path) for path in private],
            "processes": [str(limits.processes)],
            "readable": [] if own_namespaces else list(_readable(private)),
        }
        self._inner = inner
        self._limits, self._version = limits, version
        self.own_namespaces = own_namespaces
        self.environment: Mapping[str, str] = {"PATH": PATH, "LANG": "C.UTF-8"}

    def wrap(self, argv: list[str]) -> list[str]:
        """Return the command to spawn for `argv`. It exits with the program's code, or 128+n for signal n."""
        return launch.launcher_command(self._settings, [*self._inner, *argv], packages=True)

    def describe(self) -> str:
        limits = self._limits
        user = "nobody" if self.own_namespaces or os.geteuid() == 0 else "the user of the worker"
        text = (
            f"commands run in {self._version}: no network, read-only system, empty home, clean environment, "
            f"as {user}; {limits}, {limits.processes} processes for a stage; "
            "the memory of all processes together is not limited"
        )
        if self.own_namespaces:
            text += f"; {_threads(limits)} threads; {limits.scratch_bytes // MiB} MiB in each of "
            return f"{text}/work and /tmp and {limits.scratch_inodes} files"
        return (
            f"{text}; this system allows no namespaces: there is no scratch, nothing can be written; "
            "commands can learn that a file exists and how large it is by its path; threads are not counted"
        )


def find_sandlock(limits: CommandLimits, private: list[Path], *, namespaces: bool = True) -> Sandlock:
    """Return a sandbox that passed a test run. Raises `CommandsOff`."""
    try:
        version = f"sandlock {metadata.version('sandlock')}"
    except metadata.PackageNotFoundError:
        raise CommandsOff(f"sandlock ({how_to_install('agents')}) is not installed") from None
    if not syscall_filter.known():
        raise CommandsOff(f"{version} is not used on this architecture")
    prlimit = require_program("prlimit", "util-linux", PATH)
    hidden = hidden_below_usr(private)
    problem = ""
    for own_namespaces in (True, False) if namespaces else (False,):
        inner = limits.prlimit(prlimit, processes=_threads(limits) if own_namespaces else None)
        sandbox = Sandlock(inner, limits, version, hidden, own_namespaces=own_namespaces)
        trial = run_probe(sandbox.wrap(["true"]), sandbox.environment)
        if trial.returncode == 0:
            return sandbox
        problem = (trial.stderr.strip().splitlines() or [f"exit code {trial.returncode}"])[-1]
    raise CommandsOff(f"{version} cannot create a sandbox here ({problem})")


def _threads(limits: CommandLimits) -> int:
    """Return the limit of threads of a stage. The kernel counts threads, including the supervisor's."""
    return limits.processes * THREADS + 2 * (os.cpu_count() or 1) + 8


def _readable(private: list[Path]) -> Iterator[str]:
    """Yield the paths that Landlock lets a program read: the same as under bubblewrap.

    Landlock can only allow, so for a directory with a private one below it, its other entries are allowed.
    """
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

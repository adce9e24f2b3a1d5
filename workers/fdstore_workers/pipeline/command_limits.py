"""Limits of a command, and helpers that all sandbox engines share."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from fdstore.files.permissions import CommandsOff
from fdstore.model.fields import about
from fdstore.model.records import Record

MiB = 1 << 20
PATH = "/usr/local/bin:/usr/bin:/bin"
PROBE_S = 10.0


class CommandLimits(Record, frozen=True, kw_only=True):
    """Resource limits of one stage. /work and /tmp live in memory."""

    cpu_s: Annotated[int, about("CPU time of each system process")] = 600
    memory_bytes: Annotated[int, about("memory (address space) of each system process")] = 2048 * MiB
    file_bytes: Annotated[int, about("size of a file that a system process writes")] = 128 * MiB
    scratch_bytes: Annotated[int, about("size of `/work`, and of `/tmp`")] = 128 * MiB
    scratch_inodes: Annotated[int, about("files and directories in `/work`, and in `/tmp`")] = 8192
    open_files: Annotated[int, about("open files of each system process")] = 256
    processes: Annotated[int, about("system processes and threads of a stage, in a sandbox")] = 64

    def prlimit(self, program: str, *, processes: int | None = None) -> list[str]:
        """Return the command prefix that sets these limits and then executes the command after it.

        `processes` includes threads. Without a user namespace the kernel counts those of the whole user.
        """
        # SIGXCPU at the soft limit lets a program report it; SIGKILL follows after 5 s of CPU time
        limits = {
            "cpu": _within(resource.RLIMIT_CPU, self.cpu_s, self.cpu_s + 5),
            "as": _within(resource.RLIMIT_AS, self.memory_bytes),
            "fsize": _within(resource.RLIMIT_FSIZE, self.file_bytes),
            "nofile": _within(resource.RLIMIT_NOFILE, self.open_files),
            "core": "0",
        }
        if processes is not None:
            limits["nproc"] = _within(resource.RLIMIT_NPROC, processes)
        return [program, *(f"--{name}={value}" for name, value in limits.items()), "--"]

    def __str__(self) -> str:
        return (
            f"{self.cpu_s} s of CPU, {self.memory_bytes // MiB} MiB of memory, {self.open_files} open files "
            f"and {self.file_bytes // MiB} MiB a file for each process"
        )


def _within(which: int, soft: int, hard: int | None = None) -> str:
    """Return the limit as `soft:hard`, capped by our own hard limit, which we could not exceed."""
    _, most = resource.getrlimit(which)
    values = (soft, soft if hard is None else hard)
    return ":".join(str(value if most == resource.RLIM_INFINITY else min(value, most)) for value in values)


def require_program(name: str, package: str, search_path: str | None) -> str:
    """Return the path of a program. Raises `CommandsOff` if it is not installed."""
    found = shutil.which(name, path=search_path)
    if found is None:
        raise CommandsOff(f"{name} ({package}) is not installed")
    return found


def hidden_below_usr(private: list[Path]) -> list[Path]:
    """Return the directories to hide: those below /usr that do not contain a directory of PATH."""
    real = [path.resolve() for path in private]
    programs = [Path(place) for place in PATH.split(":")]
    return [
        path
        for path in real
        if path.is_dir()
        and path.is_relative_to("/usr")
        and not any(place.is_relative_to(path) for place in programs)
    ]


def run_probe(
    argv: list[str], environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program and return its result. Raises `CommandsOff` if it cannot start or times out."""
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=PROBE_S,
            check=False,
            env=environment,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandsOff(f"{argv[0]} did not run ({error})") from error

"""What a command may use, why none may run, and what engines of sandboxes share."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from fdstore.errors import FDStoreError
from fdstore.records import Record

MiB = 1 << 20
PATH = "/usr/local/bin:/usr/bin:/bin"
PROBE_S = 10.0


class CommandsOff(FDStoreError):
    """No command may run on this worker."""

    type = "permission_error"

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"commands are off on this worker: {self.why}"


class CommandLimits(Record, frozen=True, kw_only=True):
    """What one stage may use. `memory_bytes` (address space), `cpu_s`, `file_bytes` and `open_files`
    count for each of its processes, `processes` (threads too) for all; `scratch_bytes` for each of
    /work and /tmp, which are held in memory, and `scratch_inodes` for the files and directories in each."""

    cpu_s: int = 600
    memory_bytes: int = 2048 * MiB
    file_bytes: int = 128 * MiB
    scratch_bytes: int = 128 * MiB
    scratch_inodes: int = 8192
    open_files: int = 256
    processes: int = 64

    def prlimit(self, program: str, *, processes: int | None = None) -> list[str]:
        """The command that sets them and then is the command after it. `processes`, threads too, are
        counted for the whole user where the command has no user namespace of its own."""
        # at the soft limit of time a program gets XCPU and can say so, 5 s later KILL
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
    """The limit as `soft:hard`, not above what this process may have, for it could not be raised."""
    _, most = resource.getrlimit(which)
    values = (soft, soft if hard is None else hard)
    return ":".join(str(value if most == resource.RLIM_INFINITY else min(value, most)) for value in values)


def require_program(name: str, package: str, search_path: str | None) -> str:
    """Return the path of a program. Raises `CommandsOff`."""
    found = shutil.which(name, path=search_path)
    if found is None:
        raise CommandsOff(f"{name} ({package}) is not installed")
    return found


def hidden_below_usr(private: list[Path]) -> list[Path]:
    """Which of these directories a command would see without being kept from it: those below /usr, but
    for those that its programs lie in."""
    real = [path.resolve() for path in private]
    programs = [Path(place) for place in PATH.split(":")]
    return [
        path
        for path in real
        if path.is_dir()
        and path.is_relative_to("/usr")
        and not any(place.is_relative_to(path) for place in programs)
    ]


def ask(argv: list[str], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """What a program says when it is run. Raises `CommandsOff`."""
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

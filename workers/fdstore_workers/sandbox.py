"""Where commands of pipelines run: in a sandbox made by bubblewrap, or not at all.

    worker -> [unshare] -> [setpriv] -> [choom] -> bwrap -> prlimit -> the program

A program sees /usr and what links into it, read-only; a few files of /etc that loading needs; empty /work
and /tmp of bounded size; its own processes; no network, no user of the host, nothing of the worker's
environment. Every mount that is not scratch is read-only, /dev and the root included, since a file system
in memory without a bound is a way to fill the host's. That holds for what is mounted below /usr when a
command starts. What the host mounts there later would be seen, and writable, in the mount namespace that
bubblewrap makes; so one that hears nothing of the host is put around it (`unshare`), where that may be.

Limits are set by `prlimit`, inside, just before the program: a preexec function is not safe in a process
with threads, and the number of processes is counted per user namespace (Linux 5.14), so that inside it
means this sandbox alone. That count does not hold for root, whatever it is called inside. So a worker that
runs as root becomes nobody (`setpriv`) on the way. `choom` has the system end a command, and not Redis,
when memory is short.

What a sandbox does not bound: the memory of all its processes together (that takes a cgroup around the
worker), and what the kernel itself has faults for (there is no system call filter).
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from fdstore.errors import FDStoreError
from fdstore.records import Record

MiB = 1 << 20
PATH = "/usr/local/bin:/usr/bin:/bin"
HOME = "/work"
NOBODY = 65534
PROBE_S = 10.0

SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""What a program and its libraries may lie in, besides /usr; links into it nowadays."""

FROM_ETC = ("/etc/ld.so.cache", "/etc/alternatives")
HIDDEN = ("/usr/src", "/usr/local/src", "/usr/local/etc")
"""Where under /usr people keep what is theirs."""

NEEDED = ("--clearenv", "--size", "--disable-userns")
"""Options that bubblewrap got over time, the last of them with 0.8."""


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
    /work and /tmp, which are held in memory."""

    cpu_s: int = 600
    memory_bytes: int = 2048 * MiB
    file_bytes: int = 128 * MiB
    scratch_bytes: int = 128 * MiB
    open_files: int = 256
    processes: int = 64

    def prlimit(self, program: str, *, processes: bool) -> list[str]:
        """The command that sets them and then is the command after it."""
        # at the soft limit of time a program gets XCPU and can say so, 5 s later KILL
        limits = {
            "cpu": _within(resource.RLIMIT_CPU, self.cpu_s, self.cpu_s + 5),
            "as": _within(resource.RLIMIT_AS, self.memory_bytes),
            "fsize": _within(resource.RLIMIT_FSIZE, self.file_bytes),
            "nofile": _within(resource.RLIMIT_NOFILE, self.open_files),
            "core": "0",
        }
        if processes:
            limits["nproc"] = _within(resource.RLIMIT_NPROC, self.processes)
        return [program, *(f"--{name}={value}" for name, value in limits.items()), "--"]

    def __str__(self) -> str:
        return (
            f"{self.cpu_s} s of CPU, {self.memory_bytes // MiB} MiB of memory, {self.open_files} open files "
            f"and {self.file_bytes // MiB} MiB a file for each process"
        )


class Bubblewrap:
    """Commands run in a sandbox of their own."""

    def __init__(
        self, outer: list[str], inner: list[str], limits: CommandLimits, version: str, *, apart: bool
    ) -> None:
        self._outer, self._inner = outer, inner
        self._limits, self._version = limits, version
        self._apart = apart
        self.environment: Mapping[str, str] = {"PATH": PATH, "LANG": "C.UTF-8"}

    def wrap(self, argv: list[str]) -> list[str]:
        """What to start for `argv`. It ends with the code of the program, or 128+n for signal n."""
        return [*self._outer, *self._inner, *argv]

    def describe(self) -> str:
        return (
            f"commands run in {self._version}: no network, read-only system, empty home, clean environment, "
            f"as nobody; {self._limits}, {self._limits.processes} processes and "
            f"{self._limits.scratch_bytes // MiB} MiB in each of /work and /tmp for a stage; the memory of "
            "all processes together is not limited"
            + ("" if self._apart else "; what is mounted below /usr while a command runs is open to it")
        )


class Unsandboxed:
    """Commands run as the worker's user, because the operator said so."""

    def __init__(
        self, why: str, limits: CommandLimits, prlimit: str | None, setpriv: str | None = None
    ) -> None:
        self._why = why
        self._limits = limits
        self._limited = prlimit is not None
        # a worker that is killed takes its commands along, though not what they started
        self._prefix = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        # not the number of processes: without a namespace that counts all of this user's
        self._prefix += limits.prlimit(prlimit, processes=False) if prlimit else []
        self.environment: Mapping[str, str] = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": "/nonexistent"}

    def wrap(self, argv: list[str]) -> list[str]:
        """What to start for `argv`."""
        return [*self._prefix, *argv]

    def describe(self) -> str:
        limits = str(self._limits) if self._limited else "no limits, because prlimit (util-linux) is missing"
        return (
            f"commands run WITHOUT a sandbox, as user {os.geteuid()}: they may read, write and reach what "
            f"the worker may; {limits}. No sandbox because {self._why}"
        )


class Refused:
    """Commands are off; every use says why."""

    environment: Mapping[str, str] = {}

    def __init__(self, why: str) -> None:
        self.why = why

    def wrap(self, argv: list[str]) -> list[str]:
        """Raises `CommandsOff`."""
        raise CommandsOff(self.why)

    def describe(self) -> str:
        return str(CommandsOff(self.why))


Sandbox = Bubblewrap | Unsandboxed | Refused


def find(
    *,
    allow_unsandboxed: bool = False,
    private: Iterable[Path] = (),
    limits: CommandLimits | None = None,
    search_path: str | None = None,
) -> Sandbox:
    """What commands of this worker run in. A sandbox is tried by running `true` in it, so this takes some
    10 ms; it is used wherever it works, `allow_unsandboxed` says what to do where it does not.

    `private` are directories not to be seen even if they lie under /usr: the worker's own, unless the
    programs lie in them. Programs of the sandbox are looked for in `search_path` (default: PATH).
    """
    bounds = limits or CommandLimits()
    if not hasattr(os, "pidfd_open"):
        return Refused("they need Linux")
    try:
        return _bubblewrap(bounds, [*map(Path, HIDDEN), *private], search_path)
    except CommandsOff as problem:
        if allow_unsandboxed:
            tools = (shutil.which(name, path=search_path) for name in ("prlimit", "setpriv"))
            return Unsandboxed(problem.why, bounds, *tools)
        return Refused(f"{problem.why}, and the worker was not started with --unsandboxed-commands")


def _bubblewrap(limits: CommandLimits, private: list[Path], search_path: str | None) -> Bubblewrap:
    """A sandbox that was seen to work. Raises `CommandsOff`."""

    def program(name: str, package: str) -> str:
        found = shutil.which(name, path=search_path)
        if found is None:
            raise CommandsOff(f"{name} ({package}) is not installed")
        return found

    bwrap = program("bwrap", "bubblewrap")
    version = _ask([bwrap, "--version"]).stdout.strip() or "bubblewrap"
    known = _ask([bwrap, "--help"])
    if missing := [option for option in NEEDED if option not in known.stdout + known.stderr]:
        raise CommandsOff(f"{version} has no {missing[0]}; 0.8 or later is needed")
    prlimit = program("prlimit", "util-linux")
    apart = [program("unshare", "util-linux"), "--mount", "--propagation", "private"]
    outer = []
    if os.geteuid() == 0:
        become = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
        outer += [program("setpriv", "util-linux"), *become]
    else:
        apart += ["--user", "--map-current-user"]
    if choom := shutil.which("choom", path=search_path):
        outer += [choom, "-n", "1000", "--"]
    outer += [bwrap, *_walls(limits, private), "--"]
    inner = limits.prlimit(prlimit, processes=True)

    # some systems let bubblewrap make namespaces, and nobody else
    for around in ([*apart, "--"], []):
        made = Bubblewrap([*around, *outer], inner, limits, version, apart=bool(around))
        tried = _ask(made.wrap(["true"]), made.environment)
        if tried.returncode == 0:
            return made
    said = (tried.stderr.strip().splitlines() or [f"exit code {tried.returncode}"])[-1]
    raise CommandsOff(f"{version} cannot make a sandbox here ({said})")


def _walls(limits: CommandLimits, private: list[Path]) -> list[str]:
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
    for directory in private:
        real = directory.resolve()
        programs = any(Path(place).is_relative_to(real) for place in PATH.split(":"))
        if real.is_dir() and real.is_relative_to("/usr") and not programs:
            walls += ["--tmpfs", str(real), "--remount-ro", str(real)]
    walls += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    for scratch in ("/tmp", HOME):
        walls += ["--size", str(limits.scratch_bytes), "--tmpfs", scratch]
    return [*walls, "--remount-ro", "/", "--chdir", HOME]


def _within(which: int, soft: int, hard: int | None = None) -> str:
    """The limit as `soft:hard`, not above what this process may have, for it could not be raised."""
    _, most = resource.getrlimit(which)
    values = (soft, soft if hard is None else hard)
    return ":".join(str(value if most == resource.RLIM_INFINITY else min(value, most)) for value in values)


def _ask(argv: list[str], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
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

"""The launcher of one command: adds the isolation that a sandbox engine lacks, then starts the engine.

    both        an empty session keyring; first victim of the OOM killer; dies with the worker
    bubblewrap  a mount namespace with bounded scratch; then this process execs bubblewrap
    sandlock    `fdstore_workers.pipeline.sandlock_supervise`

The launcher starts for every command, so it imports as little as possible: imports dominate its start time.
Its arguments are settings `name=value` (`argument`, `readable` and `private` may repeat), then `--` and the
program. On a failure of its own it prints a line to stderr and exits with `NOT_MADE`; any other code is the
program's or bubblewrap's. A program may exit with `NOT_MADE` too, so the launcher reports whether the program
ran to the descriptor that `$FDSTORE_STATUS` names (see `has_run`):

    bubblewrap  {"child-pid": 7}   starting        {"exit-code": 1}   the program has started and ended
    sandlock    started            the program has started
    both        failed             the launcher failed, before that or while the program ran
"""

from __future__ import annotations

import os
import sys

from fdstore_workers.pipeline import kernel, sandbox_root, syscall_filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

NOT_MADE = 125
"""The exit code if the sandbox could not be created."""

STATUS = "FDSTORE_STATUS"
STARTED, FAILED = b"started\n", b"failed\n"

_SIGKILL = 9
_BEGIN = "import sys; sys.path.append(sys.argv[1]); from fdstore_workers.pipeline.launch import main; main()"

Settings = dict[str, list[str]]


def launcher_command(settings: Settings, program: list[str], *, packages: bool) -> list[str]:
    """Return the command line of the launcher. `packages` makes installed packages importable, at a cost."""
    words = [f"{name}={value}" for name, values in settings.items() for value in values]
    # appended to sys.path, so that no file of ours shadows the standard library
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    options = ["-I"] if packages else ["-I", "-S"]
    return [sys.executable, *options, "-c", _BEGIN, root, f"parent={os.getpid()}", *words, "--", *program]


def has_run(reported: bytes) -> bool:
    """Return whether the program ran in its sandbox, given the complete report of its launcher.

    >>> has_run(b'{ "child-pid": 7 }\\n{ "exit-code": 1 }\\n'), has_run(b'{ "child-pid": 7 }\\n')
    (True, False)
    >>> has_run(b"started\\n"), has_run(b"started\\nfailed\\n"), has_run(b"")
    (True, False, False)
    """
    return (b'"exit-code"' in reported or STARTED in reported) and FAILED not in reported


def main() -> NoReturn:
    """Start the program in its sandbox."""
    words = sys.argv[2:]
    # remove it from the environment, which the program may inherit
    status = os.environ.pop(STATUS, "")
    try:
        end = words.index("--")
        settings: Settings = {}
        for name, _, value in (word.partition("=") for word in words[:end]):
            settings.setdefault(name, []).append(value)
        settings["status"] = [status]
        _prepare()
        if settings["engine"] == ["bubblewrap"]:
            _become_bubblewrap(settings, words[end + 1 :])
        from fdstore_workers.pipeline import sandlock_supervise

        os._exit(sandlock_supervise.run(settings, words[end + 1 :]))
    except Exception as error:  # noqa: BLE001  (reported on stderr, the worker's only source)
        os.write(2, f"fdstore: no sandbox: {error}\n".encode())
        report(status, FAILED)
        os._exit(NOT_MADE)


def report(status: str, line: bytes) -> None:
    """Write to the status descriptor `status`, unless it is empty."""
    if status:
        os.write(int(status), line)


def _prepare() -> None:
    kernel.restore_signals()
    try:  # noqa: SIM105  (importing contextlib would take longer than this whole function)
        kernel.join_new_session_keyring()
    except OSError:
        pass  # a container may lack keyrings; the filter refuses them anyway
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write("1000")
    except OSError:
        pass


def _become_bubblewrap(settings: Settings, program: list[str]) -> NoReturn:
    arguments = settings["argument"]
    if settings["own_namespaces"] == ["1"]:
        work, tmp = sandbox_root.enter_with_scratch(*scratch(settings))
        arguments += ["--bind", work, "/work", "--bind", tmp, "/tmp"]
    sandbox_root.become_nobody()
    die_with_worker(settings, _SIGKILL)
    code = syscall_filter.make(sockets=True, attributes=True, supervised=False)
    if code is not None:
        file = os.memfd_create("filter", 0)
        os.write(file, code)
        os.lseek(file, 0, os.SEEK_SET)
        arguments += ["--seccomp", str(file)]
    if status := settings["status"][0]:
        arguments += ["--json-status-fd", status]
    os.execv(arguments[0], [*arguments, "--remount-ro", "/", "--chdir", "/work", "--", *program])


def scratch(settings: Settings) -> tuple[int, int]:
    """Return the limits of bytes and inodes for each of /work and /tmp."""
    return int(settings["scratch_bytes"][0]), int(settings["scratch_inodes"][0])


def die_with_worker(settings: Settings, signal_number: int) -> None:
    """Request a signal for the end of the worker; if it has ended already, kill this process."""
    kernel.die_with_parent(signal_number)
    if os.getppid() != int(settings["parent"][0]):
        os.kill(os.getpid(), _SIGKILL)

"""The launcher of one command: makes the walls that an engine of sandboxes lacks, and starts the engine.

    both        a session keyring of its own; first to be ended when memory is short; ends with the worker
    bubblewrap  a mount namespace with bounded scratch; then this process becomes bubblewrap
    sandlock    `fdstore_workers.pipeline.supervise`

It starts for every command, so it imports next to nothing: what takes longest is what Python imports. Its
words are settings, `name=value`, of which `argument`, `readable` and `private` come many times, then `--` and
the program. What goes wrong here is `NOT_MADE` with a line on stderr; any other code is the program's or
bubblewrap's. A program may end with any code, so whether there was one is reported apart from it, to the
descriptor that `$FDSTORE_STATUS` names (see `has_run`):

    bubblewrap  {"child-pid": 7}   it begins       {"exit-code": 1}   the program was started and has ended
    sandlock    started            the program was started
    both        failed             the launcher failed, before that or while the program ran
"""

from __future__ import annotations

import os
import sys

from fdstore_workers.pipeline import kernel, namespaces, syscall_filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

NOT_MADE = 125
"""The exit code when there could be no sandbox."""

STATUS = "FDSTORE_STATUS"
STARTED, FAILED = b"started\n", b"failed\n"

_SIGKILL = 9
_BEGIN = "import sys; sys.path.append(sys.argv[1]); from fdstore_workers.pipeline.launch import main; main()"

Settings = dict[str, list[str]]


def launcher_command(settings: Settings, program: list[str], *, packages: bool) -> list[str]:
    """Return what starts the launcher; `packages`: with those that are installed, which takes longer."""
    words = [f"{name}={value}" for name, values in settings.items() for value in values]
    # after the standard library: nothing beside this file stands in for it
    beside = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    options = ["-I"] if packages else ["-I", "-S"]
    return [sys.executable, *options, "-c", _BEGIN, beside, f"parent={os.getpid()}", *words, "--", *program]


def has_run(reported: bytes) -> bool:
    """Return whether the program ran in its sandbox, by all that a launcher that has ended reported.

    >>> has_run(b'{ "child-pid": 7 }\\n{ "exit-code": 1 }\\n'), has_run(b'{ "child-pid": 7 }\\n')
    (True, False)
    >>> has_run(b"started\\n"), has_run(b"started\\nfailed\\n"), has_run(b"")
    (True, False, False)
    """
    return (b'"exit-code"' in reported or STARTED in reported) and FAILED not in reported


def main() -> NoReturn:
    """Start the program in its sandbox."""
    words = sys.argv[2:]
    # out of the environment, which the program may inherit
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
        from fdstore_workers.pipeline import supervise

        os._exit(supervise.run(settings, words[end + 1 :]))
    except Exception as error:  # noqa: BLE001  (the line on stderr is all that the worker gets)
        os.write(2, f"fdstore: no sandbox: {error}\n".encode())
        report(status, FAILED)
        os._exit(NOT_MADE)


def report(status: str, what: bytes) -> None:
    """Write to the descriptor of that number, if there is one."""
    if status:
        os.write(int(status), what)


def _prepare() -> None:
    kernel.restore_signals()
    try:  # noqa: SIM105  (contextlib takes longer to import than all of this to run)
        kernel.join_new_session_keyring()
    except OSError:
        pass  # a container may have no keyrings; the filter refuses them in any case
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write("1000")
    except OSError:
        pass


def _become_bubblewrap(settings: Settings, program: list[str]) -> NoReturn:
    arguments = settings["argument"]
    if settings["apart"] == ["1"]:
        work, tmp = namespaces.enter_with_scratch(*scratch(settings))
        arguments += ["--bind", work, "/work", "--bind", tmp, "/tmp"]
    namespaces.become_nobody()
    end_with(settings, _SIGKILL)
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
    """Bytes and files that /work and /tmp may have, each."""
    return int(settings["scratch_bytes"][0]), int(settings["scratch_inodes"][0])


def end_with(settings: Settings, signal_number: int) -> None:
    """Get a signal when the worker ends, and end now if it has."""
    kernel.die_with_parent(signal_number)
    if os.getppid() != int(settings["parent"][0]):
        os.kill(os.getpid(), _SIGKILL)

"""The launcher of one command: adds the isolation that a sandbox engine lacks, then starts the engine.

    both        an empty session keyring; first victim of the OOM killer; dies with the worker
    bubblewrap  a mount namespace with bounded scratch; then this process execs bubblewrap
    sandlock    `fdstore_workers.pipeline.sandlock_supervise`

The launcher starts for every command, so it imports as little as possible: imports dominate its start time.
Its arguments are settings `name=value` (`argument`, `readable` and `private` may repeat), then `--` and the
program. How it reports what became of it: `launch_settings`.
"""

from __future__ import annotations

import os
import sys

from fdstore_workers.pipeline import kernel, sandbox_root, syscall_filter
from fdstore_workers.pipeline.launch_settings import (
    FAILED,
    NOT_MADE,
    SIGKILL,
    STATUS,
    Settings,
    die_with_worker,
    report,
    scratch,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_BEGIN = "import sys; sys.path.append(sys.argv[1]); from fdstore_workers.pipeline.launch import main; main()"


def launcher_command(settings: Settings, program: list[str], *, packages: bool) -> list[str]:
    """Return the command line of the launcher. `packages` makes installed packages importable, at a cost."""
    words = [f"{name}={value}" for name, values in settings.items() for value in values]
    # appended to sys.path, so that no file of ours shadows the standard library
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    options = ["-I"] if packages else ["-I", "-S"]
    return [sys.executable, *options, "-c", _BEGIN, root, f"parent={os.getpid()}", *words, "--", *program]


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
    die_with_worker(settings, SIGKILL)
    code = syscall_filter.make(sockets=True, attributes=True, supervised=False)
    if code is not None:
        file = os.memfd_create("filter", 0)
        os.write(file, code)
        os.lseek(file, 0, os.SEEK_SET)
        arguments += ["--seccomp", str(file)]
    if status := settings["status"][0]:
        arguments += ["--json-status-fd", status]
    os.execv(arguments[0], [*arguments, "--remount-ro", "/", "--chdir", "/work", "--", *program])

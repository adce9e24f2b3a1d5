"""Settings of the launcher of a command, and its reports whether the program ran.

On a failure of its own the launcher prints a line to stderr and exits with `NOT_MADE`; any other code is the
program's or bubblewrap's. A program may exit with `NOT_MADE` too, so the launcher also writes to the
descriptor that `$FDSTORE_STATUS` names:

    bubblewrap  {"child-pid": 7}   starting        {"exit-code": 1}   the program has started and ended
    sandlock    started            the program has started
    both        failed             the launcher failed, before that or while the program ran
"""

from __future__ import annotations

import os

from fdstore_workers.pipeline import kernel

NOT_MADE = 125
"""The exit code if the sandbox could not be created."""

STATUS = "FDSTORE_STATUS"
STARTED, FAILED = b"started\n", b"failed\n"

Settings = dict[str, list[str]]

SIGKILL = 9


def has_run(reported: bytes) -> bool:
    """Return whether the program ran in its sandbox, given the complete report of its launcher.

    >>> has_run(b'{ "child-pid": 7 }\\n{ "exit-code": 1 }\\n'), has_run(b'{ "child-pid": 7 }\\n')
    (True, False)
    >>> has_run(b"started\\n"), has_run(b"started\\nfailed\\n"), has_run(b"")
    (True, False, False)
    """
    return (b'"exit-code"' in reported or STARTED in reported) and FAILED not in reported


def report(status: str, line: bytes) -> None:
    """Write to the status descriptor `status`, unless it is empty."""
    if status:
        os.write(int(status), line)


def scratch(settings: Settings) -> tuple[int, int]:
    """Return the limits of bytes and inodes for each of /work and /tmp."""
    return int(settings["scratch_bytes"][0]), int(settings["scratch_inodes"][0])


def die_with_worker(settings: Settings, signal_number: int) -> None:
    """Request a signal for the end of the worker; if it has ended already, kill this process."""
    kernel.die_with_parent(signal_number)
    if os.getppid() != int(settings["parent"][0]):
        os.kill(os.getpid(), SIGKILL)

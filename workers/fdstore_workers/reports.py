"""Reports of the worker's processes to their supervisor: lines in a pipe.

    PID ready                     the worker consumes messages from now on
    PID take PROCESS              it received a message; the task may still wait for a free slot
    PID claim PROCESS CLAIM       it is about to claim the process under this id, and to run it in a slot
    PID beside PROCESS CLAIM      the same, in no slot: a pipeline
    PID lost PROCESS CLAIM        the process is another's by now or was cancelled, but its call goes on here
    PID enter PROCESS CLAIM       it begins to run code of the user for the process
    PID leave PROCESS CLAIM       that code has ended
    PID release PROCESS CLAIM     it has finished with the process, in whatever way
    PID alone PROCESS             the process must run in an operating-system process of its own
    PID beat                      its threads run; every second, once it works, and in a prefork pool each

A claim is reported before it is made, so the supervisor knows all processes that a dead worker held and need
not wait for their leases. Lines are shorter than the atomic write size of a pipe, so threads and processes
can share a pipe without a lock. The supervisor does not trust the reports: a false claim changes nothing,
because the store compares claims.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

MAX_LINE_BYTES = 512
"""The limit for a line. POSIX guarantees atomic writes of this size."""

BEAT_EVERY_S = 1.0

WORDS = {
    "ready": 2,
    "take": 3,
    "claim": 4,
    "beside": 4,
    "lost": 4,
    "enter": 4,
    "leave": 4,
    "release": 4,
    "alone": 3,
    "beat": 2,
}
"""The number of words of each kind of line."""


class Report(msgspec.Struct, frozen=True):
    """One line: the reporting pid, the verb, the process and the claim."""

    pid: int
    verb: str
    process: str = ""
    claim: str = ""


class Reporter:
    """The write end of the pipe for reports. All threads and later forks may use it. Without `fd` it drops
    all reports."""

    def __init__(self, fd: int | None = None) -> None:
        self._fd = fd

    def ready(self) -> None:
        self._write("ready")

    def take(self, process: str) -> None:
        self._write("take", process)

    def claim(self, process: str, claim: str, *, in_slot: bool = True) -> None:
        self._write("claim" if in_slot else "beside", process, claim)

    def lost(self, process: str, claim: str) -> None:
        self._write("lost", process, claim)

    @contextmanager
    def user_code(self, process: str, claim: str) -> Iterator[None]:
        """Report that the block runs code of the user: if it kills this operating-system process, it is the
        process's doing."""
        self._write("enter", process, claim)
        try:
            yield
        finally:
            self._write("leave", process, claim)

    def release(self, process: str, claim: str) -> None:
        self._write("release", process, claim)

    def alone(self, process: str) -> None:
        self._write("alone", process)

    def beat(self) -> None:
        """Report from now on, from a thread, that the threads of this operating-system process run."""

        def run() -> None:
            while True:
                self._write("beat")
                time.sleep(BEAT_EVERY_S)

        if self._fd is not None:
            threading.Thread(target=run, name="heartbeat", daemon=True).start()

    def _write(self, *words: str) -> None:
        line = " ".join((str(os.getpid()), *words)).encode() + b"\n"
        if self._fd is not None and len(line) <= MAX_LINE_BYTES:
            with suppress(OSError):  # the supervisor has died, and this process dies with it
                os.write(self._fd, line)


def parse(line: bytes) -> Report | None:
    """Return the report in a line, None if it is malformed."""
    words = line.decode("ascii", "replace").split(" ")
    if len(words) < 2 or len(words) != WORDS.get(words[1]) or "" in words:
        return None
    return Report(int(words[0]), *words[1:]) if words[0].isdecimal() and len(words[0]) <= 10 else None

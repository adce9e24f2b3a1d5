"""What the processes of a worker tell their supervisor: one line each, over a pipe.

    PID ready                     messages are taken from now on
    PID take PROCESS              a message was taken; its task may have to wait for a free place
    PID claim PROCESS CLAIM       is about to ask for the process under this claim
    PID release PROCESS CLAIM     has come to an end with it, whatever that was
    PID alone PROCESS             the process must have an operating-system process of its own

A claim is told before it is made, so there is no moment at which a process is held by somebody whose
death would leave it to its lease. A line is shorter than what a pipe takes in one piece, so the threads
and processes that share a pipe need no lock. The supervisor believes nothing of it: an untrue claim
changes no record, since the store compares it.
"""

from __future__ import annotations

import os
from contextlib import suppress

import msgspec

MAX_LINE_BYTES = 512
"""Of a line. POSIX promises that this much is written in one piece."""


WORDS = {"ready": 2, "take": 3, "claim": 4, "release": 4, "alone": 3}
"""How many words a line of each kind has."""


class Report(msgspec.Struct, frozen=True):
    """One line: who says it, what, of which process, under which claim."""

    pid: int
    verb: str
    process: str = ""
    claim: str = ""


class Reporter:
    """The end of the pipe that reports are written to. Any thread, and any process forked later, may use
    it. Without a descriptor it tells nobody."""

    def __init__(self, fd: int | None = None) -> None:
        self._fd = fd

    def ready(self) -> None:
        self._say("ready")

    def take(self, process: str) -> None:
        self._say("take", process)

    def claim(self, process: str, claim: str) -> None:
        self._say("claim", process, claim)

    def release(self, process: str, claim: str) -> None:
        self._say("release", process, claim)

    def alone(self, process: str) -> None:
        self._say("alone", process)

    def _say(self, *words: str) -> None:
        line = " ".join((str(os.getpid()), *words)).encode() + b"\n"
        if self._fd is not None and len(line) <= MAX_LINE_BYTES:
            with suppress(OSError):  # the supervisor is gone, and soon this process is too
                os.write(self._fd, line)


def parse(line: bytes) -> Report | None:
    """Return what a line says, None for one that says nothing."""
    words = line.decode("ascii", "replace").split(" ")
    if len(words) < 2 or len(words) != WORDS.get(words[1]) or "" in words:
        return None
    return Report(int(words[0]), *words[1:]) if words[0].isdecimal() and len(words[0]) <= 10 else None

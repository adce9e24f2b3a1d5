"""The processor time of interpreter processes, and its limit.

The interpreter measures its own limit of time with a clock on the wall, so on a busy machine a program would
be ended long before it had its processor time. Linux has a clock for each process, which others can read. One
thread of this process looks at those of all sessions, and ends a program that is past its limit.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

LOOK_EVERY_S = 0.1


class ProcessorClock:
    """The processor time of a process, or of its only child: in a sandbox that is the interpreter."""

    def __init__(self, pid: int) -> None:
        self._pid = _child(pid) or pid

    def read(self) -> float:
        """Return the seconds so far; of a process that has ended those of the last look."""
        with suppress(OSError):
            # the clock's number in Linux: the complement of the pid, then "of all threads", "while scheduled"
            self._seconds = time.clock_gettime(~self._pid << 3 | 2)
        return self._seconds

    _seconds = 0.0


def find_clock(pid: int | None) -> ProcessorClock | None:
    """Return the clock of a process; None where the system has none."""
    if pid is None or sys.platform != "linux":
        return None
    clock = ProcessorClock(pid)
    return clock if clock.read() > 0 else None


def wall_limit(seconds: float) -> float:
    """Return the interpreter's own limit for a program that may use `seconds` of processor time.

    Where the processor time is watched, it ends only what the watch has missed.
    """
    return 20 * seconds + 60 if sys.platform == "linux" else seconds


def _child(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = file.read().split()
    except OSError:
        return None
    return int(children[0]) if children else None


class LimitWatch:
    """Calls functions regularly on a thread, which lives while there are any. A function ends with False."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._checks: dict[int, Callable[[], bool]] = {}
        self._thread: threading.Thread | None = None

    def add(self, check: Callable[[], bool]) -> None:
        with self._lock:
            self._checks[id(check)] = check
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="fdstore-interpreter-time", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(LOOK_EVERY_S)
            for key, check in list(self._checks.items()):
                if not check():
                    with self._lock:
                        del self._checks[key]
            with self._lock:
                if not self._checks:
                    self._thread = None
                    return


watch = LimitWatch()


def _renew() -> None:
    global watch
    watch = LimitWatch()


os.register_at_fork(after_in_child=_renew)

"""Wait for a store that does not answer, or takes no writes, with what must be written: how work ended.

Each call waits until its own deadline (see `wire.retry`); here it is repeated after that, with growing
pauses. A program that waits says so once a minute, however many threads of it wait, and once when it goes on.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from fdstore.errors import STORE_FAILURES, FDStoreError, NewerFormat

T = TypeVar("T")

SAY_EVERY_S = 60.0

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0


class Lost(Protocol):
    """An event: the process of this work is lost to another worker, or was cancelled."""

    def wait(self, timeout: float | None = None) -> bool: ...


class WaitLog:
    """The lines in the log about waiting for a store. Thread-safe.

    >>> lines = WaitLog(logging.getLogger("doc"), "a pipeline waits for the store")
    >>> lines.waits(OSError("away")), lines.goes_on()
    (None, None)
    """

    def __init__(self, log: logging.Logger, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._what = what
        self._clock = clock
        self._lock = threading.Lock()
        self._since = math.inf
        self._silent_until = -math.inf
        self._is_said = False

    def waits(self, problem: object) -> None:
        """Note that something waits; logged at most once in `SAY_EVERY_S`."""
        with self._lock:
            now = self._clock()
            self._since = min(self._since, now)
            if now < self._silent_until:
                return
            self._silent_until = now + SAY_EVERY_S
            self._is_said = True
        self._log.warning("%s: %s", self._what, problem)

    def goes_on(self) -> None:
        """Note that the store took something; logged if the wait was."""
        if self._since == math.inf:
            return
        with self._lock:
            waited_s, self._since = self._clock() - self._since, math.inf
            is_said, self._is_said = self._is_said, False
        if is_said:
            self._log.warning("%s: no longer, after %.0f s", self._what, waited_s)


def until_taken(
    step: Callable[[], T],
    lost: Lost,
    waiting: WaitLog,
    failures: tuple[type[FDStoreError], ...] = STORE_FAILURES,
) -> T:
    """Repeat the idempotent `step` while it raises one of these `failures`, and return its result. Raises
    what it raised if the process is lost meanwhile, and errors that no wait mends."""
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            result = step()
        except NewerFormat:
            raise
        except failures as error:
            waiting.waits(error)
            if lost.wait(pause_s):
                raise
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        else:
            waiting.goes_on()
            return result

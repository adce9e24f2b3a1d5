"""Interrupt reads at random moments, repeatedly, and read again: in a separate process, since the bug that
this tests for crashed the interpreter.

    python -m tests.on_redis.interrupted URL TRIALS SEED

Prints the number of interrupted reads; raises an error for the first wrong text.
"""

from __future__ import annotations

import random
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import fdstore
from fdstore.client import Process

PAGES = 3000
PAGE_SIZE = 20


def page(number: int) -> str:
    return f"{number:>{PAGE_SIZE - 1}}\n"


class Interrupts:
    """Raise KeyboardInterrupt up to three times, the first time somewhere within `work`."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._left = 0
        self.count = 0
        signal.signal(signal.SIGALRM, self._raise)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if self._left:
            self._left -= 1
            self.count += 1
            raise KeyboardInterrupt

    def within(self, work: Callable[[], object], seconds: float) -> None:
        first, next_ = self._random.uniform(1e-5, seconds), self._random.uniform(2e-5, 3e-4)
        # each may arrive while the previous one is being handled
        with suppress(KeyboardInterrupt), suppress(KeyboardInterrupt), suppress(KeyboardInterrupt):
            try:
                self._left = 3
                signal.setitimer(signal.ITIMER_REAL, first, next_)
                work()
            finally:
                self._left = 0
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._left = 0


def check(proc: Process, trial: int) -> None:
    for number in (1 + trial, PAGES - trial % 100):
        found = proc.read("fd:1", start=number).text
        assert found == page(number), f"page {number} is {found!r}"
    found = proc.read("fd:1", mode="line", start=1000, count=3).text
    assert found == page(1000) + page(1001) + page(1002), found


def main(url: str, trials: int, seed: int) -> None:
    whole = "".join(map(page, range(1, PAGES + 1)))
    with fdstore.connect(url) as store:
        proc = store.process("interrupted")
        proc.create(whole, page_size=PAGE_SIZE)
        interrupts = Interrupts(seed)
        work: list[tuple[Callable[[], object], float]] = [
            (lambda: proc.read("fd:1", read_all=True), 0.02),
            (lambda: [proc.read("fd:1", start=number) for number in range(1, 40)], 0.004),
            (lambda: [proc.stat("fd:1"), proc.list(), proc.create("text")], 0.003),
            (lambda: store.process("interrupted").read("fd:1", start=7), 0.002),
        ]
        for trial in range(trials):
            interrupts.within(*work[trial % len(work)])
            check(proc, trial)
        assert proc.read("fd:1", read_all=True).text == whole
    print(f"{trials} trials, {interrupts.count} interrupts, seed {seed}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

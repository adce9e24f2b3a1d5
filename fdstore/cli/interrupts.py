"""SIGTERM and SIGHUP as Ctrl-C: what a command runs is cancelled, or left, as --on-interrupt says.

Without this, `kill`, a closed terminal or a stopped service would end the command at once, and its agent
would go on at some worker.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A signal asked this program to end. `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def as_interrupts() -> Iterator[None]:
    """Raise `Interrupted` in this block, which must be in the main thread, at the first SIGTERM or SIGHUP,
    and ignore the next ones: they come in pairs, and would end the cleaning up. One that is ignored
    already, as under nohup, stays so."""

    def interrupt(number: int, _: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(number)

    before = {each: signal.getsignal(each) for each in SIGNALS}
    before = {each: handler for each, handler in before.items() if handler is not signal.SIG_IGN}
    for each in before:
        signal.signal(each, interrupt)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)

"""Signals that end a command, or what it runs.

SIGTERM and SIGHUP are treated like Ctrl-C: the agent of a command is cancelled or left, as --on-interrupt
says. Otherwise `kill`, a closed terminal or a stopped service would end the command without clean-up, and its
agent would continue on a worker.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGHUP)

AGAIN_S = 0.05
"""After this time a signal that arrived in a destructor is sent again."""


class Interrupted(KeyboardInterrupt):
    """A signal that asks this program to end, with its `number`."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def as_interrupts() -> Iterator[None]:
    """Raise `Interrupted` in this block at the first SIGTERM or SIGHUP, and ignore further ones: they often
    come in pairs, and the second would interrupt the clean-up. A signal that is already ignored, as under
    nohup, stays ignored. Only for the main thread."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if _is_in_destructor(frame):
            threading.Timer(AGAIN_S, os.kill, (os.getpid(), number)).start()
            return
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


@contextmanager
def calling_at_ctrl_c(interrupt: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Call this function at each Ctrl-C in this block, instead of raising `KeyboardInterrupt` at whatever
    statement runs then. Yield whether there was one. Only for the main thread."""
    count = 0

    def call(_number: int, _frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        interrupt()

    before = signal.signal(signal.SIGINT, call)
    try:
        yield lambda: count > 0
    finally:
        signal.signal(signal.SIGINT, before)


def _is_in_destructor(frame: FrameType | None) -> bool:
    """Return whether a `__del__` runs, where Python prints exceptions and ignores them."""
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None

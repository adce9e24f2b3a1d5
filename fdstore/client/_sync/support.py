"""The blocking versions of primitives that differ between the two clients; see `_async.support`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import RLock as Lock
from typing import Any

from fdstore.local.redis_server import resolve_store as find_store

__all__ = ["Event", "Lock", "find_store", "is_held_here", "join", "start", "wait_within"]


class Event:
    """An event for which one thread waits. It needs no lock, so a signal handler may set it wherever it
    interrupts the program, and then wait for that thread."""

    def __init__(self) -> None:
        self._is_set = False
        self._sets: SimpleQueue[None] = SimpleQueue()

    def is_set(self) -> bool:
        """Return whether it is set."""
        return self._is_set

    def set(self) -> None:
        """Set it, and wake the thread that waits."""
        self._is_set = True
        self._sets.put(None)

    def clear(self) -> None:
        """Unset it."""
        self._is_set = False
        with suppress(Empty):
            while True:
                self._sets.get_nowait()

    def wait(self, seconds: float) -> None:
        """Wait until it is set, for at most so long."""
        until = time.monotonic() + seconds
        with suppress(Empty):
            while not self._is_set:
                self._sets.get(timeout=max(0.0, until - time.monotonic()))


def is_held_here(lock: Any) -> bool:
    """Return whether this thread holds a `Lock` already: signal handlers run in the thread they interrupt."""
    held: bool = lock._is_owned()
    return held


def wait_within(event: Event, seconds: float) -> None:
    """Wait until `event` is set, for at most `seconds`."""
    event.wait(seconds)


def start(name: str, function: Callable[..., None], *args: Any) -> threading.Thread:
    """Start `function(*args)` in the background."""
    thread = threading.Thread(target=function, args=args, name=name, daemon=True)
    thread.start()
    return thread


def join(thread: threading.Thread) -> None:
    """Wait until a background thread has ended."""
    thread.join()

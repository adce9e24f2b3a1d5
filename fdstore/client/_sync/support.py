"""The blocking versions of primitives that differ between the two clients; see `_async.support`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from threading import Event, Lock
from typing import Any

from fdstore.local.redis_server import resolve_store as find_store

__all__ = ["Event", "Lock", "find_store", "join", "start", "wait_within"]


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

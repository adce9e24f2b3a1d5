"""Something that is looked at beside the work, every so often, from a thread of its own.

A lease must be kept while a model thinks, a pipeline be stopped when nobody reads it any more, and a tree
be watched while it runs: whatever the work is held up by, the look goes on, and it ends with the work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def run_periodically(every_s: float, look: Callable[[], bool], name: str) -> Iterator[None]:
    """Calls `look` in pauses of `every_s` seconds, until it answers False or the block is left. A look
    under way is waited for, so none comes after the block."""
    left = threading.Event()

    def keep() -> None:
        while not left.wait(every_s) and look():
            pass

    # a program that ends in the middle does not wait for what it looked at
    thread = threading.Thread(target=keep, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        left.set()
        thread.join()

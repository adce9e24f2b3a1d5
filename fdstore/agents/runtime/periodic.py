"""Call a function periodically on a background thread for the duration of a block.

For work that must not be delayed by the main thread: renewing a lease while a model answers, stopping a
pipeline without readers, displaying a running tree.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def run_periodically(every_s: float, look: Callable[[], bool], name: str) -> Iterator[None]:
    """Call `look` every `every_s` seconds until it returns False or the block exits. Join the thread on exit,
    so no call outlasts the block."""
    exited = threading.Event()

    def call_periodically() -> None:
        while not exited.wait(every_s) and look():
            pass

    # daemon: an interpreter that exits inside the block does not wait for a call
    thread = threading.Thread(target=call_periodically, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        exited.set()
        thread.join()

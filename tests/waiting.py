"""Bounded waiting for a condition that another thread or process makes true."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LOOK_EVERY_S = 0.02
PATIENCE_S = 60.0
"""Longer than anything takes that does not hang, on a busy machine too."""


def wait_until(happened: Callable[[], object], seconds: float = PATIENCE_S, what: str = "it") -> None:
    """Return when `happened()` is true; fail if it is still false after `seconds`."""
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, f"{what} did not happen within {seconds:g} s"
        threading.Event().wait(LOOK_EVERY_S)

"""The tools that agents of these tests are given by `[tools] python`."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import fdstore


def numbered(count: int) -> str:
    """So many numbered lines."""
    return "".join(f"{number} of {count}\n" for number in range(1, count + 1))


def rest(seconds: float) -> str:
    """Does nothing for a while, as a function that computes does. A file says that it has begun."""
    Path("resting").touch()
    threading.Event().wait(seconds)
    return f"rested for {seconds:g} s"


@fdstore.tool(repeatable=False)
def deliver(parcel: str) -> str:
    """Delivers, and ends the worker before anybody hears of it."""
    with Path("delivered").open("a") as book:
        book.write(f"{parcel}\n")
    os.kill(os.getpid(), signal.SIGKILL)
    return "never said"

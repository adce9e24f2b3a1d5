"""Python tools of the agents in these tests (`[tools] python`)."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import fdstore

HAND_OVER_S = 0.3


def numbered(count: int) -> str:
    """So many numbered lines."""
    return "".join(f"{number} of {count}\n" for number in range(1, count + 1))


def rest(seconds: float) -> str:
    """Sleep, as a long computation would, after creating a file that marks the start."""
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


@fdstore.tool(repeatable=False)
def hand_over(parcel: str) -> str:
    """Delivers, and takes a moment to return, so that faults happen meanwhile."""
    with Path("delivered").open("a") as book:
        book.write(f"{parcel}\n")
    threading.Event().wait(HAND_OVER_S)
    return f"{parcel} is delivered"
